//! Layered configuration: defaults < `throughline.toml` < `THROUGHLINE_*` < flags.
//!
//! Unknown keys are errors that suggest the nearest one; `explain` tells which layer a value is
//! from.

mod document;
mod facts;
mod files;
mod history;
mod http;
mod layers;
mod log;
mod mcp;
mod model_jobs;
mod otel;
mod persona;
mod providers;
mod repository;
mod schema;
mod secret;
mod specialists;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use etcetera::BaseStrategy;
use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use throughline_core::secret::SecretPolicy;
use throughline_core::{Error, Result, Scope};

pub use document::DocumentConfig;
pub use facts::FactsConfig;
pub use files::{FileSearchKind, FilesConfig, StableInlineList};
pub use history::{FadingKind, HistoryConfig};
pub use http::{HttpConfig, JobsConfig};
pub use layers::{Explained, Layers};
pub use log::{LogConfig, LogFormat};
pub use mcp::{McpConfig, ToolSet};
pub use model_jobs::{ExtractionConfig, SummariesConfig};
pub use otel::OtelConfig;
pub use persona::PersonaConfig;
#[cfg(any(feature = "openai", feature = "gemini"))]
pub(crate) use providers::ConnectionConfig;
pub use providers::{
    ChatConfig, GeminiConfig, ModelConfig, OpenAiApi, OpenAiConfig, ProvidersConfig,
};
pub(crate) use repository::repository_of;
pub use repository::{workspace_of, workspace_of_project};
pub use schema::{reference, schema};
pub use secret::Secret;
pub use specialists::{SpecialistConfig, WindowTier};

/// The file that is read when no other is named.
pub const DEFAULT_FILE: &str = "throughline.toml";
/// Prefix of environment variables; nested keys are joined with `__`.
pub const ENV_PREFIX: &str = "THROUGHLINE_";

/// Variables of the providers' own clients.
const SHARED_VARIABLES: [&str; 3] = ["OPENAI_API_KEY", "OPENAI_BASE_URL", "GEMINI_API_KEY"];

/// Longest timeout: an hour.
const MAX_TIMEOUT_MS: u64 = 3_600_000;

/// Largest cache: a TiB.
const MAX_CACHE_MB: u64 = 1 << 20;
/// Most bytes of files that calls may search at once: a tebibyte.
const MAX_SEARCH_BYTES: u64 = 1 << 40;

/// Everything that can be configured.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// Folder of the embedded store and its files, created with mode 0700; empty for `throughline` in this user's data
    /// directory, such as ~/.local/share/throughline.
    #[serde(deserialize_with = "path")]
    pub data_dir: PathBuf,
    /// The store.
    pub store: StoreKind,
    /// Where vectors are stored.
    pub vector_index: VectorIndexKind,
    /// The cache that replicas share.
    pub cache: CacheKind,
    /// Address that `serve` listens on. An address that other machines can reach needs keys.
    #[serde(deserialize_with = "text")]
    pub listen: String,
    /// What happens to keys, passwords, tokens and card numbers in what is stored.
    pub secrets: SecretsKind,
    /// The HTTP interface.
    pub http: HttpConfig,
    /// MCP.
    pub mcp: McpConfig,
    /// Background work.
    pub jobs: JobsConfig,
    /// Copies of the embedded store.
    pub backup: BackupConfig,
    /// The facts ledger.
    pub facts: FactsConfig,
    /// Recent messages in contexts.
    pub history: HistoryConfig,
    /// The documents of memories.
    pub document: DocumentConfig,
    /// Contexts with a fixed character.
    pub persona: PersonaConfig,
    /// Whose memory the command line works on.
    pub identity: Identity,
    /// The embedding model for semantic search. `static`: static token vectors in the binary; takes microseconds per text.
    /// `minilm`: all-MiniLM-L6-v2 on the CPU; takes milliseconds per text, so jobs embed messages in the background.
    /// `none`: recall uses keyword search only. `openai:<model>` and `gemini:<model>`: a model of that provider, such as
    /// `openai:text-embedding-3-small` or `gemini:gemini-embedding-001`; jobs embed messages in the background.
    pub embedder: EmbedderKind,
    /// The static table of token vectors.
    #[serde(rename = "static")]
    pub table: StaticConfig,
    /// The transformer on this machine.
    pub minilm: MiniLmConfig,
    /// The embedded store.
    pub sqlite: SqliteConfig,
    /// The store on a Postgres server.
    pub postgres: PostgresConfig,
    /// The vector index on a Qdrant server.
    pub qdrant: QdrantConfig,
    /// Chat.
    pub chat: ChatConfig,
    /// Named roles that answer turns in chats, as tables with `name`, `description`, `prompt`, `model` (empty for that of the
    /// turn) and `tier` (`light`, `standard` or `full`: how much of the session it is shown).
    pub specialists: Vec<SpecialistConfig>,
    /// Files of conversations.
    pub files: FilesConfig,
    /// Facts that a model reads in messages.
    pub extraction: ExtractionConfig,
    /// Summaries that a model writes.
    pub summaries: SummariesConfig,
    /// The providers of chat models.
    pub providers: ProvidersConfig,
    /// The cache on a Redis server.
    pub redis: RedisConfig,
    /// Logging.
    pub log: LogConfig,
    /// Export of OpenTelemetry spans.
    pub otel: OtelConfig,
}

