//! The store: every repository, the lexical index, and the one way to write.

use async_trait::async_trait;

use crate::error::Result;
use crate::ports::{
    Applied, DocumentRepo, EntityRepo, ErasureRepo, FactRepo, FileRepo, JobRepo, LexicalIndex,
    OutboxRepo, PersonaRepo, ProfileRepo, RefusalRepo, SessionRepo, SummaryRepo, TenantRepo,
    UsageRepo, WriteBatch,
};

/// State of a store, an index or a cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Health {
    /// Name and version of the backend.
    pub backend: String,
    /// Migrations applied; 0 where there are none.
    pub schema_version: u32,
    /// The problems, in sentences for an operator; empty if there are none.
    pub problems: Vec<String>,
}

/// Everything that is kept, behind one handle.
#[async_trait]
pub trait Store:
    SessionRepo
    + FactRepo
    + EntityRepo
    + FileRepo
    + DocumentRepo
    + SummaryRepo
    + ProfileRepo
    + PersonaRepo
    + JobRepo
    + UsageRepo
    + RefusalRepo
    + OutboxRepo
    + TenantRepo
    + ErasureRepo
    + LexicalIndex
{
    /// Applies a batch: all of it or nothing. When it returns, the batch is durable and every
    /// later read sees it.
    ///
    /// Sequence numbers are allocated per scope under a lock, so that none commits late. Errors:
    /// a lost race when a precondition fails, `Conflict` when an `external_id` stands for other
    /// content, a context id for another text or an idempotency key for another request, `NotFound` when a
    /// job to finish is not running, or a session to add a file to or a message to tag is not there; the
    /// backend's own kinds
    /// (`Unavailable`, `ReadOnly`, `StorageFull`, `SchemaTooNew`, `Corrupt`).
    async fn apply(&self, batch: WriteBatch) -> Result<Applied>;

    /// Checks what is stored; `deep` reads all of it.
    async fn health(&self, deep: bool) -> Result<Health>;
}
