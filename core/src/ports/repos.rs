//! Reads, one small trait for each module. A lookup that finds nothing is `Ok(None)` or empty.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use crate::document::{Memory, Snapshot, SnapshotInfo, Vault};
use crate::entity::Entity;
use crate::error::Result;
use crate::fact::{ActiveFact, Fact, Place, RejectionKey, SupersededFact};
use crate::ids::{ContextId, ExternalId, FactId, MemoryId, SessionId, VaultId};
use crate::index::{Namespace, UnitKey};
use crate::job::Job;
use crate::page::{Page, PageRequest};
use crate::scope::{Profile, Scope};
use crate::session::{FileRef, Message, Session};
use crate::summary::Summary;
use crate::time::Timestamp;
use crate::usage::{UsageCounters, UsageDay};

/// Sources that a fact or entity is read with: its last ones. A thing that is said every day has
/// thousands, of which erasure reads all and recall needs none but the newest.
pub const SOURCES_READ: usize = 16;

/// Bytes of the last messages that a turn reads at most: about what the largest budget of tokens holds.
pub const RECENT_BYTES: usize = 4 << 20;

/// Size of everything a scope holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScopeTotals {
    /// Messages of all sessions.
    pub messages: u64,
    /// Tokens of their contents: what the whole history would cost.
    pub tokens: u64,
    /// Sequence number of the last message.
    pub last_seq: u64,
    /// Facts, superseded ones included: the number of the last one.
    pub facts: u64,
    /// Number of the last snapshot of a document.
    pub documents: u64,
}

/// How much of a session its head holds at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct HeadLimits {
    /// Of [`SessionHead::recent`].
    pub messages: usize,
    /// Of [`SessionHead::entities`].
    pub entities: usize,
}

/// What a turn needs of its session whatever its words are.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionHead {
    /// The session.
    pub session: Session,
    /// Its last messages, oldest first: as many as have at most [`RECENT_BYTES`], and one at least.
    pub recent: Vec<Message>,
    /// The newest version of its summary.
    pub summary: Option<Summary>,
    /// Its entities, as [`EntityRepo::entities`] orders them.
    pub entities: Vec<Entity>,
}

/// Threads and messages.
#[async_trait]
pub trait SessionRepo: Send + Sync {
    /// The session under the caller's id.
    async fn session(&self, scope: &Scope, id: &SessionId) -> Result<Option<Session>>;

    /// The session under the caller's id with what a turn needs of it, as of one moment; equal for
    /// equal limits as long as the session's version is.
    async fn head(
        &self,
        scope: &Scope,
        id: &SessionId,
        limits: HeadLimits,
    ) -> Result<Option<SessionHead>>;

    /// Sessions by number.
    async fn sessions(&self, scope: &Scope, page: &PageRequest) -> Result<Page<Session>>;

    /// The last `limit` messages of a session, oldest first, without their parts and attachments.
    async fn recent_messages(
        &self,
        scope: &Scope,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<Message>>;

    /// Messages of a session by position, the page's ordinal being the position. A page ends early where it has
    /// [`MAX_PAGE_BYTES`](crate::page::MAX_PAGE_BYTES).
    async fn messages(
        &self,
        scope: &Scope,
        session: &SessionId,
        page: &PageRequest,
    ) -> Result<Page<Message>>;

    /// The messages that hold these passages, in the order asked, each beside its key and without its parts and
    /// attachments. A key that no message holds is left out; a message of several passages answers for each, as one
    /// value.
    async fn messages_at(
        &self,
        scope: &Scope,
        keys: &[UnitKey],
    ) -> Result<Vec<(UnitKey, Arc<Message>)>>;

    /// The messages of a session that bear these external ids, whoever gave them, in any order.
    async fn messages_by_external_id(
        &self,
        scope: &Scope,
        session: &SessionId,
        ids: &[ExternalId],
    ) -> Result<Vec<Message>>;

    /// The first `limit` messages that wait to be read by the model that extracts facts, in order of commit.
    async fn unread_messages(&self, scope: &Scope, limit: usize) -> Result<Vec<Message>>;

    /// Size of the scope.
    async fn totals(&self, scope: &Scope) -> Result<ScopeTotals>;
}

/// A text that waits to be embedded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxText {
    /// Its key.
    pub key: UnitKey,
    /// Sequence number of its message, or number of the fact or snapshot: the order of the outbox.
    pub seq: u64,
    /// A passage of a message or of a document with its heading, or a fact.
    pub text: String,
}

