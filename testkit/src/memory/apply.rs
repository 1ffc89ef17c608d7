//! Applying a batch to a copy of the state, which is kept only when every write succeeds.

use throughline_core::ids::SessionId;
use throughline_core::ports::{
    Applied, AppliedMessage, Namespace, Precondition, RecordKey, UnitKey, Write, WriteBatch,
};
use throughline_core::session::PreparedMessage;
use throughline_core::summary::Summary;
use throughline_core::time::Timestamp;
use throughline_core::usage::{UsageCounters, UsageDay};
use throughline_core::{Error, Result};

use super::sessions::{Stored, Thread};
use super::vector::check_batch;
use super::{ScopeState, State, jobs};

pub(super) fn apply(state: &mut State, batch: &WriteBatch) -> Result<Applied> {
    check_batch(batch)?;
    if !state.scopes.contains_key(&batch.scope) {
        state.order.push(batch.scope.clone());
    }
    let scope = state.scopes.entry(batch.scope.clone()).or_default();
    let (last_seq, last_fact) = (scope.last_seq, scope.facts.len() as u64);
    for precondition in &batch.preconditions {
        let (key, expected) = match precondition {
            Precondition::IfAbsent(key) => (key, None),
            Precondition::IfVersion(key, version) => (key, Some(*version)),
        };
        if scope.version(key) != expected {
            return Err(Error::lost_race("another writer came first"));
        }
    }
    let mut applied = Applied::default();
    for write in &batch.writes {
        match write {
            Write::AppendMessage { session, message } => {
                let thread = scope.thread(session, message.created_at);
                applied.messages.push(scope.append(thread, message, batch.now)?);
            }
            Write::PutSummary(summary) => {
                let thread = scope.thread(&summary.session, summary.from_at);
                scope.sessions[thread].head.summarized = summary.covered;
                scope.sessions[thread].changed = true;
                let versions = scope.summaries.entry(summary.session.clone()).or_default();
                versions.push(Summary::clone(summary));
            }
            Write::PutProfile(profile) => scope.profile = Some(profile.clone()),
            Write::AddUsage(day, counters) => scope.usage.entry(*day).or_default().add(counters),
            Write::EnqueueJob(job) => jobs::enqueue(&mut state.jobs, &batch.scope, job),
            Write::FinishJob(id, outcome) => {
                jobs::finish(&mut state.jobs, &batch.scope, *id, outcome, batch.now)?;
            }
        }
    }
    for thread in &mut scope.sessions {
        if std::mem::take(&mut thread.changed) {
            thread.head.version += 1;
        }
    }
    if let Some(space) = &batch.space {
        let ends = [
            (Namespace::Message, last_seq, scope.last_seq),
            (Namespace::Fact, last_fact, scope.facts.len() as u64),
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
    Ok(applied)
}

impl ScopeState {
    fn version(&self, key: &RecordKey) -> Option<u64> {
        match key {
            RecordKey::Session(id) => self
                .sessions
                .iter()
                .find(|thread| thread.head.id == *id)
                .map(|thread| thread.head.version),
            RecordKey::Profile => self.profile.as_ref().map(|profile| profile.version),
        }
    }

    /// Index of the session, which is created when there is none.
    fn thread(&mut self, id: &SessionId, created_at: Timestamp) -> usize {
        let held = self.sessions.iter().position(|thread| thread.head.id == *id);
        held.unwrap_or_else(|| {
            let number = u32::try_from(self.sessions.len() + 1).expect("few sessions");
            self.sessions.push(Thread::new(id.clone(), number, created_at));
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
