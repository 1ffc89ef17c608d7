//! The store on Postgres.

use std::sync::Arc;
use std::time::Duration;

use throughline_core::Result;
use throughline_core::ports::{Clock, ErasureLedger};
use throughline_store_postgres::{PostgresLedger, PostgresOptions, PostgresStore};

use super::open::Opened;
use crate::adapters::Corrected;
use crate::config::Config;

/// How often the machine's clock is compared with the server's.
const MEASURE_AGAIN: Duration = Duration::from_secs(60);

fn options(config: &Config) -> PostgresOptions {
    let postgres = &config.postgres;
    PostgresOptions {
        direct_url: postgres.direct_url.given().map(str::to_owned),
        replica_url: postgres.replica_url.given().map(str::to_owned),
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

/// The ledger of erasures: made where there is none, if that is wanted.
pub(super) async fn ledger(config: &Config, create: bool) -> Result<Arc<dyn ErasureLedger>> {
    let url = config.postgres.erasures_url.given();
    Ok(Arc::new(PostgresLedger::open(&options(config), url, create).await?))
}

pub(super) async fn open(config: &Config, machine: Arc<dyn Clock>) -> Result<Opened> {
    let store = Arc::new(store(config).await?);
    let offset = store.clock_offset(&*machine).await?;
    let clock = Arc::new(Corrected::new(machine, offset.micros));
    keep_right(&store, &clock);
    let limiter = Some(Arc::clone(&store) as _);
    Ok(Opened { store: Arc::clone(&store) as _, index: store, limiter, clock })
}

/// Measures the clock again and again, as long as an engine has it.
fn keep_right(store: &Arc<PostgresStore>, clock: &Arc<Corrected>) {
    let (store, clock) = (Arc::downgrade(store), Arc::downgrade(clock));
    tokio::spawn(async move {
        loop {
            tokio::time::sleep(MEASURE_AGAIN).await;
            let (Some(store), Some(clock)) = (store.upgrade(), clock.upgrade()) else { return };
            match store.clock_offset(clock.machine()).await {
                Ok(offset) => clock.correct(offset.micros, offset.uncertainty),
                // The last measurement holds: clocks drift by milliseconds a minute at most.
                Err(error) => tracing::debug!(
                    "the clock of the database server could not be measured: {error}"
                ),
            }
        }
    });
}

/// Builds the indexes that take long; `progress` gets how many are done, and how many there are.
pub(super) async fn build_deferred(
    config: &Config,
    progress: impl Fn(u64, u64) + Send,
) -> Result<()> {
    let report = move |done: usize, all: usize| progress(done as u64, all as u64);
    options(config).build_deferred(report).await.map(|_| ())
}
