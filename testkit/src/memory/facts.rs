//! The facts ledger: superseding and strengthening as [`throughline_core::fact`] says.

use async_trait::async_trait;
use throughline_core::fact::{Fact, FactStatus, NewFact, SlotKey, StatementKey};
use throughline_core::ids::{MessageId, SessionId};
use throughline_core::page::{Page, PageRequest};
use throughline_core::ports::{FactRepo, Namespace, SOURCES_READ, UnitKey};
use throughline_core::{Result, Scope};

use super::sessions::page;
use super::{MemoryStore, ScopeState};

/// A fact with its keys.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) fact: Fact,
    slot: Option<SlotKey>,
    statement: StatementKey,
}

impl ScopeState {
    pub(super) fn add_fact(&mut self, session: &SessionId, source: MessageId, new: &NewFact) {
        let (slot, statement) = (new.slot(), new.statement());
        let rival = self.facts.iter_mut().find(|held| {
            held.fact.status == FactStatus::Active
                && held.slot == slot
                && (slot.is_some() || held.statement == statement)
        });
        let mut status = FactStatus::Active;
        if let Some(held) = rival {
            if held.statement == statement {
                held.fact.weight += 1.0;
                held.fact.observed_at = held.fact.observed_at.max(new.observed_at);
                if !held.fact.sources.contains(&source) {
                    held.fact.sources.push(source);
                }
                return;
            }
            if (new.observed_at, new.id) >= (held.fact.observed_at, held.fact.id) {
                held.fact.status = FactStatus::Superseded(new.id);
            } else {
                status = FactStatus::Superseded(held.fact.id);
            }
        }
        let number = u32::try_from(self.facts.len() + 1).expect("few facts");
        self.index.insert((Namespace::Fact, UnitKey::fact(number)), new.unit.clone());
        self.facts.push(Held {
            slot,
            statement,
            fact: Fact {
                id: new.id,
                number,
                session: session.clone(),
                kind: new.kind,
                text: new.text.clone(),
                subject: new.subject.clone(),
                attribute: new.attribute.clone(),
                value: new.value.clone(),
                tags: new.tags.clone(),
                sources: vec![source],
                weight: 1.0,
                status,
                observed_at: new.observed_at,
            },
        });
    }
}

/// A fact as it is read: with its last sources.
fn read(fact: &Fact) -> Fact {
    let mut fact = fact.clone();
    fact.sources = fact.sources.split_off(fact.sources.len().saturating_sub(SOURCES_READ));
    fact
}

#[async_trait]
impl FactRepo for MemoryStore {
    async fn active_facts(&self, scope: &Scope, numbers: &[u32]) -> Result<Vec<Fact>> {
        Ok(self.read(scope, |held| {
            let active = |number: &u32| {
                let facts = held.facts.iter().map(|held| &held.fact);
                let mut active = facts.filter(|fact| fact.status == FactStatus::Active);
                active.find(|fact| fact.number == *number).map(read)
            };
            numbers.iter().filter_map(active).collect()
        }))
    }

    async fn facts(&self, scope: &Scope, request: &PageRequest) -> Result<Page<Fact>> {
        Ok(self.read(scope, |held| {
            let facts = held.facts.iter().map(|held| read(&held.fact));
            page(facts.map(|fact| (fact.number.into(), fact)), request)
        }))
    }
}
