//! A prefix of its own for each scenario, on the server that the environment names.

use std::process;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, LazyLock};

use redis::aio::MultiplexedConnection;
use redis::{Client, cmd};
use throughline_store_redis::{RedisCache, RedisOptions};
use throughline_testkit::SequentialIds;
use throughline_testkit::conformance::{Replicas, Time};

const VARIABLE: &str = "THROUGHLINE_TEST_REDIS";
const OURS: &str = "throughline-test";

/// Where the server is.
pub(crate) fn url() -> String {
    std::env::var(VARIABLE).unwrap_or_else(|_| {
        panic!(
            "{VARIABLE} is not set: run `cargo xtask services up` and set what it prints, or run \
             `cargo xtask test --all`"
        )
    })
}

/// The driver, for what the cache has no words for.
pub(crate) async fn driver(url: &str) -> MultiplexedConnection {
    let client = Client::open(url).unwrap();
    client.get_multiplexed_async_connection().await.expect("the server of the tests answers")
}

/// A cache, as another process would open it.
pub(crate) fn open(options: RedisOptions) -> RedisCache {
    // Tokens are unlike each other in all processes that share a prefix; here, in this one.
    static IDS: LazyLock<Arc<SequentialIds>> = LazyLock::new(Arc::default);
    RedisCache::open(options, IDS.clone()).unwrap()
}

/// What the prefixes of a test start with. Tests of one process run at once.
fn ours(test: &str) -> String {
    format!("{OURS}-{}-{test}-", process::id())
}

/// Options with a prefix that nothing else has.
pub(crate) fn fresh(url: &str, test: &str) -> RedisOptions {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let n = COUNT.fetch_add(1, Ordering::Relaxed);
    RedisOptions { prefix: format!("{}{n}", ours(test)), ..RedisOptions::new(url) }
}

/// Two processes that share a fresh prefix.
pub(crate) fn replicas(url: &str, test: &str) -> Replicas<RedisCache> {
    let options = fresh(url, test);
    Replicas { one: open(options.clone()), other: open(options), time: Time::Waited }
}

/// The keys that start so.
pub(crate) async fn keys(driver: &mut MultiplexedConnection, prefix: &str) -> Vec<String> {
    let (mut all, mut cursor) = (Vec::new(), 0_u64);
    loop {
        let mut scan = cmd("SCAN");
        scan.arg(cursor).arg("MATCH").arg(format!("{prefix}*")).arg("COUNT").arg(1_000);
        let (next, found): (u64, Vec<String>) = scan.query_async(driver).await.unwrap();
        all.extend(found);
        cursor = next;
        if cursor == 0 {
            all.sort();
            all.dedup();
            return all;
        }
    }
}

/// Deletes what the test has put. One that fails does not come so far: Redis lets it expire.
pub(crate) async fn end(url: &str, test: &str) {
    let mut driver = driver(url).await;
    for key in keys(&mut driver, &ours(test)).await {
        let _: u64 = cmd("UNLINK").arg(key).query_async(&mut driver).await.unwrap();
    }
}