/// What vector indexes read to become complete. Nothing is written twice for it: the outbox is what
/// lies above an index's watermark.
#[async_trait]
pub trait OutboxRepo: Send + Sync {
    /// The texts of a namespace above `after`, in order; about `limit` of them, but never a part of a
    /// message's or document's passages alone; of a document, those of the latest snapshot. The
    /// passages of a message are those of its stored cuts. Empty when nothing waits.
    async fn texts_after(
        &self,
        scope: &Scope,
        namespace: Namespace,
        after: u64,
        limit: usize,
    ) -> Result<Vec<OutboxText>>;

    /// Every scope with its totals, in the order in which they were first written to; for workers,
    /// never for a caller.
    async fn scopes(&self, page: &PageRequest) -> Result<Page<(Scope, ScopeTotals)>>;
}

/// How many facts a read of the ledger gives at most; 0 for none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LedgerLimits {
    /// Of [`Ledger::standing`].
    pub standing: usize,
    /// Of [`Ledger::newest`].
    pub newest: usize,
    /// Of [`Ledger::superseded`], without those whose value was rejected.
    pub superseded: usize,
    /// Of [`Ledger::superseded`], those whose value was rejected.
    pub rejected: usize,
}

/// What a turn needs of the ledger whatever its words are.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Ledger {
    /// The active instructions and preferences, the last stated first, ties by the higher number.
    pub standing: Vec<Fact>,
    /// The active facts with the highest numbers, the highest first; no retractions.
    pub newest: Vec<Fact>,
    /// The superseded facts whose statement does not hold any more, each beside what holds its slot
    /// or its statement now: first those whose value was rejected, and of each kind those of the newest
    /// superseding facts (by id). A value that came back is left out.
    pub superseded: Vec<SupersededFact>,
}

/// The facts ledger.
#[async_trait]
pub trait FactRepo: Send + Sync {
    /// The active facts with these numbers, in the order asked; others are left out, and so are
    /// retractions. Each has its last [`SOURCES_READ`] sources.
    async fn active_facts(&self, scope: &Scope, numbers: &[u32]) -> Result<Vec<Fact>>;

    /// Whether any of these keys was rejected in the scope, and not allowed since.
    async fn is_rejected(&self, scope: &Scope, keys: &[RejectionKey]) -> Result<bool>;

    /// What a new fact would meet in each of these places: the active fact, also a retraction. A place without
    /// one is left out; in no particular order.
    async fn holders(&self, scope: &Scope, places: &[Place]) -> Result<Vec<(Place, ActiveFact)>>;

    /// The fact under an id, whether it holds or not, with its last [`SOURCES_READ`] sources.
    async fn fact(&self, scope: &Scope, id: FactId) -> Result<Option<Fact>>;

    /// What a turn needs of the ledger whatever its words are, in one read: see [`Ledger`].
    async fn ledger(&self, scope: &Scope, limits: LedgerLimits) -> Result<Ledger>;

    /// All facts by number, superseded ones included, each with its last [`SOURCES_READ`] sources.
    async fn facts(&self, scope: &Scope, page: &PageRequest) -> Result<Page<Fact>>;
}

/// Values seen.
#[async_trait]
pub trait EntityRepo: Send + Sync {
    /// The entities of a session, the most recently seen first, ties by the names of kinds and by
    /// value. Each has its last [`SOURCES_READ`] sources.
    async fn entities(
        &self,
        scope: &Scope,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<Entity>>;
}

/// Which files a session has inline, as the policy encodes it, and what models were sent of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileList {
    /// 1 for the first that is kept of a session, then one more each.
    pub revision: u64,
    /// At most [`MAX_FILE_LIST_BYTES`].
    pub bytes: Vec<u8>,
    /// The prompts of the calls so far, one behind the other: at most [`MAX_SENT_FILES_BYTES`].
    pub sent: String,
}

/// Longest list of files of a session.
pub const MAX_FILE_LIST_BYTES: usize = 1 << 20;
/// Longest text of the files that the models of a session were sent.
pub const MAX_SENT_FILES_BYTES: usize = 32 << 20;

/// Files that sessions refer to.
#[async_trait]
pub trait FileRepo: Send + Sync {
    /// The references of a session, the newest first, ties by the higher id.
    async fn files(&self, scope: &Scope, session: &SessionId, limit: usize)
    -> Result<Vec<FileRef>>;

