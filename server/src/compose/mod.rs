//! Composition: the one module that names the adapters of stores.

mod embedders;
#[cfg(all(feature = "sqlite", feature = "postgres"))]
mod moving;
#[cfg(feature = "postgres")]
mod postgres;
#[cfg(feature = "qdrant")]
mod qdrant;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "sqlite")]
mod sqlite;

use std::path::Path;
use std::sync::Arc;

use throughline_core::archive::Moved;
use throughline_core::context::ContextService;
use throughline_core::embedding::{EmbeddingService, Placement};
use throughline_core::fact::FactService;
use throughline_core::ports::{
    Cache, Clock, Embedder, Health, HotHeads, IdGen, Store, Tokenizer, VectorIndex,
};
use throughline_core::scope::ProfileService;
use throughline_core::session::SessionService;
use throughline_core::{Error, ErrorKind, Result};

use crate::adapters::{O200k, SystemClock, UuidV7};
use crate::config::{CacheKind, Config, StoreKind, VectorIndexKind};

pub use embedders::fetch_model;

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
    /// What is beside the store, for operations.
    pub beside: Beside,
    /// The tokenizer of budgets.
    pub tokenizer: Arc<dyn Tokenizer>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
}

/// An embedder, and the index that keeps its vectors.
pub type Meaning = (Arc<dyn Embedder>, Arc<dyn VectorIndex>, Placement);

/// What a combination has beside its store.
#[derive(Clone, Default)]
pub struct Beside {
    /// A vector index on a server of its own.
    pub index: Option<Arc<dyn VectorIndex>>,
    /// A cache that replicas share.
    pub cache: Option<Arc<dyn Cache>>,
    /// Heads of sessions that are in use.
    pub heads: Option<Arc<dyn HotHeads>>,
}

