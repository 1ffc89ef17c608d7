//! Composition: the one module that names the adapters of stores.

use std::path::Path;
use std::sync::Arc;

use throughline_core::context::ContextService;
use throughline_core::fact::FactService;
use throughline_core::ports::{Clock, IdGen, Store, Tokenizer};
use throughline_core::scope::ProfileService;
use throughline_core::session::SessionService;
use throughline_core::{Error, Result};

use crate::adapters::{O200k, SystemClock, UuidV7};
use crate::config::{Config, StoreKind};

/// The file of the embedded store within the data directory.
pub const STORE_FILE: &str = "throughline.db";

/// Core's services over the adapters that the configuration chose.
#[derive(Clone)]
pub struct Engine {
    /// Threads and messages.
    pub sessions: SessionService,
    /// Contexts of turns.
    pub contexts: ContextService,
    /// The facts ledger.
    pub facts: FactService,
    /// Rules and profile cards.
    pub profiles: ProfileService,
    /// The store itself, for operations.
    pub store: Arc<dyn Store>,
    /// The tokenizer of budgets.
    pub tokenizer: Arc<dyn Tokenizer>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

impl Engine {
    /// Services over ports.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdGen>,
        tokenizer: Arc<dyn Tokenizer>,
    ) -> Self {
        Self {
            sessions: SessionService::new(
                Arc::clone(&store),
                Arc::clone(&clock),
                ids,
                Arc::clone(&tokenizer),
                None,
            ),
            contexts: ContextService::new(Arc::clone(&store), Arc::clone(&tokenizer)),
            facts: FactService::new(Arc::clone(&store)),
            profiles: ProfileService::new(
                Arc::clone(&store),
                Arc::clone(&clock),
                Arc::clone(&tokenizer),
            ),
            store,
            tokenizer,
            clock,
        }
    }

    /// The engine of a configuration: opens (and creates or migrates) its store.
    ///
    /// # Errors
    /// Those of the store; `InvalidInput` when a backend was not compiled in.
    pub fn open(config: &Config) -> Result<Self> {
        create_data_dir(&config.data_dir)?;
        let store = open_store(config)?;
        Ok(Self::new(store, Arc::new(SystemClock), Arc::new(UuidV7), Arc::new(O200k::load()?)))
    }

    /// As [`Self::open`], but of a store that must be there.
    ///
    /// # Errors
    /// `NotFound` when it is not; as [`Self::open`].
    pub fn open_existing(config: &Config) -> Result<Self> {
        must_exist(config)?;
        Self::open(config)
    }
}

/// Commands that only read do not create a store.
fn must_exist(config: &Config) -> Result<()> {
    let store = config.data_dir.join(STORE_FILE);
    if store.exists() {
        return Ok(());
    }
    Err(Error::not_found(format!(
        "there is no store at {}: `throughline import FILE` makes one, --data-dir names another",
        store.display()
    )))
}

#[cfg(feature = "sqlite")]
mod sqlite {
    use std::path::Path;
    use std::time::Duration;

    use throughline_core::Result;
    use throughline_store_sqlite::{BackupProgress, Durability, SqliteOptions, SqliteStore};

    use super::{Config, STORE_FILE};

    pub(super) fn options(config: &Config) -> SqliteOptions {
        SqliteOptions {
            durability: match config.sqlite.durability {
                crate::config::Durability::Full => Durability::Full,
                crate::config::Durability::Normal => Durability::Normal,
            },
            readers: config.sqlite.readers,
            busy_timeout: Duration::from_millis(config.sqlite.busy_timeout_ms),
            max_bytes: Some(config.sqlite.max_bytes).filter(|bytes| *bytes > 0),
            ..SqliteOptions::new(config.data_dir.join(STORE_FILE))
        }
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
}

#[cfg(feature = "sqlite")]
fn open_store(config: &Config) -> Result<Arc<dyn Store>> {
    let StoreKind::Sqlite = config.store;
    Ok(Arc::new(throughline_store_sqlite::SqliteStore::open(sqlite::options(config))?))
}

#[cfg(not(feature = "sqlite"))]
fn open_store(config: &Config) -> Result<Arc<dyn Store>> {
    let StoreKind::Sqlite = config.store;
    Err(Error::invalid("store `sqlite` is not in this binary: build it with `--features sqlite`"))
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
    must_exist(config)?;
    #[cfg(feature = "sqlite")]
    return sqlite::backup(config, to, progress).await;
    #[cfg(not(feature = "sqlite"))]
    {
        let _ = (to, progress);
        open_store(config).map(|_| ())
    }
}

/// Puts a backup in the place of the store. `progress` gets pages done and in all.
///
/// # Errors
/// Those of the backup file, the store and the disk; nothing is changed then.
pub fn restore(
    config: &Config,
    from: &Path,
    replace: bool,
    progress: impl Fn(u64, u64),
) -> Result<()> {
    create_data_dir(&config.data_dir)?;
    #[cfg(feature = "sqlite")]
    return sqlite::restore(config, from, replace, progress);
    #[cfg(not(feature = "sqlite"))]
    {
        let _ = (from, replace, progress);
        open_store(config).map(|_| ())
    }
}

/// Creates the data directory with mode 0700.
fn create_data_dir(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|error| {
        Error::new(
            throughline_core::ErrorKind::Unavailable,
            format!("{} cannot be created: {error}; name another data_dir", path.display()),
        )
    })
}
