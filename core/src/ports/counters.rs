//! Numbers that a store gives to what it adds: counters of a scope, which only grow, and are read and
//! written with every batch.

use crate::error::{Error, ErrorKind, Result};
use crate::ids::SessionId;
use crate::ports::AppliedMessage;
use crate::session::{PreparedMessage, Session};
use crate::time::Timestamp;

/// What a scope counts by: the highest numbers given, and the sizes that are kept with it. All of a
/// tenant's are 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ScopeCounters {
    /// Sequence number of the last message.
    pub last_seq: u64,
    /// Number of the last session.
    pub sessions: u64,
    /// Number of the last fact.
    pub facts: u64,
    /// Number of the last snapshot of a document.
    pub documents: u64,
    /// Messages held.
    pub messages: u64,
    /// Tokens of their contents.
    pub tokens: u64,
}

impl ScopeCounters {
    /// A session that the scope does not hold yet, under its next number.
    ///
    /// # Errors
    /// `StorageFull` where there is no number left.
    pub fn open_session(&mut self, id: &SessionId, created_at: Timestamp) -> Result<Session> {
        self.sessions += 1;
        let number = u32::try_from(self.sessions).map_err(|_| {
            Error::new(
                ErrorKind::StorageFull,
                "the scope has 2^32 sessions, the maximum: use another user or workspace",
            )
        })?;
        Ok(Session {
            id: id.clone(),
            number,
            created_at,
            last_at: created_at,
            messages: 0,
            tokens: 0,
            summarized: 0,
            next_position: 0,
            version: 0,
        })
    }

    /// Appends a message to a session of the scope: gives it its sequence number and position, and
    /// counts it in both.
    ///
    /// # Errors
    /// `StorageFull` where the session has no position left.
    pub fn append(
        &mut self,
        session: &mut Session,
        message: &PreparedMessage,
    ) -> Result<AppliedMessage> {
        let position = session.next_position;
        let units = u32::try_from(message.units.len()).unwrap_or(u32::MAX);
        session.next_position = position.checked_add(units).ok_or_else(|| {
            Error::new(ErrorKind::StorageFull, "the session is full: start another session")
        })?;
        session.messages += 1;
        session.tokens += u64::from(message.tokens);
        session.last_at = session.last_at.max(message.created_at);
        self.last_seq += 1;
        self.messages += 1;
        self.tokens += u64::from(message.tokens);
        Ok(AppliedMessage {
            id: message.id,
            seq: self.last_seq,
            position,
            tokens: message.tokens,
            replayed: false,
        })
    }

    /// The number of the next snapshot of a document; `is_repeated` tells whether the document has one of this
    /// context already.
    ///
    /// # Errors
    /// `Conflict` where it has; `StorageFull` where there is no number left.
    pub fn next_snapshot(&mut self, is_repeated: bool) -> Result<u32> {
        if is_repeated {
            return Err(Error::conflict("this context_id already belongs to a different text"));
        }
        self.documents += 1;
        u32::try_from(self.documents)
            .map_err(|_| Error::new(ErrorKind::StorageFull, "too many snapshots of documents"))
    }

    /// The number of the next fact.
    pub fn next_fact(&mut self) -> u32 {
        self.facts += 1;
        u32::try_from(self.facts).unwrap_or(u32::MAX)
    }
}

impl PreparedMessage {
    /// What is answered for a message whose `external_id` the session holds already, under `held` with
    /// this hash of its content.
    ///
    /// # Errors
    /// `Conflict` where the content differs.
    pub fn replay(&self, held: AppliedMessage, content_hash: &[u8]) -> Result<AppliedMessage> {
        if content_hash == self.content_hash {
            return Ok(AppliedMessage { replayed: true, ..held });
        }
        let id = self.external_id.as_ref().map(ToString::to_string).unwrap_or_default();
        Err(Error::conflict(format!(
            "external_id `{id}` already belongs to a message with different content: give the \
             changed message a new external_id"
        )))
    }
}
