//! The facts ledger: what a user stated, in sentences of at most 500 characters.
//!
//! A fact with a *slot* (subject and attribute) holds one current value: a later statement of the
//! same slot with another value supersedes it, an equal one strengthens it. Nothing else is ever
//! superseded, however similar it sounds. A *retraction* holds the slot, or the statement, that it
//! takes back, so that writers in any order end in the same state; it is never a fact that holds.

mod evidence;
mod extractor;
mod forms;
mod meeting;
mod reject;
mod resolve;
mod values;

use std::fmt;
use std::str::FromStr;

use crate::access::Actor;
use crate::error::{Error, Result};
use crate::ids::{FactId, MessageId, SessionId};
use crate::index::IndexUnit;
use crate::text::{analyze, fold_key, value_key};
use crate::time::Timestamp;

pub use evidence::{Find, LABELS, OwnWords, Refused};
pub use extractor::FactExtractor;
pub use forms::{Extracted, Forms};
pub(crate) use meeting::Precedence;
pub use meeting::{ActiveFact, Added, Meeting, Place};
pub(crate) use reject::looks;
pub use reject::{RejectionKey, Rejections};
pub(crate) use resolve::place;
pub use resolve::{Known, Said, resolve};

/// The tag of a fact that its user told for all workspaces: such facts of the scope without one are recalled in each.
pub const EVERYWHERE: &str = "everywhere";

/// Longest fact, in characters: a sentence. What is longer is recalled as the message that it is.
pub const MAX_FACT_CHARS: usize = 500;

/// The kind of a fact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FactKind {
    /// Something was settled.
    Decision,
    /// A named thing and what it is.
    Entity,
    /// Something is to be done.
    Task,
    /// A measured or counted value.
    Metric,
    /// A URL and what it stands for.
    Link,
    /// Any other statement of the user about their world.
    Fact,
    /// How the assistant should act from now on, or what it should remember.
    Instruction,
    /// What the user likes better.
    Preference,
    /// Takes back what holds under its slot, or the statement that is its value.
    Retraction,
}

impl FactKind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Decision,
        Self::Entity,
        Self::Task,
        Self::Metric,
        Self::Link,
        Self::Fact,
        Self::Instruction,
        Self::Preference,
        Self::Retraction,
    ];

    /// Whether facts of this kind belong to every context of their user while they hold.
    #[must_use]
    pub fn is_standing(self) -> bool {
        matches!(self, Self::Instruction | Self::Preference)
    }

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Decision => "decision",
            Self::Entity => "entity",
            Self::Task => "task",
            Self::Metric => "metric",
            Self::Link => "link",
            Self::Fact => "fact",
            Self::Instruction => "instruction",
            Self::Preference => "preference",
            Self::Retraction => "retraction",
        }
    }
}

impl fmt::Display for FactKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for FactKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| {
            let allowed = Self::ALL.map(Self::as_str).join(", ");
            Error::invalid(format!("unknown kind of fact: use one of {allowed}"))
        })
    }
}

/// A fact's key of supersession: normalized subject and attribute, hashed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotKey(u64);

/// A fact's key of restatement: its normalized value within a slot, else its normalized text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StatementKey(u64);

impl SlotKey {
    /// The slot of a subject's attribute; case, accents, punctuation and spacing do not count.
    #[must_use]
    pub fn of(subject: &str, attribute: &str) -> Self {
        Self(fold_key(&[subject, attribute]))
    }

    /// From what [`Self::to_bits`] gave.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// For a store to keep.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0
    }
}

impl StatementKey {
    /// From what a store kept.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// For a store to keep.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0
    }
}

/// The statement of every retraction within a slot; no text has this key but by chance.
const RETRACTED: u64 = 0x7265_7472_6163_7464;

/// What a retraction speaks of where it is a preference and nothing else.
const PREFERRED: &str = "preference";

/// What a correction or a retraction says of what it speaks of.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Reference {
    /// The value that does not hold any more, as it was named.
    pub old: Option<String>,
    /// What it is a value of, as it was named.
    pub noun: Option<String>,
}

/// A fact ready to be written.
#[derive(Debug, Clone, PartialEq)]
pub struct NewFact {
    /// Our id, unless the fact only strengthens one that is there.
    pub id: FactId,
    /// Its sort.
    pub kind: FactKind,
    /// What was stated, at most [`MAX_FACT_CHARS`] characters.
    pub text: String,
    /// Whom or what it is about; `user` is the speaking user.
    pub subject: Option<String>,
    /// Which property of the subject.
    pub attribute: Option<String>,
    /// The property's value.
    pub value: Option<String>,
    /// Topic tags such as `project:alfred`, sorted and unique.
    pub tags: Vec<String>,
    /// When it was stated.
    pub observed_at: Timestamp,
    /// Whether that is the time at which it is stored, by the clock.
    pub stated_now: bool,
    /// Its lexical form.
    pub unit: IndexUnit,
    /// What it corrects or takes back has to be found among what was stated before: [`resolve`] does it.
    pub refers: Option<Reference>,
    /// Name and version of the extractor that found it; `None` for what was told directly.
    pub extracted_by: Option<String>,
    /// On whose word.
    pub actor: Actor,
    /// The earlier message that states it, where it is not the one that it is stored with: what a correction
    /// replaces gets its own words and source. Where that message is gone, the fact is not stored.
    pub stated_in: Option<MessageId>,
    /// Under which it may have been rejected: a fact with a rejected key never holds.
    pub rejection: Vec<RejectionKey>,
    /// Whether what it supersedes is rejected: nobody brings it back but the user, directly.
    pub rejects: bool,
}