/// The stores that can be named.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum StoreKind {
    /// One SQLite file in the data directory.
    Sqlite,
    /// A Postgres database, which any number of processes can share.
    Postgres,
}

/// What can happen to secrets.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema, clap::ValueEnum,
)]
#[serde(rename_all = "snake_case")]
pub enum SecretsKind {
    /// They are stored, and masked in contexts, summaries, facts and indexes.
    Mask,
    /// They are masked before anything is stored.
    Drop,
    /// They are stored and shown.
    Keep,
}

impl From<SecretsKind> for SecretPolicy {
    fn from(kind: SecretsKind) -> Self {
        match kind {
            SecretsKind::Mask => Self::Mask,
            SecretsKind::Drop => Self::Drop,
            SecretsKind::Keep => Self::Keep,
        }
    }
}

/// The vector indexes that can be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum VectorIndexKind {
    /// The store itself.
    Store,
    /// A Qdrant server beside the store.
    Qdrant,
}

/// The caches that can be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum CacheKind {
    /// No cache: everything is read from the store.
    None,
    /// A Redis server.
    Redis,
}

/// The embedders that can be named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum EmbedderKind {
    /// Static token vectors in the binary.
    Static,
    /// all-MiniLM-L6-v2 on the CPU.
    Minilm,
    /// No embedder.
    None,
    /// An embedding model of the provider `openai`, by its name there.
    OpenAi(String),
    /// An embedding model of the provider `gemini`, by its name there.
    Gemini(String),
}

impl TryFrom<String> for EmbedderKind {
    type Error = String;

    fn try_from(name: String) -> std::result::Result<Self, String> {
        match (name.as_str(), name.split_once(':')) {
            ("static", _) => Ok(Self::Static),
            ("minilm", _) => Ok(Self::Minilm),
            ("none", _) => Ok(Self::None),
            (_, Some(("openai", model))) if !model.is_empty() => Ok(Self::OpenAi(model.to_owned())),
            (_, Some(("gemini", model))) if !model.is_empty() => Ok(Self::Gemini(model.to_owned())),
            _ => Err(format!(
                "unknown embedder `{name}`: use static, minilm, none, openai:<model> or \
                 gemini:<model>, such as openai:text-embedding-3-small"
            )),
        }
    }
}

impl From<EmbedderKind> for String {
    fn from(kind: EmbedderKind) -> Self {
        match kind {
            EmbedderKind::Static => "static".to_owned(),
            EmbedderKind::Minilm => "minilm".to_owned(),
            EmbedderKind::None => "none".to_owned(),
            EmbedderKind::OpenAi(model) => format!("openai:{model}"),
            EmbedderKind::Gemini(model) => format!("gemini:{model}"),
        }
    }
}

impl JsonSchema for EmbedderKind {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "EmbedderKind".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({"type": "string", "pattern": "^(static|minilm|none|(openai|gemini):.+)$"})
    }
}

/// Settings of the static table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StaticConfig {
    /// File of a table that `cargo xtask distill` wrote; empty for the built-in table.
    #[serde(deserialize_with = "path")]
    pub table: PathBuf,
}

/// Settings of the transformer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MiniLmConfig {
    /// Folder of the model files, which `throughline model fetch` fills; empty for `models/minilm`
    /// in the data directory.
    #[serde(deserialize_with = "path")]
    pub path: PathBuf,
    /// Timeout for embedding a question, in milliseconds; after it, recall uses keyword search only.
    pub timeout_ms: u64,
}

