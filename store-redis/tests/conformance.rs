//! Redis passes the tables that every cache and every rate limiter passes.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "test support outside of test functions: a failure is the answer"
)]

mod support;

use throughline_testkit::conformance;

use support::{end, replicas, url};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_redis_cache_conforms() {
    conformance::cache(async || replicas(&url(), "cache"), &[]).await;
    end(&url(), "cache").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_redis_rate_limiter_conforms() {
    conformance::rate_limiter(async || replicas(&url(), "limiter"), &[]).await;
    end(&url(), "limiter").await;
}
