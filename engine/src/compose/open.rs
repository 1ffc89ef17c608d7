//! Opening an engine: its store, and what is beside it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use throughline_core::access::Rate;
use throughline_core::ports::{Clock, IdGen, RateLimiter, Store, VectorIndex};
use throughline_core::services::embeddings::Placement;
use throughline_core::services::file_stores::{FileStorePorts, FileStoreService};
use throughline_core::{Error, ErrorKind, Result};

#[cfg(feature = "postgres")]
use super::postgres;
#[cfg(feature = "qdrant")]
use super::qdrant;
#[cfg(feature = "redis")]
use super::redis;
#[cfg(feature = "sqlite")]
use super::sqlite;
use super::{
    Engine, FactReading, OptionalBackends, Ports, STORE_FILE, SummaryWriting, chat_models,
    create_private, embedders, erasure_ledger, file_search,
};
use crate::adapters::{O200k, OsSecrets, SystemClock, UuidV7, metered, metered_index};
use crate::config::{CacheKind, Config, StoreKind, VectorIndexKind};

/// Options for opening.
#[derive(Clone, Copy, Default)]
pub(super) struct How {
    /// The ledger that is there is taken for the store's.
    pub(super) new_ledger: bool,
    /// Every call of the store and the index is measured.
    pub(super) measured: bool,
}

impl Engine {
    /// The engine of a configuration: opens (and creates or migrates) its store, and has it do what the
    /// ledger of erasures says. An embedder that cannot be loaded is told in the log, and recall goes by
    /// words alone until it can.
    ///
    /// # Errors
    /// Those of the store; `Conflict` without the ledger that belongs to it; `InvalidInput` when a backend
    /// was not compiled in.
    pub async fn open(config: &Config) -> Result<Self> {
        Self::open_by(config, Arc::new(SystemClock)).await
    }

    /// As [`Self::open`], but takes the ledger of erasures that is there, or a new one, for the store's:
    /// what was erased before and is in the store again stays.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_with_new_ledger(config: &Config) -> Result<Self> {
        let how = How { new_ledger: true, ..How::default() };
        Self::open_how(config, Arc::new(SystemClock), how).await
    }

    /// As [`Self::open`], with every call of the store and the index measured: for a process that shows
    /// its metrics.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_measured(config: &Config) -> Result<Self> {
        let how = How { measured: true, ..How::default() };
        Self::open_how(config, Arc::new(SystemClock), how).await
    }

    /// As [`Self::open`], on a machine that has this clock. A store on a server corrects it.
    ///
    /// # Errors
    /// As [`Self::open`].
    pub async fn open_by(config: &Config, machine: Arc<dyn Clock>) -> Result<Self> {
        Self::open_how(config, machine, How::default()).await
    }

    pub(super) async fn open_how(
        config: &Config,
        machine: Arc<dyn Clock>,
        how: How,
    ) -> Result<Self> {
        let embedder = match embedders::embedder(config) {
            Ok(embedder) => embedder,
            Err(error) if error.kind() == ErrorKind::InvalidInput => return Err(error),
            Err(error) => {
                tracing::error!(
                    code = error.kind().code(),
                    "{}; until then recall uses keyword search only",
                    error.message()
                );
                None
            }
        };
        let models = chat_models(config)?;
        let reading = FactReading::open(config, &models)?;
        let writing = SummaryWriting::open(config, &models)?;
        create_private(&config.data_dir)?;
        let Opened { mut store, index, limiter, clock } = open_store(config, machine).await?;
        let state = store.erasure_state().await?;
        let ledger = erasure_ledger::ledger(config, &state, how.new_ledger).await?;
        let mut beside = open_cache(config)?;
        // Redis before Postgres: it is the quicker of two that count for all replicas.
        beside.limiter = beside.limiter.or(limiter);
        beside.index = open_index(config)?;
        let (mut index, placement) = match &beside.index {
            Some(apart) => (Arc::clone(apart), Placement::Apart),
            None => (index, Placement::InStore),
        };
        if how.measured {
            (store, index) = (metered(store), metered_index(index));
        }
        let ids: Arc<dyn IdGen> = Arc::new(UuidV7::new(Arc::clone(&clock)));
        let file_search = file_search::open(config, embedder.clone(), Arc::clone(&ids))?;
        let ports = Ports {
            reading,
            writing,
            store,
            names: ledger.identity().await?,
            ledger,
            meaning: embedder.map(|embedder| (embedder, index, placement)),
            ids,
            clock,
            secrets: Arc::new(OsSecrets::open()?),
            tokenizer: Arc::new(O200k),
            jobs: match config.jobs.tenant_per_hour {
                0 => None,
                most => Some(Rate { most, per: Duration::from_secs(3_600) }),
            },
            documents: config.document.limits(),
            personas: config.persona.limits(),
            masking: config.secrets.into(),
            fading: config.history.fading.into(),
        };
        let mut engine = Self::new(ports, beside);
        engine.file_lists = config.files.stable_inline_list.into();
        if how.new_ledger {
            engine.erase.accept_ledger().await?;
        }
        engine.fact_half_life = config.facts.half_life();
        engine.models = models;
        if file_search.is_none() {
            tracing::warn!("files cannot be searched: what `files.search` needs is not there");
        }
        engine.file_stores = match file_search {
            Some((search, journal)) => Some(FileStoreService::new(FileStorePorts {
                search,
                journal,
                store: Arc::clone(&engine.store),
                clock: Arc::clone(&engine.clock),
                ids: Arc::clone(&engine.ids),
                secrets: Arc::new(OsSecrets::open()?),
                max_bytes: config.files.max_search_bytes,
            })),
            None => None,
        };
        engine.replayed = engine.erase.replay().await?;
        Ok(engine)
    }

    /// As [`Self::open`], but of a store that must be there.
    ///
    /// # Errors
    /// `NotFound` when it is not; as [`Self::open`].
    pub async fn open_existing(config: &Config) -> Result<Self> {
        must_exist(config)?;
        Self::open(config).await
    }

    /// As [`Self::open_measured`], but of a store that must be there.
    ///
    /// # Errors
    /// As [`Self::open_existing`].
    pub async fn open_existing_measured(config: &Config) -> Result<Self> {
        must_exist(config)?;
        Self::open_measured(config).await
    }
}