impl Engine {
    /// Services over ports. Without an embedder, recall goes by words alone.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        meaning: Option<Meaning>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdGen>,
        tokenizer: Arc<dyn Tokenizer>,
    ) -> Self {
        let embeddings = meaning.map(|(embedder, index, placement)| {
            EmbeddingService::new(
                Arc::clone(&store),
                (index, placement),
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
            beside: Beside::default(),
            tokenizer,
            clock,
        }
    }

    /// The same engine with what is beside its store.
    #[must_use]
    fn with(self, beside: Beside) -> Self {
        let contexts = self.contexts.with_heads(beside.heads.clone());
        Self { contexts, beside, ..self }
    }

    /// The state of the store and of what is beside it. What is away is told, and no error.
    ///
    /// # Errors
    /// Those of a store that is damaged.
    pub async fn health(&self, deep: bool) -> Result<Vec<Health>> {
        let mut all = vec![self.store.health(deep).await?];
        if let Some(index) = &self.beside.index {
            all.push(index.index_health().await?);
        }
        if let Some(cache) = &self.beside.cache {
            all.push(cache.cache_health().await?);
        }
        Ok(all)
    }

    /// The engine of a configuration: opens (and creates or migrates) its store. An embedder that
    /// cannot be loaded is told in the log, and recall goes by words alone until it can.
    ///
    /// # Errors
    /// Those of the store; `InvalidInput` when a backend was not compiled in.
    pub async fn open(config: &Config) -> Result<Self> {
        Self::open_by(config, Arc::new(SystemClock)).await
    }

    /// As [`Self::open`], on a machine that has this clock. A store on a server corrects it.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_by(config: &Config, machine: Arc<dyn Clock>) -> Result<Self> {
        let embedder = match embedders::embedder(config) {
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
        let Opened { store, index, clock } = open_store(config, machine).await?;
        let mut beside = open_cache(config)?;
        let (index, placement) = match config.vector_index {
            VectorIndexKind::Store => (index, Placement::InStore),
            VectorIndexKind::Qdrant => {
                let index = open_qdrant(config)?;
                beside.index = Some(Arc::clone(&index));
                (index, Placement::Apart)
            }
        };
        let engine = Self::new(
            store,
            embedder.map(|embedder| (embedder, index, placement)),
            Arc::clone(&clock),
            Arc::new(UuidV7::new(clock)),
            Arc::new(O200k::load()?),
        );
        Ok(engine.with(beside))
    }

    /// As [`Self::open`], but of a store that must be there.
    ///
    /// # Errors
    /// `NotFound` when it is not; as [`Self::open`].
    pub async fn open_existing(config: &Config) -> Result<Self> {
        must_exist(config)?;
        Self::open(config).await
    }
}

/// Commands that only read do not create a store.
fn must_exist(config: &Config) -> Result<()> {
    if config.store != StoreKind::Sqlite {
        return Ok(());
    }
    let store = config.data_dir.join(STORE_FILE);
    if store.exists() {
        return Ok(());
    }
    Err(Error::not_found(format!(
        "there is no store at {}: `throughline import FILE` makes one, --data-dir names another",
        store.display()
    )))
}

/// A store with the index of its vectors, and the clock that all who use it go by.
struct Opened {
    store: Arc<dyn Store>,
    index: Arc<dyn VectorIndex>,
    clock: Arc<dyn Clock>,
}

async fn open_store(config: &Config, machine: Arc<dyn Clock>) -> Result<Opened> {
    match config.store {
        #[cfg(feature = "sqlite")]
        StoreKind::Sqlite => sqlite::open(config, machine),
        #[cfg(not(feature = "sqlite"))]
        StoreKind::Sqlite => Err(not_built("store `sqlite`", "sqlite")),
        #[cfg(feature = "postgres")]
        StoreKind::Postgres => postgres::open(config, machine).await,
        #[cfg(not(feature = "postgres"))]
        StoreKind::Postgres => Err(not_built("store `postgres`", "postgres")),
    }
}

#[cfg(feature = "qdrant")]
fn open_qdrant(config: &Config) -> Result<Arc<dyn VectorIndex>> {
    qdrant::open(config)
}

#[cfg(not(feature = "qdrant"))]
fn open_qdrant(_: &Config) -> Result<Arc<dyn VectorIndex>> {
    Err(not_built("vector index `qdrant`", "qdrant"))
}

#[cfg(feature = "redis")]
fn open_cache(config: &Config) -> Result<Beside> {
    match config.cache {
        CacheKind::None => Ok(Beside::default()),
        CacheKind::Redis => redis::open(config),
    }
}

#[cfg(not(feature = "redis"))]
fn open_cache(config: &Config) -> Result<Beside> {
    match config.cache {
        CacheKind::None => Ok(Beside::default()),
        CacheKind::Redis => Err(not_built("cache `redis`", "redis")),
    }
}

/// Moves everything but the vectors from one store to another, or goes on with it, and compares it by
/// counts and hashes. `progress` gets records done and in all.
///
/// # Errors
/// `InvalidInput` for stores between which nothing moves; `NotFound` where there is nothing to move; those
/// of [`throughline_core::archive::move_all`].
pub async fn move_store(
    config: &Config,
    (from, to): (StoreKind, StoreKind),
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<Moved> {
    if (from, to) != (StoreKind::Sqlite, StoreKind::Postgres) {
        return Err(Error::invalid("a store moves from sqlite to postgres, and in no other way"));
    }
    config.require_postgres()?;
    #[cfg(all(feature = "sqlite", feature = "postgres"))]
    return moving::sqlite_to_postgres(config, progress).await;
    #[cfg(not(all(feature = "sqlite", feature = "postgres")))]
    {
        let _ = progress;
        Err(not_built("a move from SQLite to Postgres", "sqlite,postgres"))
    }
}

/// Builds what a store defers because it takes long. `progress` gets how many are done, and how many
/// there are.
///
/// # Errors
/// Those of the store.
pub async fn build_deferred(config: &Config, progress: impl Fn(u64, u64) + Send) -> Result<()> {
    #[cfg(feature = "postgres")]
    if config.store == StoreKind::Postgres {
        return postgres::build_deferred(config, progress).await;
    }
    let _ = (config, progress);
    Ok(())
}

#[cfg_attr(
    all(
        feature = "local",
        feature = "local-model",
        feature = "sqlite",
        feature = "postgres",
        feature = "qdrant",
        feature = "redis"
    ),
    expect(dead_code, reason = "this binary has every adapter")
)]
fn not_built(what: &str, feature: &str) -> Error {
    Error::invalid(format!("{what} is not in this binary: build it with `--features {feature}`"))
}

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
        Err(not_built("store `sqlite`", "sqlite"))
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
    must_be_embedded(config)?;
    create_data_dir(&config.data_dir)?;
    #[cfg(feature = "sqlite")]
    return sqlite::restore(config, from, replace, progress);
    #[cfg(not(feature = "sqlite"))]
    {
        let _ = (from, replace, progress);
        Err(not_built("store `sqlite`", "sqlite"))
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
