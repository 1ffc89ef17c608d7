//! Every write is a value: a `WriteBatch`, built by pure code and applied atomically.

use std::sync::Arc;
use std::time::Duration;

use uuid::Uuid;

use crate::document::NewSnapshot;
use crate::error::{Error, ErrorKind, Result};
use crate::fact::{NewFact, RejectionKey};
use crate::ids::{
    FactId, JobId, MemoryId, MessageId, PersonaId, PresetId, SessionId, UserId, VaultId,
};
use crate::index::IndexUnit;
use crate::job::{NewJob, Outcome};
use crate::persona::{Backup, Persona, Preset, PresetUse, Rating};
use crate::ports::{
    Erased, Erasure, FileList, MAX_FILE_LIST_BYTES, MAX_SENT_FILES_BYTES, VectorSpace,
};
use crate::scope::{Profile, Scope};
use crate::session::{FileRef, PreparedMessage};
use crate::summary::Summary;
use crate::time::Timestamp;
use crate::usage::{UsageCounters, UsageDay};

/// The subject of a precondition.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum RecordKey {
    /// A session; its version increases with every batch that writes to it.
    Session(SessionId),
    /// The profile of the batch's scope.
    Profile,
    /// A persona.
    Persona(PersonaId),
    /// A preset of the scope's own.
    Preset(PresetId),
    /// A memory's document; its version is the number of its latest snapshot.
    Document(VaultId, MemoryId),
}

/// What must hold when the batch is applied; else nothing of it is, and the error is a lost race.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Precondition {
    /// The record does not exist.
    IfAbsent(RecordKey),
    /// The record exists with exactly this version.
    IfVersion(RecordKey, u64),
    /// The scope is there and its [`erasures`](crate::ports::ErasureRepo::erasures) are these: nothing was
    /// erased since, so that what was read after them may be written again.
    IfErasures(u64),
}

impl Precondition {
    /// The record that it is about.
    #[must_use]
    pub fn record(&self) -> Option<&RecordKey> {
        match self {
            Self::IfAbsent(key) | Self::IfVersion(key, _) => Some(key),
            Self::IfErasures(_) => None,
        }
    }

