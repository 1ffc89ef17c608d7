//! Applying a batch to a copy of the state, which is kept only when every write succeeds.

use throughline_core::ids::SessionId;
use throughline_core::persona::{Persona, Preset};
use throughline_core::ports::{
    Applied, AppliedMessage, IDEMPOTENCY_KEPT, Idempotency, Namespace, Precondition, RecordKey,
    UnitKey, Write, WriteBatch,
};
use throughline_core::session::PreparedMessage;
use throughline_core::summary::Summary;
use throughline_core::time::Timestamp;
use throughline_core::usage::{UsageCounters, UsageDay};
use throughline_core::{Error, Result};

use super::sessions::{Stored, Thread};
use super::vector::check_batch;
use super::{ScopeState, State, documents, erasure, jobs};

/// What was answered to a batch with an idempotency key.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    fingerprint: [u8; 16],
    at: Timestamp,
    applied: Applied,
}

pub(super) fn apply(state: &mut State, batch: &WriteBatch) -> Result<Applied> {
    check_batch(batch)?;
    batch.check_erasure()?;
    if !state.scopes.contains_key(&batch.scope) {
        state.order.push(batch.scope.clone());
        state.begun += 1;
    }
    let begins = || ScopeState { erasures: state.begun << 32, ..ScopeState::default() };
    let scope = state.scopes.entry(batch.scope.clone()).or_insert_with(begins);
    if let Some(asked) = batch.idempotency
        && let Some(answer) = scope.answer(asked, batch.now)?
    {
        return Ok(answer);
    }
    let (last_seq, last_fact) = (scope.last_seq, u64::from(scope.last_fact));
    let last_document = u64::from(scope.last_document);
    let mut replaced = Vec::new();
    for precondition in &batch.preconditions {
        let holds = match precondition {
            Precondition::IfAbsent(key) => scope.version(key).is_none(),
            Precondition::IfVersion(key, version) => scope.version(key) == Some(*version),
            Precondition::IfErasures(erasures) => scope.erasures == *erasures,
        };
        if !holds {
            return Err(Error::lost_race("another writer came first"));
        }
    }
    let mut applied = Applied::default();
    let mut dropped = false;
    for write in &batch.writes {
        match write {
            Write::AppendMessage { session, message } => {
                let thread = scope.thread(session, message.created_at);
                applied.messages.push(scope.append(thread, message, batch.now)?);
            }
            Write::OpenSession { session, created_at } => {
                // One that is new is marked as changed.
                scope.thread(session, *created_at);
            }
            Write::PutFile(file) => scope.put_file(file)?,
            Write::PutDocument(new) => replaced.extend(scope.put_document(new)?),
            Write::PutFact(fact) => {
                scope.put_fact(fact);
                applied.facts.push(fact.id);
            }
            Write::Reject(keys) => scope.rejected.extend(keys),
            Write::Allow(keys) => scope.rejected.retain(|key| !keys.contains(key)),
            Write::PutSummary(summary) => {
                let thread = scope.thread(&summary.session, summary.from_at);
                scope.sessions[thread].head.summarized = summary.covered;
                scope.sessions[thread].changed = true;
                let versions = scope.summaries.entry(summary.session.clone()).or_default();
                versions.push(Summary::clone(summary));
            }
            Write::PutProfile(profile) => scope.profile = Some(profile.clone()),
            Write::PutPersona(persona) => {
                scope.personas.insert(persona.id, Persona::clone(persona));
            }
            Write::PutPreset(preset) => {
                scope.presets.insert(preset.id.clone(), Preset::clone(preset));
            }
            Write::RemovePreset(id) => {
                scope.presets.remove(id);
            }
            Write::CountPreset(id, used) => {
                scope.preset_uses.entry(id.clone()).or_default().add(used);
            }
            Write::PutBackup { backup, keep } => scope.put_backup(backup, *keep),
            Write::TagMessage { session, message, tags } => {
                scope.tag_message(session, *message, tags)?;
            }
            Write::AddUsage(day, counters) => scope.usage.entry(*day).or_default().add(counters),
            Write::EnqueueJob(job) => jobs::enqueue(&mut state.jobs, &batch.scope, job),
            Write::FinishJob(id, outcome) => {
                jobs::finish(&mut state.jobs, &batch.scope, *id, outcome, batch.now)?;
            }
            Write::DropJob(id) => {
                state.jobs.retain(|job| job.id != *id || job.scope != batch.scope);
            }
            Write::Erase { erasure, seed } => {
                let erased = scope.erase(erasure, *seed, batch.now);
                erasure::remove_vectors(&mut state.vectors, &batch.scope, &erased);
                applied.erased.add(erased);
            }
            Write::NoteErasure(number) => {
                state.noted.applied.insert(*number);
            }
            Write::DropScope => dropped = true,
        }
    }
    if let Some(Idempotency { key, fingerprint }) = batch.idempotency {
        let answer = Answer { fingerprint, at: batch.now, applied: applied.clone() };
        scope.answers.insert(key, answer);
    }
    for thread in &mut scope.sessions {
        if std::mem::take(&mut thread.changed) {
            thread.head.version += 1;
        }
    }
    let (held, vectors) = ((&batch.scope, &mut *scope), &mut state.vectors);
    documents::index_vectors(held, vectors, batch.space.as_ref(), (last_document, &replaced));
    if let Some(space) = &batch.space {
        let ends = [
            (Namespace::Message, last_seq, scope.last_seq),
            (Namespace::Fact, last_fact, u64::from(scope.last_fact)),
        ];
        for (namespace, before, after) in ends {
            let vectors = scope.index.iter_mut().filter(|((within, _), _)| *within == namespace);
            let vectors: Vec<_> =
                vectors.filter_map(|((_, key), unit)| Some((*key, unit.vector.take()?))).collect();
            let complete = state.vectors.watermark(&batch.scope, namespace, space) == before;
            let through = if complete { after } else { 0 };
            state.vectors.put(&batch.scope, namespace, space, vectors.into_iter(), through);
        }
    }
    if dropped {
        erasure::drop_scope(state, &batch.scope);
    }
    Ok(applied)
}