    /// Which files a session has inline, as was last kept. It goes with the session.
    async fn file_list(&self, scope: &Scope, session: &SessionId) -> Result<Option<FileList>>;
}

/// The documents of memories. What was erased is not there, nor what fell out of the history.
#[async_trait]
pub trait DocumentRepo: Send + Sync {
    /// The latest snapshot of a memory's document.
    async fn document(
        &self,
        scope: &Scope,
        vault: &VaultId,
        memory: &MemoryId,
    ) -> Result<Option<Snapshot>>;

    /// The snapshot under its context id, whether it is the latest or not.
    async fn snapshot(
        &self,
        scope: &Scope,
        vault: &VaultId,
        memory: &MemoryId,
        context: &ContextId,
    ) -> Result<Option<Snapshot>>;

    /// The snapshots of a memory's document, the newest first.
    async fn snapshots(
        &self,
        scope: &Scope,
        vault: &VaultId,
        memory: &MemoryId,
        page: &PageRequest,
    ) -> Result<Page<SnapshotInfo>>;

    /// Those of the snapshots with these numbers that are the latest of their memory, in the order asked, up
    /// to the one with which their texts have `most_bytes` together.
    async fn latest_documents(
        &self,
        scope: &Scope,
        numbers: &[u32],
        most_bytes: u64,
    ) -> Result<Vec<Snapshot>>;

    /// The numbers of the snapshots that are the latest of their memory, of a vault or of all, in order.
    async fn latest_numbers(&self, scope: &Scope, vault: Option<&VaultId>) -> Result<Vec<u32>>;

    /// The vaults that have a memory, in the order in which they got their first one.
    async fn vaults(&self, scope: &Scope, page: &PageRequest) -> Result<Page<Vault>>;

    /// The memories of a vault, or of all, in the order in which they were first written to.
    async fn memories(
        &self,
        scope: &Scope,
        vault: Option<&VaultId>,
        page: &PageRequest,
    ) -> Result<Page<Memory>>;
}

/// Rolling summaries.
#[async_trait]
pub trait SummaryRepo: Send + Sync {
    /// The newest version of a session's summary.
    async fn latest_summary(&self, scope: &Scope, session: &SessionId) -> Result<Option<Summary>>;

    /// Up to `limit` newest versions of sessions that await a model, in no order. One that is older than another of its
    /// session is left out.
    async fn awaiting_summaries(&self, scope: &Scope, limit: usize) -> Result<Vec<Summary>>;

    /// All versions, oldest first.
    async fn summaries(&self, scope: &Scope, session: &SessionId) -> Result<Vec<Summary>>;
}

/// Rules and profile cards.
#[async_trait]
pub trait ProfileRepo: Send + Sync {
    /// The profile of exactly this scope.
    async fn profile(&self, scope: &Scope) -> Result<Option<Profile>>;
}

/// The job queue. Enqueueing and finishing are writes of a batch.
#[async_trait]
pub trait JobRepo: Send + Sync {
    /// Leases up to `limit` jobs of these kinds that are due, of all scopes: higher priority first,
    /// then the longer due. A running job whose lease has passed is due again, or failed
    /// after its last attempt. No two callers
    /// lease the same job; each lease counts as an attempt.
    async fn claim_jobs(
        &self,
        kinds: &[&str],
        now: Timestamp,
        lease: Duration,
        limit: usize,
    ) -> Result<Vec<Job>>;

    /// Returns once a job may have been enqueued since the last call (since the store was opened, for the
    /// first one), after `patience` at the latest, and possibly earlier for no reason. Of calls that wait
    /// at once, one at least returns. A backend that cannot tell, or that lost a message, costs
    /// `patience`; so does what becomes due by time.
    async fn await_jobs(&self, patience: Duration) -> Result<()>;

    /// The jobs of a scope, in the order in which they were enqueued.
    async fn jobs(&self, scope: &Scope, page: &PageRequest) -> Result<Page<Job>>;
}

/// Counters by day.
#[async_trait]
pub trait UsageRepo: Send + Sync {
    /// The counters of the days from `from` to `to`, both included, days without use left out.
    async fn usage(
        &self,
        scope: &Scope,
        from: UsageDay,
        to: UsageDay,
    ) -> Result<Vec<(UsageDay, UsageCounters)>>;
}
