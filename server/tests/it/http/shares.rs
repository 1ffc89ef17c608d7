//! One key has a share of what the service has: of places, of memory, and of the processor.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};

use reqwest::Method;
use serde_json::json;
use tokio::task::{JoinHandle, JoinSet};

use super::service::{Answer, Service, key};
use crate::chat;
use crate::chat::upstream::Upstream;
use crate::mcp::client::{Caller, text};
use crate::support::Throughline;

/// Holds all writes of a store up, until it is dropped.
pub(super) fn lock_writes(data: &Throughline) -> rusqlite::Connection {
    let lock = rusqlite::Connection::open(data.database()).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    lock
}

/// Long after the end of a test.
pub(super) const WRITES_WAIT: [&str; 2] = ["--set", "sqlite.busy_timeout_ms=600000"];

/// Appends at once, each to a session of its own.
pub(super) fn appends(service: &Service, key: Option<&str>, count: usize) -> JoinSet<Answer> {
    let body = json!({"messages": [{"role": "user", "content": "The ferry leaves at nine."}]});
    let append = |n| {
        let path = format!("/v1/sessions/s{n}/messages");
        let request = service.request(Method::POST, &path).json(&body);
        Answer::of(match key {
            Some(key) => request.bearer_auth(key),
            None => request,
        })
    };
    (0..count).map(append).collect()
}

/// Uses keys, which is written down once a minute.
async fn used(service: &Service, keys: &[&str]) {
    for key in keys {
        Answer::of(service.request(Method::GET, "/v1/sessions").bearer_auth(key)).await.ok();
    }
}

#[tokio::test]
async fn one_key_leaves_places_to_the_others() {
    let data = Throughline::new();
    let greedy = key(&data, "acme", &["--user", "ada"], "read,write");
    let other = key(&data, "bolt", &["--user", "bob"], "read");
    let flags = ["--set", "http.max_in_flight=4", "--set", "http.max_in_flight_per_key=2"];
    let service = Service::start_with(&data, &[&flags[..], &WRITES_WAIT].concat());
    used(&service, &[&greedy, &other]).await;
    let lock = lock_writes(&data);
    // Two are at work, two wait for these, and one is refused.
    let mut held = appends(&service, Some(&greedy), 5);
    let refused = held.join_next().await.unwrap().unwrap();
    assert!(refused.problem(429, "rate_limited").contains("4 requests at once"), "{refused:?}");
    let caller = Caller::keyed(&service, &greedy);
    let refused = caller.call("list", &json!({})).await;
    assert!(text(&refused).starts_with("rate_limited: "), "{refused}");
    for _ in 0..3 {
        let list = service.request(Method::GET, "/v1/sessions").bearer_auth(&other);
        assert_eq!(Answer::of(list).await.ok()["items"], json!([]));
    }
    drop(lock);
    for answer in held.join_all().await {
        answer.ok();
    }
}

#[tokio::test]
async fn calls_of_models_of_one_key_leave_connections_to_the_others() {
    let (data, upstream) = (Throughline::new(), Upstream::start().await);
    let greedy = key(&data, "acme", &["--user", "ada"], "read,write,chat");
    let other = key(&data, "bolt", &["--user", "bob"], "read,write,chat");
    let service = chat::serve_with(&data, &upstream, &["--set", "http.max_connections=16"]);
    let held: Vec<_> = (0..4).map(|_| upstream.says_later("Yes.")).collect();
    let chat = |n: usize| {
        let path = format!("/v1/sessions/s{n}/chat");
        let turn = json!({"user_turn": "Does the ferry leave at nine?"});
        Answer::of(service.request(Method::POST, &path).bearer_auth(&greedy).json(&turn))
    };
    // A quarter of the connections wait for the model.
    let mut chats: JoinSet<Answer> = (0..16).map(chat).collect();
    for _ in 0..12 {
        let refused = chats.join_next().await.unwrap().unwrap();
        assert!(refused.problem(429, "rate_limited").contains("4 calls"), "{refused:?}");
        assert!(refused.headers.contains_key("retry-after"), "{refused:?}");
    }
    let complete = async |key: &str| {
        let body = json!({"model": "gpt-4.1", "messages": [{"role": "user", "content": "Hi."}]});
        let request = service.request(Method::POST, "/openai/v1/chat/completions");
        Answer::of(request.bearer_auth(key).json(&body)).await
    };
    let refused = complete(&greedy).await;
    assert_eq!(refused.status, 429, "{refused:?}");
    assert_eq!(refused.json()["error"]["code"], "rate_limited", "{refused:?}");
    upstream.is_asked(4).await;
    held.into_iter().for_each(|release| release.send(()).unwrap());
    for answer in chats.join_all().await {
        answer.ok();
    }
    complete(&other).await.ok();
    complete(&greedy).await.ok();
}