    /// Checks it against the version of its record and the erasures of the scope.
    ///
    /// # Errors
    /// A lost race where it does not hold.
    pub fn check(&self, version: Option<u64>, erasures: u64) -> Result<()> {
        let holds = match self {
            Self::IfAbsent(_) => version.is_none(),
            Self::IfVersion(_, expected) => version == Some(*expected),
            Self::IfErasures(expected) => erasures == *expected,
        };
        if holds {
            Ok(())
        } else {
            Err(Error::lost_race("another writer changed this first: try again"))
        }
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq)]
pub enum Write {
    /// Appends a message with what was derived from it, creating the session if it is its first.
    ///
    /// A message whose `external_id` the session already holds with an equal hash is a replay:
    /// nothing is written for it and its first identity is returned. With another hash the batch
    /// is a conflict. An `external_id` is its author's: those of the owner and of each guest are apart. Facts supersede and strengthen as [`crate::fact`] says; an entity that the
    /// session holds gains a source. The usage
    /// of the batch's day counts the message.
    AppendMessage {
        /// The thread.
        session: SessionId,
        /// The message; shared, because a batch is built again where another writer came first.
        message: Arc<PreparedMessage>,
    },
    /// Creates a session that has no messages yet; one that is there stays as it is, its version
    /// included.
    OpenSession {
        /// The thread.
        session: SessionId,
        /// Its `created_at` and `last_at`.
        created_at: Timestamp,
    },
    /// Adds a fact directly: it has no session and no source. It supersedes as any other,
    /// and one that states what holds already takes its place, so that the words are those last told.
    PutFact(Box<NewFact>),
    /// Adds a fact that a message of the scope states, which is its `stated_in`, as one that comes with its message.
    /// Where that message is not there any more, nothing is added.
    StateFact(Box<NewFact>),
    /// Messages that waited to be read have been. A lost race where one of them is there and does not wait any more:
    /// another worker has read it. One that is not there is no error.
    MarkRead(Vec<MessageId>),
    /// Rejects: from now on a fact that a message states and that bears one of these keys does not hold.
    /// It is written as superseded by what holds its slot or statement, or where nothing does, not at all.
    Reject(Vec<RejectionKey>),
    /// Rejects no longer.
    Allow(Vec<RejectionKey>),
    /// Adds a reference of a session, which must exist (else `NotFound`), to a file; one with its id is
    /// replaced. The session's version stays.
    PutFile(Box<FileRef>),
    /// Keeps which files a session has inline, in place of what was kept; the session is opened if it is not there, and its
    /// version stays. Its revision must be the next one after that which is held, else it is a lost race.
    PutFileList {
        /// The session.
        session: SessionId,
        /// The list.
        list: FileList,
        /// Its `created_at` where the session is opened.
        at: Timestamp,
    },
    /// Adds a snapshot of a memory's document, which becomes the latest: its passages take the place of
    /// those of the one before, in the lexical index and, where the store is their index, among vectors. Its
    /// number is the scope's next. Of more than [`NewSnapshot::keep`] snapshots the oldest go. A context id
    /// that the memory has already is a `Conflict`.
    PutDocument(Box<NewSnapshot>),
    /// Adds a version of a session's summary.
    PutSummary(Box<Summary>),
    /// Replaces the lines, tokens and writer of the version with its id, which awaits a model. The session's version
    /// counts up. A lost race where that version is not there or does not await a model any more.
    RewriteSummary(Box<Summary>),
    /// Replaces the profile of the scope.
    PutProfile(Profile),
    /// Keeps a persona in place of the one with its id.
    PutPersona(Box<Persona>),
    /// Keeps a preset in place of the one with its id.
    PutPreset(Box<Preset>),
    /// Removes a preset; a missing one is not an error. Its counters stay.
    RemovePreset(PresetId),
    /// Adds to the counters of a preset, ours or the scope's own.
    CountPreset(PresetId, PresetUse),
    /// Adds a backup of a persona. Of those of the same persona and reason the newest stay, ties by the
    /// higher id.
    PutBackup {
        /// The backup.
        backup: Box<Backup>,
        /// How many stay.
        keep: u32,
    },
    /// Gives a message of a session, which must hold it (else `NotFound`), these tags in place of those that
    /// it has; none takes all away. The session's version stays.
    TagMessage {
        /// The session.
        session: SessionId,
        /// The message.
        message: MessageId,
        /// Its tags.
        tags: Vec<String>,
    },
    /// Keeps a rating in place of the one that its user gave the same answer. The session must hold the answer, a
    /// message of an assistant (else `NotFound`). The session's version stays.
    RateAnswer {
        /// The session.
        session: SessionId,
        /// The rating.
        rating: Box<Rating>,
    },
    /// Removes the rating that a user gave an answer; a missing one is not an error.
    RemoveRating {
        /// The answer.
        message: MessageId,
        /// The user.
        user: UserId,
    },
    /// Adds to the counters of a day.
    AddUsage(UsageDay, UsageCounters),
    /// Enqueues a job, unless one of equal kind and subject is queued or running in the scope.
    EnqueueJob(NewJob),
    /// Ends the current attempt of a running job of the scope.
    FinishJob(JobId, Outcome),
    /// Removes a job of the scope that nobody needs any more, whatever its state; one that is not there is
    /// no error.
    DropJob(JobId),
    /// Erases, with everything that was derived from it by recorded provenance: facts, entities, summaries,
    /// postings, and vectors where the store is their index. The state is then what it would be had it
    /// never been written, as far as extraction alone decides; only numbers stay spent, and the versions
    /// of sessions count up. See [`crate::erase`]. Such a batch appends nothing.
    Erase {
        /// What.
        erasure: Erasure,
        /// A fresh id, of which facts that are read anew get theirs.
        seed: Uuid,
    },
    /// Records that an entry of the ledger of erasures was applied; repeating it is not an error.
    NoteErasure(u64),
    /// Removes the row of a scope that holds nothing any more, with its jobs and its counters. A scope that
    /// holds anything stays as it is.
    DropScope,
}

