//! Composition: the one module that names the adapters of stores.

mod copies;
mod embedders;
mod erasure_ledger;
mod file_search;
mod files;
mod models;
mod open;
#[cfg(feature = "postgres")]
mod postgres;
mod providers;
#[cfg(feature = "qdrant")]
mod qdrant;
#[cfg(feature = "redis")]
mod redis;
#[cfg(feature = "sqlite")]
mod sqlite;
#[cfg(all(feature = "sqlite", feature = "postgres"))]
mod store_migration;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures_util::stream::BoxStream;
use throughline_core::access::Rate;
use throughline_core::document::DocumentLimits;
use throughline_core::fact::{Forms, Rejections};
use throughline_core::files::Mode;
use throughline_core::persona::PersonaLimits;
use throughline_core::ports::{
    Cache, ChatProvider, Clock, Embedder, ErasureLedger, Health, IdGen, LedgerIdentity,
    RateLimiter, SecretGen, SessionCache, Store, VectorIndex,
};
use throughline_core::secret::SecretPolicy;
use throughline_core::services::access::AccessService;
use throughline_core::services::archive::Moved;
use throughline_core::services::contexts::ContextService;
use throughline_core::services::documents::DocumentService;
use throughline_core::services::embeddings::{EmbeddingService, JobQuota, Placement, Worked};
use throughline_core::services::erasure::{EraseService, Replayed};
use throughline_core::services::facts::{FactService, Rejecting};
use throughline_core::services::file_stores::{DroppedFileStores, FileStoreService};
use throughline_core::services::model_jobs::{
    Extracting, ExtractionService, Summarizing, SummaryService,
};
use throughline_core::services::personas::{PersonaPorts, PersonaService};
use throughline_core::services::profiles::ProfileService;
use throughline_core::services::removals::Removals;
use throughline_core::services::sessions::SessionService;
use throughline_core::services::settings::SettingsService;
use throughline_core::services::shares::ShareService;
use throughline_core::tokens::Tokenizer;
use throughline_core::turn::Fading;
use throughline_core::{Error, ErrorKind, Result};

use crate::adapters::InProcessLimiter;
use crate::config::{Config, SpecialistConfig, StoreKind};

pub use copies::{backup, restore};
pub use files::file_source;
pub(crate) use models::provider_error;
pub use models::{ChosenModel, FactReading, SummaryWriting};
pub use providers::open as chat_models;

pub use embedders::{ModelSource, embedder as load_embedder, fetch_model};

/// The file of the embedded store within the data directory.
pub const STORE_FILE: &str = "throughline.db";
/// The file of its ledger of erasures, beside it.
pub const LEDGER_FILE: &str = "erasures.db";

/// Core's services over the adapters that the configuration chose.
#[derive(Clone)]
pub struct Engine {
    /// Threads and messages.
    pub sessions: SessionService,
    /// Contexts of turns.
    pub contexts: ContextService,
    /// The facts ledger.
    pub facts: FactService,
    /// The half-life of facts in a search; zero where they do not fade.
    pub fact_half_life: Duration,
    /// The documents of memories.
    pub documents: DocumentService,
    /// Rules and profile cards.
    pub profiles: ProfileService,
    /// Settings of tenants.
    pub settings: SettingsService,
    /// Sessions that users share.
    pub shares: ShareService,
    /// Conversations with a fixed character, and the presets that they are made from.
    pub personas: PersonaService,
    /// Keys, and who calls.
    pub access: AccessService,
    /// How often callers may call: counted for all replicas where they share a cache or a store, else
    /// for this process.
    pub limiter: Arc<dyn RateLimiter>,
    /// Names as the ledger of erasures and the audit log know them.
    pub names: LedgerIdentity,
    /// Erasure, with everything that was derived.
    pub erase: EraseService,
    /// The erasures that were repeated when the store was opened.
    pub replayed: Replayed,
    /// Vectors and the jobs that make them; `None` when recall uses keyword search only.
    pub embeddings: Option<EmbeddingService>,
    /// Facts that a model reads, and the jobs for it; `None` where forms alone find them.
    pub extraction: Option<ExtractionService>,
    /// Summaries that a model writes, if one does.
    pub summaries: Option<SummaryService>,
    /// Stores of files that live for one call; `None` where what `files.search` needs is not there.
    pub file_stores: Option<FileStoreService>,
    /// The store itself, for operations.
    pub store: Arc<dyn Store>,
    /// The vector index and the cache, for operations.
    pub beside: OptionalBackends,
    /// The chat models that are configured.
    pub models: ChatModels,
    /// The tokenizer of budgets.
    pub tokenizer: Arc<dyn Tokenizer>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Ids of what is made.
    pub ids: Arc<dyn IdGen>,
    /// What happens to secrets in what is stored, and in what a model is shown.
    pub masking: SecretPolicy,
    /// What the lists of files of sessions do.
    pub file_lists: Mode,
}

