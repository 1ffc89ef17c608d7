//! Values for tests, with everything that does not matter filled in.

use std::sync::Arc;
use std::time::Duration;

use throughline_core::Scope;
use throughline_core::access::Actor;
use throughline_core::append::{Intake, prepare};
use throughline_core::document::{NewSnapshot, index_document};
use throughline_core::entity::{EntityKind, NewEntity};
use throughline_core::fact::{FactKind, Forms, NewFact};
use throughline_core::ids::{
    ActorId, ContextId, EntityId, ExternalId, FactId, JobId, MemoryId, MessageId, SessionId,
    SummaryId, VaultId,
};
use throughline_core::job::{DEFAULT_PRIORITY, NewJob};
use throughline_core::ports::{IdGen, Write, WriteBatch};
use throughline_core::session::{NewMessage, PreparedMessage, Role};
use throughline_core::summary::{Summary, SummaryLine, SummaryWriter};
use throughline_core::text::analyze;
use throughline_core::time::Timestamp;
use uuid::Uuid;

use crate::{SequentialIds, WordTokenizer};

/// One sequence for the whole process: an adapter may hold ids unique over all scopes.
static IDS: SequentialIds = SequentialIds::new();

/// 2 March 2026, 09:00 UTC: where the calendar of tests starts.
const START: i64 = 1_772_442_000_000_000;

/// An id that no builder gave before.
#[must_use]
pub fn id() -> Uuid {
    IDS.next()
}

/// An instant `seconds` after the start of the calendar, or before it.
#[must_use]
pub fn at(seconds: i64) -> Timestamp {
    Timestamp::from_micros(START + seconds * 1_000_000)
}

/// The scope of user `user`, of one tenant that all tests share, outside any workspace.
#[must_use]
pub fn scope(user: &str) -> Scope {
    Scope::new("acme", user, None).expect("a valid user id")
}

/// A session's id.
#[must_use]
pub fn session(id: &str) -> SessionId {
    SessionId::new(id).expect("a valid session id")
}

/// A caller's id of a message.
#[must_use]
pub fn external(id: &str) -> ExternalId {
    ExternalId::new(id).expect("a valid external id")
}

/// What the user says, prepared by core, at the start of the calendar; see [`say`].
#[must_use]
pub fn message(text: &str) -> PreparedMessage {
    say(text).build()
}

/// Starts a message of the user.
///
/// It goes through core's `prepare`, but holds only the facts and entities that the test gives it:
/// what extraction finds in a text is no business of a store.
#[must_use]
pub fn say(text: &str) -> MessageBuilder {
    MessageBuilder {
        message: NewMessage::new(Role::User, text),
        at: at(0),
        facts: Vec::new(),
        entities: Vec::new(),
        extracted: false,
        intake: Intake::default(),
    }
}

/// A message in the making.
#[derive(Debug, Clone)]
pub struct MessageBuilder {
    message: NewMessage,
    at: Timestamp,
    facts: Vec<NewFact>,
    entities: Vec<NewEntity>,
    extracted: bool,
    intake: Intake,
}

impl MessageBuilder {
    /// Who speaks.
    #[must_use]
    pub fn role(mut self, role: Role) -> Self {
        self.message.role = role;
        self
    }

    /// The speaker's name.
    #[must_use]
    pub fn named(mut self, name: &str) -> Self {
        self.message.name = Some(name.to_owned());
        self
    }

    /// The caller's id.
    #[must_use]
    pub fn external(mut self, id: &str) -> Self {
        self.message.external_id = Some(external(id));
        self
    }

    /// When it is said.
    #[must_use]
    pub fn at(mut self, at: Timestamp) -> Self {
        self.at = at;
        self
    }

    /// Structured parts and attachments, as JSON texts.
    #[must_use]
    pub fn json(mut self, parts: &str, attachments: &str) -> Self {
        self.message.parts = Some(parts.to_owned());
        self.message.attachments = Some(attachments.to_owned());
        self
    }

    /// On whose word it is.
    #[must_use]
    pub fn by(mut self, actor: Actor) -> Self {
        self.intake.actor = actor;
        self
    }

    /// A fact that it states, at the time that the fact says.
    #[must_use]
    pub fn fact(mut self, fact: NewFact) -> Self {
        self.facts.push(fact);
        self
    }

    /// A typed value that it holds.
    #[must_use]
    pub fn entity(mut self, kind: EntityKind, value: &str) -> Self {
        self.entities.push(NewEntity {
            id: EntityId::from_uuid(id()),
            kind,
            value: value.to_owned(),
        });
        self
    }

    /// With what extraction finds in its text instead: where a store has to find it there again.
    #[must_use]
    pub fn extracted(mut self) -> Self {
        self.extracted = true;
        self
    }

