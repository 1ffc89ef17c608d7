//! The store on Postgres.

use std::sync::Arc;
use std::time::Duration;

use throughline_core::Result;
use throughline_store_postgres::{PostgresOptions, PostgresStore};

use super::OpenStore;
use crate::config::Config;

fn options(config: &Config) -> PostgresOptions {
    let postgres = &config.postgres;
    PostgresOptions {
        direct_url: postgres.direct_url.given().map(str::to_owned),
        connections: postgres.connections,
        connect_timeout: Duration::from_millis(postgres.connect_timeout_ms),
        statement_timeout: Duration::from_millis(postgres.statement_timeout_ms),
        prepared: postgres.prepared,
        exact_vectors: postgres.exact_vectors,
        ..PostgresOptions::new(postgres.url.expose())
    }
}

pub(super) async fn store(config: &Config) -> Result<PostgresStore> {
    PostgresStore::open(options(config)).await
}

pub(super) async fn open(config: &Config) -> Result<OpenStore> {
    let store = Arc::new(store(config).await?);
    Ok((Arc::clone(&store) as _, store))
}

/// Builds the indexes that take long; `progress` gets how many are done, and how many there are.
pub(super) async fn build_deferred(
    config: &Config,
    progress: impl Fn(u64, u64) + Send,
) -> Result<()> {
    let report = move |done: usize, all: usize| progress(done as u64, all as u64);
    options(config).build_deferred(report).await.map(|_| ())
}
