//! Conversation threads and their messages: what was said, in order.

mod cuts;
mod file;
mod new_message;
mod share;
mod units;

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use crate::access::Actor;
use crate::entity::NewEntity;
use crate::error::{Error, Result};
use crate::fact::NewFact;
use crate::ids::{ExternalId, MessageId, SessionId, UserId};
use crate::index::{IndexUnit, UnitKey};
use crate::text::guarded_speech;
use crate::time::Timestamp;

pub use cuts::{Cuts, Passage};
pub use file::{FileKind, FileRef, MAX_METADATA_BYTES, NewFileRef};
pub use new_message::{MAX_BATCH, MAX_BATCH_BYTES, MAX_CONTENT_BYTES, MAX_PARTS_DEPTH, NewMessage};
pub use share::{MAX_MEMBERS, Share};
pub(crate) use units::index_passages;
pub use units::stored_units;

/// How far the clock of a caller may be ahead: later times are of no clock.
const MOST_AHEAD: Duration = Duration::from_secs(300);

/// When what came at `stored_at` was stated, of which its caller says `created_at`: nothing was stated after it came.
pub(crate) fn stated_at(created_at: Timestamp, stored_at: Timestamp) -> Timestamp {
    if created_at > stored_at.plus(MOST_AHEAD) { stored_at } else { created_at }
}

/// Who speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Instructions of the application.
    System,
    /// The end user. Only this role's words become facts of the user.
    User,
    /// The model.
    Assistant,
    /// The result of a tool.
    Tool,
}

impl Role {
    /// Every role, in the order that error messages name them.
    pub const ALL: [Self; 4] = [Self::System, Self::User, Self::Assistant, Self::Tool];

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Tool => "tool",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Role {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|role| role.as_str() == text).ok_or_else(|| {
            let allowed = Self::ALL.map(Self::as_str).join(", ");
            Error::invalid(format!(
                "unknown role `{}`: use one of {allowed}",
                text.chars().take(40).collect::<String>()
            ))
        })
    }
}

/// One conversation thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Session {
    /// The caller's id.
    pub id: SessionId,
    /// Ordinal of the session within its scope, from 1; the upper half of a
    /// [`UnitKey`].
    pub number: u32,
    /// When it was opened: `created_at` of its first message, unless it was opened before that.
    /// Where that message is erased, it is that of the first that is left, or the time of the erasure.
    pub created_at: Timestamp,
    /// Latest `created_at` of its messages.
    pub last_at: Timestamp,
    /// Messages held.
    pub messages: u64,
    /// Tokens of all contents.
    pub tokens: u64,
    /// Messages that the latest summary covers.
    pub summarized: u64,
    /// Position that the next message takes.
    pub next_position: u32,
    /// Increases with every batch that writes to the session.
    pub version: u64,
}

/// The error for a session that does not exist or belongs to somebody else.
pub(crate) fn no_session() -> Error {
    Error::not_found("there is no session with this id: appending its first message creates it")
}

/// For whom a session is read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Reader {
    /// Its owner.
    #[default]
    Owner,
    /// A guest with whom it is shared.
    Guest {
        /// The guest.
        guest: UserId,
        /// The owner.
        owner: UserId,
    },
}

/// One message as it is stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    /// Our id.
    pub id: MessageId,
    /// The thread it belongs to.
    pub session: SessionId,
    /// Ordinal of the thread within the scope.
    pub session_number: u32,
    /// Order of commit within the scope, from 1, without regard to sessions.
    pub seq: u64,
    /// Ordinal within the session, from 0, counted in index units: a message of n passages takes n.
    pub position: u32,
    /// Passages that it was indexed in, at least 1.
    pub units: u32,
    /// Where it was cut into them.
    pub cuts: Cuts,
    /// Who speaks.
    pub role: Role,
    /// The speaker's name, where the caller gave one.
    pub name: Option<String>,
    /// The text, with its secrets masked.
    pub content: String,
    /// The text as it was said, where secrets of it are masked.
    pub original: Option<String>,
    /// On whose word.
    pub actor: Actor,
    /// The caller's id.
    pub external_id: Option<ExternalId>,
    /// When it was said, as the caller says; [`Self::stated_at`] is what it counts as.
    pub created_at: Timestamp,
    /// Tokens of `content`, by the store's tokenizer.
    pub tokens: u32,
    /// Structured parts as the caller sent them: JSON, stored and not interpreted.
    pub parts: Option<String>,
    /// Attachments as the caller sent them: JSON, stored and not interpreted.
    pub attachments: Option<String>,
}

impl Message {
    /// The text as it was said.
    #[must_use]
    pub fn said(&self) -> &str {
        self.original.as_deref().unwrap_or(&self.content)
    }

    /// Bytes of its texts.
    #[must_use]
    pub fn bytes(&self) -> usize {
        let beside = [&self.original, &self.parts, &self.attachments].into_iter().flatten();
        self.content.len() + beside.map(String::len).sum::<usize>()
    }

