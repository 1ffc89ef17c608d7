//! What a real server does beside the tables of the ports.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test support outside of test functions: a failure is the answer"
)]

mod support;

#[path = "support/own.rs"]
mod own;

use std::time::{Duration, Instant};

use redis::cmd;
use throughline_core::access::Rate;
use throughline_core::ports::{Admission, Cache, RateLimiter};
use throughline_core::{Error, ErrorKind, Result};
use throughline_store_redis::{RedisCache, RedisOptions};
use throughline_testkit::build::scope;
use throughline_testkit::conformance;

use own::Own;
use support::{driver, end, fresh, keys, open, replicas, url};

const LONG: Duration = Duration::from_secs(600);
const RATE: Rate = Rate { most: 5, per: Duration::from_secs(3_600) };

async fn put(cache: &RedisCache, key: &str, value: &[u8]) -> Result<()> {
    cache.put(&scope("ana"), key, value, LONG, &["t"]).await
}

async fn get(cache: &RedisCache, key: &str) -> Option<Vec<u8>> {
    cache.get(&scope("ana"), key).await.unwrap()
}

/// Asks until it is refused.
async fn refused(ask: impl AsyncFn(usize) -> Result<()>) -> Error {
    for n in 0..20_000 {
        if let Err(error) = ask(n).await {
            return error;
        }
    }
    panic!("nothing is refused");
}

/// Asks until it works, as one does when a server comes back.
async fn back(cache: &RedisCache) {
    let begun = Instant::now();
    while let Err(error) = put(cache, "back", b"1").await {
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
        assert!(begun.elapsed() < Duration::from_secs(20), "it is not used again: {error:?}");
        tokio::time::sleep(Duration::from_millis(50)).await; // tidy: sleep: between two tries
    }
}

#[tokio::test]
async fn a_lost_record_of_a_tag_brings_nothing_back() {
    let options = fresh(&url(), "lost");
    let (cache, mut driver) = (open(options.clone()), driver(&url()).await);
    for round in 0..3 {
        put(&cache, "old", b"1").await.unwrap();
        assert!(get(&cache, "old").await.is_some());
        // What an eviction does.
        let tags = keys(&mut driver, &options.prefix).await;
        let tags: Vec<_> = tags.into_iter().filter(|key| key.contains(":t1:")).collect();
        assert_eq!(tags.len(), 1, "{tags:?}");
        let _: u64 = cmd("DEL").arg(&tags).query_async(&mut driver).await.unwrap();
        assert_eq!(get(&cache, "old").await, None, "it may have been invalidated since");
        if round != 1 {
            cache.invalidate(&scope("ana"), "t").await.unwrap();
        }
        put(&cache, "new", b"1").await.unwrap();
        assert_eq!(get(&cache, "old").await, None, "another token is another tag");
        assert!(get(&cache, "new").await.is_some());
    }
    end(&url(), "lost").await;
}

#[tokio::test]
async fn evictions_bring_nothing_back() {
    let own = Own::start(&["--maxmemory", "4mb", "--maxmemory-policy", "allkeys-random"]).await;
    let cache = open(fresh(&own.url(), "evicted"));
    let (value, mut missed) = (vec![7; 20_000], 0);
    let name = |n: usize| format!("value {n}");
    for round in 0..8_usize {
        for n in 0..100 {
            let tag = format!("tag {}", n % 10);
            let value = [[round as u8].as_slice(), &value].concat();
            cache.put(&scope("ana"), &name(n), &value, LONG, &[&tag]).await.unwrap();
        }
        cache.invalidate(&scope("ana"), "tag 3").await.unwrap();
        // New tokens, and more evictions.
        for n in 0..100 {
            put(&cache, &format!("filler {n}"), &value).await.unwrap();
        }
        cache.put(&scope("ana"), &name(3), b"new", LONG, &["tag 3"]).await.unwrap();
        for n in 0..100 {
            match get(&cache, &name(n)).await {
                None => missed += 1,
                Some(value) if n == 3 => assert_eq!(value, b"new"),
                Some(value) => {
                    assert_ne!(n % 10, 3, "an invalidated value came back");
                    assert_eq!((value.len(), value[0]), (20_001, round as u8));
                }
            }
        }
    }
    assert!(missed > 200, "nothing was evicted: {missed}");
}

