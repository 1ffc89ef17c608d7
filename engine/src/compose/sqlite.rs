//! The embedded store.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use throughline_core::Result;
use throughline_core::ports::{Clock, ErasureLedger, ErasureState};
#[cfg(feature = "postgres")]
use throughline_store_sqlite::SqliteArchive;
use throughline_store_sqlite::{
    BackupProgress, Durability, SqliteLedger, SqliteOptions, SqliteStore, erasures_of,
};

use super::open::Opened;
use super::{LEDGER_FILE, STORE_FILE};
use crate::config::Config;

fn options(config: &Config) -> SqliteOptions {
    SqliteOptions {
        durability: match config.sqlite.durability {
            crate::config::Durability::Full => Durability::Full,
            crate::config::Durability::Normal => Durability::Normal,
        },
        readers: config.sqlite.readers,
        busy_timeout: Duration::from_millis(config.sqlite.busy_timeout_ms),
        max_bytes: Some(config.sqlite.max_bytes).filter(|bytes| *bytes > 0),
        vector_cache_bytes: config.sqlite.vector_cache_mb << 20,
        ..SqliteOptions::new(config.data_dir.join(STORE_FILE))
    }
}

/// Who shares a file shares its machine's clock.
pub(super) fn open(config: &Config, machine: Arc<dyn Clock>) -> Result<Opened> {
    let store = Arc::new(SqliteStore::open(options(config))?);
    Ok(Opened { store: Arc::clone(&store) as _, index: store, limiter: None, clock: machine })
}

/// The ledger of erasures beside the store, in no backup of it.
pub(super) fn ledger(config: &Config) -> Result<Arc<dyn ErasureLedger>> {
    Ok(Arc::new(SqliteLedger::open(&config.data_dir.join(LEDGER_FILE))?))
}

/// The file as what is moved away from.
#[cfg(feature = "postgres")]
pub(super) fn archive(config: &Config) -> Result<SqliteArchive> {
    SqliteArchive::open(&options(config))
}

pub(super) async fn backup(
    config: &Config,
    to: &Path,
    progress: impl Fn(u64, u64) + Send + 'static,
) -> Result<()> {
    let report = move |step: BackupProgress| progress(step.done, step.total);
    SqliteStore::open(options(config))?.backup(to, report).await
}

pub(super) fn restore(
    config: &Config,
    from: &Path,
    replace: bool,
    progress: impl Fn(u64, u64),
) -> Result<()> {
    let report = |step: BackupProgress| progress(step.done, step.total);
    throughline_store_sqlite::restore(from, &options(config), replace, report)
}

/// What a backup knows of erasures.
pub(super) fn backup_state(from: &Path) -> Result<ErasureState> {
    erasures_of(from)
}