    /// When it was stated: not later than it was stored, whatever its caller says.
    #[must_use]
    pub fn stated_at(&self) -> Timestamp {
        let stored_at = self.id.made_at();
        stored_at.map_or(self.created_at, |stored_at| stated_at(self.created_at, stored_at))
    }

    /// Whether the passage under `key` is one of this message's.
    #[must_use]
    pub fn holds(&self, key: UnitKey) -> bool {
        self.session_number == key.session_number()
            && key.position().checked_sub(self.position).is_some_and(|at| at < self.units)
    }

    /// The passage under `key`, if it is one of this message's.
    #[must_use]
    pub fn passage(&self, key: UnitKey) -> Option<Passage> {
        let ordinal = key.position().checked_sub(self.position).filter(|_| self.holds(key))?;
        self.cuts.passage(usize::try_from(ordinal).ok()?, self.content.len(), self.tokens)
    }

    /// The guest who wrote it, whose `external_id` it is; `None` for all that is the owner's.
    #[must_use]
    pub fn guest(&self) -> Option<&str> {
        self.name.as_deref().filter(|_| self.actor == Actor::Guest)
    }

    /// The role and the text under which `text`, a form of its content, is sent to a model that answers `reader`. What
    /// others said is fenced with their name, so that a model takes it for theirs; only what the owner's own backend
    /// wrote speaks as the system.
    #[must_use]
    pub fn sent_to<'t>(&self, reader: &Reader, text: &'t str) -> (Role, Cow<'t, str>) {
        let said_by = match (self.role, self.guest(), reader) {
            (Role::System, _, _) => (self.actor != Actor::User).then(|| self.speaker()),
            (_, guest, Reader::Owner) => guest.map(Cow::Borrowed),
            (_, Some(said_by), Reader::Guest { guest, .. }) => {
                (said_by != guest.as_str()).then_some(said_by.into())
            }
            (Role::User, None, Reader::Guest { owner, .. }) => {
                Some(self.name.as_deref().unwrap_or(owner.as_str()).into())
            }
            _ => None,
        };
        match said_by {
            Some(name) => (Role::User, guarded_speech(&name, text).into()),
            None => (self.role, text.into()),
        }
    }

    /// Who speaks, as a payload names it: the name, with the role where it is not a person's. What a tool says in the
    /// name of the user is told as such.
    #[must_use]
    pub fn speaker(&self) -> Cow<'_, str> {
        let speaker = speaker(self.role, self.name.as_deref());
        match (self.role, self.actor) {
            (Role::User, Actor::Model) => format!("{speaker} (by a tool)").into(),
            _ => speaker,
        }
    }
}

/// Who speaks, as a payload names it. Tools and systems are told as such, and no one passes as a
/// role that is not theirs.
pub(crate) fn speaker(role: Role, name: Option<&str>) -> Cow<'_, str> {
    let Some(name) = name else { return role.as_str().into() };
    let poses = Role::ALL.iter().any(|other| other.as_str() == name.trim().to_lowercase());
    match role {
        Role::User | Role::Assistant if !poses => name.into(),
        _ => format!("{name} ({role})").into(),
    }
}

/// A message with everything that was derived from it, ready for one atomic write.
#[derive(Debug, Clone, PartialEq)]
pub struct PreparedMessage {
    /// Our id, unless the store already holds the message under its `external_id`.
    pub id: MessageId,
    /// Who speaks.
    pub role: Role,
    /// The speaker's name.
    pub name: Option<String>,
    /// The text, with its secrets masked.
    pub content: String,
    /// The text as it was said, where secrets of it are masked.
    pub original: Option<String>,
    /// On whose word.
    pub actor: Actor,
    /// Hash of role, name, content, parts and attachments: tells a repeat from a conflict.
    pub content_hash: [u8; 16],
    /// The caller's id.
    pub external_id: Option<ExternalId>,
    /// When it was said.
    pub created_at: Timestamp,
    /// Tokens of `content`.
    pub tokens: u32,
    /// JSON text.
    pub parts: Option<String>,
    /// JSON text.
    pub attachments: Option<String>,
    /// Where `content` is cut into passages.
    pub cuts: Cuts,
    /// One index unit a passage, at least one.
    pub units: Vec<IndexUnit>,
    /// The facts of the user.
    pub facts: Vec<NewFact>,
    /// Typed values seen.
    pub entities: Vec<NewEntity>,
    /// Whether it waits to be read by the model that extracts facts.
    pub unread: bool,
}

impl PreparedMessage {
    /// The guest who wrote it, whose `external_id` it is; `None` for all that is the owner's.
    #[must_use]
    pub fn guest(&self) -> Option<&str> {
        self.name.as_deref().filter(|_| self.actor == Actor::Guest)
    }

    /// The texts of its passages, in the order of its units.
    pub(crate) fn passages(&self) -> impl Iterator<Item = &str> {
        self.cuts.texts(&self.content)
    }
}
