//! What an export has beside messages: facts that were told or rejected, the profile, documents and contexts.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use throughline_core::access::Actor;
use throughline_core::document::{Etag, Expected, check_text};
use throughline_core::erase::ErasedBefore;
use throughline_core::fact::FactKind;
use throughline_core::ids::{ActorId, MemoryId, VaultId};
use throughline_core::persona::Export;
use throughline_core::scope::ProfileChange;
use throughline_core::services::documents::PutDocument;
use throughline_core::services::facts::{FactCopy, ImportOutcome, ReadyCopy, Remember};
use throughline_core::time::Timestamp;
use throughline_core::{Error, ErrorKind, Result, Scope};

use super::{ImportFile, ImportReport, Problem};
use crate::compose::Engine;

/// The key by which a line of an export is told from a message.
pub(super) const MARK: &str = "throughline";

/// A line of an export that is not a message.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "throughline", rename_all = "snake_case")]
pub enum Record {
    /// A fact that was told directly, or rejected.
    Fact(FactLine),
    /// The rules and the card.
    Profile(ProfileLine),
    /// The latest text of a memory's document.
    Document(DocumentLine),
    /// A context with its conversation, as its own export has it.
    Context {
        /// In the format `throughline.context`.
        export: Value,
    },
}

/// A fact as a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FactLine {
    /// What is so.
    pub text: String,
    /// Its kind.
    pub kind: String,
    /// Whom or what it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Which property.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attribute: Option<String>,
    /// The value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
    /// Topic tags.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<String>,
    /// On whose word it was.
    pub actor: String,
    /// When it was last stated, in RFC 3339.
    pub observed_at: String,
    /// When it was rejected, in RFC 3339.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rejected_at: Option<String>,
}

/// The profile as a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ProfileLine {
    /// Standing instructions, one a line.
    pub rules: String,
    /// Who the user is.
    pub card: String,
    /// When it was last changed, in RFC 3339.
    pub updated_at: String,
}

/// A document as a line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DocumentLine {
    /// The vault of its memory.
    pub vault: String,
    /// Its memory.
    pub memory: String,
    /// Who wrote it.
    pub actor: String,
    /// When it was put, in RFC 3339.
    pub created_at: String,
    /// The whole text.
    pub text: String,
}

/// Whether a line is one of these.
pub(super) fn is_record(line: &str) -> bool {
    #[derive(Deserialize)]
    struct Marked {
        throughline: Option<Value>,
        role: Option<Value>,
    }
    // The mark is looked for as text first: most lines are messages.
    line.contains(&format!("\"{MARK}\""))
        && serde_json::from_str::<Marked>(line)
            .is_ok_and(|line| line.throughline.is_some() && line.role.is_none())
}

/// A record that can be written.
#[derive(Debug)]
enum Ready {
    Fact(Box<ReadyCopy>),
    Other(Other),
}

#[derive(Debug)]
enum Other {
    Profile(ProfileChange, Timestamp),
    Document(Box<PutDocument>, Timestamp),
    Context { text: String, created_at: Timestamp },
}

/// Records that were checked whole.
#[derive(Default)]
pub(super) struct ReadyRecords(Vec<Ready>);

impl ReadyRecords {
    /// Checks the records of a file, each with its line.
    ///
    /// # Errors
    /// `InvalidInput` that names line and field; nothing is written then.
    pub(super) fn of(engine: &Engine, file: &ImportFile) -> Result<Self> {
        let ready = file.records.iter().map(|(line, record)| {
            ready(engine, record.clone()).map_err(|error| {
                let message = error.message().to_owned();
                Problem::new(Some(*line), "", message).of(&file.name)
            })
        });
        ready.collect::<Result<_>>().map(Self)
    }

