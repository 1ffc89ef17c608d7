//! Erasing from a copy of the state, by looking through all of it.

use std::collections::{BTreeSet, HashSet};

use async_trait::async_trait;
use throughline_core::erase::{DerivedFact, DerivedIds, FactSource, HeldFact, heal};
use throughline_core::fact::{Fact, FactStatus};
use throughline_core::ids::{ExternalId, MessageId, SessionId, TenantId, UserId};
use throughline_core::index::{Namespace, UnitKey};
use throughline_core::job::Job;
use throughline_core::ports::{Erased, Erasure, ErasureRepo, ErasureState, ScopeTotals};
use throughline_core::session::Message;
use throughline_core::time::Timestamp;
use throughline_core::{Result, Scope};
use uuid::Uuid;

use super::facts::Held;
use super::vector::Vectors;
use super::{MemoryStore, ScopeState, State};

/// The ledger that the store is bound to, and what of it was applied.
#[derive(Debug, Clone, Default)]
pub(super) struct Noted {
    ledger: Option<Uuid>,
    pub(super) applied: BTreeSet<u64>,
}

impl ScopeState {
    pub(super) fn erase(&mut self, erasure: &Erasure, seed: Uuid, now: Timestamp) -> Erased {
        self.erasures += 1;
        let all = self.sessions.iter().flat_map(|thread| &thread.messages);
        let hit = |message: &Message| match erasure {
            Erasure::Messages(ids) => ids.contains(&message.id),
            Erasure::Session { id, through } => message.session == *id && message.seq <= *through,
            Erasure::Scope { through, .. } => message.seq <= *through,
            Erasure::Document { .. } => false,
        };
        let all = all.map(|stored| &stored.message);
        let gone: Vec<Message> = all.filter(|message| hit(message)).cloned().collect();
        let mut ids: HashSet<MessageId> = gone.iter().map(|message| message.id).collect();
        if let Erasure::Scope { through, .. } = erasure {
            // What was told directly bears its own id as its source.
            let told =
                self.facts.iter().filter(|held| held.told_at.is_some_and(|at| at <= *through));
            ids.extend(told.map(|held| MessageId::from_uuid(held.fact.id.as_uuid())));
        }
        let mut erased = Erased { messages: gone.len() as u64, ..Erased::default() };
        self.erase_documents(erasure, &mut erased);
        self.erase_facts(&ids, seed, &mut erased);
        self.erase_entities(&ids, &mut erased);
        let before = self.files.len();
        self.files.retain(|_, file| file.message.is_none_or(|message| !ids.contains(&message)));
        erased.files = (before - self.files.len()) as u64;
        for message in &gone {
            self.erase_message(message, now, &mut erased);
            self.forget_message(message);
        }
        let whole = match erasure {
            Erasure::Scope { .. } => {
                self.sessions.iter().map(|thread| thread.head.id.clone()).collect()
            }
            Erasure::Session { id, .. } => vec![id.clone()],
            Erasure::Messages(_) | Erasure::Document { .. } => Vec::new(),
        };
        self.erase_sessions(&whole, &mut erased);
        self.forget_personas(&erased);
        let emptied = self.sessions.is_empty() && self.documents.is_empty();
        let ends = matches!(erasure, Erasure::Scope { documents, .. }
            if *documents >= self.counters.documents);
        if ends && emptied {
            (self.profile, erased.whole_scope) = (None, true);
            self.usage.clear();
            self.rejected.clear();
            self.answers.clear();
            self.files.clear();
            self.file_lists.clear();
            self.personas.clear();
            self.presets.clear();
            self.preset_uses.clear();
            self.backups.clear();
        }
        erased
    }

    /// Sessions that hold nothing any more go.
    fn erase_sessions(&mut self, whole: &[SessionId], erased: &mut Erased) {
        self.sessions.retain(|thread| {
            let goes = whole.contains(&thread.head.id) && thread.messages.is_empty();
            if goes {
                erased.sessions += 1;
                erased.touched.push(thread.head.id.clone());
                let before = self.files.len();
                self.files.retain(|_, file| file.session != thread.head.id);
                self.file_lists.remove(&thread.head.id);
                erased.files += (before - self.files.len()) as u64;
            }
            !goes
        });
        erased.touched.sort();
        erased.touched.dedup();
    }