/// Changes of one scope that happen together or not at all.
#[derive(Debug, Clone, PartialEq)]
pub struct WriteBatch {
    /// The scope; every write is within it.
    pub scope: Scope,
    /// When it was built.
    pub now: Timestamp,
    /// The preconditions.
    pub preconditions: Vec<Precondition>,
    /// The space of the vectors of its index units; `None` when they were not embedded.
    ///
    /// A store that is a vector index keeps them, and its watermark moves with them if it was
    /// complete before; another store ignores them.
    pub space: Option<VectorSpace>,
    /// Makes a repeat of the batch harmless.
    ///
    /// Where the scope holds the same key with the same fingerprint, nothing is applied, and the answer
    /// is what was answered then, its messages told as replayed. With another fingerprint it is a
    /// `Conflict`. Before preconditions are: they held then. A key is kept for [`IDEMPOTENCY_KEPT`], by
    /// the times of batches, and as durably as its batch; a batch that fails leaves none. After
    /// that it is as good as new.
    pub idempotency: Option<Idempotency>,
    /// The changes, applied in order.
    pub writes: Vec<Write>,
}

/// How long a repeated batch is known as such.
pub const IDEMPOTENCY_KEPT: Duration = Duration::from_secs(24 * 60 * 60);

/// What tells a repeat from another batch. Hashes, so that a store learns nothing of either.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Idempotency {
    /// Hash of the caller's key, and of what it was used for.
    pub key: [u8; 16],
    /// Hash of the request.
    pub fingerprint: [u8; 16],
}

impl Idempotency {
    /// The same key, chosen by another user: those who share a session write to one scope, and do not know the keys of
    /// each other.
    #[must_use]
    pub fn of_guest(self, guest: &UserId) -> Self {
        let mut hasher = blake3::Hasher::new();
        hasher.update(&self.key).update(guest.as_str().as_bytes());
        let mut key = [0; 16];
        key.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        Self { key, ..self }
    }

    /// Answers from before this are forgotten.
    #[must_use]
    pub fn oldest_kept(now: Timestamp) -> Timestamp {
        let kept = i64::try_from(IDEMPOTENCY_KEPT.as_micros()).unwrap_or(i64::MAX);
        Timestamp::from_micros(now.as_micros().saturating_sub(kept))
    }

    /// What a batch with this key is answered where `applied` was kept under it, by
    /// [`Applied::to_bytes`], for a request with `fingerprint`.
    ///
    /// # Errors
    /// `Conflict` for another request; `Corrupt` for bytes that [`Applied::to_bytes`] did not make.
    pub fn answer(&self, fingerprint: &[u8], applied: &[u8]) -> Result<Applied> {
        if fingerprint != self.fingerprint {
            return Err(Error::conflict(
                "this idempotency key was used for a different request: give each request its own",
            ));
        }
        Applied::repeated(applied)
    }
}

impl Write {
    /// The error of a file for a session that is not there.
    #[must_use]
    pub fn no_session() -> Error {
        Error::not_found("there is no session with this id: create it before you add files to it")
    }

    /// The error of messages that another worker has read first.
    #[must_use]
    pub fn read_before() -> Error {
        Error::lost_race("another worker has read this message first")
    }

    /// The error of a list of files whose revision is not the next.
    #[must_use]
    pub fn listed_before() -> Error {
        Error::lost_race("another call on this session has changed its list of files: try again")
    }

    /// The error of a summary that awaits no model.
    #[must_use]
    pub fn written_before() -> Error {
        Error::lost_race("this summary was erased, or another worker has written it first")
    }

    /// The error of a rating for an answer that is not there.
    #[must_use]
    pub fn no_answer() -> Error {
        Error::not_found(
            "no such answer in this conversation: only messages of the assistant can be rated",
        )
    }