    /// Writes them, facts first: what was rejected is known before messages that say it come.
    ///
    /// # Errors
    /// Those of the services; what was written until then stays, and a repeat goes on.
    pub(super) async fn write(
        self,
        engine: &Engine,
        scope: &Scope,
        erased: Option<&ErasedBefore>,
        report: &mut ImportReport,
    ) -> Result<()> {
        let is_erased = |at| erased.is_some_and(|erased| erased.holds_user(scope, at));
        let mut facts = Vec::new();
        let mut others = Vec::new();
        for record in self.0 {
            match record {
                Ready::Fact(copy) if is_erased(copy.observed_at()) => report.held_back += 1,
                Ready::Fact(copy) => facts.push(*copy),
                Ready::Other(other) => others.push(other),
            }
        }
        for outcome in engine.facts.import(scope, facts).await? {
            report.facts += usize::from(outcome == ImportOutcome::Added);
            report.count(outcome);
        }
        for other in others {
            let (outcome, added) = match other {
                Other::Profile(_, at) | Other::Context { created_at: at, .. } if is_erased(at) => {
                    report.held_back += 1;
                    continue;
                }
                Other::Profile(change, _) => {
                    (profile(engine, scope, change).await?, &mut report.profiles)
                }
                Other::Document(put, at) => {
                    let of = (&put.vault, &put.memory);
                    let gone = erased.is_some_and(|erased| erased.holds_document(scope, of, at));
                    let outcome = match gone {
                        true => ImportOutcome::HeldBack,
                        false => document(engine, scope, *put, at).await?,
                    };
                    (outcome, &mut report.documents)
                }
                Other::Context { text, .. } => {
                    let outcome = match engine.personas.import_once(scope, &text, erased).await? {
                        None => ImportOutcome::Replayed,
                        Some(taken) => {
                            report.held_back += usize::try_from(taken.held_back).unwrap_or(0);
                            ImportOutcome::Added
                        }
                    };
                    (outcome, &mut report.contexts)
                }
            };
            *added += usize::from(outcome == ImportOutcome::Added);
            report.count(outcome);
        }
        Ok(())
    }
}

async fn profile(engine: &Engine, scope: &Scope, change: ProfileChange) -> Result<ImportOutcome> {
    let held = engine.store.profile(scope).await?.unwrap_or_default();
    let (rules, card) = (change.rules.as_deref(), change.card.as_deref());
    if (rules, card) == (Some(&*held.rules), Some(&*held.card)) {
        return Ok(ImportOutcome::Replayed);
    }
    if !held.rules.is_empty() || !held.card.is_empty() {
        return Ok(ImportOutcome::Kept);
    }
    engine.profiles.change(scope, change).await?;
    Ok(ImportOutcome::Added)
}

async fn document(
    engine: &Engine,
    scope: &Scope,
    put: PutDocument,
    at: Timestamp,
) -> Result<ImportOutcome> {
    match engine.documents.latest(scope, &put.vault, &put.memory).await {
        Ok(held) if held.info.etag == Etag::of(&put.text) => return Ok(ImportOutcome::Replayed),
        Ok(held) if held.info.created_at >= at => return Ok(ImportOutcome::Kept),
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    engine.documents.put(scope, put).await?;
    Ok(ImportOutcome::Added)
}

fn ready(engine: &Engine, record: Record) -> Result<Ready> {
    let time = |field: &str, text: &str| {
        Timestamp::parse(text)
            .map_err(|error| Error::invalid(format!("{field}: {}", error.message())))
    };
    match record {
        Record::Fact(line) => {
            let fact = Remember {
                kind: line.kind.parse::<FactKind>()?,
                text: line.text,
                subject: line.subject,
                attribute: line.attribute,
                value: line.value,
                tags: line.tags,
            };
            let rejected_at = line.rejected_at.as_deref();
            engine
                .facts
                .ready(FactCopy {
                    fact,
                    observed_at: time("observed_at", &line.observed_at)?,
                    by_model: line.actor.parse::<Actor>()? == Actor::Model,
                    rejected_at: rejected_at.map(|at| time("rejected_at", at)).transpose()?,
                })
                .map(|copy| Ready::Fact(Box::new(copy)))
        }
        Record::Profile(ProfileLine { rules, card, updated_at }) => {
            let change = ProfileChange { rules: Some(rules), card: Some(card) };
            Ok(Ready::Other(Other::Profile(change, time("updated_at", &updated_at)?)))
        }
        Record::Document(line) => {
            check_text(&line.text, engine.documents.limits().max_bytes)?;
            let created_at = time("created_at", &line.created_at)?;
            let put = PutDocument {
                vault: VaultId::new(line.vault)?,
                memory: MemoryId::new(line.memory)?,
                context: None,
                actor: ActorId::new(line.actor)?,
                text: line.text,
                expected: Expected::Anything,
            };
            Ok(Ready::Other(Other::Document(Box::new(put), created_at)))
        }
        Record::Context { export } => {
            let text = export.to_string();
            let created_at = Export::read(&text)?.created_at;
            Ok(Ready::Other(Other::Context { text, created_at }))
        }
    }
}