impl ScopeState {
    /// What was answered to the same batch before.
    fn answer(&self, asked: Idempotency, now: Timestamp) -> Result<Option<Applied>> {
        let held = self.answers.get(&asked.key);
        let Some(held) = held.filter(|held| held.at.plus(IDEMPOTENCY_KEPT) >= now) else {
            return Ok(None);
        };
        if held.fingerprint != asked.fingerprint {
            return Err(Error::conflict("this idempotency key stands for another request"));
        }
        let replayed = |message: &AppliedMessage| AppliedMessage { replayed: true, ..*message };
        let messages = held.applied.messages.iter().map(replayed).collect();
        Ok(Some(Applied { messages, repeated: true, ..held.applied.clone() }))
    }

    fn version(&self, key: &RecordKey) -> Option<u64> {
        match key {
            RecordKey::Session(id) => self
                .sessions
                .iter()
                .find(|thread| thread.head.id == *id)
                .map(|thread| thread.head.version),
            RecordKey::Document(vault, memory) => {
                self.document_of(vault, memory).map(|document| document.latest().info.number.into())
            }
            RecordKey::Profile => self.profile.as_ref().map(|profile| profile.version),
            RecordKey::Persona(id) => self.personas.get(id).map(|persona| persona.version),
            RecordKey::Preset(id) => self.presets.get(id).map(|preset| preset.version),
        }
    }

    /// Index of the session, which is created when there is none.
    fn thread(&mut self, id: &SessionId, created_at: Timestamp) -> usize {
        let held = self.sessions.iter().position(|thread| thread.head.id == *id);
        held.unwrap_or_else(|| {
            self.last_session += 1;
            self.sessions.push(Thread::new(id.clone(), self.last_session, created_at));
            self.sessions.len() - 1
        })
    }

    fn append(
        &mut self,
        thread: usize,
        message: &PreparedMessage,
        now: Timestamp,
    ) -> Result<AppliedMessage> {
        let thread = &mut self.sessions[thread];
        if let Some(held) = thread.under(message.external_id.as_ref()) {
            if held.hash != message.content_hash {
                return Err(Error::conflict(
                    "this external_id already stands for a message with other content",
                ));
            }
            return Ok(held.applied(true));
        }
        self.last_seq += 1;
        let stored = Stored::new(&thread.head, self.last_seq, message);
        let applied = stored.applied(false);
        thread.add(stored, message.units.len());
        let (session, number) = (thread.head.id.clone(), thread.head.number);
        for (unit, position) in message.units.iter().zip(applied.position..) {
            let key = (Namespace::Message, UnitKey::message(number, position));
            self.index.insert(key, unit.clone());
        }
        for fact in &message.facts {
            self.add_fact(&session, message.id, fact);
        }
        for entity in &message.entities {
            self.see_entity(&session, message, entity);
        }
        self.usage.entry(UsageDay::of(now)).or_default().add(&UsageCounters {
            messages: 1,
            message_tokens: message.tokens.into(),
            ..UsageCounters::default()
        });
        Ok(applied)
    }
}
