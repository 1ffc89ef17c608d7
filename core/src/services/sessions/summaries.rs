//! Summaries of a session: rolled with the append that makes them due, and rolled again after an erasure.

use std::collections::HashSet;
use std::sync::Arc;

use super::SessionService;
use super::append::ATTEMPTS;
use crate::error::Result;
use crate::ids::{ExternalId, SessionId, SummaryId};
use crate::ports::{Precondition, RecordKey, Write, WriteBatch};
use crate::scope::Scope;
use crate::services::model_jobs::ModelTask;
use crate::session::{Message, PreparedMessage};
use crate::summary::{ROLL_EVERY, RolledFrom, Summary, SummaryWriter, roll};

/// An external id, and the guest who gave it; the owner is no guest.
type AuthoredId = (Option<String>, ExternalId);

fn authored_id(message: &PreparedMessage) -> Option<AuthoredId> {
    Some((message.guest().map(str::to_owned), message.external_id.clone()?))
}

impl SessionService {
    /// The versions of a session's summary, oldest first.
    ///
    /// # Errors
    /// `NotFound` when there is no such session; those of the store.
    pub async fn summaries(&self, scope: &Scope, session: &SessionId) -> Result<Vec<Summary>> {
        self.get(scope, session).await?;
        self.store.summaries(scope, session).await
    }

    /// Adds the summaries that these messages make due, under the version of the session that
    /// they were built on. A session that was erased may begin anew with a version that it had: so
    /// nothing may have been erased, either. The newest awaits a model where one may write it.
    pub(super) async fn roll_summaries(
        &self,
        batch: &mut WriteBatch,
        session: &SessionId,
        prepared: &[Arc<PreparedMessage>],
        may_summarize: bool,
    ) -> Result<()> {
        let head = self.store.session(&batch.scope, session).await?;
        let (held, summarized, mut position) = head
            .as_ref()
            .map_or((0, 0, 0), |head| (head.messages, head.summarized, head.next_position));
        let waiting = held - summarized.min(held);
        if waiting + (prepared.len() as u64) < ROLL_EVERY {
            return Ok(());
        }
        let scope = batch.scope.clone();
        let erasures = self.store.erasures(&scope).await?;
        let latest = self.store.latest_summary(&scope, session).await?;
        let mut known = self.replayed(&scope, session, prepared).await?;
        let limit = usize::try_from(waiting).unwrap_or(usize::MAX);
        let waiting = self.store.recent_messages(&scope, session, limit).await?;
        let mut sources: Vec<RolledFrom<'_>> = waiting.iter().map(RolledFrom::of_stored).collect();
        for message in prepared {
            // A message that the store has already, or that is twice in this batch, is covered once.
            let is_new = authored_id(message).is_none_or(|id| known.insert(id));
            if is_new {
                sources.push(RolledFrom::of_prepared(message, position));
                position += u32::try_from(message.units.len()).unwrap_or(u32::MAX);
            }
        }
        let mut previous: Option<Summary> = latest;
        let every = usize::try_from(ROLL_EVERY).unwrap_or(usize::MAX);
        let mut chunks = sources.chunks_exact(every).peekable();
        while let Some(chunk) = chunks.next() {
            let id = SummaryId::from_uuid(self.ids.next());
            let mut next = roll(id, session, previous.as_ref(), chunk, &*self.tokenizer);
            if may_summarize && chunks.peek().is_none() {
                next.writer = SummaryWriter::AwaitsModel;
            }
            batch.writes.push(Write::PutSummary(Box::new(next.clone())));
            previous = Some(next);
        }
        if !batch.writes.is_empty() {
            if may_summarize {
                let job = ModelTask::Summaries.job(&*self.ids, batch.now);
                batch.writes.push(Write::EnqueueJob(job));
            }
            let key = RecordKey::Session(session.clone());
            batch.preconditions.push(match head {
                Some(head) => Precondition::IfVersion(key, head.version),
                None => Precondition::IfAbsent(key),
            });
            batch.preconditions.extend(erasures.map(Precondition::IfErasures));
        }
        Ok(())
    }

    async fn replayed(
        &self,
        scope: &Scope,
        session: &SessionId,
        prepared: &[Arc<PreparedMessage>],
    ) -> Result<HashSet<AuthoredId>> {
        let ids: Vec<ExternalId> =
            prepared.iter().filter_map(|message| message.external_id.clone()).collect();
        if ids.is_empty() {
            return Ok(HashSet::new());
        }
        let held = self.store.messages_by_external_id(scope, session, &ids).await?;
        let of_held = |message: &Message| {
            Some((message.guest().map(str::to_owned), message.external_id.clone()?))
        };
        Ok(held.iter().filter_map(of_held).collect())
    }

    /// Rolls what an erasure made due again. If others keep coming first, their appends roll it. What may be shown to a
    /// model is not known any more, so none is asked before the next version.
    pub(in crate::services) async fn roll_again(
        &self,
        scope: &Scope,
        session: &SessionId,
    ) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let mut batch = WriteBatch::new(scope.clone(), self.clock.now());
            self.roll_summaries(&mut batch, session, &[], false).await?;
            if batch.writes.is_empty() {
                return Ok(());
            }
            match self.store.apply(batch).await {
                Err(error) if error.is_lost_race() => {}
                applied => return applied.map(|_| ()),
            }
        }
        Ok(())
    }
}
