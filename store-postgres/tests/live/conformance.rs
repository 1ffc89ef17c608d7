//! The Postgres store passes the tables that every store and every vector index passes, on a real
//! server.

use crate::support::fresh::fresh;
use crate::support::{Server, execute};
use sqlx::ConnectOptions;
use throughline_core::access::Rate;
use throughline_core::ports::RateLimiter;
use throughline_store_postgres::{PostgresLedger, PostgresStore};
use throughline_testkit::conformance;
use throughline_testkit::conformance::{Replicas, Time};

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_postgres_store_conforms() {
    let server = Server::start("store").await;
    conformance::store(async || fresh(&server, server.options()).await, &[]).await;
    server.end().await;
}

#[tokio::test]
async fn the_postgres_vector_index_conforms() {
    let server = Server::start("vectors").await;
    conformance::vector_index(async || fresh(&server, server.options()).await, &[]).await;
    server.end().await;
}

#[tokio::test]
async fn the_postgres_store_conforms_as_an_index() {
    let server = Server::start("index").await;
    conformance::embedded_index(async || fresh(&server, server.options()).await, &[]).await;
    server.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_postgres_rate_limiter_conforms() {
    let server = Server::start("limiter").await;
    let replicas = async || {
        let other = PostgresStore::connect_lazy(server.options()).unwrap();
        Replicas { one: fresh(&server, server.options()).await, other, time: Time::Waited }
    };
    conformance::rate_limiter(replicas, &[]).await;
    server.end().await;
}

#[tokio::test]
async fn buckets_that_became_full_are_removed() {
    let server = Server::start("sweep").await;
    let store = fresh(&server, server.options()).await;
    let brief = Rate { most: 1, per: Rate::SHORTEST };
    for n in 0..2_000 {
        store.admit(&n.to_string(), brief).await.unwrap();
    }
    let mut connection = server.admin.connect().await.unwrap();
    let left: i64 = sqlx::query_scalar("SELECT count(*) FROM rate_bucket")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert!(left < 1_000, "{left} of 2,000 are left");
    server.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_postgres_ledger_conforms() {
    let server = Server::start("ledger").await;
    let make = async || {
        execute(&server.admin, "DROP SCHEMA IF EXISTS throughline_erasures CASCADE".to_owned())
            .await;
        PostgresLedger::open(&server.options(), None, true).await.unwrap()
    };
    conformance::ledger(make, &[]).await;
    let gone = "DROP SCHEMA throughline_erasures CASCADE".to_owned();
    execute(&server.admin, gone).await;
    let refused = PostgresLedger::open(&server.options(), None, false).await.unwrap_err();
    assert_eq!(refused.kind(), throughline_core::ErrorKind::Conflict);
    server.end().await;
}
