//! Workers hear of jobs that others enqueue, whatever happens to the wire meanwhile.

#![expect(
    clippy::unwrap_used,
    reason = "test support outside of test functions: a failure is the answer"
)]

use std::time::{Duration, Instant};

use throughline_core::ports::{JobRepo, Store, Write};
use throughline_store_postgres::PostgresStore;
use throughline_testkit::build::{batch, job, scope};
use throughline_testkit::proxy::{Fault, Proxy};

use crate::support::Server;
use crate::support::wire::SOON;

/// Longer than a test takes.
const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(200);

/// A store that is one process's, and through a proxy another's that waits.
fn two(server: &Server) -> (PostgresStore, PostgresStore, Proxy) {
    let proxy = server.proxy();
    let waiting = PostgresStore::connect_lazy(server.through(&proxy)).unwrap();
    (PostgresStore::connect_lazy(server.options()).unwrap(), waiting, proxy)
}

async fn enqueue(store: &PostgresStore, subject: &str) {
    let job = Write::EnqueueJob(job("embed", subject));
    store.apply(batch(&scope("ana")).with(job)).await.unwrap();
}

async fn wait(store: &PostgresStore, patience: Duration) -> Duration {
    let begun = Instant::now();
    store.await_jobs(patience).await.unwrap();
    begun.elapsed()
}

/// Waits until the store listens, and nothing is left to be heard.
async fn quiet(store: &PostgresStore) {
    let mut early = 0;
    while wait(store, SHORT).await < SHORT {
        early += 1;
        assert!(early < 20, "the store always returns early");
    }
}

/// What another process enqueues during a wait is heard.
async fn hears(one: &PostgresStore, other: &PostgresStore, subject: &str) {
    let (waited, ()) = tokio::join!(wait(other, LONG), enqueue(one, subject));
    assert!(waited < SOON, "{subject}: {waited:?}");
}

#[tokio::test]
async fn a_job_of_another_process_ends_a_wait() {
    let server = Server::start("listen").await;
    let (one, other, _proxy) = two(&server);
    quiet(&other).await;
    for n in 0..3 {
        hears(&one, &other, &format!("during {n}")).await;
        // Between two waits.
        enqueue(&one, &format!("between {n}")).await;
        let waited = wait(&other, LONG).await;
        assert!(waited < SOON, "{n}: {waited:?}");
    }
    let all = async || tokio::join!(wait(&other, SOON), wait(&other, SOON), wait(&other, SOON));
    let ((a, b, c), ()) = tokio::join!(all(), enqueue(&one, "for all"));
    assert!(a.max(b).max(c) < SOON, "all that wait are woken: {a:?}, {b:?}, {c:?}");
    server.end().await;
}

#[tokio::test]
async fn a_wire_that_breaks_costs_the_patience_and_is_mended_by_the_next_wait() {
    let server = Server::start("listencut").await;
    let (one, other, proxy) = two(&server);
    quiet(&other).await;
    for fault in [Fault::Gone, Fault::Refuse, Fault::Stall] {
        // Cut while it waits, and nothing to connect to.
        let cut = async {
            proxy.set(fault);
            proxy.cut();
        };
        let (waited, ()) = tokio::join!(wait(&other, SHORT), cut);
        assert!(waited >= SHORT, "{fault:?}: {waited:?} is no rest");
        assert!(waited < SOON, "{fault:?}: {waited:?}");
        for _ in 0..2 {
            let waited = wait(&other, SHORT).await;
            assert!((SHORT..SOON).contains(&waited), "{fault:?}: {waited:?}");
        }
        enqueue(&one, &format!("meanwhile {fault:?}")).await;
        proxy.set(Fault::Pass);
        // What was enqueued meanwhile was missed: so the first wait returns at once.
        let waited = wait(&other, LONG).await;
        assert!(waited < SOON, "{fault:?}: {waited:?}");
        quiet(&other).await;
        hears(&one, &other, &format!("after {fault:?}")).await;
    }
    server.end().await;
}

#[tokio::test]
async fn a_wire_that_falls_silent_is_found_out() {
    let server = Server::start("listensilent").await;
    let (one, other, proxy) = two(&server);
    quiet(&other).await;
    proxy.freeze();
    enqueue(&one, "unheard").await;
    // One wait may be lost, the next one finds that nobody answers.
    wait(&other, SHORT).await;
    let waited = wait(&other, LONG).await;
    assert!(waited < SOON, "{waited:?}");
    quiet(&other).await;
    hears(&one, &other, "heard").await;
    server.end().await;
}
