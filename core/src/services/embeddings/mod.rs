//! Meaning: texts as vectors, from the write that brings them to the search that finds them.
//!
//! An instant embedder's vectors go in with the message, in the same batch. A slow one's follow by
//! jobs: what the index lacks is what lies above its watermark, and a job reads that from the
//! outbox, slice by slice, so that a crash loses nothing and repeats little. A model that changes
//! brings another space, whose watermark is 0: the same jobs embed everything anew, and only then
//! does the old space go.

mod reconcile;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::try_join;

use crate::access::Rate;
use crate::document::{NewSnapshot, document_passages};
use crate::error::{Error, ErrorKind, Result};
use crate::fact::NewFact;
use crate::ids::JobId;
use crate::index::{Namespace, UnitKey};
use crate::job::{DEFAULT_PRIORITY, Job, NewJob, Outcome};
use crate::page::{MAX_PAGE, PageRequest};
use crate::ports::{
    Admission, Clock, Embedder, IdGen, RateLimiter, ScopeTotals, Store, VectorHit, VectorIndex,
    VectorItem, VectorSpace, Write, WriteBatch,
};
use crate::scope::Scope;
use crate::services::pause::pause;
use crate::session::PreparedMessage;
use crate::time::Timestamp;

pub use reconcile::Reconciled;

/// The kind of job that embeds what waits in a scope.
pub const EMBED_JOB: &str = "embed";

/// Texts of one slice: what is embedded between two writes.
const SLICE: usize = 256;
/// Texts of an append that are embedded without a pause.
const EMBEDDED_AT_ONCE: usize = 1_024;
/// Slices of one attempt of a job; what is left then is another job.
const SLICES: usize = 64;
/// Texts that wait for an index apart and are searched with it: some milliseconds of embedding.
pub const WAITING_SEARCHED: usize = 512;
/// How long an attempt may take before another worker may try.
const LEASE: Duration = Duration::from_secs(600);
/// How long an erasure may take before the job that it left is due.
const ERASURE_GRACE: Duration = Duration::from_secs(60);
/// Below the default: recall by words works meanwhile.
const PRIORITY: i16 = DEFAULT_PRIORITY - 1;

/// The result of a worker's round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Worked {
    /// Jobs attempted.
    pub jobs: u64,
    /// Texts embedded.
    pub texts: u64,
    /// Attempts that failed; the job's `error` says why.
    pub failed: u64,
    /// Erasures that were carried to what lies beside the store.
    pub forgotten: u64,
}

/// Where the vectors are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Placement {
    /// In the store: those of an instant embedder go in with their message.
    InStore,
    /// Apart from the store: all follow by jobs, and until then an instant embedder searches the
    /// texts that wait in the store.
    Apart,
}

/// How many jobs a tenant may have done, so that none takes the time of all.
#[derive(Clone)]
pub struct JobQuota {
    /// Counts for all workers.
    pub limiter: Arc<dyn RateLimiter>,
    /// Jobs of one tenant.
    pub rate: Rate,
}

/// An embedder, the index that keeps its vectors, and the jobs between them.
#[derive(Clone)]
pub struct EmbeddingService {
    store: Arc<dyn Store>,
    index: Arc<dyn VectorIndex>,
    placement: Placement,
    embedder: Arc<dyn Embedder>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGen>,
    quota: Option<JobQuota>,
}

