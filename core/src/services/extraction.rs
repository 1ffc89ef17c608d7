//! Facts that a model reads in messages of the user: by jobs, within a budget, and none without evidence.
//!
//! An append marks a message as unread and leaves a job; it never waits for a model. A job takes the unread messages of
//! one session after the other, shows the model their own words, and writes what it finds together with the mark that
//! they are read, so that whoever is ended in between, or comes second, writes nothing twice.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use crate::access::Actor;
use crate::error::{Error, ErrorKind, Result};
use crate::fact::{Extracted, Find, NewFact, OwnWords, Refused, Rejections, index_unit};
use crate::ids::{FactId, JobId, MessageId, TenantId};
use crate::job::{DEFAULT_PRIORITY, Job, MAX_ATTEMPTS, NewJob, Outcome};
use crate::page::{MAX_PAGE, PageRequest};
use crate::ports::{
    Clock, FactReader, IdGen, Precondition, Store, TenantBatch, TenantWrite, Work, Write,
    WriteBatch,
};
use crate::scope::Scope;
use crate::services::embeddings::EmbeddingService;
use crate::session::Message;
use crate::usage::{ModelUse, ModelWork, UsageDay};

/// The kind of job that has a model read the messages of a scope.
pub const EXTRACTION_JOB: &str = "extract";

/// Messages of one request to the model, and the characters with which it has enough.
const MESSAGES: usize = 20;
const CHARS: usize = 12_000;
/// Requests of one attempt of a job; what is left then is another job.
const REQUESTS: usize = 4;
/// How long an attempt may take before another worker may try.
const LEASE: Duration = Duration::from_secs(600);
/// Below the default, and below that of embedding.
const PRIORITY: i16 = DEFAULT_PRIORITY - 2;
/// How often what was found is applied again when another writer came first.
const ATTEMPTS: usize = 4;

/// The job that has a model read what is unread.
pub(super) fn extraction_job(ids: &dyn IdGen, due_at: crate::time::Timestamp) -> NewJob {
    NewJob {
        id: JobId::from_uuid(ids.next()),
        kind: EXTRACTION_JOB.to_owned(),
        subject: "messages".to_owned(),
        priority: PRIORITY,
        due_at,
    }
}

/// What a worker's round did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extracting {
    /// Jobs attempted.
    pub jobs: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Jobs that wait for the next day's budget.
    pub over_budget: u64,
    /// Messages read, those without words of the user's own included.
    pub messages: u64,
    /// Messages that are given up, because the model's answers could not be read.
    pub given_up: u64,
    /// Facts found with evidence.
    pub facts: u64,
    /// Finds that are no facts, by why.
    pub refused: BTreeMap<Refused, u64>,
    /// Tokens of requests and answers.
    pub tokens: (u64, u64),
    /// Why jobs failed or wait, in sentences for an operator: no content, no names.
    pub problems: Vec<String>,
}

/// How an attempt ended.
enum Ended {
    /// Nothing is unread any more, or the scope is gone.
    Done,
    /// There is more.
    More,
    OverBudget,
}

/// A model that reads facts, and the jobs for it.
#[derive(Clone)]
pub struct ExtractionService {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGen>,
    embeddings: Option<EmbeddingService>,
    rejections: Rejections,
    reader: Arc<dyn FactReader>,
    daily_tokens: u64,
}

