//! Lines that an import reads back: messages, and what a memory has beside them.

use serde::Serialize;
use serde_json::value::RawValue;
use throughline_core::access::Actor;
use throughline_core::document::Memory;
use throughline_core::fact::{Fact, FactKind, FactStatus};
use throughline_core::ids::VaultId;
use throughline_core::page::{MAX_PAGE, Page, PageRequest};
use throughline_core::persona::{ExportFormat, Slice};
use throughline_core::services::personas::PersonaFilter;
use throughline_core::session::Message;
use throughline_core::{Error, Result, Scope};

use crate::compose::Engine;
use crate::import::{DocumentLine, FactLine, ProfileLine, Record};

/// What a memory has beside messages, one record after the other, in the order in which an import takes them: facts
/// that were told or rejected (the others follow from messages), the profile, documents, contexts.
///
/// # Errors
/// Those of the store, and of `line`, which gets each record.
pub async fn records(
    engine: &Engine,
    scope: &Scope,
    mut line: impl FnMut(Record) -> Result<()>,
) -> Result<()> {
    let mut page = PageRequest::first(MAX_PAGE)?;
    loop {
        let facts = engine.facts.list(scope, &page).await?;
        for fact in facts.items {
            if let Some(fact) = fact_line(engine, scope, fact).await? {
                line(Record::Fact(fact))?;
            }
        }
        let Some(next) = following(facts.next_cursor.as_ref())? else { break };
        page = next;
    }
    let profile = engine.store.profile(scope).await?.unwrap_or_default();
    if !profile.rules.is_empty() || !profile.card.is_empty() {
        let updated_at = profile.updated_at.to_rfc3339();
        line(Record::Profile(ProfileLine {
            rules: profile.rules,
            card: profile.card,
            updated_at,
        }))?;
    }
    let mut page = PageRequest::first(MAX_PAGE)?;
    loop {
        let vaults = engine.documents.vaults(scope, &page).await?;
        for vault in vaults.items {
            documents(engine, scope, &vault.id, &mut line).await?;
        }
        let Some(next) = following(vaults.next_cursor.as_ref())? else { break };
        page = next;
    }
    let filter = PersonaFilter { include_expired: true, ..PersonaFilter::default() };
    let mut offset = Some(0);
    while let Some(from) = offset {
        let listed = engine.personas.list(scope, &filter, Slice::new(from, MAX_PAGE)?).await?;
        for persona in listed.items {
            let export = engine.personas.export(scope, persona.id, ExportFormat::Json).await?;
            let export = serde_json::from_str(&export)
                .map_err(|error| Error::internal("an export is not JSON").with_source(error))?;
            line(Record::Context { export })?;
        }
        offset = listed.next;
    }
    Ok(())
}

async fn documents(
    engine: &Engine,
    scope: &Scope,
    vault: &VaultId,
    line: &mut impl FnMut(Record) -> Result<()>,
) -> Result<()> {
    let mut page = PageRequest::first(MAX_PAGE)?;
    loop {
        let memories: Page<Memory> = engine.documents.memories(scope, vault, &page).await?;
        for memory in memories.items {
            let info = memory.latest;
            let snapshot = engine.documents.latest(scope, vault, &info.memory).await?;
            line(Record::Document(DocumentLine {
                vault: vault.to_string(),
                memory: info.memory.to_string(),
                actor: snapshot.info.actor.to_string(),
                created_at: snapshot.info.created_at.to_rfc3339(),
                text: snapshot.text,
            }))?;
        }
        match following(memories.next_cursor.as_ref())? {
            Some(next) => page = next,
            None => return Ok(()),
        }
    }
}

/// A fact as a line, unless it follows from messages or from another line.
async fn fact_line(engine: &Engine, scope: &Scope, fact: Fact) -> Result<Option<FactLine>> {
    if fact.kind == FactKind::Retraction {
        return Ok(None);
    }
    let rejected = fact.rejected && engine.facts.is_rejected(scope, &fact).await?;
    if !rejected && !fact.is_told_directly() {
        return Ok(None);
    }
    let mut rejected_at = None;
    if let FactStatus::Superseded(by) = fact.status {
        let by = engine.facts.get(scope, by).await?;
        if !rejected && by.kind == FactKind::Retraction {
            // Taken back in a message, or told once more since.
            return Ok(None);
        }
        rejected_at = rejected.then(|| by.observed_at.to_rfc3339());
    }
    Ok(Some(FactLine {
        text: fact.text,
        kind: fact.kind.to_string(),
        subject: fact.subject,
        attribute: fact.attribute,
        value: fact.value,
        tags: fact.tags,
        actor: fact.actor.to_string(),
        observed_at: fact.observed_at.to_rfc3339(),
        rejected_at,
    }))
}

fn following(cursor: Option<&String>) -> Result<Option<PageRequest>> {
    cursor.map(|cursor| PageRequest::first(MAX_PAGE)?.after(cursor)).transpose()
}

/// A message as one line of JSON.
#[derive(Debug, Serialize)]
pub struct MessageLine<'m> {
    role: &'static str,
    content: &'m str,
    session: &'m str,
    /// The caller's id, or ours; of a guest's message always ours, since the owner may have given the same.
    id: String,
    /// Ours, by which an import tells what was erased since.
    throughline_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'m str>,
    created_at: String,
    /// `model` or `guest` where it is on the word of one, whatever its role.
    #[serde(skip_serializing_if = "Option::is_none")]
    actor: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parts: Option<Box<RawValue>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    attachments: Option<Box<RawValue>>,
}

impl<'m> MessageLine<'m> {
    /// The line of a message.
    ///
    /// # Errors
    /// None that a message of ours causes.
    pub fn of(message: &'m Message) -> Result<Self> {
        let id = match &message.external_id {
            Some(id) if message.guest().is_none() => id.as_str().to_owned(),
            _ => message.id.to_string(),
        };
        Ok(Self {
            role: message.role.as_str(),
            content: message.said(),
            session: message.session.as_str(),
            id,
            throughline_id: message.id.to_string(),
            name: message.name.as_deref(),
            created_at: message.created_at.to_rfc3339(),
            actor: message.actor.of_export().map(Actor::as_str),
            parts: message.parts.as_deref().map(raw).transpose()?,
            attachments: message.attachments.as_deref().map(raw).transpose()?,
        })
    }
}

/// JSON as it was sent, on one line. What was sent as JSON and is none becomes a text.
fn raw(json: &str) -> Result<Box<RawValue>> {
    // Between values a line break is a blank; within a text it is written as two letters.
    let line = json.replace(['\n', '\r'], " ");
    match RawValue::from_string(line) {
        Ok(raw) => Ok(raw),
        Err(_) => serde_json::value::to_raw_value(json)
            .map_err(|error| Error::internal("a text has no JSON form").with_source(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_stays_as_it_was_sent_on_one_line() {
        let table = [
            ("[{\"a\":  1.0}]", "[{\"a\":  1.0}]"),
            ("{\n\t\"a\": \"b\\n\"\r\n}", "{ \t\"a\": \"b\\n\"  }"),
            ("no json\n", "\"no json\\n\""),
        ];
        for (sent, line) in table {
            assert_eq!(raw(sent).unwrap().get(), line, "{sent}");
        }
    }
}
