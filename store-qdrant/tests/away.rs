//! A server that is not there, or is something else: every call says so, and soon.

#![expect(
    clippy::unwrap_used,
    reason = "test support outside of test functions: a failure is the answer"
)]

use std::net::{Ipv4Addr, SocketAddr};
use std::time::{Duration, Instant};

use throughline_core::index::{Namespace, UnitKey};
use throughline_core::ports::{VectorIndex, VectorItem, VectorSpace};
use throughline_core::{Error, ErrorKind, Scope};
use throughline_store_qdrant::{QdrantIndex, QdrantOptions};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;

const MESSAGES: Namespace = Namespace::Message;
const KEY: &str = "s3cr3t";

fn index(at: SocketAddr) -> QdrantIndex {
    let options = QdrantOptions {
        api_key: Some(KEY.to_owned()),
        timeout: Duration::from_millis(400),
        connect_timeout: Duration::from_millis(400),
        ..QdrantOptions::new(format!("http://{at}"))
    };
    QdrantIndex::open(options).unwrap()
}

/// What each method of the port and of the index answers, and that none takes longer than both
/// timeouts together.
async fn every_call(index: &QdrantIndex) -> Vec<(&'static str, Error)> {
    let scope = Scope::new("acme", "ana", None).unwrap();
    let space = VectorSpace { id: "flat".to_owned(), dimensions: 2 };
    let key = UnitKey::message(1, 1);
    let items = [VectorItem { key, vector: vec![1.0, 0.0] }];
    let mut answers = Vec::new();
    macro_rules! ask {
        ($name:literal, $call:expr) => {
            let begun = Instant::now();
            answers.push(($name, $call.await.map(|_| ()).unwrap_err()));
            let took = begun.elapsed();
            assert!(took < Duration::from_secs(2), "{} took {took:?}", $name);
        };
    }
    ask!("upsert", index.upsert(&scope, MESSAGES, &space, &items, 1));
    ask!("remove", index.remove(&scope, MESSAGES, &[key]));
    ask!("keep_only", index.keep_only(&scope, &space));
    ask!("watermark", index.watermark(&scope, MESSAGES, &space));
    ask!("search", index.search(&scope, MESSAGES, &space, &[1.0, 0.0], 5, &[key]));
    ask!("keys", index.keys(&scope, MESSAGES, &space, None, 5));
    answers
}

async fn is_away(at: SocketAddr) {
    let index = index(at);
    for (name, error) in every_call(&index).await {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{name}: {error:?}");
        assert!(error.message().contains("start it"), "{name}: {error}");
        assert!(error.message().contains("`qdrant.url`"), "{name}: {error}");
        assert!(!format!("{error:?}").contains(KEY), "{name}: {error:?}");
    }
    let health = index.health().await.unwrap();
    assert_eq!((health.version, health.problems.len()), (None, 1));
    assert!(health.problems[0].contains("start it"), "{:?}", health.problems);
}

#[tokio::test]
async fn a_closed_port_is_unavailable() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let at = listener.local_addr().unwrap();
    drop(listener);
    is_away(at).await;
}

#[tokio::test]
async fn a_server_that_says_nothing_is_unavailable() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let at = listener.local_addr().unwrap();
    let taken = tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((stream, _)) = listener.accept().await {
            held.push(stream);
        }
    });
    is_away(at).await;
    taken.abort();
}

#[tokio::test]
async fn a_server_of_something_else_is_unavailable() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let at = listener.local_addr().unwrap();
    let taken = tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
        }
    });
    is_away(at).await;
    taken.abort();
}

#[tokio::test]
async fn what_needs_no_server_is_answered_without_one() {
    let index = index((Ipv4Addr::LOCALHOST, 1).into());
    let scope = Scope::new("acme", "ana", None).unwrap();
    let space = VectorSpace { id: "flat".to_owned(), dimensions: 2 };
    let wrong = [VectorItem { key: UnitKey::fact(1), vector: vec![1.0] }];
    let refused = index.upsert(&scope, MESSAGES, &space, &wrong, 1).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    let refused = index.upsert(&scope, MESSAGES, &space, &[], u64::MAX).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    let refused = index.search(&scope, MESSAGES, &space, &[1.0], 5, &[]).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    let found = index.search(&scope, MESSAGES, &space, &[0.0, 0.0], 5, &[]).await.unwrap();
    assert_eq!(found, []);
    index.remove(&scope, MESSAGES, &[]).await.unwrap();
}

#[tokio::test]
async fn a_key_is_never_in_debug() {
    let shown = format!("{:?}", index((Ipv4Addr::LOCALHOST, 1).into()));
    assert!(!shown.contains(KEY) && shown.contains("redacted"), "{shown}");
}