impl ExtractionService {
    /// A service over its ports. A tenant may spend `daily_tokens` on it in a day (UTC).
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        (clock, ids): (Arc<dyn Clock>, Arc<dyn IdGen>),
        embeddings: Option<EmbeddingService>,
        rejections: Rejections,
        (reader, daily_tokens): (Arc<dyn FactReader>, u64),
    ) -> Self {
        Self { store, clock, ids, embeddings, rejections, reader, daily_tokens }
    }

    /// Attempts up to `limit` jobs that are due. A model that fails ends the attempt, not the worker: the job is tried
    /// again later.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn work(&self, limit: usize) -> Result<Extracting> {
        let mut done = Extracting::default();
        let jobs = self.store.claim_jobs(&[EXTRACTION_JOB], self.clock.now(), LEASE, limit).await?;
        for job in jobs {
            done.jobs += 1;
            self.attempt(&job, &mut done).await?;
        }
        Ok(done)
    }

    /// Enqueues a job for every scope in which messages are unread, such as after a provider was away. Returns how many.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn enqueue_unread(&self) -> Result<u64> {
        let mut enqueued = 0;
        let mut page = PageRequest::first(MAX_PAGE)?;
        loop {
            let scopes = self.store.scopes(&page).await?;
            for (scope, _) in &scopes.items {
                enqueued += u64::from(self.enqueue_if_unread(scope).await?);
            }
            match scopes.next_cursor {
                Some(cursor) => page = PageRequest::first(MAX_PAGE)?.after(&cursor)?,
                None => return Ok(enqueued),
            }
        }
    }

    async fn enqueue_if_unread(&self, scope: &Scope) -> Result<bool> {
        if self.store.unread_messages(scope, 1).await?.is_empty() {
            return Ok(false);
        }
        let now = self.clock.now();
        let job = Write::EnqueueJob(extraction_job(&*self.ids, now));
        self.store.apply(WriteBatch::new(scope.clone(), now).with(job)).await?;
        Ok(true)
    }

    async fn attempt(&self, job: &Job, done: &mut Extracting) -> Result<()> {
        let (outcome, next) = match self.read_unread(job, done).await {
            Ok(Ended::Done) => (Outcome::Done, None),
            Ok(Ended::More) => (Outcome::Done, Some(self.clock.now())),
            Ok(Ended::OverBudget) => {
                let why = format!(
                    "the tenant's {} tokens of today for reading facts are used up: the rest is \
                     read tomorrow (UTC); to allow more, raise `extraction.max_tokens_per_day`",
                    self.daily_tokens
                );
                done.over_budget += 1;
                done.problems.push(why.clone());
                let tomorrow = UsageDay::of(self.clock.now()).days() + 1;
                (Outcome::Skipped(why), Some(UsageDay::from_days(tomorrow).start()))
            }
            Err(error) => {
                done.failed += 1;
                done.problems.push(error.message().to_owned());
                (Outcome::Failed(error.message().to_owned()), None)
            }
        };
        let finished = matches!(outcome, Outcome::Done);
        let mut batch = WriteBatch::new(job.scope.clone(), self.clock.now())
            .with(Write::FinishJob(job.id, outcome));
        if let Some(due_at) = next {
            batch = batch.with(Write::EnqueueJob(extraction_job(&*self.ids, due_at)));
        }
        match self.store.apply(batch).await {
            // The scope was erased meanwhile, and the job with it; or another worker took the job over.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            applied => applied?,
        };
        if finished && next.is_none() {
            // A message that came while the job was ended found it running, and left none.
            self.enqueue_if_unread(&job.scope).await?;
        }
        Ok(())
    }

    /// Reads what is unread in the job's scope.
    async fn read_unread(&self, job: &Job, done: &mut Extracting) -> Result<Ended> {
        let scope = &job.scope;
        for _ in 0..REQUESTS {
            let Some(erasures) = self.store.erasures(scope).await? else { return Ok(Ended::Done) };
            let unread = self.store.unread_messages(scope, MESSAGES).await?;
            let Some(first) = unread.first() else { return Ok(Ended::Done) };
            let session = first.session.clone();
            let mut messages: Vec<(Message, Option<OwnWords>)> = Vec::new();
            let mut chars = 0;
            for message in unread.into_iter().filter(|message| message.session == session) {
                let own = OwnWords::of(&message.content);
                chars += own.as_ref().map_or(0, |own| own.text().len());
                if chars > CHARS && !messages.is_empty() {
                    break;
                }
                messages.push((message, own));
            }
            let texts: Vec<String> =
                messages.iter().filter_map(|(_, own)| own.as_ref().map(OwnWords::text)).collect();
            let finds = if texts.is_empty() {
                Vec::new()
            } else {
                let spent = self.spent_today(&scope.tenant).await?;
                let after = spent.saturating_add(self.reader.most_tokens(&texts));
                // The first request of a day is made in any case, or a small budget would read nothing, ever.
                if spent > 0 && after > self.daily_tokens {
                    return Ok(Ended::OverBudget);
                }
                let work = self.reader.read(&texts).await;
                self.count(&scope.tenant, &work, done).await?;
                match work.result {
                    // Asked three times, it gave no answer that can be read: the next messages get their turn.
                    Err(error)
                        if error.kind() == ErrorKind::Declined && job.attempts >= MAX_ATTEMPTS =>
                    {
                        done.given_up += messages.len() as u64;
                        self.write(scope, &messages, &[], erasures, done).await?;
                        return Err(error);
                    }
                    found => found?,
                }
            };
            done.messages += messages.len() as u64;
            self.write(scope, &messages, &finds, erasures, done).await?;
        }
        Ok(Ended::More)
    }

    /// What the tenant spent on reading facts today.
    async fn spent_today(&self, tenant: &TenantId) -> Result<u64> {
        let today = UsageDay::of(self.clock.now());
        let used = self.store.model_use(tenant, today, today).await?;
        let reading = used.iter().filter(|used| used.work == ModelWork::Extraction);
        Ok(reading.map(ModelUse::tokens).fold(0, u64::saturating_add))
    }

    /// Counts what a request took, whatever came of it.
    async fn count(
        &self,
        tenant: &TenantId,
        work: &Work<Vec<Find>>,
        done: &mut Extracting,
    ) -> Result<()> {
        if work.calls == 0 {
            return Ok(());
        }
        done.tokens.0 += work.used.input;
        done.tokens.1 += work.used.output;
        let used = ModelUse {
            day: UsageDay::of(self.clock.now()),
            work: ModelWork::Extraction,
            model: self.reader.model().to_owned(),
            calls: work.calls,
            input: work.used.input,
            cached_input: work.used.cached_input,
            output: work.used.output,
            micro_usd: work.micro_usd,
        };
        let batch = TenantBatch::new(tenant.clone()).with(TenantWrite::AddModelUse(used));
        self.store.apply_tenant(batch).await
    }

    /// Writes the facts of messages, which are read from then on. What was erased meanwhile states nothing, and of two
    /// workers the first one writes.
    async fn write(
        &self,
        scope: &Scope,
        messages: &[(Message, Option<OwnWords>)],
        finds: &[Find],
        mut erasures: u64,
        done: &mut Extracting,
    ) -> Result<()> {
        let now = self.clock.now();
        let mut batch = WriteBatch::new(scope.clone(), now);
        let ids: Vec<MessageId> = messages.iter().map(|(message, _)| message.id).collect();
        batch = batch.with(Write::MarkRead(ids));
        let shown = messages.iter().filter_map(|(message, own)| Some((message, own.as_ref()?)));
        let mut count = |refused| *done.refused.entry(refused).or_default() += 1;
        let known = shown.clone().count();
        finds.iter().filter(|find| !(1..=known).contains(&find.message)).for_each(|_| {
            count(Refused::Invalid);
        });
        let mut facts = 0;
        for (nth, (message, own)) in (1..).zip(shown) {
            let of_message = finds.iter().filter(|find| find.message == nth);
            for found in own.facts(of_message, &mut count) {
                let mut fact = self.fact(scope, message, found);
                if self.is_rejected_everywhere(scope, &fact).await? {
                    continue;
                }
                facts += 1;
                if let Some(embeddings) = &self.embeddings {
                    let mut beside = Vec::new();
                    batch.space = embeddings.prepare_fact(&mut fact, &mut beside, now).await;
                    batch.writes.extend(beside);
                }
                batch = batch.with(Write::StateFact(Box::new(fact)));
            }
        }
        for attempt in 1.. {
            let guarded = batch.clone().with_precondition(Precondition::IfErasures(erasures));
            match self.store.apply(guarded).await {
                Err(error) if error.is_lost_race() => match self.store.erasures(scope).await? {
                    // Something was erased: what it was, the store sees.
                    Some(now) if now != erasures && attempt < ATTEMPTS => erasures = now,
                    Some(now) if now != erasures => return Err(error),
                    // Another worker was first, or the scope is gone.
                    _ => return Ok(()),
                },
                applied => {
                    applied?;
                    done.facts += facts;
                    return Ok(());
                }
            }
        }
        Err(Error::internal("facts were neither stored nor refused"))
    }

    fn fact(&self, scope: &Scope, message: &Message, found: Extracted) -> NewFact {
        let mut fact = NewFact {
            id: FactId::from_uuid(self.ids.next()),
            unit: index_unit(&found.text, &found.tags),
            kind: found.kind,
            text: found.text,
            subject: found.subject,
            attribute: found.attribute,
            value: found.value,
            tags: found.tags,
            observed_at: message.created_at,
            refers: None,
            extracted_by: Some(self.reader.name().to_owned()),
            actor: Actor::Extractor,
            stated_in: Some(message.id),
            rejection: Vec::new(),
            rejects: false,
        };
        fact.rejection = self.rejections.keys(scope, &fact);
        fact
    }

    /// Whether the user of a workspace rejected it for all workspaces; what they rejected here, the store knows.
    async fn is_rejected_everywhere(&self, scope: &Scope, fact: &NewFact) -> Result<bool> {
        if scope.workspace.is_none() {
            return Ok(false);
        }
        let of_user = scope.without_workspace();
        let keys = self.rejections.keys(&of_user, fact);
        self.store.is_rejected(&of_user, &keys).await
    }
}
