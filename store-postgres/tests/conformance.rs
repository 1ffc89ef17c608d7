//! The Postgres store passes the tables that every store and every vector index passes, on a real
//! server.

#[path = "support/fresh.rs"]
mod fresh;
mod support;

use fresh::fresh;
use support::Server;
use throughline_testkit::conformance;

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