impl EmbeddingService {
    /// A service over its ports.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        (index, placement): (Arc<dyn VectorIndex>, Placement),
        embedder: Arc<dyn Embedder>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdGen>,
    ) -> Self {
        Self { store, index, placement, embedder, clock, ids, quota: None }
    }

    /// The same, with a quota for its jobs: one that is over it is skipped, and due again later.
    #[must_use]
    pub fn with_quota(self, quota: Option<JobQuota>) -> Self {
        Self { quota, ..self }
    }

    /// The space of the embedder that is in use.
    #[must_use]
    pub fn space(&self) -> &VectorSpace {
        self.embedder.space()
    }

    /// Whether a text takes microseconds and nothing that can be late.
    #[must_use]
    pub fn is_instant(&self) -> bool {
        self.embedder.is_instant()
    }

    /// The vector of a question; `None` when it means nothing to the model.
    ///
    /// # Errors
    /// Those of the embedder.
    pub async fn question(&self, text: &str) -> Result<Option<Vec<f32>>> {
        let vector = self.embed(&[text]).await?.pop().unwrap_or_default();
        Ok(means_something(&vector).then_some(vector))
    }

    /// The nearest texts of a scope to a question's vector, and how near `also` are: of the index, and
    /// of the first [`WAITING_SEARCHED`] texts that wait for it, where that takes no waiting.
    ///
    /// # Errors
    /// Those of the index and the store.
    pub async fn nearest(
        &self,
        scope: &Scope,
        namespace: Namespace,
        question: &[f32],
        limit: usize,
        also: &[UnitKey],
    ) -> Result<Vec<VectorHit>> {
        let space = self.space();
        if self.placement == Placement::InStore || !self.embedder.is_instant() {
            return self.index.search(scope, namespace, space, question, limit, also).await;
        }
        // Read before the search, so that a text that is indexed meanwhile is in both results and missing in none.
        let through = self.index.watermark(scope, namespace, space).await?;
        let (found, waiting) = try_join!(
            self.index.search(scope, namespace, space, question, limit, also),
            self.waiting_near(scope, namespace, through, question),
        )?;
        Ok(merge_hits(found, waiting, limit, also))
    }

    /// How near the texts are that wait above a watermark.
    async fn waiting_near(
        &self,
        scope: &Scope,
        namespace: Namespace,
        through: u64,
        question: &[f32],
    ) -> Result<Vec<VectorHit>> {
        let waiting = self.store.texts_after(scope, namespace, through, WAITING_SEARCHED).await?;
        if waiting.is_empty() {
            return Ok(Vec::new());
        }
        let texts: Vec<&str> = waiting.iter().map(|waits| waits.text.as_str()).collect();
        let vectors = self.embed(&texts).await?;
        let near = waiting.iter().zip(&vectors).filter(|(_, vector)| means_something(vector));
        Ok(near
            .map(|(waits, vector)| VectorHit { key: waits.key, score: closeness(question, vector) })
            .collect())
    }

    /// Prepares messages for one batch: gives them their vectors if that takes no waiting, else the
    /// job that will. Returns the space of the vectors.
    pub(super) async fn prepare(
        &self,
        messages: &mut [PreparedMessage],
        writes: &mut Vec<Write>,
        now: Timestamp,
    ) -> Option<VectorSpace> {
        let with_message = self.placement == Placement::InStore && self.embedder.is_instant();
        if with_message && self.fill(messages).await.is_ok() {
            return Some(self.space().clone());
        }
        writes.push(Write::EnqueueJob(self.job(now)));
        None
    }

    /// As [`Self::prepare`], of a fact that was added directly.
    pub(super) async fn prepare_fact(
        &self,
        fact: &mut NewFact,
        writes: &mut Vec<Write>,
        now: Timestamp,
    ) -> Option<VectorSpace> {
        if self.placement == Placement::InStore
            && self.embedder.is_instant()
            && let Ok(vectors) = self.embed(&[&fact.text]).await
        {
            fact.unit.vector = vectors.into_iter().next().filter(|vector| means_something(vector));
            return Some(self.space().clone());
        }
        writes.push(Write::EnqueueJob(self.job(now)));
        None
    }

    /// As [`Self::prepare`], of a snapshot of a document.
    pub(super) async fn prepare_document(
        &self,
        snapshot: &mut NewSnapshot,
        writes: &mut Vec<Write>,
        now: Timestamp,
    ) -> Option<VectorSpace> {
        let cut = document_passages(&snapshot.text);
        let texts: Vec<String> =
            cut.iter().map(|passage| passage.indexed(&snapshot.text)).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        if self.placement == Placement::InStore
            && self.embedder.is_instant()
            && let Ok(vectors) = self.embed(&texts).await
        {
            for (unit, vector) in snapshot.units.iter_mut().zip(vectors) {
                unit.vector = Some(vector).filter(|vector| means_something(vector));
            }
            return Some(self.space().clone());
        }
        writes.push(Write::EnqueueJob(self.job(now)));
        None
    }

    /// Takes units that the store has replaced out of an index apart from it. One that is away keeps them
    /// until it is compared with the store: what they stand for is not there, so nothing is shown of them.
    pub(super) async fn forget_replaced(&self, scope: &Scope, keys: &[UnitKey]) {
        if self.placement == Placement::Apart {
            let _ = self.index.remove(scope, Namespace::Document, keys).await;
        }
    }

    async fn fill(&self, messages: &mut [PreparedMessage]) -> Result<()> {
        let texts: Vec<&str> = messages
            .iter()
            .flat_map(|message| {
                let facts = message.facts.iter().map(|fact| fact.text.as_str());
                message.passages().chain(facts)
            })
            .collect();
        let mut vectors = Vec::with_capacity(texts.len());
        for texts in texts.chunks(EMBEDDED_AT_ONCE) {
            if !vectors.is_empty() {
                pause().await;
            }
            vectors.extend(self.embed(texts).await?);
        }
        let mut vectors = vectors.into_iter();
        for message in messages {
            let facts = message.facts.iter_mut().map(|fact| &mut fact.unit);
            for unit in message.units.iter_mut().chain(facts) {
                unit.vector = vectors.next().filter(|vector| means_something(vector));
            }
        }
        Ok(())
    }

    /// Embeds; an embedder that answers with another number or other sizes is a defect of it.
    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let vectors = self.embedder.embed(texts).await?;
        let dimensions = self.space().dimensions;
        if vectors.len() != texts.len() || vectors.iter().any(|vector| vector.len() != dimensions) {
            return Err(Error::internal(format!(
                "the embedder `{}` returned {} vectors for {} texts, or vectors without \
                 {dimensions} dimensions",
                self.space().id,
                vectors.len(),
                texts.len()
            )));
        }
        Ok(vectors)
    }

    /// The job that an erasure leaves, so that a crash before it is finished loses no vector of what stays. An instant
    /// embedder catches up within the erasure: a worker that did the same beside it would write to what is erased.
    pub(super) fn job_of_erasure(&self, now: Timestamp) -> NewJob {
        let wait = if self.embedder.is_instant() { ERASURE_GRACE } else { Duration::ZERO };
        NewJob { due_at: now.plus(wait), ..self.job(now) }
    }

    pub(super) fn job(&self, now: Timestamp) -> NewJob {
        NewJob {
            id: JobId::from_uuid(self.ids.next()),
            kind: EMBED_JOB.to_owned(),
            subject: self.space().id.clone(),
            priority: PRIORITY,
            due_at: now,
        }
    }

    /// Embeds up to about `limit` texts of a scope that wait for it. Returns how many; fewer than
    /// asked means that none waits any more.
    ///
    /// # Errors
    /// Those of the store, the embedder and the index; what was embedded before is kept.
    pub async fn catch_up(&self, scope: &Scope, limit: usize) -> Result<usize> {
        self.embedder.ready().await?;
        let totals = self.store.totals(scope).await?;
        let mut done = 0;
        for (namespace, last) in ends(&totals) {
            let mut through = self.index.watermark(scope, namespace, self.space()).await?;
            if through > last && self.is_ahead(scope, namespace, through).await? {
                self.index.forget(scope).await?;
                through = 0;
            }
            while through < last && done < limit {
                let slice = SLICE.min(limit - done);
                let waiting = self.store.texts_after(scope, namespace, through, slice).await?;
                let Some(end) = waiting.last() else {
                    // The text was erased while it waited.
                    self.index.upsert(scope, namespace, self.space(), &[], last).await?;
                    break;
                };
                let before = through;
                through = end.seq;
                let texts: Vec<&str> = waiting.iter().map(|waits| waits.text.as_str()).collect();
                let vectors = self.embed(&texts).await?;
                let items: Vec<VectorItem> = waiting
                    .iter()
                    .zip(vectors)
                    .map(|(waits, vector)| VectorItem { key: waits.key, vector })
                    .collect();
                self.index.upsert(scope, namespace, self.space(), &items, through).await?;
                self.remove_erased(scope, namespace, before, &items).await?;
                done += waiting.len();
            }
        }
        if done > 0 && done < limit {
            self.index.keep_only(scope, self.space()).await?;
        }
        Ok(done)
    }

    /// A text that was erased while it was embedded must not stay in the index.
    async fn remove_erased(
        &self,
        scope: &Scope,
        namespace: Namespace,
        after: u64,
        items: &[VectorItem],
    ) -> Result<()> {
        let held = self.store.texts_after(scope, namespace, after, items.len()).await?;
        let held: HashSet<UnitKey> = held.iter().map(|text| text.key).collect();
        let gone = items.iter().map(|item| item.key).filter(|key| !held.contains(key));
        let gone: Vec<UnitKey> = gone.collect();
        match gone.is_empty() {
            true => Ok(()),
            false => self.index.remove(scope, namespace, &gone).await,
        }
    }

    /// Enqueues a job for every scope in which texts wait, such as after the embedder was changed.
    /// Returns how many; none while the embedder is not ready, because other jobs must not wait for it.
    ///
    /// # Errors
    /// Those of the store and the index.
    pub async fn enqueue_behind(&self) -> Result<u64> {
        if self.embedder.ready().await.is_err() {
            return Ok(0);
        }
        let mut enqueued = 0;
        let mut page = PageRequest::first(MAX_PAGE)?;
        loop {
            let scopes = self.store.scopes(&page).await?;
            for (scope, totals) in &scopes.items {
                if self.behind(scope, totals).await? > 0 {
                    let now = self.clock.now();
                    let batch = WriteBatch::new(scope.clone(), now);
                    self.store.apply(batch.with(Write::EnqueueJob(self.job(now)))).await?;
                    enqueued += 1;
                }
            }
            match scopes.next_cursor {
                Some(cursor) => page = PageRequest::first(MAX_PAGE)?.after(&cursor)?,
                None => return Ok(enqueued),
            }
        }
    }

    /// How many messages, facts and snapshots of a scope wait to be embedded.
    ///
    /// # Errors
    /// Those of the store and the index, and of an embedder that is not ready.
    pub async fn waiting(&self, scope: &Scope) -> Result<u64> {
        self.embedder.ready().await?;
        let totals = self.store.totals(scope).await?;
        self.behind(scope, &totals).await
    }

    async fn behind(&self, scope: &Scope, totals: &ScopeTotals) -> Result<u64> {
        let mut waiting = 0;
        for (namespace, last) in ends(totals) {
            let through = self.index.watermark(scope, namespace, self.space()).await?;
            // An index that is ahead of the store was filled from another store, so none of it counts.
            waiting += if through > last { last } else { last - through };
        }
        Ok(waiting)
    }

    /// Whether an index knows more than the store has, and not only more than was read of the store
    /// before: it is another store's, or the store was restored.
    async fn is_ahead(&self, scope: &Scope, namespace: Namespace, through: u64) -> Result<bool> {
        let totals = self.store.totals(scope).await?;
        let last = ends(&totals).into_iter().find(|(of, _)| *of == namespace);
        Ok(last.is_some_and(|(_, last)| through > last))
    }

    /// Embeds a slice of what waits, if that takes milliseconds: for programs without a worker, before
    /// they recall. Slow embedders are left to workers.
    ///
    /// # Errors
    /// As [`Self::catch_up`].
    pub async fn catch_up_if_instant(&self, scope: &Scope) -> Result<()> {
        if self.embedder.is_instant() && self.waiting(scope).await? > 0 {
            self.catch_up(scope, SLICE * SLICES).await?;
        }
        Ok(())
    }

    /// Attempts up to `limit` jobs that are due. An embedder that fails ends the attempt, not the
    /// worker: the job is tried again later.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn work(&self, limit: usize) -> Result<Worked> {
        let now = self.clock.now();
        let jobs = self.store.claim_jobs(&[EMBED_JOB], now, LEASE, limit).await?;
        let mut worked = Worked::default();
        for job in jobs {
            worked.jobs += 1;
            worked.texts += self.attempt(&job).await?.unwrap_or_else(|| {
                worked.failed += 1;
                0
            });
        }
        Ok(worked)
    }

    /// How long a job has to wait for its tenant's quota. Without what counts, none waits.
    async fn over_quota(&self, job: &Job) -> Option<Duration> {
        let quota = self.quota.as_ref()?;
        let key = format!("jobs {}", job.scope.tenant);
        match quota.limiter.admit(&key, quota.rate).await {
            Ok(Admission::Refused { retry_after }) => Some(retry_after),
            Ok(Admission::Admitted { .. }) | Err(_) => None,
        }
    }

    /// Texts embedded, or `None` when the attempt failed.
    async fn attempt(&self, job: &Job) -> Result<Option<u64>> {
        let most = SLICE * SLICES;
        if let Some(wait) = self.over_quota(job).await {
            let now = self.clock.now();
            let why =
                "the tenant's job quota is used up: the work is queued again for later".to_owned();
            let later = NewJob { due_at: now.plus(wait), ..self.job(now) };
            let batch = WriteBatch::new(job.scope.clone(), now)
                .with(Write::FinishJob(job.id, Outcome::Skipped(why)))
                .with(Write::EnqueueJob(later));
            return self.store.apply(batch).await.map(|_| Some(0));
        }
        let (outcome, texts, more) = match self.catch_up(&job.scope, most).await {
            Ok(texts) => (Outcome::Done, Some(texts as u64), texts >= most),
            Err(error) => (Outcome::Failed(error.to_string()), None, false),
        };
        let now = self.clock.now();
        let mut batch =
            WriteBatch::new(job.scope.clone(), now).with(Write::FinishJob(job.id, outcome));
        if more {
            batch = batch.with(Write::EnqueueJob(self.job(now)));
        }
        match self.store.apply(batch).await {
            // The scope was erased meanwhile, and the job with it; or another worker took the job over.
            Err(error) if error.kind() == ErrorKind::NotFound => {
                self.leave_erased(&job.scope).await?;
                Ok(texts)
            }
            applied => applied.map(|_| texts),
        }
    }

    /// Takes back what the index was told of a scope after it was erased: a store that is its own index has the
    /// scope's name again then.
    async fn leave_erased(&self, scope: &Scope) -> Result<()> {
        if self.store.totals(scope).await? != ScopeTotals::default() {
            return Ok(());
        }
        self.index.forget(scope).await?;
        let batch = WriteBatch::new(scope.clone(), self.clock.now()).with(Write::DropScope);
        self.store.apply(batch).await?;
        self.store.purge().await
    }
}

