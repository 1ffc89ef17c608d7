//! Jobs that wait for a model: facts that it reads, and summaries that it writes. What they share is here: the budget of a
//! tenant's day, what was spent of it, and how an attempt ends.

mod extraction;
mod summaries;

use std::sync::Arc;
use std::time::Duration;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{JobId, SessionId, TenantId};
use crate::job::{DEFAULT_PRIORITY, Job, JobState, MAX_ATTEMPTS, NewJob, Outcome};
use crate::page::{MAX_PAGE, PageRequest};
use crate::persona::Persona;
use crate::ports::{Clock, IdGen, Store, TenantBatch, TenantWrite, Work, Write, WriteBatch};
use crate::scope::Scope;
use crate::time::Timestamp;
use crate::usage::{ModelUse, ModelWork, UsageDay};

pub use extraction::{Extracting, ExtractionService};
pub use summaries::{Summarizing, SummaryService};

/// The kind of job that has a model read the messages of a scope.
pub const EXTRACTION_JOB: &str = "extract";
/// The kind of job that has a model write the summaries of a scope.
pub const SUMMARY_JOB: &str = "summarize";

/// Requests of one attempt of a job; what is left then is another job.
const REQUESTS: usize = 4;
/// How long an attempt may take before another worker may try: two requests of the longest kind beyond the time after which
/// it begins no other.
const LEASE: Duration = Duration::from_secs(900);
const LONG: Duration = Duration::from_secs(240);
/// Below the default, and below that of embedding.
const PRIORITY: i16 = DEFAULT_PRIORITY - 2;

/// What a model does in the background.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ModelTask {
    Extraction,
    Summaries,
}

impl ModelTask {
    /// The job that has a model do what waits in a scope.
    pub(super) fn job(self, ids: &dyn IdGen, due_at: Timestamp) -> NewJob {
        let (kind, subject) = match self {
            Self::Extraction => (EXTRACTION_JOB, "messages"),
            Self::Summaries => (SUMMARY_JOB, "summaries"),
        };
        NewJob {
            id: JobId::from_uuid(ids.next()),
            kind: kind.to_owned(),
            subject: subject.to_owned(),
            priority: PRIORITY,
            due_at,
        }
    }

    fn kind(self) -> &'static str {
        match self {
            Self::Extraction => EXTRACTION_JOB,
            Self::Summaries => SUMMARY_JOB,
        }
    }

    fn work(self) -> ModelWork {
        match self {
            Self::Extraction => ModelWork::Extraction,
            Self::Summaries => ModelWork::Summaries,
        }
    }

    /// Why the rest waits for tomorrow.
    fn over_budget(self, daily_tokens: u64) -> String {
        let (doing, rest, setting) = match self {
            Self::Extraction => ("reading facts", "read", "extraction.max_tokens_per_day"),
            Self::Summaries => ("summaries", "written", "summaries.max_tokens_per_day"),
        };
        format!(
            "the tenant's {daily_tokens} tokens of today for {doing} are used up: the rest is {rest} tomorrow \
             (UTC); to allow more from then on, raise `{setting}`"
        )
    }
}

/// What a worker's round of such jobs did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelRound {
    /// Jobs attempted.
    pub jobs: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Jobs that wait for the next day's budget.
    pub over_budget: u64,
    /// Tokens of requests and answers.
    pub tokens: (u64, u64),
    /// Why jobs failed or wait, in sentences for an operator: no content, no names.
    pub problems: Vec<String>,
}

/// How an attempt ended.
enum Ended {
    /// Nothing waits any more, or the scope is gone.
    Done,
    /// There is more.
    More,
    OverBudget,
}

/// Whether what was asked about is given up, so that the rest gets its turn: asked three times, the model refused, or gave
/// no answer that can be read. What a change of the provider or of the settings can mend, waits.
fn is_given_up(job: &Job, error: &Error) -> bool {
    let can_be_mended = error.kind().is_retryable()
        || matches!(error.kind(), ErrorKind::Unauthenticated | ErrorKind::NotFound);
    job.attempts >= MAX_ATTEMPTS && !can_be_mended
}

/// The jobs of one task, over their ports. A tenant may spend `daily_tokens` on it in a day (UTC).
#[derive(Clone)]
struct ModelJobs {
    task: ModelTask,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGen>,
    daily_tokens: u64,
}

impl ModelJobs {
    async fn claim(&self, limit: usize) -> Result<Vec<Job>> {
        self.store.claim_jobs(&[self.task.kind()], self.clock.now(), LEASE, limit).await
    }

    /// Enqueues a job for every scope in which something waits. Returns how many.
    async fn enqueue_waiting(&self) -> Result<u64> {
        let mut enqueued = 0;
        let mut page = PageRequest::first(MAX_PAGE)?;
        loop {
            let scopes = self.store.scopes(&page).await?;
            for (scope, _) in &scopes.items {
                enqueued += u64::from(self.enqueue_if_waiting(scope).await?);
            }
            match scopes.next_cursor {
                Some(cursor) => page = PageRequest::first(MAX_PAGE)?.after(&cursor)?,
                None => return Ok(enqueued),
            }
        }
    }

