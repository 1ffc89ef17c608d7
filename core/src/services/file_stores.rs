//! Stores of files that live for one call, and the journal by which a crash leaves none behind.
//!
//! What is searched beside a prompt is put into stores of [`FileSearch`], searched by the model, and deleted when the call ends.
//! Stores on a server outlive a process that crashes. So before the first one is created, a job is enqueued whose subject is
//! the label of all stores of the call. While the call runs, the job is put off again and again ([`FileStoreCall::renew`]); once
//! its stores are deleted, the job is dropped. A job that becomes due is of a call that nobody runs any more, and deletes what
//! bears its label. Stores in this process end with it and need no journal.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::try_join_all;

use crate::error::{Error, ErrorKind, Result};
use crate::files::fuse;
use crate::ids::JobId;
use crate::job::{DEFAULT_PRIORITY, Job, NewJob, Outcome, backoff};
use crate::ports::{
    Clock, FileHit, FileSearch, IdGen, SearchableFile, SecretGen, Store, Write, WriteBatch,
    check_files,
};
use crate::scope::Scope;
use crate::time::Timestamp;

/// How long the stores of a call stay after the last [`FileStoreCall::renew`].
pub const FILE_STORES_LEASE: Duration = Duration::from_secs(120);
/// How often a call that runs renews: a lease outlasts two that fail.
pub const RENEW_FILE_STORES: Duration = Duration::from_secs(40);

/// How long deleting may take before another worker may try.
const DELETING: Duration = Duration::from_secs(600);
/// A label that no call has.
const NOBODYS: &str = "nobody-";
/// Bytes of a label that nobody can foresee.
const LABEL_BYTES: usize = 16;

/// Stores of files that live for one call.
#[derive(Clone)]
pub struct FileStoreService {
    search: Arc<dyn FileSearch>,
    /// The kind of the jobs that delete what a crash left; `None` for stores that end with the process.
    journal: Option<&'static str>,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGen>,
    secrets: Arc<dyn SecretGen>,
    /// Most bytes of all calls at once.
    max_bytes: u64,
    held: Arc<AtomicU64>,
}

/// What a [`FileStoreService`] works with.
pub struct FileStorePorts {
    /// Where files are searched.
    pub search: Arc<dyn FileSearch>,
    /// The kind of the jobs that delete what a crash left: one for each server that may hold stores, so that no job looks for
    /// them on another. `None` for stores that end with the process.
    pub journal: Option<&'static str>,
    /// The store of the jobs.
    pub store: Arc<dyn Store>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Ids of jobs.
    pub ids: Arc<dyn IdGen>,
    /// What labels are made from.
    pub secrets: Arc<dyn SecretGen>,
    /// Most bytes of names and texts that the stores of this process may hold at once.
    pub max_bytes: u64,
}

/// What a round of jobs deleted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DroppedFileStores {
    /// Jobs attempted.
    pub jobs: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Stores that were deleted.
    pub stores: u64,
}

impl FileStoreService {
    /// Over its ports.
    #[must_use]
    pub fn new(ports: FileStorePorts) -> Self {
        let FileStorePorts { search, journal, store, clock, ids, secrets, max_bytes } = ports;
        Self { search, journal, store, clock, ids, secrets, max_bytes, held: Arc::default() }
    }

    /// Most bytes of names and texts that the stores of this process hold at once.
    #[must_use]
    pub fn max_bytes(&self) -> u64 {
        self.max_bytes
    }

    /// Asks the place of the stores for some that nobody has: whether it is there, and lets us in.
    ///
    /// # Errors
    /// Those of [`FileSearch::delete_labelled`].
    pub async fn check(&self) -> Result<()> {
        self.search.delete_labelled(NOBODYS).await.map(drop)
    }