/// The chat models of a configuration.
#[derive(Clone, Default)]
pub struct ChatModels {
    /// The providers that are configured.
    pub providers: Vec<Arc<dyn ChatProvider>>,
    /// The model that answers where none is named.
    pub default: Option<String>,
    /// Named roles that answer turns.
    pub specialists: Vec<SpecialistConfig>,
    /// What to set for each provider that is not configured.
    pub missing: Vec<&'static str>,
    /// The providers that take requests in OpenAI's form, by name.
    pub compatible: Vec<(&'static str, Arc<dyn CompatibleApi>)>,
}

/// A provider that takes requests in OpenAI's form as they are.
#[async_trait]
pub trait CompatibleApi: Send + Sync {
    /// Sends a body to a path such as `chat/completions`, under the provider's own key. Dropping the body of the answer
    /// ends the request.
    ///
    /// # Errors
    /// `Unavailable` where the provider cannot be reached or is too late. What it answers is no error.
    async fn forward(&self, path: &str, body: Vec<u8>) -> Result<Forwarded>;
}

/// The answer of a provider, as it comes.
pub struct Forwarded {
    /// The status of HTTP.
    pub status: u16,
    /// Headers that a client may go by.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: BoxStream<'static, Result<Vec<u8>>>,
}

impl ChatModels {
    /// A provider by its name.
    #[must_use]
    pub fn provider(&self, name: &str) -> Option<&Arc<dyn ChatProvider>> {
        self.providers.iter().find(|provider| provider.name() == name)
    }
}

/// An embedder, and the index that keeps its vectors.
pub type SemanticIndex = (Arc<dyn Embedder>, Arc<dyn VectorIndex>, Placement);

/// The optional backends of a combination.
#[derive(Clone, Default)]
pub struct OptionalBackends {
    /// A vector index apart from the store.
    pub index: Option<Arc<dyn VectorIndex>>,
    /// A cache that replicas share.
    pub cache: Option<Arc<dyn Cache>>,
    /// Heads of sessions that are in use.
    pub heads: Option<Arc<dyn SessionCache>>,
    /// A limiter that replicas share.
    pub limiter: Option<Arc<dyn RateLimiter>>,
}

/// The backends of an engine.
pub struct Ports {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The ledger of erasures.
    pub ledger: Arc<dyn ErasureLedger>,
    /// Whose ledger it is.
    pub names: LedgerIdentity,
    /// The embedder; without it, recall uses keyword search only.
    pub meaning: Option<SemanticIndex>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Ids of what is made.
    pub ids: Arc<dyn IdGen>,
    /// Secrets of keys.
    pub secrets: Arc<dyn SecretGen>,
    /// The tokenizer of budgets.
    pub tokenizer: Arc<dyn Tokenizer>,
    /// Jobs of one tenant that are done in a time; `None` for no limit.
    pub jobs: Option<Rate>,
    /// The limits of all documents.
    pub documents: DocumentLimits,
    /// How much there may be of personas.
    pub personas: PersonaLimits,
    /// What happens to secrets in what is stored.
    pub masking: SecretPolicy,
    /// How history is shortened.
    pub fading: Fading,
    /// The model that reads facts in messages, in the background.
    pub reading: Option<FactReading>,
    /// The model that writes summaries, if one does.
    pub writing: Option<SummaryWriting>,
}

/// What a round of jobs that wait for models did.
#[derive(Debug, Default)]
pub struct WorkedWithModels {
    /// Facts.
    pub extracting: Extracting,
    /// Summaries.
    pub summarizing: Summarizing,
}

impl WorkedWithModels {
    /// Jobs attempted.
    #[must_use]
    pub fn jobs(&self) -> u64 {
        self.extracting.round.jobs + self.summarizing.round.jobs
    }

