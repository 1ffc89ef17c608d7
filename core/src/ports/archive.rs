//! What an installation takes along when it moves to another store: every record of every scope and of
//! every tenant, as rows of plain values. Vectors stay behind: an embedder makes them again.

use async_trait::async_trait;
use futures_util::stream::BoxStream;

use crate::error::Result;
use crate::ids::TenantId;
use crate::ports::ScopeCounters;
use crate::scope::Scope;

/// One value of a row.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// A number, a time in microseconds, or the bits of a key.
    Int(i64),
    /// A weight.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes; of a [`ValueKind::Id`], the sixteen of a UUID.
    Bytes(Vec<u8>),
    /// Numbers.
    Ints(Vec<i64>),
}

/// What a column holds, beside nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ValueKind {
    /// [`Value::Int`].
    Int,
    /// [`Value::Real`].
    Real,
    /// [`Value::Text`].
    Text,
    /// [`Value::Bytes`].
    Bytes,
    /// [`Value::Bytes`] of a UUID.
    Id,
    /// [`Value::Ints`].
    Ints,
}

/// The values of a record, one for each column of its table.
pub type Row = Vec<Value>;

/// One kind of record. Stores keep records as they like; here they are told apart by these names.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// Its columns, the holder left out.
    pub columns: &'static [(&'static str, ValueKind)],
    /// How many of the first columns identify a record of its holder; 0 where there is but one, or
    /// their order is all that tells them apart.
    pub key: usize,
}

/// Whose records they are.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Holder {
    /// A scope: what was said and what follows from it.
    Scope(Scope),
    /// A tenant as a whole: keys, settings, grants, the audit log.
    Tenant(TenantId),
}

impl Holder {
    /// The tables of such a holder, in the order in which they move.
    #[must_use]
    pub fn tables(&self) -> &'static [Table] {
        match self {
            Self::Scope(_) => TABLES,
            Self::Tenant(_) => TENANT_TABLES,
        }
    }
}

/// A page of what is read of a table, or why there is no more.
pub type Rows<'a> = BoxStream<'a, Result<Vec<Row>>>;

/// A store that tells its records.
#[async_trait]
pub trait Archive: Send + Sync {
    /// The counters of a holder; `None` where it is not there.
    async fn counters(&self, of: &Holder) -> Result<Option<ScopeCounters>>;

    /// How many records of a table a holder has.
    async fn count(&self, of: &Holder, table: &'static Table) -> Result<u64>;

    /// The records of a table, in an order that is the same each time as long as nothing is written.
    fn rows<'a>(&'a self, of: &'a Holder, table: &'static Table) -> Rows<'a>;
}

/// The store that is moved away from. Nobody writes to it until this is dropped.
#[async_trait]
pub trait ArchiveSource: Archive {
    /// Every scope, in the order in which they were first written to, and then every tenant that has
    /// records of its own: a key works once all that it leads to is there.
    async fn holders(&self) -> Result<Vec<Holder>>;
}