    /// The error of tags for a message that is not there.
    #[must_use]
    pub fn no_message() -> Error {
        Error::not_found("no such message in this conversation")
    }
}

impl WriteBatch {
    /// An empty batch.
    #[must_use]
    pub fn new(scope: Scope, now: Timestamp) -> Self {
        Self {
            scope,
            now,
            preconditions: Vec::new(),
            space: None,
            idempotency: None,
            writes: Vec::new(),
        }
    }

    /// Adds a precondition.
    #[must_use]
    pub fn with_precondition(mut self, precondition: Precondition) -> Self {
        self.preconditions.push(precondition);
        self
    }

    /// Makes a repeat harmless.
    #[must_use]
    pub fn with_idempotency(mut self, idempotency: Option<Idempotency>) -> Self {
        self.idempotency = idempotency;
        self
    }

    /// Adds a write.
    #[must_use]
    pub fn with(mut self, write: Write) -> Self {
        self.writes.push(write);
        self
    }

    /// What every store refuses before it reads anything.
    ///
    /// # Errors
    /// `InvalidInput` for a batch that both erases and adds, and for a vector of other dimensions than
    /// the batch's space.
    pub fn check(&self) -> Result<()> {
        self.check_erasure()?;
        for write in &self.writes {
            let Write::PutFileList { list, .. } = write else { continue };
            if list.bytes.len() > MAX_FILE_LIST_BYTES {
                return Err(Error::invalid(
                    "too many files for one session: its list would have more than 1 MiB; name fewer or \
                     narrower folders",
                ));
            }
            if list.sent.len() > MAX_SENT_FILES_BYTES {
                return Err(Error::invalid(
                    "the files of one session have more than 32 MiB of text: name fewer, or reset its list",
                ));
            }
        }
        let Some(space) = &self.space else { return Ok(()) };
        let mut vectors = self.units().filter_map(|unit| unit.vector.as_ref());
        vectors.try_for_each(|vector| space.check(vector))
    }

    /// The units of the index that it writes.
    pub fn units(&self) -> impl Iterator<Item = &IndexUnit> {
        self.writes.iter().flat_map(|write| match write {
            Write::AppendMessage { message, .. } => {
                let facts = message.facts.iter().map(|fact| &fact.unit);
                message.units.iter().chain(facts).collect()
            }
            Write::PutFact(fact) | Write::StateFact(fact) => vec![&fact.unit],
            Write::PutDocument(new) => new.units.iter().collect(),
            _ => Vec::new(),
        })
    }

    fn check_erasure(&self) -> Result<()> {
        let erases = |write: &Write| matches!(write, Write::Erase { .. } | Write::DropScope);
        let appends = |write: &Write| {
            matches!(
                write,
                Write::AppendMessage { .. }
                    | Write::PutSummary(_)
                    | Write::OpenSession { .. }
                    | Write::PutFile(_)
                    | Write::PutFileList { .. }
                    | Write::PutDocument(_)
                    | Write::PutFact(_)
                    | Write::StateFact(_)
                    | Write::PutProfile(_)
                    | Write::PutPersona(_)
                    | Write::PutPreset(_)
                    | Write::PutBackup { .. }
                    | Write::TagMessage { .. }
                    | Write::RateAnswer { .. }
            )
        };
        if self.writes.iter().any(erases) && self.writes.iter().any(appends) {
            return Err(Error::invalid("a batch cannot both erase and add: apply two batches"));
        }
        Ok(())
    }

    /// Whether workers have to hear of it.
    #[must_use]
    pub fn enqueues(&self) -> bool {
        self.writes.iter().any(|write| matches!(write, Write::EnqueueJob(_)))
    }
}

/// The decisions of the store while it applied a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied {
    /// One entry for each `AppendMessage`, in order.
    pub messages: Vec<AppliedMessage>,
    /// The id of the fact of each `PutFact`, in order.
    pub facts: Vec<FactId>,
    /// Whether the batch was a repeat, and this is what was answered to the first.
    pub repeated: bool,
    /// The sum of its erasures.
    pub erased: Erased,
}

