//! Summaries that a model writes.
//!
//! An append rolls a summary from sentences as they were said, marks it as one that awaits a model, and leaves a job; it
//! never waits. The job has the model write the lines anew, and puts those with evidence in their place, if that version
//! is still there: an erasure takes it away with all that it covers.

use std::sync::Arc;

use crate::error::Result;
use crate::ids::TenantId;
use crate::job::Job;
use crate::ports::{Clock, IdGen, Store, Summarizer, Write, WriteBatch};
use crate::scope::Scope;
use crate::session::Message;
use crate::summary::{Draft, ROLL_EVERY, Rewriting, Summary, SummaryWriter};
use crate::tokens::Tokenizer;

use super::{Ended, ModelJobs, ModelRound, ModelTask, REQUESTS, is_given_up};

/// Most messages that are looked through for those of a version: where more have come since, a newer one awaits the
/// model.
const MAX_LOOKED_AT: u64 = 5 * ROLL_EVERY;

/// What a worker's round did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Summarizing {
    /// Its jobs.
    pub round: ModelRound,
    /// Summaries that the model wrote.
    pub written: u64,
    /// Summaries that stay as they were rolled, because no line of the model had evidence, or its answers could not be
    /// read.
    pub kept: u64,
}

/// A model that writes summaries, and the jobs for it.
#[derive(Clone)]
pub struct SummaryService {
    jobs: ModelJobs,
    tokenizer: Arc<dyn Tokenizer>,
    summarizer: Arc<dyn Summarizer>,
}

impl SummaryService {
    /// A service over its ports. A tenant may spend `daily_tokens` on it in a day (UTC).
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        (clock, ids): (Arc<dyn Clock>, Arc<dyn IdGen>),
        tokenizer: Arc<dyn Tokenizer>,
        (summarizer, daily_tokens): (Arc<dyn Summarizer>, u64),
    ) -> Self {
        let task = ModelTask::Summaries;
        Self { jobs: ModelJobs { task, store, clock, ids, daily_tokens }, tokenizer, summarizer }
    }

    /// Attempts up to `limit` jobs that are due. A model that fails ends the attempt, not the worker: the job is tried
    /// again later.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn work(&self, limit: usize) -> Result<Summarizing> {
        let mut done = Summarizing::default();
        for job in self.jobs.claim(limit).await? {
            done.round.jobs += 1;
            let ended = self.write_awaiting(&job, &mut done).await;
            self.jobs.finish(&job, ended, &mut done.round).await?;
        }
        Ok(done)
    }

    /// Enqueues a job for every scope in which a summary awaits the model, such as after a provider was away. Returns how
    /// many.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn enqueue_awaiting(&self) -> Result<u64> {
        self.jobs.enqueue_waiting().await
    }

    /// Writes what awaits the model in the job's scope.
    async fn write_awaiting(&self, job: &Job, done: &mut Summarizing) -> Result<Ended> {
        let scope = &job.scope;
        let begun = self.jobs.clock.now();
        for _ in 0..REQUESTS {
            if self.jobs.has_worked_long(begun) {
                return Ok(Ended::More);
            }
            let mut awaiting = self.jobs.store.awaiting_summaries(scope, 1).await?;
            let Some(summary) = awaiting.pop() else { return Ok(Ended::Done) };
            let rewriting = self.rewriting(scope, &summary).await?;
            if !self.jobs.remembers(scope, &summary.session).await? {
                self.put(scope, summary, (&rewriting, &[]), done).await?;
                continue;
            }
            let most = self.summarizer.most_tokens(rewriting.texts());
            if !self.jobs.allows(&scope.tenant, most).await? {
                return Ok(Ended::OverBudget);
            }
            let drafts = match self.ask(&scope.tenant, &rewriting, done).await {
                Err(error) if is_given_up(job, &error) => {
                    self.put(scope, summary, (&rewriting, &[]), done).await?;
                    return Err(error);
                }
                drafts => drafts?,
            };
            self.put(scope, summary, (&rewriting, &drafts), done).await?;
        }
        Ok(Ended::More)
    }

    async fn ask(
        &self,
        tenant: &TenantId,
        rewriting: &Rewriting,
        done: &mut Summarizing,
    ) -> Result<Vec<Draft>> {
        let work = self.summarizer.summarize(rewriting.texts()).await;
        self.jobs.count(tenant, self.summarizer.model(), &work, &mut done.round).await?;
        work.result
    }

    /// What the model is shown for a version: the one before, and the messages since.
    async fn rewriting(&self, scope: &Scope, summary: &Summary) -> Result<Rewriting> {
        let (store, session) = (&self.jobs.store, &summary.session);
        let versions = store.summaries(scope, session).await?;
        let previous = versions.iter().rfind(|version| version.version < summary.version);
        let covered = previous.map_or(0, |previous| previous.covered);
        let held = store.session(scope, session).await?.map_or(0, |head| head.messages);
        let limit = usize::try_from(held.saturating_sub(covered).min(MAX_LOOKED_AT));
        let recent = store.recent_messages(scope, session, limit.unwrap_or(usize::MAX)).await?;
        let from = previous.map_or(0, |previous| previous.to_position + 1);
        let is_covered =
            |message: &Message| (from..=summary.to_position).contains(&message.position);
        let messages: Vec<Message> = recent.into_iter().filter(is_covered).collect();
        Ok(Rewriting::new(previous, &messages))
    }

    /// Puts what the model wrote in the place of a version, or leaves that as it is where nothing has evidence.
    async fn put(
        &self,
        scope: &Scope,
        mut summary: Summary,
        (rewriting, drafts): (&Rewriting, &[Draft]),
        done: &mut Summarizing,
    ) -> Result<()> {
        let (lines, tokens) = rewriting.lines(drafts, &*self.tokenizer);
        let is_written = !lines.is_empty();
        if is_written {
            (summary.lines, summary.tokens) = (lines, tokens);
            summary.writer = SummaryWriter::Model(self.summarizer.name().to_owned());
        } else {
            summary.writer = SummaryWriter::Extract;
        }
        let batch = WriteBatch::new(scope.clone(), self.jobs.clock.now())
            .with(Write::RewriteSummary(Box::new(summary)));
        match self.jobs.store.apply(batch).await {
            // It was erased, or another worker was first.
            Err(error) if error.is_lost_race() => return Ok(()),
            applied => applied?,
        };
        done.written += u64::from(is_written);
        done.kept += u64::from(!is_written);
        Ok(())
    }
}