    fn erase_message(&mut self, gone: &Message, now: Timestamp, erased: &mut Erased) {
        let units = gone.position..gone.position + gone.units;
        for position in units {
            let unit = (Namespace::Message, UnitKey::message(gone.session_number, position));
            self.index.remove(&unit);
            erased.units.push(unit);
        }
        erased.tokens += u64::from(gone.tokens);
        erased.touched.push(gone.session.clone());
        if let Some(versions) = self.summaries.get_mut(&gone.session) {
            let before = versions.len();
            versions.retain(|summary| summary.to_position < gone.position);
            erased.summaries += (before - versions.len()) as u64;
        }
        let covered = self.summaries_of(&gone.session).last().map_or(0, |last| last.covered);
        let Some(thread) = self.sessions.iter_mut().find(|t| t.head.id == gone.session) else {
            return;
        };
        thread.messages.retain(|stored| stored.message.id != gone.id);
        thread.changed = true;
        let first = thread.messages.first().map(|stored| stored.message.created_at);
        let latest = thread.messages.iter().map(|stored| stored.message.created_at).max();
        let head = &mut thread.head;
        head.messages -= 1;
        head.tokens -= u64::from(gone.tokens);
        head.summarized = covered;
        if head.created_at == gone.created_at {
            head.created_at = first.unwrap_or(now);
        }
        head.last_at = latest.unwrap_or(head.created_at);
    }

    fn erase_entities(&mut self, gone: &HashSet<MessageId>, erased: &mut Erased) {
        let said: Vec<Message> = self.all_messages().cloned().collect();
        let before = self.entities.len();
        self.entities.retain_mut(|entity| {
            let sources = entity.sources.len();
            entity.sources.retain(|source| !gone.contains(source));
            if sources > entity.sources.len() {
                let of = said.iter().filter(|message| entity.sources.contains(&message.id));
                let last = of.map(|message| message.created_at).max();
                entity.last_at = last.unwrap_or(entity.last_at);
            }
            !entity.sources.is_empty()
        });
        erased.entities = (before - self.entities.len()) as u64;
    }

    fn all_messages(&self) -> impl Iterator<Item = &Message> {
        self.sessions.iter().flat_map(|thread| &thread.messages).map(|stored| &stored.message)
    }

    fn erase_facts(&mut self, gone: &HashSet<MessageId>, seed: Uuid, erased: &mut Erased) {
        let hit = |held: &&Held| held.fact.sources.iter().any(|source| gone.contains(source));
        let mut places: Vec<_> = self.facts.iter().filter(hit).map(Held::place).collect();
        places.sort_unstable();
        places.dedup();
        let mut ids = DerivedIds::new(seed);
        for place in places {
            let of = self.facts.iter().filter(|held| held.place() == place);
            let held: Vec<HeldFact> = of.map(|held| self.held(held)).collect();
            let changes = heal(&held, gone, &mut ids);
            for number in &changes.removed {
                let unit = (Namespace::Fact, UnitKey::fact(*number));
                self.index.remove(&unit);
                erased.units.push(unit);
                erased.facts += 1;
            }
            self.facts.retain(|held| !changes.removed.contains(&held.fact.number));
            for kept in changes.kept {
                let held = self.facts.iter_mut().find(|held| held.fact.number == kept.number);
                let Some(Held { fact, .. }) = held else { continue };
                fact.weight = kept.weight as f32;
                fact.observed_at = kept.observed_at;
                fact.status = kept.superseded_by.map_or(FactStatus::Active, FactStatus::Superseded);
                fact.sources = kept.sources.iter().map(|(_, message)| *message).collect();
            }
            for derived in changes.derived {
                self.derive(derived);
            }
        }
    }

    fn derive(&mut self, derived: DerivedFact) {
        let thread = self.sessions.iter().find(|t| t.head.number == derived.session_number);
        let session = thread.expect("its source is there").head.id.clone();
        let (_, source) = derived.sources[0];
        self.insert_fact(Some(&session), source, &derived.fact, FactStatus::Active);
        let held = self.facts.last_mut().expect("it was just added");
        held.fact.weight = derived.weight as f32;
        held.fact.status = derived.superseded_by.map_or(FactStatus::Active, FactStatus::Superseded);
        held.fact.sources = derived.sources.iter().map(|(_, message)| *message).collect();
    }

