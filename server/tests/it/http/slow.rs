//! Slow clients: connections that do not get on are ended, and hold nothing up.

use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use reqwest::Method;
use serde_json::json;

use super::service::{Answer, Service, key};
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

#[tokio::test]
async fn a_header_that_is_too_large_is_refused_as_documented() {
    let data = Throughline::new();
    let service = Service::start_with(&data, &[]);
    let search = |length: usize| {
        let mut stream = connect(&service);
        let head = format!(
            "GET /v1/vaults/main/search?q={} HTTP/1.1\r\nHost: localhost\r\n\
             Connection: close\r\n\r\n",
            "x".repeat(length)
        );
        stream.write_all(head.as_bytes()).unwrap();
        read(stream)
    };
    let told = search(10_001);
    assert!(told.starts_with("HTTP/1.1 400") && told.contains("10000"), "{told}");
    let told = search(33_000);
    assert!(told.starts_with("HTTP/1.1 431"), "{told}");
    assert!(service.get("/healthz").await.status.is_success());
}

/// Long after the end of the test.
const PATIENT: [&str; 4] =
    ["--set", "http.read_timeout_ms=3600000", "--set", "http.body_timeout_ms=3600000"];

fn half_sent(service: &Service, count: usize) -> Vec<TcpStream> {
    let half = |_| {
        let mut stream = connect(service);
        stream.write_all(HALF).unwrap();
        stream
    };
    (0..count).map(half).collect()
}