#[tokio::test]
async fn every_key_expires() {
    let options = fresh(&url(), "expires");
    let (cache, mut driver) = (open(options.clone()), driver(&url()).await);
    for ttl in [Duration::from_secs(30), LONG, Duration::MAX] {
        let tags = ["t".to_owned(), format!("{ttl:?}")];
        let tags: Vec<&str> = tags.iter().map(String::as_str).collect();
        cache.put(&scope("ana"), &format!("{ttl:?}"), b"1", ttl, &tags).await.unwrap();
    }
    cache.admit("k", RATE).await.unwrap();
    let all = keys(&mut driver, &options.prefix).await;
    assert_eq!(all.len(), 8, "{all:?}");
    for key in all {
        let left: i64 = cmd("PTTL").arg(&key).query_async(&mut driver).await.unwrap();
        assert!(left > 0, "{key}: {left}");
        if key.ends_with(":r1") {
            let each = RATE.per / RATE.most;
            assert!(u128::try_from(left).unwrap() <= each.as_millis() + 2, "{left}");
        }
    }
    end(&url(), "expires").await;
}

#[tokio::test]
async fn a_server_in_order_has_no_problems() {
    let health = open(fresh(&url(), "health")).health().await.unwrap();
    assert!(health.version.is_some_and(|version| version.contains('.')));
    assert_eq!(health.problems, [""; 0]);
}

/// All slots are on one node: what would cross two is refused there as well.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_cluster_takes_every_command() {
    let own = Own::start(&["--cluster-enabled", "yes"]).await;
    own.command(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]).await;
    back(&open(fresh(&own.url(), "cluster"))).await;
    conformance::cache(async || replicas(&own.url(), "cluster"), &[]).await;
    conformance::rate_limiter(async || replicas(&own.url(), "cluster"), &[]).await;
    own.command(&["FLUSHALL"]).await;
    own.command(&["CLUSTER", "FLUSHSLOTS"]).await;
    let cache = open(fresh(&own.url(), "cluster"));
    let error = put(&cache, "k", b"1").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
    let problems = cache.health().await.unwrap().problems;
    assert!(problems.len() == 1 && problems[0].contains("cluster"), "{problems:?}");
}

#[tokio::test]
async fn a_server_that_comes_back_is_used_again() {
    let mut own = Own::start(&[]).await;
    let cache = open(fresh(&own.url(), "back"));
    put(&cache, "k", b"1").await.unwrap();
    own.down();
    for _ in 0..3 {
        let begun = Instant::now();
        let error = put(&cache, "k", b"1").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
        assert!(begun.elapsed() < Duration::from_secs(3), "{:?}", begun.elapsed());
    }
    own.up().await;
    back(&cache).await;
    // Its scripts are gone with it.
    cache.admit("k", RATE).await.unwrap();
    assert_eq!(get(&cache, "k").await, None);
}

#[tokio::test]
async fn a_connection_that_was_closed_is_replaced_unseen() {
    let own = Own::start(&[]).await;
    let cache = open(fresh(&own.url(), "closed"));
    for left in [4, 3, 2] {
        put(&cache, "k", b"1").await.unwrap();
        own.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await;
        assert!(get(&cache, "k").await.is_some());
        own.command(&["SCRIPT", "FLUSH"]).await;
        own.command(&["CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"]).await;
        let admitted = cache.admit("k", RATE).await.unwrap();
        assert_eq!(admitted, Admission::Admitted { left }, "it was counted once");
    }
}

#[tokio::test]
async fn a_replica_takes_no_writes() {
    let own = Own::start(&["--replicaof", "127.0.0.1 1"]).await;
    let cache = open(fresh(&own.url(), "replica"));
    let refused = [
        put(&cache, "k", b"1").await.unwrap_err(),
        cache.put(&scope("ana"), "k", b"1", Duration::ZERO, &[]).await.unwrap_err(),
        cache.invalidate(&scope("ana"), "t").await.unwrap_err(),
        cache.admit("k", RATE).await.unwrap_err(),
    ];
    for error in refused {
        assert_eq!(error.kind(), ErrorKind::ReadOnly, "{error:?}");
        assert!(error.message().contains("primary"), "{error}");
    }
    assert_eq!(get(&cache, "k").await, None);
    let problems = cache.health().await.unwrap().problems;
    assert!(problems.len() == 1 && problems[0].contains("primary"), "{problems:?}");
    own.command(&["REPLICAOF", "NO", "ONE"]).await;
    put(&cache, "k", b"1").await.unwrap();
}

