//! Applying a batch to a copy of the state, which is kept only when every write succeeds.

use throughline_core::Result;
use throughline_core::ids::SessionId;
use throughline_core::index::{Namespace, UnitKey};
use throughline_core::persona::{Persona, Preset};
use throughline_core::ports::{Applied, AppliedMessage, Idempotency, RecordKey, Write, WriteBatch};
use throughline_core::session::PreparedMessage;
use throughline_core::summary::Summary;
use throughline_core::time::Timestamp;
use throughline_core::usage::{UsageCounters, UsageDay};

use super::sessions::{Stored, Thread};
use super::{ScopeState, State, documents, erasure, jobs};

/// What was answered to a batch with an idempotency key.
#[derive(Debug, Clone)]
pub(super) struct Answer {
    fingerprint: [u8; 16],
    at: Timestamp,
    /// As [`Applied::to_bytes`] gives it.
    applied: Vec<u8>,
}

pub(super) fn apply(state: &mut State, batch: &WriteBatch) -> Result<Applied> {
    batch.check()?;
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
    let before = scope.counters;
    let mut replaced = Vec::new();
    for precondition in &batch.preconditions {
        let version = precondition.record().and_then(|key| scope.version(key));
        precondition.check(version, scope.erasures)?;
    }
    let mut applied = Applied::default();
    let mut dropped = false;
    for write in &batch.writes {
        match write {
            Write::AppendMessage { session, message } => {
                let thread = scope.thread(session, message.created_at)?;
                applied.messages.push(scope.append(thread, message, batch.now)?);
            }
            Write::OpenSession { session, created_at } => {
                // One that is new is marked as changed.
                scope.thread(session, *created_at)?;
            }
            Write::PutFile(file) => scope.put_file(file)?,
            Write::PutFileList { session, list, at } => {
                scope.thread(session, *at)?;
                scope.put_file_list(session, list)?;
            }
            Write::PutDocument(new) => replaced.extend(scope.put_document(new)?),
            Write::PutFact(fact) => {
                scope.put_fact(fact)?;
                applied.facts.push(fact.id);
            }
            Write::StateFact(fact) => scope.state_earlier_fact(fact),
            Write::MarkRead(ids) => scope.mark_read(ids)?,
            Write::Reject(keys) => scope.rejected.extend(keys),
            Write::Allow(keys) => scope.rejected.retain(|key| !keys.contains(key)),
            Write::PutSummary(summary) => {
                let thread = scope.thread(&summary.session, summary.from_at)?;
                scope.sessions[thread].head.summarized = summary.covered;
                scope.sessions[thread].changed = true;
                let versions = scope.summaries.entry(summary.session.clone()).or_default();
                versions.push(Summary::clone(summary));
            }
            Write::RewriteSummary(summary) => scope.rewrite_summary(summary)?,
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
            Write::RateAnswer { session, rating } => scope.rate_answer(session, rating)?,
            Write::RemoveRating { message, user } => {
                scope.ratings.remove(&(*message, user.clone()));
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
        let answer = Answer { fingerprint, at: batch.now, applied: applied.to_bytes() };
        scope.answers.insert(key, answer);
    }
    for thread in &mut scope.sessions {
        if std::mem::take(&mut thread.changed) {
            thread.head.version += 1;
        }
    }
    let (held, vectors) = ((&batch.scope, &mut *scope), &mut state.vectors);
    documents::index_vectors(held, vectors, batch.space.as_ref(), (before.documents, &replaced));
    if let Some(space) = &batch.space {
        let ends = [
            (Namespace::Message, before.last_seq, scope.counters.last_seq),
            (Namespace::Fact, before.facts, scope.counters.facts),
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
        let held = held.filter(|held| held.at >= Idempotency::oldest_kept(now));
        held.map(|held| asked.answer(&held.fingerprint, &held.applied)).transpose()
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
    fn thread(&mut self, id: &SessionId, created_at: Timestamp) -> Result<usize> {
        if let Some(held) = self.sessions.iter().position(|thread| thread.head.id == *id) {
            return Ok(held);
        }
        let head = self.counters.open_session(id, created_at)?;
        self.sessions.push(Thread { head, messages: Vec::new(), changed: true });
        Ok(self.sessions.len() - 1)
    }

    fn append(
        &mut self,
        thread: usize,
        message: &PreparedMessage,
        now: Timestamp,
    ) -> Result<AppliedMessage> {
        let thread = &mut self.sessions[thread];
        if let Some(held) = thread.under(message) {
            return message.replay(held.applied(), &held.hash);
        }
        let applied = self.counters.append(&mut thread.head, message)?;
        thread.add(Stored::new(&thread.head, applied, message));
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