/// The local user: whoever can read the data directory acts as this one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// Tenant.
    #[serde(deserialize_with = "text")]
    pub tenant: String,
    /// User within the tenant.
    #[serde(deserialize_with = "text")]
    pub user: String,
    /// Workspace; empty for none.
    #[serde(deserialize_with = "text")]
    pub workspace: String,
    /// Whether the command line and `throughline mcp` use the git repository of the current folder as the workspace,
    /// if none is set.
    pub git_workspace: bool,
}

/// Settings of the embedded store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SqliteConfig {
    /// When a commit counts as done.
    pub durability: Durability,
    /// Connections for reading.
    pub readers: usize,
    /// How long to wait while another process writes, in milliseconds.
    pub busy_timeout_ms: u64,
    /// Largest size of the database file, in bytes; 0 for no limit.
    pub max_bytes: u64,
    /// Memory for cached vectors, in MiB.
    pub vector_cache_mb: u64,
}

/// When a commit counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Durability {
    /// When it is on the disk: a power loss loses no commit.
    Full,
    /// When the operating system has it: a power loss may lose the last commits.
    Normal,
}

/// Settings of the copies that `serve` makes of the embedded store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BackupConfig {
    /// Days for which `serve` keeps daily backups of the store, in `backups/` of the data directory; 0 turns them
    /// off. Back up a store on Postgres with the server's own tools.
    pub days: u32,
}

/// Settings of the store on Postgres.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PostgresConfig {
    /// `postgres://user:password@host:port/database`, with an ordinary role.
    pub url: Secret,
    /// URL with the role that owns the tables, directly to the server and not through a pooler; empty to use `url`.
    pub direct_url: Secret,
    /// URL of a read replica, with the role of `url`; empty for none. It serves the most expensive
    /// reads of a turn.
    pub replica_url: Secret,
    /// URL of a database for the ledger of erasures, with a role that may create a schema; empty to keep the ledger
    /// in the store's database. Never restore the ledger together with the store (see docs/ERASURE.md).
    pub erasures_url: Secret,
    /// Maximum number of connections per process, to the primary and to the replica each.
    pub connections: u32,
    /// How long to wait for a connection, in milliseconds.
    pub connect_timeout_ms: u64,
    /// Timeout of a statement, in milliseconds.
    pub statement_timeout_ms: u64,
    /// Whether to use prepared statements; turn it off for PgBouncer before 1.21 or without `max_prepared_statements`.
    pub prepared: bool,
    /// Up to this many vectors in a scope are compared exactly; above it, an approximate index is used.
    pub exact_vectors: u64,
}

/// Settings of the vector index on Qdrant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct QdrantConfig {
    /// URL of the gRPC interface.
    #[serde(deserialize_with = "text")]
    pub url: String,
    /// API key; empty for none.
    pub api_key: Secret,
    /// Prefix of the collection names.
    #[serde(deserialize_with = "text")]
    pub prefix: String,
    /// Timeout of a call, in milliseconds.
    pub timeout_ms: u64,
}

/// Settings of the cache on Redis.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RedisConfig {
    /// `redis://user:password@host:port/database`.
    pub url: Secret,
    /// Prefix of the keys.
    #[serde(deserialize_with = "text")]
    pub prefix: String,
    /// Timeout of a call, in milliseconds.
    pub timeout_ms: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            data_dir: PathBuf::new(),
            store: StoreKind::Sqlite,
            vector_index: VectorIndexKind::Store,
            cache: CacheKind::None,
            listen: "127.0.0.1:7447".into(),
            secrets: SecretsKind::Mask,
            http: HttpConfig::default(),
            mcp: McpConfig::default(),
            jobs: JobsConfig { tenant_per_hour: 0, listen: String::new() },
            backup: BackupConfig { days: 7 },
            facts: FactsConfig::default(),
            history: HistoryConfig::default(),
            document: DocumentConfig::default(),
            persona: PersonaConfig::default(),
            identity: Identity {
                tenant: "local".into(),
                user: "local".into(),
                workspace: String::new(),
                git_workspace: true,
            },
            embedder: EmbedderKind::Static,
            table: StaticConfig { table: PathBuf::new() },
            minilm: MiniLmConfig { path: PathBuf::new(), timeout_ms: 500 },
            sqlite: SqliteConfig {
                durability: Durability::Full,
                readers: 4,
                busy_timeout_ms: 5_000,
                max_bytes: 0,
                vector_cache_mb: 128,
            },
            postgres: PostgresConfig {
                url: Secret::default(),
                direct_url: Secret::default(),
                replica_url: Secret::default(),
                erasures_url: Secret::default(),
                connections: 16,
                connect_timeout_ms: 5_000,
                statement_timeout_ms: 30_000,
                prepared: true,
                exact_vectors: 20_000,
            },
            qdrant: QdrantConfig {
                url: "http://127.0.0.1:6334".into(),
                api_key: Secret::default(),
                prefix: "throughline".into(),
                timeout_ms: 5_000,
            },
            redis: RedisConfig {
                url: Secret::default(),
                prefix: "throughline".into(),
                timeout_ms: 500,
            },
            chat: ChatConfig { model: String::new() },
            specialists: Vec::new(),
            files: FilesConfig::default(),
            extraction: ExtractionConfig::default(),
            summaries: SummariesConfig::default(),
            providers: ProvidersConfig::default(),
            log: LogConfig { level: "warn".into(), format: LogFormat::Human },
            otel: OtelConfig::default(),
        }
    }
}