#[tokio::test]
async fn a_full_server_takes_no_more_and_still_forgets() {
    let own = Own::start(&["--maxmemory", "4mb", "--maxmemory-policy", "noeviction"]).await;
    let cache = open(fresh(&own.url(), "full"));
    let first = vec![7; 100_000];
    put(&cache, "first", &first).await.unwrap();
    // A large value that found no room leaves some to smaller ones.
    for size in [100_000, 10_000, 1_000, 10] {
        let value = vec![7; size];
        let more = async |n: usize| {
            // Each outlives the last, so that the record of the tag is written too.
            let ttl = LONG + Duration::from_secs(n as u64);
            cache.put(&scope("ana"), &format!("{size} {n}"), &value, ttl, &["t"]).await
        };
        let error = refused(more).await;
        assert_eq!(error.kind(), ErrorKind::StorageFull, "{error:?}");
        assert!(error.message().contains("maxmemory"), "{error}");
    }
    let error = refused(async |n| cache.admit(&n.to_string(), RATE).await.map(|_| ())).await;
    assert_eq!(error.kind(), ErrorKind::StorageFull, "{error:?}");
    let problems = cache.health().await.unwrap().problems;
    assert!(problems.len() == 1 && problems[0].contains("allkeys-lru"), "{problems:?}");
    assert_eq!(get(&cache, "first").await.as_ref(), Some(&first));
    cache.invalidate(&scope("ana"), "t").await.unwrap();
    assert_eq!(get(&cache, "first").await, None);
}

#[tokio::test]
async fn a_login_that_is_refused_says_so() {
    let own = Own::start(&[]).await;
    let user = "on >s3cr3t ~* +@read +ping +client +select";
    let words: Vec<&str> =
        ["ACL", "SETUSER", "reader"].into_iter().chain(user.split(' ')).collect();
    own.command(&words).await;
    own.command(&["CONFIG", "SET", "requirepass", "s3cr3t"]).await;
    let with = |login: &str| {
        open(fresh(&own.url().replace("redis://", &format!("redis://{login}")), "login"))
    };
    for wrong in ["", ":s3cr3t-not@", "reader:s3cr3t-not@", "nobody:s3cr3t@"] {
        let cache = with(wrong);
        let problems = cache.health().await.unwrap().problems;
        assert!(problems.len() == 1 && problems[0].contains("password"), "{problems:?}");
        let error: Error = put(&cache, "k", b"1").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable, "{wrong}: {error:?}");
        assert!(error.message().contains("password"), "{wrong}: {error}");
        assert!(!format!("{error:?}").contains("s3cr3t"), "{wrong}: {error:?}");
    }
    let cache = with(":s3cr3t@");
    put(&cache, "k", b"1").await.unwrap();
    assert!(get(&cache, "k").await.is_some());
    for more in ["+evalsha +script|load", "+set resetkeys ~other-*", "+ping"] {
        let error = put(&with("reader:s3cr3t@"), "k", b"1").await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ReadOnly, "before {more}: {error:?}");
        assert!(error.message().contains("EVALSHA"), "{error}");
        let words = ["ACL", "SETUSER", "reader"].into_iter().chain(more.split(' '));
        own.command_as(":s3cr3t@", &words.collect::<Vec<_>>()).await;
    }
}

#[tokio::test]
async fn what_the_sentence_about_rights_names_is_enough() {
    let own = Own::start(&[]).await;
    let rights = "on >s3cr3t ~throughline-test-* +get +mget +set +pttl +del +unlink +time \
                  +evalsha +script|load +info";
    let words: Vec<&str> = ["ACL", "SETUSER", "us"].into_iter().chain(rights.split(' ')).collect();
    own.command(&words).await;
    let us = own.url().replace("redis://", "redis://us:s3cr3t@");
    let cache = open(fresh(&us, "rights"));
    for _ in 0..2 {
        put(&cache, "k", b"1").await.unwrap();
        put(&cache, "l", b"1").await.unwrap();
    }
    assert!(get(&cache, "k").await.is_some());
    cache.invalidate(&scope("ana"), "t").await.unwrap();
    cache.put(&scope("ana"), "k", b"1", Duration::ZERO, &[]).await.unwrap();
    cache.admit("k", RATE).await.unwrap();
    assert_eq!(cache.health().await.unwrap().problems, [""; 0]);
}

#[tokio::test]
async fn a_database_that_is_not_there_says_so() {
    let own = Own::start(&["--databases", "2"]).await;
    let of =
        |number| open(RedisOptions { ..fresh(&format!("{}/{number}", own.url()), "database") });
    put(&of(1), "k", b"1").await.unwrap();
    let error = put(&of(2), "k", b"1").await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidInput, "{error:?}");
    assert!(error.message().contains("number in `redis.url`"), "{error}");
}