    /// Attempts that failed.
    #[must_use]
    pub fn failed(&self) -> u64 {
        self.extracting.round.failed + self.summarizing.round.failed
    }
}

impl Engine {
    /// Services over ports.
    #[must_use]
    pub fn new(ports: Ports, beside: OptionalBackends) -> Self {
        let Ports { store, ledger, names, meaning, clock, ids, .. } = ports;
        let Ports { secrets, tokenizer, jobs, documents, personas, masking, .. } = ports;
        let Ports { fading, reading, writing, .. } = ports;
        let OptionalBackends { index, cache, heads, limiter } = beside.clone();
        let limiter =
            limiter.unwrap_or_else(|| Arc::new(InProcessLimiter::new(Arc::clone(&clock))));
        let quota = jobs.map(|rate| JobQuota { limiter: Arc::clone(&limiter), rate });
        let embeddings = meaning.map(|(embedder, index, placement)| {
            EmbeddingService::new(
                Arc::clone(&store),
                (index, placement),
                embedder,
                Arc::clone(&clock),
                Arc::clone(&ids),
            )
            .with_quota(quota)
        });
        let rejections = Rejections::new(names.key);
        let sessions = SessionService::new(
            Arc::clone(&store),
            Arc::clone(&clock),
            Arc::clone(&ids),
            Arc::clone(&tokenizer),
            embeddings.clone(),
        )
        .with_extractor(Arc::new(Forms))
        .with_rejections(rejections.clone())
        .with_reading(reading.as_ref().map(|reading| reading.delay))
        .with_summarizing(writing.is_some())
        .with_secrets(masking);
        let extraction = reading.map(|FactReading { reader, daily_tokens, .. }| {
            ExtractionService::new(
                Arc::clone(&store),
                (Arc::clone(&clock), Arc::clone(&ids)),
                embeddings.clone(),
                rejections.clone(),
                (reader, daily_tokens),
            )
        });
        let summaries = writing.map(|SummaryWriting { summarizer, daily_tokens }| {
            SummaryService::new(
                Arc::clone(&store),
                (Arc::clone(&clock), Arc::clone(&ids)),
                Arc::clone(&tokenizer),
                (summarizer, daily_tokens),
            )
        });
        let facts = FactService::new(
            Arc::clone(&store),
            Arc::clone(&clock),
            Arc::clone(&ids),
            embeddings.clone(),
            Rejecting { ledger: Arc::clone(&ledger), names: names.clone(), rejections },
        )
        .with_secrets(masking);
        let removals = Removals::new(
            Arc::clone(&ledger),
            names.clone(),
            Arc::clone(&store),
            Arc::clone(&clock),
        );
        let erase = EraseService::new(
            Arc::clone(&store),
            ledger,
            Arc::clone(&clock),
            Arc::clone(&ids),
            sessions.clone(),
            embeddings.clone(),
        )
        .with_beside(index, heads.clone(), cache)
        .with_facts(facts.clone());
        let contexts =
            ContextService::new(Arc::clone(&store), Arc::clone(&tokenizer), embeddings.clone())
                .with_heads(heads)
                .with_fading(fading)
                .with_secrets(masking);
        Self {
            documents: DocumentService::new(
                Arc::clone(&store),
                Arc::clone(&clock),
                Arc::clone(&ids),
                embeddings.clone(),
                contexts.clone(),
                documents,
            ),
            personas: PersonaService::new(PersonaPorts {
                store: Arc::clone(&store),
                clock: Arc::clone(&clock),
                ids: Arc::clone(&ids),
                tokenizer: Arc::clone(&tokenizer),
                sessions: sessions.clone(),
                contexts: contexts.clone(),
                erase: erase.clone(),
                removals: removals.clone(),
                limits: personas,
                secrets: masking,
            }),
            erase,
            replayed: Replayed::default(),
            sessions,
            contexts,
            facts,
            fact_half_life: Duration::ZERO,
            profiles: ProfileService::new(
                Arc::clone(&store),
                Arc::clone(&clock),
                Arc::clone(&tokenizer),
            ),
            settings: SettingsService::new(Arc::clone(&store), Arc::clone(&clock)),
            shares: ShareService::new(
                Arc::clone(&store),
                Arc::clone(&clock),
                Arc::clone(&ids),
                removals.clone(),
            ),
            access: AccessService::new(Arc::clone(&store), Arc::clone(&clock), secrets, removals),
            limiter,
            embeddings,
            extraction,
            summaries,
            file_stores: None,
            store,
            beside,
            names,
            models: ChatModels::default(),
            tokenizer,
            clock,
            ids,
            masking,
            file_lists: Mode::default(),
        }
    }