    /// Begins a call of a scope: counts the bytes of its files, and makes the label of its stores. Nothing is created yet. Files
    /// without any text are left out, as nothing in them can be found.
    ///
    /// # Errors
    /// `InvalidInput` for a name that is empty, longer than 500 bytes, or there twice, and for files that alone have more bytes
    /// than the limit; `RateLimited` where they have with those of the calls that run.
    pub fn begin(&self, scope: &Scope, mut files: Vec<SearchableFile>) -> Result<FileStoreCall> {
        check_files(&files, [])?;
        files.retain(|file| !file.text.trim().is_empty());
        let bytes = files.iter().map(|file| (file.name.len() + file.text.len()) as u64).sum();
        let reserved = self.reserve(bytes)?;
        let mut label = String::from("call-");
        for byte in &self.secrets.secret()[..LABEL_BYTES] {
            let _ = write!(label, "{byte:02x}");
        }
        let (service, scope) = (self.clone(), scope.clone());
        Ok(FileStoreCall { service, scope, label, files, reserved, jobs: Mutex::default() })
    }

    /// The passages that are nearest to a question, best first, at most `limit` (1 to 50), of all stores of a call. Those of
    /// several stores take turns by rank, because their scores do not compare.
    ///
    /// # Errors
    /// Those of [`FileSearch::search`].
    pub async fn search(
        &self,
        stores: &[String],
        question: &str,
        limit: usize,
    ) -> Result<Vec<FileHit>> {
        if let [store] = stores {
            return self.search.search(store, question, limit).await;
        }
        let asked = stores.iter().map(|store| self.search.search(store, question, limit));
        let found = try_join_all(asked).await?;
        let keys = |(store, hits): (usize, &Vec<FileHit>)| -> Vec<(usize, usize)> {
            (0..hits.len()).map(|hit| (store, hit)).collect()
        };
        let lists: Vec<_> = found.iter().enumerate().map(keys).collect();
        let best = fuse(&lists).into_iter().take(limit);
        let hit = |((store, hit), score): ((usize, usize), f32)| {
            // The first of one store is as good as the first of all.
            let score = (score * stores.len() as f32).min(1.0);
            FileHit { score, ..found[store][hit].clone() }
        };
        Ok(best.map(hit).collect())
    }

    fn reserve(&self, bytes: u64) -> Result<Reserved> {
        let most = self.max_bytes;
        if bytes > most {
            return Err(Error::new(
                ErrorKind::InvalidInput,
                format!(
                    "the files to search have {bytes} bytes, and `files.max_search_bytes` allows {most}: name fewer files or \
                     folders, or raise the setting"
                ),
            ));
        }
        let add = |held: u64| held.checked_add(bytes).filter(|total| *total <= most);
        match self.held.fetch_update(Ordering::AcqRel, Ordering::Acquire, add) {
            Ok(_) => Ok(Reserved { held: Arc::clone(&self.held), bytes }),
            Err(held) => Err(Error::new(
                ErrorKind::RateLimited,
                format!(
                    "the files to search have {bytes} bytes, and other calls hold {held} of the {most} that \
                     `files.max_search_bytes` allows: retry when they have ended, or raise the setting"
                ),
            )),
        }
    }

    /// Does up to `limit` jobs that are due: deletes the stores of calls that ended without deleting them. A server that is away
    /// is tried again later, without limit.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn work(&self, limit: usize) -> Result<DroppedFileStores> {
        let mut done = DroppedFileStores::default();
        let Some(kind) = self.journal else { return Ok(done) };
        let jobs = self.store.claim_jobs(&[kind], self.clock.now(), DELETING, limit).await?;
        for job in jobs {
            done.jobs += 1;
            match self.attempt(&job).await? {
                Some(stores) => done.stores += stores,
                None => done.failed += 1,
            }
        }
        Ok(done)
    }

    /// Deletes what bears the label of a job. `None` where that has to be done again.
    async fn attempt(&self, job: &Job) -> Result<Option<u64>> {
        let deleted = self.search.delete_labelled(&job.subject).await;
        let batch = WriteBatch::new(job.scope.clone(), self.clock.now());
        match deleted {
            Ok(stores) => {
                self.store.apply(batch.with(Write::DropJob(job.id))).await?;
                Ok(Some(stores))
            }
            Err(error) => {
                let again = self.clock.now().plus(backoff(u32::MAX));
                let batch = batch
                    .with(Write::FinishJob(job.id, Outcome::Skipped(error.to_string())))
                    .with(Write::EnqueueJob(self.job(&job.kind, &job.subject, again)));
                match self.store.apply(batch).await {
                    // The call runs after all and has put off its job.
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
                    applied => applied.map(|_| None),
                }
            }
        }
    }

    fn job(&self, kind: &str, label: &str, due_at: Timestamp) -> NewJob {
        NewJob {
            id: JobId::from_uuid(self.ids.next()),
            kind: kind.to_owned(),
            subject: label.to_owned(),
            priority: DEFAULT_PRIORITY,
            due_at,
        }
    }
}

