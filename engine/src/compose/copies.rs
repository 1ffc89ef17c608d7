//! Copies of the embedded store, and what takes their place.

use std::path::Path;
use std::sync::Arc;

use throughline_core::erase::check;
use throughline_core::services::erasure::Replayed;
use throughline_core::{Error, Result};

use super::open::{How, must_exist};
#[cfg(feature = "sqlite")]
use super::sqlite;
use super::{Engine, create_private, erasure_ledger};
use crate::adapters::SystemClock;
use crate::config::{Config, StoreKind};

/// Backups are of the file of the embedded store: a server has its own tools, which know what it does
/// meanwhile.
fn must_be_embedded(config: &Config) -> Result<()> {
    match config.store {
        StoreKind::Sqlite => Ok(()),
        StoreKind::Postgres => Err(Error::invalid(
            "a Postgres store is backed up and restored with the server's own tools (pg_dump, \
             pg_basebackup, your provider's snapshots): docs/SCALING.md says how",
        )),
    }
}

/// Copies the store to a new file while it is in use. `progress` gets pages done and in all.
///
/// # Errors
/// `Conflict` when the file exists; those of the store and the disk.
pub async fn backup(
    config: &Config,
    to: &Path,
    progress: impl Fn(u64, u64) + Send + 'static,
) -> Result<()> {
    must_be_embedded(config)?;
    must_exist(config)?;
    #[cfg(feature = "sqlite")]
    return sqlite::backup(config, to, progress).await;
    #[cfg(not(feature = "sqlite"))]
    {
        let _ = (to, progress);
        Err(super::not_built("store `sqlite`", "sqlite"))
    }
}

/// Puts a backup in the place of the store, and has it do what was erased since. `progress` gets pages
/// done and in all. Without the ledger of erasures that belongs to the backup nothing is restored, unless
/// `new_ledger` accepts that.
///
/// # Errors
/// Those of the backup file, the ledger, the store and the disk; nothing is changed then.
pub async fn restore(
    config: &Config,
    from: &Path,
    (replace, new_ledger): (bool, bool),
    progress: impl Fn(u64, u64),
) -> Result<Replayed> {
    must_be_embedded(config)?;
    create_private(&config.data_dir)?;
    #[cfg(feature = "sqlite")]
    {
        let state = sqlite::backup_state(from)?;
        let ledger = erasure_ledger::ledger(config, &state, new_ledger).await?;
        if !new_ledger {
            check(&state, &ledger.identity().await?, ledger.last().await?)?;
        }
        sqlite::restore(config, from, replace, progress)?;
        let how = How { new_ledger, ..How::default() };
        Engine::open_how(config, Arc::new(SystemClock), how).await.map(|done| done.replayed)
    }
    #[cfg(not(feature = "sqlite"))]
    {
        let _ = (from, replace, new_ledger, progress);
        Err(super::not_built("store `sqlite`", "sqlite"))
    }
}