    /// The message, ready for a batch.
    ///
    /// # Panics
    /// When core refuses it.
    #[must_use]
    pub fn build(self) -> PreparedMessage {
        let (at, tokenizer) = (self.at, WordTokenizer::exact());
        // Messages of a test come in any order: their times are their callers'.
        let message = NewMessage { created_at: Some(at), ..self.message };
        let prepared = prepare(message, self.intake, at, &tokenizer, &Forms, &IDS);
        let prepared = prepared.expect("a valid message");
        if self.extracted {
            return prepared;
        }
        PreparedMessage { facts: self.facts, entities: self.entities, ..prepared }
    }
}

/// A fact without a slot, observed at `observed_at`.
#[must_use]
pub fn fact(text: &str, observed_at: Timestamp) -> NewFact {
    NewFact {
        id: FactId::from_uuid(id()),
        kind: FactKind::Fact,
        text: text.to_owned(),
        subject: None,
        attribute: None,
        value: None,
        tags: Vec::new(),
        observed_at,
        unit: analyze(text, &[]),
        refers: None,
        extracted_by: Some("forms/1".to_owned()),
        actor: Actor::User,
        stated_in: None,
        rejection: Vec::new(),
        rejects: false,
        stated_now: false,
    }
}

/// A retraction of whatever holds the slot of `subject` and `attribute`.
#[must_use]
pub fn slot_retraction(subject: &str, attribute: &str, observed_at: Timestamp) -> NewFact {
    NewFact {
        kind: FactKind::Retraction,
        ..slot_fact(subject, attribute, "not so any more", observed_at)
    }
}

/// A retraction of the fact without a slot that says `text`.
#[must_use]
pub fn retraction(text: &str, observed_at: Timestamp) -> NewFact {
    NewFact {
        kind: FactKind::Retraction,
        value: Some(text.to_owned()),
        ..fact("That is not so any more", observed_at)
    }
}

/// A fact of the slot of `subject` and `attribute`, observed at `observed_at`.
#[must_use]
pub fn slot_fact(subject: &str, attribute: &str, value: &str, observed_at: Timestamp) -> NewFact {
    NewFact {
        subject: Some(subject.to_owned()),
        attribute: Some(attribute.to_owned()),
        value: Some(value.to_owned()),
        ..fact(&format!("{attribute} of {subject} is {value}"), observed_at)
    }
}

/// A job that is due at once, of the default priority.
#[must_use]
pub fn job(kind: &str, subject: &str) -> NewJob {
    NewJob {
        id: JobId::from_uuid(id()),
        kind: kind.to_owned(),
        subject: subject.to_owned(),
        priority: DEFAULT_PRIORITY,
        due_at: at(0),
    }
}

/// A version of a session's summary over `covered` messages, with one line for each source.
#[must_use]
pub fn summary(of: &str, version: u64, covered: u64, sources: &[MessageId]) -> Summary {
    Summary {
        id: SummaryId::from_uuid(id()),
        session: session(of),
        version,
        previous: None,
        covered,
        to_position: u32::try_from(covered).unwrap_or(u32::MAX).saturating_sub(1),
        from_at: at(0),
        to_at: at(0).plus(Duration::from_secs(covered)),
        lines: sources
            .iter()
            .enumerate()
            .map(|(ordinal, source)| SummaryLine {
                source: *source,
                text: format!("user: line {ordinal} of version {version}"),
            })
            .collect(),
        tokens: 9,
        writer: SummaryWriter::Extract,
    }
}

/// A vault's id.
#[must_use]
pub fn vault(id: &str) -> VaultId {
    VaultId::new(id).expect("a valid vault id")
}

/// A memory's id.
#[must_use]
pub fn memory(id: &str) -> MemoryId {
    MemoryId::new(id).expect("a valid memory id")
}

/// The id of a snapshot.
#[must_use]
pub fn context(id: &str) -> ContextId {
    ContextId::new(id).expect("a valid context id")
}

/// A snapshot of a memory's document, put by "agent" at the start of the calendar.
#[must_use]
pub fn document(in_vault: &str, of: &str, id: &str, text: &str) -> NewSnapshot {
    NewSnapshot {
        vault: vault(in_vault),
        memory: memory(of),
        context: context(id),
        actor: ActorId::new("agent").expect("a valid actor id"),
        text: text.to_owned(),
        created_at: at(0),
        keep: 100,
        units: index_document(text),
    }
}

/// An empty batch of `scope`, built at the start of the calendar.
#[must_use]
pub fn batch(scope: &Scope) -> WriteBatch {
    WriteBatch::new(scope.clone(), at(0))
}

/// The write that appends `message` to the session `to`.
#[must_use]
pub fn append(to: &str, message: PreparedMessage) -> Write {
    Write::AppendMessage { session: session(to), message: Arc::new(message) }
}