/// Where each namespace of a scope ends.
fn ends(totals: &ScopeTotals) -> [(Namespace, u64); 3] {
    [
        (Namespace::Message, totals.last_seq),
        (Namespace::Fact, totals.facts),
        (Namespace::Document, totals.documents),
    ]
}

/// What the index found and what is near of the texts that wait, the closest first: the nearest
/// `limit`, and those of `also`.
fn merge_hits(
    mut found: Vec<VectorHit>,
    waiting: Vec<VectorHit>,
    limit: usize,
    also: &[UnitKey],
) -> Vec<VectorHit> {
    if waiting.is_empty() {
        return found;
    }
    let known: HashSet<UnitKey> = found.iter().map(|hit| hit.key).collect();
    found.extend(waiting.into_iter().filter(|hit| !known.contains(&hit.key)));
    found.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.key.cmp(&b.key)));
    let also: HashSet<UnitKey> = also.iter().copied().collect();
    let mut at = 0;
    found.retain(|hit| {
        at += 1;
        at <= limit || also.contains(&hit.key)
    });
    found
}

/// The cosine of two vectors, as an index tells it: 0 to 1.
fn closeness(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let lengths = (dot(a, a) * dot(b, b)).sqrt();
    (0.5 + dot(a, b) / lengths.max(f32::MIN_POSITIVE) / 2.0).clamp(0.0, 1.0)
}

fn means_something(vector: &[f32]) -> bool {
    vector.iter().any(|value| *value != 0.0)
}
