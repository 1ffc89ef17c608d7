//! Slow clients: connections that do not get on are ended, and hold nothing up.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::service::Service;
use crate::support::Throughline;

/// Waiting longer than this means that a connection was not ended.
const LIMIT: Duration = Duration::from_secs(60);

fn connect(service: &Service) -> TcpStream {
    let address = service.base().strip_prefix("http://").unwrap();
    let stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(LIMIT)).unwrap();
    stream
}

fn read(mut stream: TcpStream) -> String {
    let mut text = String::new();
    // A reset is an end, too.
    let _ = stream.read_to_string(&mut text);
    text
}

const HALF: &[u8] = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n";

#[tokio::test]
async fn slow_headers_and_bodies_time_out() {
    let data = Throughline::new();
    let service = Service::start_with(&data, &["--set", "http.read_timeout_ms=300"]);
    let began = Instant::now();
    let halves: Vec<TcpStream> = (0..200)
        .map(|_| {
            let mut stream = connect(&service);
            stream.write_all(HALF).unwrap();
            stream
        })
        .collect();
    for stream in halves {
        assert!(!read(stream).contains(" 200 "), "a half header was answered");
    }
    let mut body = connect(&service);
    let head = "POST /v1/sessions/s/messages HTTP/1.1\r\nHost: localhost\r\n\
                Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{\"messages\":";
    body.write_all(head.as_bytes()).unwrap();
    let told = read(body);
    assert!(told.starts_with("HTTP/1.1 408") && told.contains("stopped arriving"), "{told}");
    assert!(began.elapsed() < LIMIT, "nothing waited for the read of this test to give up");
    assert!(service.get("/healthz").await.status.is_success());
}

#[cfg(unix)]
#[test]
fn slow_and_idle_connections_do_not_delay_shutdown() {
    let data = Throughline::new();
    let flags = ["--set", "http.read_timeout_ms=2000", "--set", "http.drain_ms=600000"];
    let mut service = Service::start_with(&data, &flags);
    let mut idle = connect(&service);
    idle.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut first = [0; 12];
    idle.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    let mut half = connect(&service);
    half.write_all(HALF).unwrap();
    service.terminate();
    assert!(service.wait(), "it ended well, long before the drain was over");
    read(idle);
    read(half);
}

#[tokio::test]
async fn a_body_that_is_too_large_gets_an_answer_that_can_be_read() {
    let data = Throughline::new();
    let service = Service::start_with(&data, &["--set", "http.max_body_mb=1"]);
    let mut stream = connect(&service);
    let body = vec![b'x'; 8 << 20];
    let head = format!(
        "POST /v1/sessions/s/messages HTTP/1.1\r\nHost: localhost\r\n\
         Connection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).unwrap();
    // The client reads only when it has sent everything.
    stream.write_all(&body).unwrap();
    let told = read(stream);
    assert!(told.starts_with("HTTP/1.1 413") && told.contains("larger than the limit"), "{told}");
}

#[test]
fn connections_have_a_limit_and_the_next_one_waits() {
    let data = Throughline::new();
    let flags = ["--set", "http.max_connections=2", "--set", "http.read_timeout_ms=500"];
    let service = Service::start_with(&data, &flags);
    let held: Vec<TcpStream> = (0..2)
        .map(|_| {
            let mut stream = connect(&service);
            stream.write_all(HALF).unwrap();
            stream
        })
        .collect();
    let mut next = connect(&service);
    next.write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    // It is answered once one of the others was ended.
    assert!(read(next).starts_with("HTTP/1.1 200"));
    drop(held);
}