/// Bytes of a fact and of a message in [`Applied::to_bytes`].
const FACT_BYTES: usize = 16;
const MESSAGE_BYTES: usize = 32;

impl Applied {
    /// For a store to keep with an idempotency key: the number of facts in 4 bytes, 16 for each of them,
    /// and 32 for each message; no content.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let facts = u32::try_from(self.facts.len()).unwrap_or(u32::MAX);
        let mut bytes = facts.to_le_bytes().to_vec();
        for fact in &self.facts {
            bytes.extend_from_slice(fact.as_uuid().as_bytes());
        }
        for message in &self.messages {
            bytes.extend_from_slice(message.id.as_uuid().as_bytes());
            bytes.extend_from_slice(&message.seq.to_le_bytes());
            bytes.extend_from_slice(&message.position.to_le_bytes());
            bytes.extend_from_slice(&message.tokens.to_le_bytes());
        }
        bytes
    }

    /// What a repeat of the batch is answered, from what was kept of the first.
    ///
    /// # Errors
    /// `Corrupt` for bytes that [`Self::to_bytes`] did not make.
    pub fn repeated(bytes: &[u8]) -> Result<Self> {
        Self::read(bytes).ok_or_else(|| {
            Error::new(
                ErrorKind::Corrupt,
                "a stored response is damaged: run `throughline migrate --check`, or restore a \
                 backup",
            )
        })
    }

    fn read(bytes: &[u8]) -> Option<Self> {
        let (count, rest) = bytes.split_first_chunk::<4>()?;
        let count = usize::try_from(u32::from_le_bytes(*count)).ok()?;
        let (facts, messages) = rest.split_at_checked(count.checked_mul(FACT_BYTES)?)?;
        let (messages, rest) = messages.as_chunks::<MESSAGE_BYTES>();
        let fact = |id: &[u8; FACT_BYTES]| FactId::from_uuid(Uuid::from_bytes(*id));
        rest.is_empty().then(|| Self {
            facts: facts.as_chunks::<FACT_BYTES>().0.iter().map(fact).collect(),
            messages: messages.iter().map(replayed).collect(),
            repeated: true,
            erased: Erased::default(),
        })
    }
}

fn replayed(record: &[u8; MESSAGE_BYTES]) -> AppliedMessage {
    let (mut id, mut seq, mut position, mut tokens) = ([0; 16], [0; 8], [0; 4], [0; 4]);
    id.copy_from_slice(&record[..16]);
    seq.copy_from_slice(&record[16..24]);
    position.copy_from_slice(&record[24..28]);
    tokens.copy_from_slice(&record[28..]);
    AppliedMessage {
        id: MessageId::from_uuid(Uuid::from_bytes(id)),
        seq: u64::from_le_bytes(seq),
        position: u32::from_le_bytes(position),
        tokens: u32::from_le_bytes(tokens),
        replayed: true,
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_is_kept_and_told_as_replayed() {
        let message = |n: u32| AppliedMessage {
            id: MessageId::from_uuid(Uuid::from_u128(u128::from(n) << 64 | 7)),
            seq: u64::from(n) << 33,
            position: n,
            tokens: u32::MAX - n,
            replayed: false,
        };
        let first = Applied {
            messages: vec![message(1), message(2)],
            facts: vec![FactId::from_uuid(Uuid::from_u128(7))],
            ..Applied::default()
        };
        let again = Applied::repeated(&first.to_bytes()).unwrap();
        let replayed = first.messages.iter().map(|m| AppliedMessage { replayed: true, ..*m });
        assert_eq!(again, Applied { messages: replayed.collect(), repeated: true, ..first });
        let nothing = Applied::repeated(&Applied::default().to_bytes()).unwrap();
        assert_eq!((nothing.messages, nothing.facts), (vec![], vec![]));
        for bytes in [&[][..], &[0; 33], &[1, 0, 0, 0]] {
            assert_eq!(Applied::repeated(bytes).unwrap_err().kind(), ErrorKind::Corrupt);
        }
    }
}