    fn held(&self, held: &Held) -> HeldFact {
        let Fact { number, id, kind, observed_at, weight, .. } = held.fact;
        let source = |id: &MessageId| {
            if let Some(seq) = held.told_at.filter(|_| id.as_uuid() == held.fact.id.as_uuid()) {
                return Some(FactSource {
                    message: *id,
                    seq,
                    session_number: 0,
                    created_at: observed_at,
                    content: String::new(),
                    actor: held.fact.actor,
                });
            }
            let message = self.all_messages().find(|message| message.id == *id)?;
            Some(FactSource {
                message: *id,
                seq: message.seq,
                session_number: message.session_number,
                created_at: message.created_at,
                content: message.content.clone(),
                actor: message.actor,
            })
        };
        HeldFact {
            number,
            id,
            kind,
            slot: held.slot,
            statement: held.statement,
            observed_at,
            weight: weight.into(),
            superseded_by: match held.fact.status {
                FactStatus::Superseded(by) => Some(by),
                FactStatus::Active => None,
            },
            actor: held.fact.actor,
            value: held.fact.value.clone(),
            sources: held.fact.sources.iter().filter_map(source).collect(),
        }
    }

    fn is_empty(&self) -> bool {
        self.sessions.is_empty()
            && self.facts.is_empty()
            && self.files.is_empty()
            && self.personas.is_empty()
            && self.presets.is_empty()
            && self.backups.is_empty()
            && self.documents.is_empty()
            && self.profile.is_none()
            && self.usage.is_empty()
    }
}

/// Removes a scope that holds nothing any more.
pub(super) fn drop_scope(state: &mut State, scope: &Scope) {
    if state.scopes.get(scope).is_some_and(ScopeState::is_empty) {
        state.scopes.remove(scope);
        state.order.retain(|held| held != scope);
        state.jobs.retain(|job: &Job| job.scope != *scope);
        state.vectors.forget(scope);
    }
}

/// Takes units out of every space of the store's own index.
pub(super) fn remove_vectors(vectors: &mut Vectors, scope: &Scope, erased: &Erased) {
    for namespace in Namespace::ALL {
        let of = erased.units.iter().filter(|(within, _)| *within == namespace);
        vectors.remove(scope, namespace, &of.map(|(_, key)| *key).collect::<Vec<_>>());
    }
}

#[async_trait]
impl ErasureRepo for MemoryStore {
    async fn erasure_state(&self) -> Result<ErasureState> {
        let Noted { ledger, applied } = &self.state().noted;
        let (count, last) = (applied.len() as u64, applied.last().copied().unwrap_or(0));
        Ok(ErasureState { ledger: *ledger, applied: count, last })
    }

    async fn bind_ledger(&self, id: Uuid) -> Result<()> {
        let noted = &mut self.state().noted;
        if noted.ledger != Some(id) {
            *noted = Noted { ledger: Some(id), applied: BTreeSet::new() };
        }
        Ok(())
    }

    async fn erasures_applied(&self, after: u64, limit: usize) -> Result<Vec<u64>> {
        Ok(self.state().noted.applied.range(after + 1..).take(limit).copied().collect())
    }

    async fn note_erasures(&self, numbers: &[u64]) -> Result<()> {
        self.state().noted.applied.extend(numbers);
        Ok(())
    }

    async fn erasures(&self, scope: &Scope) -> Result<Option<u64>> {
        Ok(self.state().scopes.get(scope).map(|held| held.erasures))
    }

    async fn scopes_of(
        &self,
        tenant: &TenantId,
        user: &UserId,
    ) -> Result<Vec<(Scope, ScopeTotals)>> {
        let state = self.state();
        let of =
            state.scopes.iter().filter(|(scope, _)| (&scope.tenant, &scope.user) == (tenant, user));
        Ok(of.map(|(scope, held)| (scope.clone(), held.totals())).collect())
    }

    async fn held_messages(
        &self,
        scope: &Scope,
        session: &SessionId,
        ids: &[MessageId],
    ) -> Result<Vec<(MessageId, Option<ExternalId>)>> {
        Ok(self.read(scope, |held| {
            let of = held.all_messages().filter(|message| message.session == *session);
            let held = of.filter(|message| ids.contains(&message.id));
            held.map(|message| (message.id, message.external_id.clone())).collect()
        }))
    }

    async fn purge(&self) -> Result<()> {
        Ok(())
    }
}
