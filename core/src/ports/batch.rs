//! Every write is a value: a `WriteBatch`, built by pure code and applied atomically.

use crate::ids::{JobId, MessageId, SessionId};
use crate::job::{NewJob, Outcome};
use crate::ports::VectorSpace;
use crate::scope::{Profile, Scope};
use crate::session::PreparedMessage;
use crate::summary::Summary;
use crate::time::Timestamp;
use crate::usage::{UsageCounters, UsageDay};

/// What a precondition is about.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RecordKey {
    /// A session; its version increases with every batch that writes to it.
    Session(SessionId),
    /// The profile of the batch's scope.
    Profile,
}

/// What must hold when the batch is applied; else nothing of it is, and the error is a lost race.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Precondition {
    /// The record does not exist.
    IfAbsent(RecordKey),
    /// The record exists with exactly this version.
    IfVersion(RecordKey, u64),
}

/// One change.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// Appends a message with what was derived from it, creating the session if it is its first.
    ///
    /// A message whose `external_id` the session already holds with an equal hash is a replay:
    /// nothing is written for it and its first identity is returned. With another hash the batch
    /// is a conflict. Facts supersede and strengthen as [`crate::fact`] says; an entity that the
    /// session holds gains a source. The usage
    /// of the batch's day counts the message.
    AppendMessage {
        /// The thread.
        session: SessionId,
        /// The message.
        message: Box<PreparedMessage>,
    },
    /// Adds a version of a session's summary.
    PutSummary(Box<Summary>),
    /// Replaces the profile of the scope.
    PutProfile(Profile),
    /// Adds to the counters of a day.
    AddUsage(UsageDay, UsageCounters),
    /// Enqueues a job, unless one of equal kind and subject is queued or running in the scope.
    EnqueueJob(NewJob),
    /// Ends the current attempt of a running job of the scope.
    FinishJob(JobId, Outcome),
}

/// Changes of one scope that happen together or not at all.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteBatch {
    /// The scope; every write is within it.
    pub scope: Scope,
    /// When it was built.
    pub now: Timestamp,
    /// What must hold.
    pub preconditions: Vec<Precondition>,
    /// The space of the vectors of its index units; `None` when they were not embedded.
    ///
    /// A store that is a vector index keeps them, and its watermark moves with them if it was
    /// complete before; another store ignores them.
    pub space: Option<VectorSpace>,
    /// The changes, applied in order.
    pub writes: Vec<Write>,
}

impl WriteBatch {
    /// An empty batch.
    #[must_use]
    pub fn new(scope: Scope, now: Timestamp) -> Self {
        Self { scope, now, preconditions: Vec::new(), space: None, writes: Vec::new() }
    }

    /// Adds a precondition.
    #[must_use]
    pub fn with_precondition(mut self, precondition: Precondition) -> Self {
        self.preconditions.push(precondition);
        self
    }

    /// Adds a write.
    #[must_use]
    pub fn with(mut self, write: Write) -> Self {
        self.writes.push(write);
        self
    }

    /// Whether workers have to hear of it.
    #[must_use]
    pub fn enqueues(&self) -> bool {
        self.writes.iter().any(|write| matches!(write, Write::EnqueueJob(_)))
    }
}

/// What the store decided while it applied a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied {
    /// One entry for each `AppendMessage`, in order.
    pub messages: Vec<AppliedMessage>,
}

/// The identity that the store gave an appended message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AppliedMessage {
    /// Its id: the prepared one, or that of the message it replays.
    pub id: MessageId,
    /// Its order of commit within the scope.
    pub seq: u64,
    /// Its ordinal within the session, in index units.
    pub position: u32,
    /// Tokens of its content.
    pub tokens: u32,
    /// Whether it was there already.
    pub replayed: bool,
}