    /// Enqueues jobs for scopes that wait without one: to be embedded, after a change of the embedder or while an index
    /// was away, and for a model, while its provider was.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn enqueue_behind(&self) -> Result<u64> {
        let mut enqueued = 0;
        if let Some(embeddings) = &self.embeddings {
            enqueued += embeddings.enqueue_behind().await?;
        }
        if let Some(extraction) = &self.extraction {
            enqueued += extraction.enqueue_unread().await?;
        }
        if let Some(summaries) = &self.summaries {
            enqueued += summaries.enqueue_awaiting().await?;
        }
        Ok(enqueued)
    }

    /// Does up to `limit` jobs of each kind that are due, but for those that wait for models.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn work(&self, limit: usize) -> Result<Worked> {
        let forgotten = self.erase.work(limit).await?;
        let (kept_up, _) = self.personas.work(limit).await?;
        let dropped = match &self.file_stores {
            Some(stores) => stores.work(limit).await?,
            None => DroppedFileStores::default(),
        };
        let worked = match &self.embeddings {
            Some(embeddings) => embeddings.work(limit).await?,
            None => Worked::default(),
        };
        Ok(Worked {
            jobs: worked.jobs + forgotten + kept_up + dropped.jobs,
            failed: worked.failed + dropped.failed,
            forgotten,
            ..worked
        })
    }

    /// Does up to `limit` jobs of each kind that wait for models.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn work_with_models(&self, limit: usize) -> Result<WorkedWithModels> {
        let mut worked = WorkedWithModels::default();
        if let Some(extraction) = &self.extraction {
            worked.extracting = extraction.work(limit).await?;
        }
        if let Some(summaries) = &self.summaries {
            worked.summarizing = summaries.work(limit).await?;
        }
        Ok(worked)
    }

    /// The state of the store, the vector index and the cache. An unavailable one is reported, not an error.
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

    /// Loads what the first request that needs it would load, so that none waits for it.
    pub fn warm(&self) {
        self.tokenizer.count("");
    }
}

/// Moves everything but the vectors from one store to another, or goes on with it, and compares it by
/// counts and hashes. `progress` gets records done and in all.
///
/// # Errors
/// `InvalidInput` for stores between which nothing moves; `NotFound` where there is nothing to move; those
/// of [`throughline_core::services::archive::move_all`].
pub async fn move_store(
    config: &Config,
    (from, to): (StoreKind, StoreKind),
    progress: &mut (dyn FnMut(u64, u64) + Send),
) -> Result<Moved> {
    if (from, to) != (StoreKind::Sqlite, StoreKind::Postgres) {
        return Err(Error::invalid("a store can only be moved from sqlite to postgres"));
    }
    config.require_postgres()?;
    #[cfg(all(feature = "sqlite", feature = "postgres"))]
    return store_migration::sqlite_to_postgres(config, progress).await;
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
        feature = "redis",
        feature = "openai",
        feature = "gemini"
    ),
    expect(dead_code, reason = "this binary has every adapter")
)]
fn not_built(what: &str, feature: &str) -> Error {
    Error::invalid(format!("{what} is not in this binary: build it with `--features {feature}`"))
}

/// Creates the data directory, or a folder in it, with mode 0700.
pub(crate) fn create_private(path: &Path) -> Result<()> {
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
            format!("{} cannot be created: {error}; set another data_dir", path.display()),
        )
    })
}
