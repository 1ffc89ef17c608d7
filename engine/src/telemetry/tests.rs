//! Spans reach a collector, and nothing of what they were about does.
#![expect(clippy::unwrap_used, reason = "a failure is the answer")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::JoinHandle;

use throughline_core::Scope;
use throughline_core::ids::SessionId;
use throughline_core::index::{Namespace, TermId};
use throughline_testkit::memory::MemoryStore;
use tracing::subscriber::with_default;

use super::*;
use crate::adapters::metered;
use crate::config::{OtelConfig, Secret};

const CANARY: &str = "canary-7f3a";
const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// A collector that takes one batch.
fn collector() -> (String, JoinHandle<(String, Vec<u8>)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    (address, std::thread::spawn(move || take(listener.accept().unwrap().0)))
}

/// Headers and body of one request.
fn take(mut caller: TcpStream) -> (String, Vec<u8>) {
    let (mut read, mut buffer) = (Vec::new(), [0; 4096]);
    let end = loop {
        let count = caller.read(&mut buffer).unwrap();
        assert!(count > 0, "the request ends in its headers");
        read.extend_from_slice(&buffer[..count]);
        if let Some(at) = read.windows(4).position(|bytes| bytes == b"\r\n\r\n") {
            break at + 4;
        }
    };
    let headers = String::from_utf8(read[..end].to_vec()).unwrap().to_lowercase();
    let length = headers.split("content-length: ").nth(1).unwrap().split("\r\n").next().unwrap();
    let mut body = read.split_off(end);
    let missing = length.parse::<usize>().unwrap() - body.len();
    let begun = body.len();
    body.resize(begun + missing, 0);
    caller.read_exact(&mut body[begun..]).unwrap();
    caller.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n").unwrap();
    (headers, body)
}

fn holds(body: &[u8], part: impl AsRef<[u8]>) -> bool {
    let part = part.as_ref();
    body.windows(part.len()).any(|bytes| bytes == part)
}

fn hex(text: &str) -> Vec<u8> {
    let digits = |at| u8::from_str_radix(&text[at..at + 2], 16).unwrap();
    (0..text.len()).step_by(2).map(digits).collect()
}

/// What a request of `CANARY` does, under a caller's span.
fn request() {
    let span = tracing::info_span!("request", method = "POST", path = "/v1/sessions/{session}");
    let parent = format!("00-{TRACE}-00f067aa0ba902b7-01");
    set_parent(&span, |name| match name {
        "traceparent" => Some(&parent),
        _ => Some("vendor=canary-7f3a"),
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    span.in_scope(|| {
        let store = metered(Arc::new(MemoryStore::new()));
        let scope = Scope::new(CANARY, CANARY, None).unwrap();
        let session = SessionId::new(CANARY).unwrap();
        runtime.block_on(async {
            store.session(&scope, &session).await.unwrap();
            let terms = [TermId::of(CANARY)];
            store.postings(&scope, Namespace::Message, &terms, 9).await.unwrap();
        });
        tracing::error!(content = CANARY, "an event of {CANARY}");
        tracing::info_span!(target: "sqlx::query", "statement", sql = CANARY).in_scope(|| ());
    });
}

#[test]
fn spans_arrive_and_hold_no_content() {
    let (endpoint, collected) = collector();
    let otel = OtelConfig {
        endpoint,
        service_name: "throughline-test".into(),
        headers: Secret::new("x-key=s3cret"),
        ..OtelConfig::default()
    };
    let log = LogConfig { level: "off".into(), format: LogFormat::Human };
    let (subscriber, telemetry) = subscriber(&Config { otel, log, ..Config::default() }).unwrap();
    with_default(subscriber, request);
    drop(telemetry);
    let (headers, body) = collected.join().unwrap();
    assert!(headers.starts_with("post /v1/traces ") && headers.contains("x-key: s3cret\r\n"));
    for part in ["throughline-test", "request", "/v1/sessions/{session}", "session", "postings"] {
        assert!(holds(&body, part), "{part}: {}", String::from_utf8_lossy(&body));
    }
    assert!(holds(&body, hex(TRACE)), "the caller's trace goes on");
    for part in [CANARY, "statement", "s3cret", env!("CARGO_MANIFEST_DIR")] {
        assert!(!holds(&body, part), "{part}: {}", String::from_utf8_lossy(&body));
    }
}

#[test]
fn without_a_collector_there_are_no_spans() {
    let (subscriber, telemetry) = subscriber(&Config::default()).unwrap();
    with_default(subscriber, || {
        assert!(tracing::info_span!("request").is_disabled(), "the log is of warnings");
        assert!(!tracing::error_span!("request").is_disabled());
    });
    assert!(telemetry._spans.is_none());
}
