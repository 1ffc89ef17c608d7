//! What a store knows of erasures, beside the writes that erase.

use async_trait::async_trait;
use uuid::Uuid;

use crate::error::Result;
use crate::ids::{ExternalId, MemoryId, MessageId, SessionId, TenantId, UserId, VaultId};
use crate::index::{Namespace, UnitKey};
use crate::ports::ScopeTotals;
use crate::scope::Scope;

/// What a batch erases. What is not there is no error. A backup of a persona goes with any message that it
/// holds, and a persona with its session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Erasure {
    /// Messages, whichever session they are of.
    Messages(Vec<MessageId>),
    /// A session whole. Messages above `through` stay, and then so does the session: who erases again
    /// after a crash takes nothing that was said afterwards under the same name.
    Session {
        /// Which.
        id: SessionId,
        /// Sequence number of the last message that goes.
        through: u64,
    },
    /// The document of a memory with its whole history. Snapshots above `through` stay.
    Document {
        /// The vault.
        vault: VaultId,
        /// The memory.
        memory: MemoryId,
        /// Number of the last snapshot that goes.
        through: u64,
    },
    /// All that the scope holds, up to a sequence number and a snapshot's number; its counters stay, so that
    /// no number is given twice.
    Scope {
        /// Sequence number of the last message that goes.
        through: u64,
        /// Number of the last snapshot of a document that goes. They have an order of their own.
        documents: u64,
    },
}

/// What an erasure took.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Erased {
    /// Messages.
    pub messages: u64,
    /// Tokens of their contents.
    pub tokens: u64,
    /// Facts, those included that other messages state and that were read from them anew.
    pub facts: u64,
    /// Typed values.
    pub entities: u64,
    /// References to files, those included that came with a session and no message.
    pub files: u64,
    /// Versions of summaries.
    pub summaries: u64,
    /// Sessions.
    pub sessions: u64,
    /// Documents of which no snapshot is left.
    pub documents: u64,
    /// What has to leave an index apart from the store, unless all of the scope has.
    pub units: Vec<(Namespace, UnitKey)>,
    /// Sessions of which nothing that was read before may be shown.
    pub touched: Vec<SessionId>,
    /// The messages that were erased by their ids. No store says so.
    pub by_id: Vec<MessageId>,
    /// Whether nothing of the scope is left.
    pub whole_scope: bool,
    /// Whether something beside the store is away and still has to be told, by a job. No store says so.
    pub waiting: bool,
}

impl Erased {
    /// Adds what another erasure took.
    pub fn add(&mut self, other: Self) {
        self.messages += other.messages;
        self.tokens += other.tokens;
        self.facts += other.facts;
        self.entities += other.entities;
        self.files += other.files;
        self.summaries += other.summaries;
        self.sessions += other.sessions;
        self.documents += other.documents;
        self.units.extend(other.units);
        self.touched.extend(other.touched);
        self.by_id.extend(other.by_id);
        self.touched.sort();
        self.touched.dedup();
        self.whole_scope |= other.whole_scope;
        self.waiting |= other.waiting;
    }
}

/// Which entries of which ledger a store has applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ErasureState {
    /// The ledger that it is bound to.
    pub ledger: Option<Uuid>,
    /// How many entries it has applied.
    pub applied: u64,
    /// The highest number among them; 0 for none.
    pub last: u64,
}

/// What restoring and erasing need to know of a store.
#[async_trait]
pub trait ErasureRepo: Send + Sync {
    /// Which entries of which ledger were applied. It is part of a backup.
    async fn erasure_state(&self) -> Result<ErasureState>;

    /// Binds the store to a ledger in place of the one that it is bound to, of which no entry counts as
    /// applied any more. Binding it to the same ledger again changes nothing.
    async fn bind_ledger(&self, id: Uuid) -> Result<()>;

    /// Up to `limit` numbers of entries that were applied, in order, from the first above `after` on.
    async fn erasures_applied(&self, after: u64, limit: usize) -> Result<Vec<u64>>;

    /// Notes entries of which the store holds nothing; one that is noted already is no error.
    async fn note_erasures(&self, numbers: &[u64]) -> Result<()>;

    /// A number of the scope that goes up with every erasure that is applied to it. It never comes again:
    /// a scope that was dropped and begins anew begins with another. `None` for a scope that was not
    /// written to.
    ///
    /// Whoever writes what was read before reads this first, and applies with
    /// [`Precondition::IfErasures`](crate::ports::Precondition::IfErasures).
    async fn erasures(&self, scope: &Scope) -> Result<Option<u64>>;

    /// The scopes of a user, with and without a workspace, each with its totals.
    async fn scopes_of(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> Result<Vec<(Scope, ScopeTotals)>>;

    /// Those of these ids that are messages of this session, each with its caller's id.
    async fn held_messages(
        &self,
        scope: &Scope,
        session: &SessionId,
        ids: &[MessageId],
    ) -> Result<Vec<(MessageId, Option<ExternalId>)>>;

    /// Overwrites what free space, logs and caches of the backend still hold of what was erased, as far
    /// as the backend can. It changes nothing that is held.
    async fn purge(&self) -> Result<()>;
}