#[tokio::test]
async fn bodies_that_do_not_come_keep_no_places() {
    let data = Throughline::new();
    let flags = ["--set", "http.max_in_flight=1", "--set", "http.read_timeout_ms=3600000"];
    let service = Service::start_with(&data, &flags);
    let address = service.base().strip_prefix("http://").unwrap();
    let head = format!(
        "POST /v1/sessions/s/messages HTTP/1.1\r\nHost: {address}\r\n\
         Content-Type: application/json\r\nContent-Length: 99\r\n\r\n{{"
    );
    let half_sent: Vec<TcpStream> = (0..3)
        .map(|_| {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(head.as_bytes()).unwrap();
            stream
        })
        .collect();
    for n in 0..10 {
        let opened = service.post("/v1/sessions", &json!({"id": format!("s{n}")})).await;
        assert_eq!(opened.ok()["id"], format!("s{n}"));
    }
    drop(half_sent);
}

#[tokio::test]
async fn a_body_has_a_time_limit_though_it_keeps_coming() {
    let data = Throughline::new();
    let service = Service::start_with(&data, &["--set", "http.body_timeout_ms=300"]);
    let stream = TcpStream::connect(service.base().strip_prefix("http://").unwrap()).unwrap();
    let head = "POST /v1/sessions/s/messages HTTP/1.1\r\nHost: localhost\r\n\
                Content-Type: application/json\r\nContent-Length: 10000000\r\n\r\n";
    (&stream).write_all(head.as_bytes()).unwrap();
    let mut sender = stream.try_clone().unwrap();
    // It sends until the service hangs up.
    let sending = std::thread::spawn(move || {
        while sender.write_all(b" ").is_ok() {
            std::thread::yield_now();
        }
    });
    let mut answer = [0; 4_096];
    let read = (&stream).read(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer[..read]);
    assert!(
        answer.starts_with("HTTP/1.1 408") && answer.contains("too long to arrive"),
        "{answer}"
    );
    // The service may have hung up already.
    let _ = stream.shutdown(Shutdown::Both);
    sending.join().unwrap();
}