/// Commands that only read do not create a store.
pub(super) fn must_exist(config: &Config) -> Result<()> {
    if config.store != StoreKind::Sqlite {
        return Ok(());
    }
    let store = config.data_dir.join(STORE_FILE);
    if store.exists() {
        return Ok(());
    }
    // Where earlier versions put it.
    let beside = Path::new("data");
    let or = match beside.join(STORE_FILE).exists() {
        true => "use the one in this folder with `--data-dir data`",
        false => "name another folder with --data-dir",
    };
    Err(Error::not_found(format!(
        "there is no store at {}: create one with `throughline import FILE`, or {or}",
        store.display()
    )))
}

/// A store with the index of its vectors, the limiter that all who use it share, if it is one, and the
/// clock that they go by.
pub(super) struct Opened {
    pub(super) store: Arc<dyn Store>,
    pub(super) index: Arc<dyn VectorIndex>,
    pub(super) limiter: Option<Arc<dyn RateLimiter>>,
    pub(super) clock: Arc<dyn Clock>,
}

async fn open_store(config: &Config, machine: Arc<dyn Clock>) -> Result<Opened> {
    match config.store {
        #[cfg(feature = "sqlite")]
        StoreKind::Sqlite => sqlite::open(config, machine),
        #[cfg(not(feature = "sqlite"))]
        StoreKind::Sqlite => Err(super::not_built("store `sqlite`", "sqlite")),
        #[cfg(feature = "postgres")]
        StoreKind::Postgres => postgres::open(config, machine).await,
        #[cfg(not(feature = "postgres"))]
        StoreKind::Postgres => Err(super::not_built("store `postgres`", "postgres")),
    }
}

/// The index of vectors that is beside the store, if one is.
fn open_index(config: &Config) -> Result<Option<Arc<dyn VectorIndex>>> {
    match config.vector_index {
        VectorIndexKind::Store => Ok(None),
        #[cfg(feature = "qdrant")]
        VectorIndexKind::Qdrant => qdrant::open(config).map(Some),
        #[cfg(not(feature = "qdrant"))]
        VectorIndexKind::Qdrant => Err(super::not_built("vector index `qdrant`", "qdrant")),
    }
}

fn open_cache(config: &Config) -> Result<OptionalBackends> {
    match config.cache {
        CacheKind::None => Ok(OptionalBackends::default()),
        #[cfg(feature = "redis")]
        CacheKind::Redis => redis::open(config),
        #[cfg(not(feature = "redis"))]
        CacheKind::Redis => Err(super::not_built("cache `redis`", "redis")),
    }
}