/// Requires a whole number of a setting to be within limits.
fn whole(key: &str, value: u64, least: u64, most: u64) -> Result<()> {
    if (least..=most).contains(&value) {
        return Ok(());
    }
    Err(Error::invalid(format!("configuration key `{key}` must be {least} to {most}")))
}

/// Text, also where a layer (a flag, the environment) takes it for a number or a truth value.
fn text<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<String, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Scalar {
        Text(String),
        Whole(i128),
        Decimal(f64),
        Truth(bool),
    }
    Ok(match Scalar::deserialize(deserializer)? {
        Scalar::Text(text) => text,
        Scalar::Whole(number) => number.to_string(),
        Scalar::Decimal(number) => number.to_string(),
        Scalar::Truth(truth) => truth.to_string(),
    })
}

/// Where this user's memory is kept unless something else is configured.
///
/// # Errors
/// `InvalidInput` for a user without a home directory.
pub fn user_data_dir() -> Result<PathBuf> {
    let base = etcetera::choose_base_strategy().map_err(|_| {
        Error::invalid(format!(
            "this user has no home directory: set `data_dir`, or `{ENV_PREFIX}DATA_DIR`"
        ))
    })?;
    Ok(base.data_dir().join("throughline"))
}

fn path<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<PathBuf, D::Error> {
    text(deserializer).map(PathBuf::from)
}

/// Requires the setting of a backend. The error also names a missing feature.
fn require(key: &str, secret: &Secret, is_built: bool) -> Result<()> {
    if !secret.is_empty() {
        return Ok(());
    }
    let backend = key.split('.').next().unwrap_or_default();
    let build = match is_built {
        true => String::new(),
        false => format!("; the binary must also be built with `--features {backend}`"),
    };
    Err(Error::invalid(format!(
        "configuration key `{key}` is required: set it, or `{ENV_PREFIX}{}`{build}",
        key.to_uppercase().replace('.', "__")
    )))
}

