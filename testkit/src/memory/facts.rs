//! The facts ledger: superseding and strengthening as [`throughline_core::fact`] says.

use async_trait::async_trait;
use throughline_core::access::Actor;
use throughline_core::fact::{
    ActiveFact, Added, Fact, FactKind, FactStatus, Meeting, NewFact, Place, RejectionKey, SlotKey,
    StatementKey, SupersededFact,
};
use throughline_core::ids::{FactId, MessageId, SessionId};
use throughline_core::index::{Namespace, UnitKey};
use throughline_core::page::{Page, PageRequest};
use throughline_core::ports::{FactRepo, Ledger, LedgerLimits, SOURCES_READ};
use throughline_core::{Result, Scope};

use super::sessions::page;
use super::{MemoryStore, ScopeState};

/// A fact with its keys.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub(super) fact: Fact,
    pub(super) slot: Option<SlotKey>,
    pub(super) statement: StatementKey,
    /// Where it stands in the order of commits, where it was told directly.
    pub(super) told_at: Option<u64>,
    /// Whether it took the place of another one.
    corrects: bool,
    /// Whether that one was settled by the user.
    of_settled: bool,
}

impl Held {
    /// Its slot, or its statement outside any slot: of each at most one fact holds.
    pub(super) fn place(&self) -> Place {
        Place::of(self.slot, self.statement)
    }

    fn active(&self) -> ActiveFact {
        ActiveFact {
            id: self.fact.id,
            kind: self.fact.kind,
            statement: self.statement,
            observed_at: self.fact.observed_at,
            actor: self.fact.actor,
            value: self.fact.value.clone(),
            corrects: self.corrects,
            of_settled: self.of_settled,
        }
    }
}

impl ScopeState {
    /// Sequence numbers of messages.
    fn said(&self, sources: &[MessageId]) -> Vec<u64> {
        let held = || self.sessions.iter().flat_map(|thread| &thread.messages);
        let seq =
            |id: &MessageId| held().find(|held| held.message.id == *id).map(|h| h.message.seq);
        sources.iter().filter_map(seq).collect()
    }

    fn standing(&self, limit: usize) -> Vec<Fact> {
        let facts = self.facts.iter().map(|held| &held.fact);
        let mut standing: Vec<Fact> =
            facts.filter(|fact| fact.holds() && fact.kind.is_standing()).map(read).collect();
        standing.sort_by_key(|fact| std::cmp::Reverse((fact.observed_at, fact.number)));
        standing.truncate(limit);
        standing
    }

    fn newest(&self, limit: usize) -> Vec<Fact> {
        let facts = self.facts.iter().rev().map(|held| &held.fact);
        facts.filter(|fact| fact.holds()).take(limit).map(read).collect()
    }

    fn superseded(&self, rejected: bool, limit: usize) -> Vec<SupersededFact> {
        let mut found: Vec<(FactId, SupersededFact)> = self
            .facts
            .iter()
            .filter_map(|old| {
                let FactStatus::Superseded(id) = old.fact.status else { return None };
                if old.fact.rejected != rejected {
                    return None;
                }
                let first = self.facts.iter().find(|held| held.fact.id == id);
                let now = self.facts.iter().find(|held| {
                    held.fact.status == FactStatus::Active
                        && held.slot == old.slot
                        && (old.slot.is_some() || held.statement == old.statement)
                })?;
                let differs =
                    now.fact.kind == FactKind::Retraction || now.statement != old.statement;
                let stale = differs && old.fact.kind != FactKind::Retraction;
                let found = || SupersededFact {
                    fact: read(&old.fact),
                    by: read(&now.fact),
                    ended_by: first.map_or(Actor::User, |first| first.fact.actor),
                    said: self.said(&read(&old.fact).sources),
                    by_said: now
                        .told_at
                        .or_else(|| self.said(&now.fact.sources).first().copied())
                        .unwrap_or(0),
                };
                stale.then(|| (id, found()))
            })
            .collect();
        found.sort_by_key(|(id, found)| std::cmp::Reverse((*id, found.fact.number)));
        found.into_iter().take(limit).map(|(_, found)| found).collect()
    }

    /// Whether the user replaced by another statement what is said of a slot.
    fn is_corrected(&self, (slot, statement): (SlotKey, StatementKey)) -> bool {
        self.facts.iter().any(|old| {
            let FactStatus::Superseded(id) = old.fact.status else { return false };
            let same = old.slot == Some(slot) && old.statement == statement;
            same && self.facts.iter().any(|new| {
                new.fact.id == id && new.fact.actor.decides() && new.statement != statement
            })
        })
    }

    /// The fact that holds a place.
    fn holder(&mut self, place: Place) -> Option<&mut Held> {
        let mut facts = self.facts.iter_mut();
        facts.find(|held| held.fact.status == FactStatus::Active && held.place() == place)
    }

    pub(super) fn put_fact(&mut self, new: &NewFact) -> Result<()> {
        let holder = self.holder(new.place());
        let added = new.replace(holder.map(|held| held.active()).as_ref())?;
        let source = MessageId::from_uuid(new.id.as_uuid());
        if new.kind != FactKind::Retraction {
            let same =
                |held: &&mut Held| held.place() == new.place() && held.statement == new.statement();
            self.facts.iter_mut().filter(same).for_each(|held| held.fact.rejected = false);
        }
        self.insert_added(None, source, (new, added));
        let told_at = self.counters.last_seq;
        if let Some(held) = self.facts.last_mut() {
            held.told_at = Some(told_at);
        }
        Ok(())
    }