/// What is indexed of a fact; the same fact gives the same unit, by which erasure finds its postings.
#[must_use]
pub fn index_unit(text: &str, tags: &[String]) -> IndexUnit {
    analyze(text, tags)
}

impl NewFact {
    /// A fact as an extractor found it in a message of `actor`, of that time.
    #[must_use]
    pub fn of(
        found: Extracted,
        extractor: &dyn FactExtractor,
        (actor, observed_at): (Actor, Timestamp),
        id: FactId,
    ) -> Self {
        Self {
            id,
            unit: index_unit(&found.text, &found.tags),
            kind: found.kind,
            text: found.text,
            subject: found.subject,
            attribute: found.attribute,
            value: found.value,
            tags: found.tags,
            observed_at,
            stated_now: false,
            refers: found.refers,
            extracted_by: Some(extractor.name().to_owned()),
            actor: if extractor.quotes() { actor } else { Actor::Extractor },
            stated_in: None,
            rejection: Vec::new(),
            rejects: false,
        }
    }

    /// The slot, where the fact has both subject and attribute.
    #[must_use]
    pub fn slot(&self) -> Option<SlotKey> {
        Some(SlotKey::of(self.subject.as_deref()?, self.attribute.as_deref()?))
    }

    /// What makes a later fact a restatement of this one. A retraction within a slot says the same
    /// as any other; one without a slot bears the key of the text that it takes back, its value.
    #[must_use]
    pub fn statement(&self) -> StatementKey {
        statement(self.kind, &self.text, self.slot().is_some(), self.value.as_deref())
    }

    /// The slot and statement to look for among what the user replaced: only their own word brings it back.
    #[must_use]
    pub fn bound_by_corrections(&self) -> Option<(SlotKey, StatementKey)> {
        self.slot().filter(|_| !self.actor.decides()).map(|slot| (slot, self.statement()))
    }

    /// Whether this fact and one that is held under the same key say the same.
    #[must_use]
    pub fn restates(&self, kind: FactKind, statement: StatementKey) -> bool {
        self.statement() == statement
            && (self.kind == FactKind::Retraction) == (kind == FactKind::Retraction)
    }
}

fn statement(kind: FactKind, text: &str, slotted: bool, value: Option<&str>) -> StatementKey {
    let retracts = kind == FactKind::Retraction;
    match value {
        _ if slotted && retracts => StatementKey(RETRACTED),
        Some(value) if slotted || retracts => StatementKey(value_key(value)),
        _ => StatementKey(value_key(text)),
    }
}

/// Whether a fact holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum FactStatus {
    /// It is the current statement.
    Active,
    /// A later statement of the same slot replaced it.
    Superseded(FactId),
}

/// A fact of the ledger.
#[derive(Debug, Clone, PartialEq)]
pub struct Fact {
    /// Our id.
    pub id: FactId,
    /// Ordinal within the scope, from 1.
    pub number: u32,
    /// The session in which it was first stated; `None` where it was told directly.
    pub session: Option<SessionId>,
    /// Its sort.
    pub kind: FactKind,
    /// What was stated.
    pub text: String,
    /// Whom or what it is about.
    pub subject: Option<String>,
    /// Which property.
    pub attribute: Option<String>,
    /// The value.
    pub value: Option<String>,
    /// Topic tags.
    pub tags: Vec<String>,
    /// The messages that state it, in order of their commits: its provenance.
    pub sources: Vec<MessageId>,
    /// 1 when stated once; each restatement adds 1.
    pub weight: f32,
    /// Whether it holds.
    pub status: FactStatus,
    /// When it was last stated.
    pub observed_at: Timestamp,
    /// Name and version of the extractor that found it first, such as `forms/1`; `None` for a fact that was
    /// told directly.
    pub extracted_by: Option<String>,
    /// On whose word it was stated first.
    pub actor: Actor,
    /// Whether its value was rejected, and not allowed again.
    pub rejected: bool,
}

impl Fact {
    /// The slot, where the fact has both subject and attribute.
    #[must_use]
    pub fn slot(&self) -> Option<SlotKey> {
        Some(SlotKey::of(self.subject.as_deref()?, self.attribute.as_deref()?))
    }

    /// What makes a later fact a restatement of this one; see [`NewFact::statement`].
    #[must_use]
    pub fn statement(&self) -> StatementKey {
        statement(self.kind, &self.text, self.slot().is_some(), self.value.as_deref())
    }

    /// Whether it was told directly, and not in a message.
    #[must_use]
    pub fn is_told_directly(&self) -> bool {
        self.session.is_none() && self.sources.is_empty()
    }

    /// Whether it was told for all workspaces.
    #[must_use]
    pub fn holds_everywhere(&self) -> bool {
        self.tags.iter().any(|tag| tag == EVERYWHERE)
    }

    /// Whether it is about the user, what they work on, or nobody in particular.
    #[must_use]
    pub fn is_of_the_user(&self) -> bool {
        matches!(self.subject.as_deref(), None | Some("" | "user" | "project"))
    }

    /// Whether it is the current statement: neither superseded nor a retraction.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.status == FactStatus::Active && self.kind != FactKind::Retraction
    }
}

/// A fact that does not hold any more, beside what holds its slot or statement now.
#[derive(Debug, Clone, PartialEq)]
pub struct SupersededFact {
    /// What was stated.
    pub fact: Fact,
    /// What was stated after it: another value, or a retraction.
    pub by: Fact,
    /// On whose word it was superseded first; the user's where that is not known any more.
    pub ended_by: Actor,
    /// Sequence numbers of the messages that stated it.
    pub said: Vec<u64>,
    /// Sequence number of the first message that stated what holds now.
    pub by_said: u64,
}