    async fn enqueue_if_waiting(&self, scope: &Scope) -> Result<bool> {
        let waits = match self.task {
            ModelTask::Extraction => !self.store.unread_messages(scope, 1).await?.is_empty(),
            ModelTask::Summaries => !self.store.awaiting_summaries(scope, 1).await?.is_empty(),
        };
        if !waits {
            return Ok(false);
        }
        let now = self.clock.now();
        let job = Write::EnqueueJob(self.task.job(&*self.ids, now));
        self.store.apply(WriteBatch::new(scope.clone(), now).with(job)).await?;
        Ok(true)
    }

    /// Whether an attempt should leave what is left to another one, which has a whole lease.
    fn has_worked_long(&self, begun: Timestamp) -> bool {
        self.clock.now() >= begun.plus(LONG)
    }

    /// Whether what is said in a session may be shown to a model: not in a context whose memory is off by now.
    async fn remembers(&self, scope: &Scope, session: &SessionId) -> Result<bool> {
        let Some(persona) = Persona::of_session(session) else { return Ok(true) };
        let persona = self.store.persona(scope, persona).await?;
        Ok(persona.is_some_and(|persona| persona.memory && persona.is_active()))
    }

    /// Whether the tenant may spend up to this much. The first request of a day is made in any case, or a small budget
    /// would do nothing, ever.
    async fn allows(&self, tenant: &TenantId, most_tokens: u64) -> Result<bool> {
        let today = UsageDay::of(self.clock.now());
        let used = self.store.model_use(tenant, today, today).await?;
        let of_task = used.iter().filter(|used| used.work == self.task.work());
        let spent = of_task.map(ModelUse::tokens).fold(0, u64::saturating_add);
        Ok(spent == 0 || spent.saturating_add(most_tokens) <= self.daily_tokens)
    }

    /// Counts what a request took, whatever came of it.
    async fn count<T: Sync>(
        &self,
        tenant: &TenantId,
        model: &str,
        work: &Work<T>,
        round: &mut ModelRound,
    ) -> Result<()> {
        if work.calls == 0 {
            return Ok(());
        }
        round.tokens.0 += work.used.input;
        round.tokens.1 += work.used.output;
        let used = ModelUse {
            day: UsageDay::of(self.clock.now()),
            work: self.task.work(),
            model: model.to_owned(),
            calls: work.calls,
            input: work.used.input,
            cached_input: work.used.cached_input,
            output: work.used.output,
            micro_usd: work.micro_usd,
        };
        let batch = TenantBatch::new(tenant.clone()).with(TenantWrite::AddModelUse(used));
        self.store.apply_tenant(batch).await
    }

    async fn ended_before(&self, job: &Job) -> Result<Vec<JobId>> {
        let jobs = self.store.jobs(&job.scope, &PageRequest::first(MAX_PAGE)?).await?;
        let has_ended = |other: &&Job| !matches!(other.state, JobState::Queued | JobState::Running);
        let of_kind =
            jobs.items.iter().filter(|other| other.id != job.id && other.kind == job.kind);
        Ok(of_kind.filter(has_ended).map(|other| other.id).collect())
    }

    /// Ends an attempt, and leaves a job for what is left. A model that fails ends the attempt, not the worker: the job is
    /// tried again later.
    async fn finish(&self, job: &Job, ended: Result<Ended>, round: &mut ModelRound) -> Result<()> {
        let (outcome, next) = match ended {
            Ok(Ended::Done) => (Outcome::Done, None),
            Ok(Ended::More) => (Outcome::Done, Some(self.clock.now())),
            Ok(Ended::OverBudget) => {
                let why = self.task.over_budget(self.daily_tokens);
                round.over_budget += 1;
                round.problems.push(why.clone());
                let tomorrow = UsageDay::of(self.clock.now()).days() + 1;
                (Outcome::Skipped(why), Some(UsageDay::from_days(tomorrow).start()))
            }
            Err(error) => {
                round.failed += 1;
                round.problems.push(error.message().to_owned());
                (Outcome::Failed(error.message().to_owned()), None)
            }
        };
        let finished = matches!(outcome, Outcome::Done);
        let is_tried_again = matches!(outcome, Outcome::Failed(_)) && job.attempts < MAX_ATTEMPTS;
        let mut batch = WriteBatch::new(job.scope.clone(), self.clock.now())
            .with(Write::FinishJob(job.id, outcome));
        // Of a scope's jobs of this kind that have ended, the one is kept that says what is in the way, while it is.
        if !is_tried_again {
            let mut ended = self.ended_before(job).await?;
            ended.extend(finished.then_some(job.id));
            batch.writes.extend(ended.into_iter().map(Write::DropJob));
        }
        if let Some(due_at) = next {
            batch = batch.with(Write::EnqueueJob(self.task.job(&*self.ids, due_at)));
        }
        match self.store.apply(batch).await {
            // The scope was erased meanwhile, and the job with it; or another worker took the job over.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            applied => applied?,
        };
        if finished && next.is_none() {
            // What came while the job was ended found it running, and left none.
            self.enqueue_if_waiting(&job.scope).await?;
        }
        Ok(())
    }
}