    fn insert_added(
        &mut self,
        session: Option<&SessionId>,
        source: MessageId,
        (new, added): (&NewFact, Added),
    ) {
        let mut of_settled = false;
        if let Some(held) = self.holder(new.place()).filter(|_| added.supersedes) {
            of_settled = held.active().is_settled();
            held.fact.status = FactStatus::Superseded(new.id);
            held.fact.rejected |= new.rejects;
        }
        let status = added.superseded_by.map_or(FactStatus::Active, FactStatus::Superseded);
        self.insert_fact(session, source, new, status);
        if let Some(held) = self.facts.last_mut() {
            held.fact.observed_at = added.observed_at;
            held.corrects = added.supersedes;
            held.of_settled = of_settled;
        }
    }

    pub(super) fn add_fact(&mut self, session: &SessionId, source: MessageId, new: &NewFact) {
        match new.stated_in {
            None => self.state_fact(session, source, new),
            Some(_) => self.state_earlier_fact(new),
        }
    }

    /// Adds a fact to the earlier message that states it, if that is there.
    pub(super) fn state_earlier_fact(&mut self, new: &NewFact) {
        let Some(earlier) = new.stated_in else { return };
        let said = self.sessions.iter().find_map(|thread| {
            let held = thread.messages.iter().any(|held| held.message.id == earlier);
            held.then(|| thread.head.id.clone())
        });
        if let Some(session) = said {
            self.state_fact(&session, earlier, new);
        }
    }

    fn state_fact(&mut self, session: &SessionId, source: MessageId, new: &NewFact) {
        let rejected = new.rejection.iter().any(|key| self.rejected.contains(key))
            || new.bound_by_corrections().is_some_and(|said| self.is_corrected(said));
        let holder = self.holder(new.place());
        match (new.meet(holder.as_deref().map(Held::active).as_ref(), rejected), holder) {
            (Meeting::Restated { observed_at }, Some(held)) => {
                held.fact.weight += 1.0;
                held.fact.observed_at = observed_at;
                if !held.fact.sources.contains(&source) {
                    held.fact.sources.push(source);
                }
            }
            (Meeting::Added(added), _) => self.insert_added(Some(session), source, (new, added)),
            (Meeting::Restated { .. } | Meeting::Ignored, _) => {}
        }
    }

    pub(super) fn insert_fact(
        &mut self,
        session: Option<&SessionId>,
        source: MessageId,
        new: &NewFact,
        status: FactStatus,
    ) {
        let number = self.counters.next_fact();
        self.index.insert((Namespace::Fact, UnitKey::fact(number)), new.unit.clone());
        self.facts.push(Held {
            slot: new.slot(),
            statement: new.statement(),
            told_at: None,
            corrects: false,
            of_settled: false,
            fact: Fact {
                id: new.id,
                number,
                session: session.cloned(),
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
                extracted_by: new.extracted_by.clone(),
                actor: new.actor,
                rejected: false,
            },
        });
    }
}

/// A fact as it is read: with the last messages that state it.
fn read(fact: &Fact) -> Fact {
    let mut fact = fact.clone();
    fact.sources.retain(|source| source.as_uuid() != fact.id.as_uuid());
    fact.sources = fact.sources.split_off(fact.sources.len().saturating_sub(SOURCES_READ));
    fact
}

#[async_trait]
impl FactRepo for MemoryStore {
    async fn active_facts(&self, scope: &Scope, numbers: &[u32]) -> Result<Vec<Fact>> {
        Ok(self.read(scope, |held| {
            let active = |number: &u32| {
                let mut active =
                    held.facts.iter().map(|held| &held.fact).filter(|fact| fact.holds());
                active.find(|fact| fact.number == *number).map(read)
            };
            numbers.iter().filter_map(active).collect()
        }))
    }

    async fn is_rejected(&self, scope: &Scope, keys: &[RejectionKey]) -> Result<bool> {
        Ok(self.read(scope, |held| keys.iter().any(|key| held.rejected.contains(key))))
    }

    async fn holders(&self, scope: &Scope, places: &[Place]) -> Result<Vec<(Place, ActiveFact)>> {
        Ok(self.read(scope, |state| {
            let active = state.facts.iter().filter(|held| held.fact.status == FactStatus::Active);
            let asked = active.filter(|held| places.contains(&held.place()));
            asked.map(|held| (held.place(), held.active())).collect()
        }))
    }

    async fn fact(&self, scope: &Scope, id: FactId) -> Result<Option<Fact>> {
        Ok(self.read(scope, |held| {
            held.facts.iter().map(|held| &held.fact).find(|fact| fact.id == id).map(read)
        }))
    }

    async fn ledger(&self, scope: &Scope, limits: LedgerLimits) -> Result<Ledger> {
        Ok(self.read(scope, |held| Ledger {
            standing: held.standing(limits.standing),
            newest: held.newest(limits.newest),
            superseded: {
                let mut found = held.superseded(true, limits.rejected);
                found.extend(held.superseded(false, limits.superseded));
                found
            },
        }))
    }

    async fn facts(&self, scope: &Scope, request: &PageRequest) -> Result<Page<Fact>> {
        Ok(self.read(scope, |held| {
            let facts = held.facts.iter().map(|held| read(&held.fact));
            page(facts.map(|fact| (fact.number.into(), fact)), request)
        }))
    }
}