/// The most memory that the process of a service has held, in bytes.
#[cfg(target_os = "linux")]
fn peak(service: &Service) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", service.id())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().strip_suffix(" kB").unwrap().parse::<usize>().unwrap() << 10
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn values_of_a_body_are_limited_before_they_are_built() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let many = vec![r#"{"a":0}"#; 400_000].join(",");
    let table = [
        (
            Method::POST,
            "/v1/sessions/s/messages",
            format!(r#"{{"messages":[{{"role":"user","content":"x","parts":[{many}]}}]}}"#),
        ),
        (Method::PUT, "/v1/settings", format!(r#"{{"client_config":{{"x":[{many}]}}}}"#)),
        (
            Method::POST,
            "/v1/sessions/s/files",
            format!(r#"{{"type":"uploaded","title":"x","metadata":{{"x":[{many}]}}}}"#),
        ),
        (Method::POST, "/v1/contexts/import", format!(r#"{{"export":{{"x":[{many}]}}}}"#)),
        (Method::PUT, "/v1/vaults/v/memories/m/context", format!(r#"{{"x":[{many}]}}"#)),
        (
            Method::POST,
            "/openai/v1/chat/completions",
            format!(r#"{{"model":"x","messages":[{many}]}}"#),
        ),
        (
            Method::POST,
            "/mcp",
            format!(
                r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"whoami","arguments":{{"x":[{many}]}}}}}}"#
            ),
        ),
    ];
    service.get("/v1/sessions").await.ok();
    let before = peak(&service);
    for (method, path, body) in &table {
        let request = service
            .request(method.clone(), path)
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream");
        let answer = Answer::of(request.body(body.clone())).await;
        assert_eq!(answer.status, 400, "{path}: {answer:?}");
        assert!(answer.text.contains("too many values"), "{path}: {answer:?}");
    }
    let (most, largest) = (peak(&service) - before, table.iter().map(|row| row.2.len()).max());
    assert!(most <= 4 * largest.unwrap(), "{most} bytes for {largest:?}");
    let deep = format!("{}0{}", r#"{"a":"#.repeat(100), "}".repeat(100));
    let answer = service.request(Method::PUT, "/v1/settings").body(deep);
    let answer = Answer::of(answer.header("content-type", "application/json")).await;
    assert!(answer.problem(400, "invalid_input").contains("64 levels"), "{answer:?}");
    let with_parts = async |depth: usize| {
        let parts = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        let body = format!(r#"{{"messages":[{{"role":"user","content":"x","parts":{parts}}}]}}"#);
        let request = service.request(Method::POST, "/v1/sessions/deep/messages").body(body);
        Answer::of(request.header("content-type", "application/json")).await
    };
    with_parts(60).await.ok();
    let answer = with_parts(61).await;
    assert!(
        answer.problem(400, "invalid_input").contains("61 levels deep: at most 60"),
        "{answer:?}"
    );
}

#[tokio::test]
async fn an_operation_takes_no_larger_body_than_its_content_needs() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let long = "x".repeat(5 << 20);
    let settings = json!({"client_config": {"x": long}});
    let request = service.request(Method::PUT, "/v1/settings").json(&settings);
    let refused = Answer::of(request).await.problem(413, "invalid_input");
    assert!(refused.contains("4194304 bytes"), "{refused}");
    let parts = json!({"messages": [{"role": "user", "content": "x", "parts": long}]});
    let refused = service.post("/v1/sessions/s/messages", &parts).await;
    let refused = refused.problem(400, "invalid_input");
    assert!(refused.contains("parts"), "it was read: {refused}");
}

#[tokio::test]
async fn one_key_leaves_memory_to_the_others() {
    let data = Throughline::new();
    let greedy = key(&data, "acme", &["--user", "ada"], "read,write");
    let other = key(&data, "bolt", &["--user", "bob"], "read,write");
    let flags = ["--set", "http.max_body_mb=1", "--set", "http.max_bodies_mb=72"];
    let service = Service::start_with(&data, &[&flags[..], &WRITES_WAIT].concat());
    used(&service, &[&greedy, &other]).await;
    let lock = lock_writes(&data);
    // Of each, little is stored. 34 are less than one key may send at once, and the others wait for these.
    let ignored = "x".repeat(512 << 10);
    let body = json!({"messages": [{"role": "user", "content": "x", "audio": ignored}]});
    let append = |key: &str, n: usize| {
        let path = format!("/v1/sessions/s{n}/messages");
        Answer::of(service.request(Method::POST, &path).bearer_auth(key).json(&body))
    };
    let mut held: JoinSet<Answer> = (0..35).map(|n| append(&greedy, n)).collect();
    let refused = held.join_next().await.unwrap().unwrap();
    assert!(refused.problem(429, "rate_limited").contains("too large together"), "{refused:?}");
    let of_other = tokio::spawn(append(&other, 0));
    let list = service.request(Method::GET, "/v1/sessions").bearer_auth(&other);
    assert_eq!(Answer::of(list).await.ok()["items"], json!([]));
    drop(lock);
    held.spawn(async { of_other.await.unwrap() });
    for answer in held.join_all().await {
        answer.ok();
    }
}

/// Words of several scripts, all of them new.
fn mixed_scripts(bytes: usize) -> String {
    let scripts = [0x61, 0x0430, 0x03b1, 0x05d0, 0x0905, 0x0e01, 0x3042, 0x4e00, 0xac00];
    let mut text = String::new();
    for at in 0_u32.. {
        if text.len() >= bytes {
            break;
        }
        let script = scripts[at as usize % scripts.len()];
        let letter = |of: u32| char::from_u32(script + (at.wrapping_mul(2_654_435_761) >> of) % 24);
        text.extend((0..6).filter_map(|of| letter(4 * of)));
        text.push(if at % 9 == 8 { '.' } else { ' ' });
    }
    text
}

#[tokio::test]
async fn one_key_that_computes_holds_nobody_up() {
    let data = Throughline::new();
    let greedy = key(&data, "acme", &["--user", "ada"], "read,write");
    let other = key(&data, "bolt", &["--user", "bob"], "read,write");
    let service = Service::start_with(&data, &["--set", "http.timeout_ms=600000"]);
    let message = json!({"role": "user", "content": mixed_scripts(500_000)});
    let body = json!({"messages": vec![message; 12]});
    let work: Vec<_> = (0..8)
        .map(|n| {
            let path = format!("/v1/sessions/s{n}/messages");
            let request = service.request(Method::POST, &path).bearer_auth(&greedy).json(&body);
            tokio::spawn(Answer::of(request))
        })
        .collect();
    let mut served = 0;
    while served < 20 && !work.iter().any(JoinHandle::is_finished) {
        assert_eq!(service.get("/healthz").await.ok()["status"], "ok");
        let turn = json!({"user_turn": "When does the ferry leave?"});
        let request = service.request(Method::POST, "/v1/sessions/s/assemble");
        Answer::of(request.bearer_auth(&other).json(&turn)).await.ok();
        served += 1;
    }
    assert_eq!(served, 20, "the other tenant waited until a call of the first was done");
}
