//! A server that is not there, or is something else: every call says so, and soon.

#![expect(
    clippy::unwrap_used,
    reason = "test support outside of test functions: a failure is the answer"
)]

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use throughline_core::access::Rate;
use throughline_core::ports::{Cache, MAX_CACHED_BYTES, RateLimiter};
use throughline_core::{Error, ErrorKind};
use throughline_store_redis::{RedisCache, RedisOptions};
use throughline_testkit::SequentialIds;
use throughline_testkit::build::scope;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

const PASSWORD: &str = "s3cr3t";
const TIMEOUT: Duration = Duration::from_millis(400);
const RATE: Rate = Rate { most: 5, per: Duration::from_secs(1) };

fn cache(at: SocketAddr) -> RedisCache {
    let options = RedisOptions {
        timeout: TIMEOUT,
        connect_timeout: TIMEOUT,
        ..RedisOptions::new(format!("redis://me:{PASSWORD}@{at}/1"))
    };
    RedisCache::open(options, Arc::new(SequentialIds::new())).unwrap()
}

/// What each method of the ports answers, and how long all of them took.
async fn every_call(cache: &RedisCache) -> (Vec<(&'static str, Error)>, Duration) {
    let ana = scope("ana");
    let begun = Instant::now();
    let mut answers = Vec::new();
    macro_rules! ask {
        ($name:literal, $call:expr) => {
            let begun = Instant::now();
            answers.push(($name, $call.await.map(|_| ()).unwrap_err()));
            let took = begun.elapsed();
            assert!(took < 2 * TIMEOUT, "{} took {took:?}", $name);
        };
    }
    ask!("get", cache.get(&ana, "k"));
    ask!("put", cache.put(&ana, "k", b"value", TIMEOUT, &["t"]));
    ask!("put for no time", cache.put(&ana, "k", b"value", Duration::ZERO, &[]));
    ask!("invalidate", cache.invalidate(&ana, "t"));
    ask!("admit", cache.admit("k", RATE));
    (answers, begun.elapsed())
}

async fn is_unavailable(at: SocketAddr, part: &str) {
    let cache = cache(at);
    let (answers, took) = every_call(&cache).await;
    for (name, error) in answers {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{name}: {error:?}");
        assert!(error.message().contains(part), "{name}: {error}");
        assert!(error.message().contains("`redis.url`"), "{name}: {error}");
        assert!(!format!("{error:?}").contains(PASSWORD), "{name}: {error:?}");
    }
    assert!(took < 2 * TIMEOUT, "{took:?}: a server that is away is not asked each time");
    let health = cache.health().await.unwrap();
    assert_eq!((health.version, health.problems.len()), (None, 1));
    assert!(health.problems[0].contains(part), "{:?}", health.problems);
}

/// Takes connections, says something to each, holds them, and counts them.
async fn listen(says: &'static [u8]) -> (SocketAddr, JoinHandle<()>, Arc<AtomicU32>) {
    let counted = Arc::new(AtomicU32::new(0));
    let count = counted.clone();
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let at = listener.local_addr().unwrap();
    let taken = tokio::spawn(async move {
        let mut held = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            let _ = stream.write_all(says).await;
            held.push(stream);
        }
    });
    (at, taken, counted)
}

async fn closed() -> SocketAddr {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    listener.local_addr().unwrap()
}

#[tokio::test]
async fn a_closed_port_is_unavailable() {
    is_unavailable(closed().await, "start it").await;
}

#[tokio::test]
async fn a_server_that_says_nothing_is_unavailable() {
    let (at, taken, counted) = listen(b"").await;
    is_unavailable(at, "start it").await;
    assert_eq!(counted.load(Ordering::SeqCst), 1, "for a while nobody tries again");
    taken.abort();
}

#[tokio::test]
async fn a_server_of_something_else_is_unavailable() {
    let (at, taken, counted) = listen(b"HTTP/1.1 400 Bad Request\r\n\r\n").await;
    is_unavailable(at, "not Redis").await;
    assert_eq!(counted.load(Ordering::SeqCst), 1);
    taken.abort();
}

#[tokio::test]
async fn a_server_that_falls_silent_is_unavailable() {
    // Login, database, and the two words about the driver; then nothing more.
    let (at, taken, counted) = listen(b"+OK\r\n+OK\r\n+OK\r\n+OK\r\n").await;
    let cache = cache(at);
    for connections in [1, 2] {
        let begun = Instant::now();
        let error = cache.get(&scope("ana"), "k").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
        assert!(begun.elapsed() < 2 * TIMEOUT, "{:?}", begun.elapsed());
        let counted = counted.load(Ordering::SeqCst);
        assert_eq!(counted, connections, "another may lead to a server that answers");
    }
    taken.abort();
}

#[tokio::test]
async fn calls_at_once_wait_for_one_connection() {
    let (at, taken, counted) = listen(b"").await;
    let cache = cache(at);
    let begun = Instant::now();
    let calls: Vec<_> = (0..50)
        .map(|_| {
            let cache = cache.clone();
            tokio::spawn(async move { cache.get(&scope("ana"), "k").await })
        })
        .collect();
    for call in calls {
        assert_eq!(call.await.unwrap().unwrap_err().kind(), ErrorKind::Unavailable);
    }
    assert!(begun.elapsed() < 2 * TIMEOUT, "{:?}", begun.elapsed());
    assert_eq!(counted.load(Ordering::SeqCst), 1);
    taken.abort();
}

#[tokio::test]
async fn what_needs_no_server_is_answered_without_one() {
    let cache = cache(closed().await);
    let large = vec![0; MAX_CACHED_BYTES + 1];
    let refused = cache.put(&scope("ana"), "k", &large, TIMEOUT, &[]).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
    let refused = cache.admit("k", Rate { most: 0, ..RATE }).await.unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
}

#[test]
fn it_opens_without_a_runtime_and_shows_no_password() {
    for url in ["redis://me:s3cr3t@127.0.0.1:1", "rediss://me:s3cr3t@127.0.0.1:1"] {
        let options = RedisOptions::new(url);
        let cache = RedisCache::open(options, Arc::new(SequentialIds::new())).unwrap();
        let shown = format!("{cache:?} {cache:#?}");
        assert!(!shown.contains(PASSWORD) && shown.contains("throughline"), "{shown}");
    }
}