impl Config {
    /// Limits that a type does not tell, and what secrets refer to.
    fn check(mut self) -> Result<Self> {
        if self.data_dir.as_os_str().is_empty() {
            self.data_dir = user_data_dir()?;
        }
        whole("sqlite.readers", self.sqlite.readers as u64, 1, 64)?;
        whole("sqlite.busy_timeout_ms", self.sqlite.busy_timeout_ms, 0, MAX_TIMEOUT_MS)?;
        whole("sqlite.vector_cache_mb", self.sqlite.vector_cache_mb, 0, MAX_CACHE_MB)?;
        whole("minilm.timeout_ms", self.minilm.timeout_ms, 1, MAX_TIMEOUT_MS)?;
        whole("postgres.connections", self.postgres.connections.into(), 1, 1_000)?;
        whole("jobs.tenant_per_hour", self.jobs.tenant_per_hour.into(), 0, 100_000)?;
        let most = throughline_core::document::MOST_BYTES as u64;
        whole("document.max_bytes", self.document.max_bytes as u64, 1, most)?;
        whole("backup.days", self.backup.days.into(), 0, 3_650)?;
        whole("facts.half_life_days", self.facts.half_life_days.into(), 0, 36_500)?;
        whole("document.kept", self.document.kept.into(), 1, 10_000)?;
        whole("files.max_search_bytes", self.files.max_search_bytes, 1, MAX_SEARCH_BYTES)?;
        self.http.check()?;
        self.listen_address()?;
        self.jobs.address()?;
        for (key, value) in [
            ("mcp.answer_timeout_ms", self.mcp.answer_timeout_ms),
            ("postgres.connect_timeout_ms", self.postgres.connect_timeout_ms),
            ("postgres.statement_timeout_ms", self.postgres.statement_timeout_ms),
            ("qdrant.timeout_ms", self.qdrant.timeout_ms),
            ("redis.timeout_ms", self.redis.timeout_ms),
        ]
        .into_iter()
        .chain(self.providers.timeouts())
        {
            whole(key, value, 1, MAX_TIMEOUT_MS)?;
        }
        for (key, secret) in [
            ("postgres.url", &mut self.postgres.url),
            ("postgres.direct_url", &mut self.postgres.direct_url),
            ("postgres.replica_url", &mut self.postgres.replica_url),
            ("postgres.erasures_url", &mut self.postgres.erasures_url),
            ("qdrant.api_key", &mut self.qdrant.api_key),
            ("redis.url", &mut self.redis.url),
            ("otel.headers", &mut self.otel.headers),
            ("providers.openai.api_key", &mut self.providers.openai.api_key),
            ("providers.gemini.api_key", &mut self.providers.gemini.api_key),
        ] {
            secret.resolve(key)?;
        }
        self.extraction.check()?;
        self.log.check()?;
        self.mcp.check()?;
        self.otel.check()?;
        self.persona.check()?;
        self.providers.check()?;
        specialists::check(&self.specialists)?;
        if self.store == StoreKind::Postgres {
            self.require_postgres()?;
        }
        if self.cache == CacheKind::Redis {
            require("redis.url", &self.redis.url, cfg!(feature = "redis"))?;
        }
        self.check_file_search()?;
        Ok(self)
    }

    /// Whether there is what `files.search` needs.
    fn check_file_search(&self) -> Result<()> {
        let lacks = match self.files.search {
            FileSearchKind::Qdrant if self.embedder == EmbedderKind::None => {
                "an embedder: set `embedder`"
            }
            FileSearchKind::OpenAi if !self.providers.openai.is_configured() => {
                "a key: set `providers.openai.api_key` or OPENAI_API_KEY"
            }
            _ => return Ok(()),
        };
        Err(Error::invalid(format!("the value of configuration key `files.search` needs {lacks}")))
    }

    /// Whether a Postgres URL is configured.
    ///
    /// # Errors
    /// `InvalidInput` that names the key.
    pub fn require_postgres(&self) -> Result<()> {
        require("postgres.url", &self.postgres.url, cfg!(feature = "postgres"))
    }

    /// The address to listen on.
    ///
    /// # Errors
    /// `InvalidInput` that says what one looks like.
    pub fn listen_address(&self) -> Result<SocketAddr> {
        http::address("listen", &self.listen)
    }

    /// Folder of the transformer's files.
    #[must_use]
    pub fn minilm_path(&self) -> PathBuf {
        if self.minilm.path.as_os_str().is_empty() {
            self.data_dir.join("models").join("minilm")
        } else {
            self.minilm.path.clone()
        }
    }

    /// With the workspace of the git repository that a folder is in, where none is set.
    #[must_use]
    pub fn in_folder(mut self, folder: &Path) -> Self {
        if self.identity.workspace.is_empty() && self.identity.git_workspace {
            self.identity.workspace = workspace_of(folder).unwrap_or_default();
        }
        self
    }

    /// With the workspace of a project's folder, which need not be on this machine, where none is set.
    #[must_use]
    pub fn of_project(mut self, folder: &Path) -> Self {
        if self.identity.workspace.is_empty() && self.identity.git_workspace {
            self.identity.workspace = workspace_of_project(folder);
        }
        self
    }

    /// The scope of the command line.
    ///
    /// # Errors
    /// `InvalidInput` that names the key.
    pub fn scope(&self) -> Result<Scope> {
        let Identity { tenant, user, workspace, .. } = &self.identity;
        let workspace = Some(workspace.as_str()).filter(|name| !name.is_empty());
        Scope::new(tenant, user, workspace)
            .map_err(|error| Error::invalid(format!("identity: {error}")))
    }
}

#[cfg(test)]
mod tests;