fn healthz(service: &Service) -> String {
    let mut stream = connect(service);
    stream
        .write_all(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    read(stream)
}

#[tokio::test]
async fn new_connection_replaces_the_one_that_waits_longest() {
    let data = Throughline::new();
    let flags = ["--set", "http.max_connections=3"];
    let service = Service::start_with(&data, &[&flags[..], &PATIENT].concat());
    let mut halves = half_sent(&service, 1);
    let mut body = connect(&service);
    let head = "POST /v1/sessions/s/messages HTTP/1.1\r\nHost: localhost\r\n\
                Content-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n";
    body.write_all(head.as_bytes()).unwrap();
    // From then on the service waits for the body.
    let mut told = [0; 25];
    body.read_exact(&mut told).unwrap();
    assert_eq!(&told, b"HTTP/1.1 100 Continue\r\n\r\n");
    halves.extend(half_sent(&service, 1));
    assert!(healthz(&service).starts_with("HTTP/1.1 200"));
    service.logged("http.max_connections").await;
    assert_eq!(read(halves.remove(0)), "", "the oldest was closed");
    // A body that does not come waits, too.
    let mut more = Vec::new();
    while !is_closed(&body) {
        assert!(more.len() < 1_000, "{}", service.log());
        more.extend(half_sent(&service, 1));
        assert!(healthz(&service).starts_with("HTTP/1.1 200"));
    }
}

/// Whether the service ended a connection without an answer.
fn is_closed(mut stream: &TcpStream) -> bool {
    stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    match stream.read(&mut [0]) {
        Ok(read) => read == 0,
        Err(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
    }
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn connections_stay_below_the_limit_of_files() {
    let data = Throughline::new();
    let mut command = std::process::Command::new("sh");
    let serve = data.command(&["serve", "--listen", "127.0.0.1:0", "--json"]);
    command.args(["-c", "ulimit -n 128; exec \"$0\" \"$@\""]).arg(serve.get_program());
    command.args(serve.get_args()).args(PATIENT).current_dir(data.folder());
    for (name, value) in serve.get_envs() {
        match value {
            Some(value) => command.env(name, value),
            None => command.env_remove(name),
        };
    }
    let service = Service::spawn(command);
    let _halves = half_sent(&service, 200);
    assert!(healthz(&service).starts_with("HTTP/1.1 200"));
    let log = service.logged("may open 128 files").await;
    assert!(log.contains("accepts 64 connections instead of 768"), "{log}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn accepting_recovers_when_there_are_no_more_files() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};

    let data = Throughline::new();
    let service = Service::start_with(&data, &PATIENT);
    let _halves = half_sent(&service, 20);
    assert!(healthz(&service).starts_with("HTTP/1.1 200"), "all of them were accepted");
    let process = service.id();
    let open = std::fs::read_dir(format!("/proc/{process}/fd")).unwrap().count() as u64;
    let files = Rlimit { current: Some(open), maximum: Some(open) };
    let process = Pid::from_raw(i32::try_from(process).unwrap());
    prlimit(process, Resource::Nofile, files).unwrap();
    let _more = half_sent(&service, 20);
    assert!(healthz(&service).starts_with("HTTP/1.1 200"));
    service.logged("no connection can be accepted").await;
}

/// Stores more than a connection takes that nobody reads; its path.
async fn store_large(data: &Throughline, keys: &[&str]) -> &'static str {
    let service = Service::start(data);
    // Parts and attachments are not indexed, and have at most 1 MiB. A page ends with the message that fills it.
    let large = json!(["x".repeat(1_000_000)]);
    let message = json!({"role": "user", "content": "x", "parts": large, "attachments": large});
    let body = json!({"messages": vec![message; 8]});
    for key in keys {
        let append = service.request(Method::POST, "/v1/sessions/s/messages").bearer_auth(key);
        Answer::of(append.json(&body)).await.ok();
    }
    "/v1/sessions/s/messages"
}

/// Asks for something, and reads the status of the answer.
fn begin(service: &Service, path: &str, key: &str) -> TcpStream {
    let mut stream = connect(service);
    // Else the system takes for its client what that does not read.
    #[cfg(unix)]
    rustix::net::sockopt::set_socket_recv_buffer_size(&stream, 64 << 10).unwrap();
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Authorization: Bearer {key}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).unwrap();
    let mut first = [0; 12];
    stream.read_exact(&mut first).unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    stream
}

#[tokio::test]
async fn answers_that_are_not_read_are_memory_of_their_key() {
    let data = Throughline::new();
    let greedy = key(&data, "acme", &["--user", "ada"], "read,write");
    let other = key(&data, "bolt", &["--user", "bob"], "read,write");
    let path = store_large(&data, &[&greedy, &other]).await;
    let flags = ["--set", "http.max_body_mb=1", "--set", "http.max_bodies_mb=72"];
    let service = Service::start_with(&data, &[&flags[..], &PATIENT].concat());
    let unread = begin(&service, path, &greedy);
    let get = |key: &str| Answer::of(service.request(Method::GET, path).bearer_auth(key));
    let refused = get(&greedy).await;
    assert!(refused.problem(429, "rate_limited").contains("not read yet"), "{}", refused.status);
    assert!(refused.headers.contains_key("retry-after"));
    get(&other).await.ok();
    assert!(read(unread).len() > 5 << 20);
    get(&greedy).await.ok();
}

#[tokio::test]
async fn an_answer_has_a_time_limit_to_be_read() {
    let data = Throughline::new();
    let key = key(&data, "acme", &["--user", "ada"], "read,write");
    let path = store_large(&data, &[&key]).await;
    let flags = ["--set", "http.body_timeout_ms=1", "--set", "http.read_timeout_ms=3600000"];
    let service = Service::start_with(&data, &flags);
    let unread = begin(&service, path, &key);
    service.logged("was closed").await;
    assert!(read(unread).len() < 5 << 20);
}

#[tokio::test]
async fn answers_are_compressed_before_their_connection_gets_them() {
    let data = Throughline::new();
    let key = key(&data, "acme", &["--user", "ada"], "read,write");
    let path = store_large(&data, &[&key]).await;
    let service = Service::start(&data);
    let get = |path: &str| {
        let request = service.request(Method::GET, path).bearer_auth(&key);
        request.header("accept-encoding", "gzip").send()
    };
    let answer = get(path).await.unwrap();
    assert_eq!(answer.headers()["content-encoding"], "gzip");
    let length: usize = answer.headers()["content-length"].to_str().unwrap().parse().unwrap();
    let body = answer.bytes().await.unwrap();
    assert_eq!(body.len(), length);
    let whole = u32::from_le_bytes(body[body.len() - 4..].try_into().unwrap());
    assert!(body.starts_with(&[0x1f, 0x8b]) && whole > 5 << 20, "{whole}");
    // What needs no key costs no time on the processor.
    for path in ["/openapi.json", "/metrics", "/docs/"] {
        let answer = get(path).await.unwrap();
        assert!(!answer.headers().contains_key("content-encoding"), "{path}");
    }
}