/// The store that is moved to.
#[async_trait]
pub trait ArchiveTarget: Archive {
    /// Adds records, all of them or none, durably. The holder itself is not there before
    /// [`Self::open_holder`].
    async fn put(&self, of: &Holder, table: &'static Table, rows: &[Row]) -> Result<()>;

    /// Removes the records of a holder that is not there yet.
    async fn clear(&self, of: &Holder) -> Result<()>;

    /// Makes the holder be there, with these counters, once all of its records are.
    async fn open_holder(&self, of: &Holder, counters: &ScopeCounters) -> Result<()>;
}

use ValueKind::{Bytes, Id, Int, Ints, Real, Text};

/// Every table of a scope that moves, in the order in which they do.
pub const TABLES: &[Table] = &[
    Table {
        name: "session",
        columns: &[
            ("number", Int),
            ("id", Text),
            ("created_at", Int),
            ("last_at", Int),
            ("messages", Int),
            ("tokens", Int),
            ("summarized", Int),
            ("next_position", Int),
            ("version", Int),
        ],
        key: 1,
    },
    Table {
        name: "message",
        columns: &[
            ("session_number", Int),
            ("position", Int),
            ("seq", Int),
            ("created_at", Int),
            ("tokens", Int),
            ("units", Int),
            ("id", Id),
            ("content_hash", Bytes),
            ("cuts", Bytes),
            ("role", Text),
            ("name", Text),
            ("external_id", Text),
            ("content", Text),
            ("parts", Text),
            ("attachments", Text),
            ("actor", Text),
            ("original", Text),
            ("unread", Int),
        ],
        key: 2,
    },
    Table {
        name: "fact",
        columns: &[
            ("number", Int),
            ("session_number", Int),
            ("slot", Int),
            ("statement", Int),
            ("observed_at", Int),
            ("id", Id),
            ("superseded_by", Id),
            ("rejected", Int),
            ("weight", Real),
            ("kind", Text),
            ("text", Text),
            ("subject", Text),
            ("attribute", Text),
            ("value", Text),
            ("tags", Text),
            ("extracted_by", Text),
            ("actor", Text),
        ],
        key: 1,
    },
    Table {
        name: "fact_source",
        columns: &[("fact_number", Int), ("message_seq", Int), ("message_id", Id)],
        key: 2,
    },
    Table { name: "rejection", columns: &[("key", Bytes)], key: 1 },
    Table {
        name: "entity",
        columns: &[
            ("session_number", Int),
            ("kind", Text),
            ("value", Text),
            ("id", Id),
            ("last_at", Int),
        ],
        key: 3,
    },
    Table {
        name: "entity_source",
        columns: &[("entity_id", Id), ("message_seq", Int), ("message_id", Id)],
        key: 2,
    },
    Table {
        name: "summary",
        columns: &[
            ("session_number", Int),
            ("version", Int),
            ("covered", Int),
            ("to_position", Int),
            ("from_at", Int),
            ("to_at", Int),
            ("tokens", Int),
            ("id", Id),
            ("previous", Id),
            ("writer", Text),
        ],
        key: 2,
    },
    Table {
        name: "summary_line",
        columns: &[
            ("session_number", Int),
            ("version", Int),
            ("line", Int),
            ("message_id", Id),
            ("text", Text),
        ],
        key: 3,
    },
    Table {
        name: "profile",
        columns: &[("version", Int), ("updated_at", Int), ("rules", Text), ("card", Text)],
        key: 0,
    },
    Table {
        name: "file_list",
        columns: &[("session_number", Int), ("revision", Int), ("list", Bytes), ("sent", Bytes)],
        key: 1,
    },
    Table {
        name: "file_ref",
        columns: &[
            ("id", Id),
            ("session_number", Int),
            ("created_at", Int),
            ("message_id", Id),
            ("kind", Text),
            ("title", Text),
            ("reference", Text),
            ("metadata", Text),
        ],
        key: 1,
    },
    Table {
        name: "document",
        columns: &[("id", Int), ("latest", Int), ("vault", Text), ("memory", Text)],
        key: 1,
    },
    Table {
        name: "document_snapshot",
        columns: &[
            ("number", Int),
            ("document_id", Int),
            ("created_at", Int),
            ("etag", Bytes),
            ("context", Text),
            ("actor", Text),
            ("text", Text),
        ],
        key: 1,
    },
    Table {
        name: "persona",
        columns: &[
            ("id", Id),
            ("created_at", Int),
            ("updated_at", Int),
            ("last_interaction_at", Int),
            ("expires_at", Int),
            ("deleted_at", Int),
            ("backed_up_at", Int),
            ("turns", Int),
            ("truncations", Int),
            ("version", Int),
            ("max_tokens", Int),
            ("max_history_tokens", Int),
            ("expiry_days", Int),
            ("memory", Int),
            ("temperature", Real),
            ("session", Text),
            ("name", Text),
            ("system_prompt", Text),
            ("personality", Text),
            ("tags", Text),
            ("preset", Text),
            ("preset_version", Int),
        ],
        key: 1,
    },
    Table {
        name: "preset",
        columns: &[
            ("id", Text),
            ("created_at", Int),
            ("updated_at", Int),
            ("version", Int),
            ("max_tokens", Int),
            ("max_history_tokens", Int),
            ("expiry_days", Int),
            ("is_active", Int),
            ("temperature", Real),
            ("name", Text),
            ("description", Text),
            ("system_prompt", Text),
            ("default_personality", Text),
            ("metadata", Text),
        ],
        key: 1,
    },
    Table {
        name: "preset_use",
        columns: &[("preset", Text), ("contexts", Int), ("turns", Int), ("truncations", Int)],
        key: 1,
    },
    Table {
        name: "persona_backup",
        columns: &[
            ("id", Id),
            ("persona", Id),
            ("through", Int),
            ("taken_at", Int),
            ("session", Text),
            ("reason", Text),
            ("data", Text),
        ],
        key: 1,
    },
    Table {
        name: "message_tag",
        columns: &[("message_id", Id), ("session_number", Int), ("tags", Text)],
        key: 1,
    },
    Table {
        name: "answer_rating",
        columns: &[
            ("message_id", Id),
            ("user_id", Text),
            ("session_number", Int),
            ("rated_at", Int),
            ("helpful", Int),
            ("preset_version", Int),
            ("preset", Text),
            ("note", Text),
        ],
        key: 2,
    },
    Table {
        name: "idempotency",
        columns: &[("key", Bytes), ("fingerprint", Bytes), ("at", Int), ("applied", Bytes)],
        key: 1,
    },
    Table {
        name: "job",
        columns: &[
            ("id", Id),
            ("due_at", Int),
            ("attempts", Int),
            ("priority", Int),
            ("state", Text),
            ("kind", Text),
            ("subject", Text),
            ("error", Text),
        ],
        key: 1,
    },
    Table {
        name: "usage_day",
        columns: &[
            ("day", Int),
            ("messages", Int),
            ("message_tokens", Int),
            ("contexts", Int),
            ("context_tokens", Int),
            ("baseline_tokens", Int),
        ],
        key: 1,
    },
    Table {
        name: "lex_stats",
        columns: &[("namespace", Int), ("units", Int), ("length", Int), ("tail", Int)],
        key: 1,
    },
    Table {
        name: "lex_tail",
        columns: &[
            ("namespace", Int),
            ("key", Int),
            ("length", Int),
            ("terms", Ints),
            ("counts", Ints),
        ],
        key: 2,
    },
    Table {
        name: "lex_block",
        columns: &[
            ("namespace", Int),
            ("term", Int),
            ("block", Int),
            ("before", Int),
            ("postings", Int),
            ("data", Bytes),
        ],
        key: 3,
    },
];

/// Every table of a tenant that moves, in the order in which they do.
pub const TENANT_TABLES: &[Table] = &[
    Table {
        name: "api_key",
        columns: &[
            ("id", Int),
            ("version", Int),
            ("created_at", Int),
            ("expires_at", Int),
            ("revoked_at", Int),
            ("last_used_at", Int),
            ("previous_until", Int),
            ("rate_most", Int),
            ("rate_per", Int),
            ("hash", Bytes),
            ("previous_hash", Bytes),
            ("user_id", Text),
            ("workspace", Text),
            ("permissions", Text),
            ("name", Text),
        ],
        key: 1,
    },
    Table {
        name: "tenant_settings",
        columns: &[
            ("version", Int),
            ("updated_at", Int),
            ("token_budget", Int),
            ("tier", Text),
            ("flags", Text),
            ("models", Text),
            ("client_config", Text),
        ],
        key: 0,
    },
    Table {
        name: "share",
        columns: &[
            ("id", Id),
            ("created_at", Int),
            ("writable", Int),
            ("user_id", Text),
            ("workspace", Text),
            ("session", Text),
        ],
        key: 1,
    },
    Table { name: "share_member", columns: &[("share_id", Id), ("user_id", Text)], key: 2 },
    Table {
        name: "audit",
        columns: &[
            ("at", Int),
            ("key_id", Int),
            ("action", Text),
            ("target", Text),
            ("outcome", Text),
            ("actor", Text),
        ],
        key: 0,
    },
    Table {
        name: "model_use",
        columns: &[
            ("day", Int),
            ("work", Text),
            ("model", Text),
            ("calls", Int),
            ("input", Int),
            ("cached_input", Int),
            ("output", Int),
            ("micro_usd", Int),
        ],
        key: 3,
    },
];