/// The stores of one call. Whoever drives it calls [`Self::renew`] first and from time to time, and [`Self::delete`] in any case.
pub struct FileStoreCall {
    service: FileStoreService,
    scope: Scope,
    label: String,
    files: Vec<SearchableFile>,
    reserved: Reserved,
    /// The job that stands for the stores; more than one while it is not known whether the last change of it came through.
    jobs: Mutex<Vec<JobId>>,
}

impl FileStoreCall {
    /// Bytes of the names and texts that are searched.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.reserved.bytes
    }

    /// Takes the files, divided by stores: each holds [`FileSearch::max_files`] at most. None without files.
    #[must_use]
    pub fn take_files(&mut self) -> Vec<Vec<SearchableFile>> {
        let most = self.service.search.max_files().max(1);
        let mut rest = std::mem::take(&mut self.files).into_iter().peekable();
        let mut divided = Vec::new();
        while rest.peek().is_some() {
            divided.push(rest.by_ref().take(most).collect());
        }
        divided
    }

    /// Writes the label down where stores outlive the process, or that they are still in use. They are deleted
    /// [`FILE_STORES_LEASE`] after the last time.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn renew(&self) -> Result<()> {
        let due_at = self.service.clock.now().plus(FILE_STORES_LEASE);
        self.put_job(due_at).await
    }

    /// Creates a store and returns its id. It must be let run to its end: of a request that was given up, nobody knows whether
    /// it comes through later.
    ///
    /// # Errors
    /// Those of [`FileSearch::create`].
    pub async fn create(&self) -> Result<String> {
        self.service.search.create(&self.label).await
    }

    /// Adds files to a store.
    ///
    /// # Errors
    /// Those of [`FileSearch::add`].
    pub async fn add(&self, store: &str, files: Vec<SearchableFile>) -> Result<()> {
        self.service.search.add(store, files).await
    }

    /// Deletes the stores of the call: those of these ids, or, where adding files was not completed, all that its label finds.
    /// What cannot be deleted now is left to a job.
    ///
    /// # Errors
    /// Those of the search and the store.
    pub async fn delete(self, completed: Option<&[String]>) -> Result<()> {
        let search = &self.service.search;
        let deleted = match completed {
            Some(stores) => try_join_all(stores.iter().map(|id| search.delete(id))).await.map(drop),
            None => search.delete_labelled(&self.label).await.map(drop),
        };
        match deleted {
            Ok(()) => self.drop_jobs().await,
            Err(error) => {
                self.put_job(self.service.clock.now()).await?;
                Err(error)
            }
        }
    }

    async fn put_job(&self, due_at: Timestamp) -> Result<()> {
        let service = &self.service;
        let Some(kind) = service.journal else { return Ok(()) };
        let job = service.job(kind, &self.label, due_at);
        let (id, before) = (job.id, self.jobs().clone());
        self.jobs().push(id);
        // A queued job keeps its time, so another takes its place.
        let mut batch = WriteBatch::new(self.scope.clone(), service.clock.now());
        batch.writes.extend(before.into_iter().map(Write::DropJob));
        service.store.apply(batch.with(Write::EnqueueJob(job))).await?;
        *self.jobs() = vec![id];
        Ok(())
    }

    async fn drop_jobs(&self) -> Result<()> {
        let jobs = self.jobs().clone();
        if jobs.is_empty() {
            return Ok(());
        }
        let mut batch = WriteBatch::new(self.scope.clone(), self.service.clock.now());
        batch.writes.extend(jobs.into_iter().map(Write::DropJob));
        self.service.store.apply(batch).await.map(drop)
    }

    fn jobs(&self) -> MutexGuard<'_, Vec<JobId>> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes that count against the limit until it is dropped.
struct Reserved {
    held: Arc<AtomicU64>,
    bytes: u64,
}

impl Drop for Reserved {
    fn drop(&mut self) {
        self.held.fetch_sub(self.bytes, Ordering::AcqRel);
    }
}
