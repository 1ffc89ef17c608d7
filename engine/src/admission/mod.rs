//! Admission control: so many requests are at work, as many again wait, and more are refused at once. Of both, one client
//! has no more than its share, so that no client keeps the others out.

mod cpu;
mod memory;
mod shares;
#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use throughline_core::{Error, ErrorKind, Result};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use cpu::CpuPlaces;
pub use cpu::cpu_places;
pub use memory::{AnswerMemory, BodyMemory, MemoryBudget, WorkMemory};
pub use shares::ClientId;
use shares::Shares;

/// How many requests there may be, and for how long.
#[derive(Debug, Clone, Copy)]
pub struct AdmissionLimits {
    /// Requests at work; as many again wait.
    pub at_work: usize,
    /// Those of one key.
    pub of_key: usize,
    /// Requests that wait for a model or a client instead, as long as that takes. One key has half of them.
    pub open: usize,
    /// The time of one, its wait included.
    pub time: Duration,
}

/// The places of a service, whatever the interface.
#[derive(Clone)]
pub struct AdmissionControl {
    at_work: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    /// Of the places at work.
    share_at_work: Arc<Shares>,
    /// Of the places at work and waiting.
    share: Arc<Shares>,
    /// Requests that wait for a model or a client.
    open: Arc<Semaphore>,
    share_open: Arc<Shares>,
    cpu: CpuPlaces,
    limit: Duration,
    /// Work that is seen through.
    begun: TaskTracker,
}

/// A place among the requests, given back when it is dropped.
pub struct Place {
    _of_all: OwnedSemaphorePermit,
    _of_client: OwnedSemaphorePermit,
}

impl AdmissionControl {
    /// Places for so many requests.
    pub fn new(limits: AdmissionLimits) -> Self {
        let AdmissionLimits { at_work, of_key, open, time } = limits;
        let of_key = of_key.min(at_work);
        Self {
            at_work: Arc::new(Semaphore::new(at_work)),
            waiting: Arc::new(Semaphore::new(2 * at_work)),
            share_at_work: Arc::new(Shares::new(at_work, of_key)),
            share: Arc::new(Shares::new(2 * at_work, 2 * of_key)),
            open: Arc::new(Semaphore::new(open)),
            share_open: Arc::new(Shares::new(open, (open / 2).max(1))),
            cpu: CpuPlaces::new(cpu_places()),
            limit: time,
            begun: TaskTracker::new(),
        }
    }

    /// As many as anyone wants, for as long as it takes: for a process with one caller.
    pub fn boundless() -> Self {
        let most = Semaphore::MAX_PERMITS / 2;
        let limits =
            AdmissionLimits { at_work: most, of_key: most, open: most, time: Duration::MAX };
        Self { cpu: CpuPlaces::boundless(), ..Self::new(limits) }
    }

    /// A place among those that are here, where there is one for this client.
    fn enter(&self, client: ClientId) -> Result<Place> {
        let of_all = Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| full())?;
        let of_client = self.share.of(client).try_acquire_owned().map_err(|_| {
            Error::new(
                ErrorKind::RateLimited,
                format!(
                    "this key has {} requests at once, which is its limit: retry when some of \
                     them are answered",
                    self.share.of_key()
                ),
            )
        })?;
        Ok(Place { _of_all: of_all, _of_client: of_client })
    }

    /// A place for a request that waits for a model or a client: it takes none at work, but keeps its connection.
    ///
    /// # Errors
    /// `RateLimited` where the client has too many of them; `Unavailable` where there are too many.
    pub fn open(&self, client: ClientId) -> Result<Place> {
        let of_all = Arc::clone(&self.open).try_acquire_owned().map_err(|_| full())?;
        let of_client = self.share_open.of(client).try_acquire_owned().map_err(|_| {
            Error::new(
                ErrorKind::RateLimited,
                format!(
                    "this key has {} calls of models and requests of MCP open, which is its limit: \
                     retry when some of them have ended (http.max_connections)",
                    self.share_open.of_key()
                ),
            )
        })?;
        Ok(Place { _of_all: of_all, _of_client: of_client })
    }

    /// Waits for a place among those at work: first for one of the client's own, so that others wait for few of them.
    async fn place_at_work(&self, client: ClientId) -> Result<Place> {
        let closed = |_| Error::internal("the places are closed");
        let of_client = self.share_at_work.of(client).acquire_owned().await.map_err(closed)?;
        let of_all = Arc::clone(&self.at_work).acquire_owned().await.map_err(closed)?;
        Ok(Place { _of_all: of_all, _of_client: of_client })
    }

    /// Waits for a place, then works for as long as a request may take. It ends with whoever waits for it.
    ///
    /// # Errors
    /// `RateLimited` where the client has too many requests; `Unavailable` where there are too many, or it took too long.
    pub async fn work<T>(&self, client: ClientId, work: impl Future<Output = T>) -> Result<T> {
        let _here = self.enter(client)?;
        let work = self.cpu.run(client, work);
        let work = async {
            let _at_work = self.place_at_work(client).await?;
            Ok(work.await)
        };
        tokio::time::timeout(self.limit, work).await.unwrap_or_else(|_| {
            Err(unavailable(
                "timed out; each write was stored completely or not at all: retry the request, \
                 over HTTP with the same Idempotency-Key",
            ))
        })
    }

    /// Waits for a place as [`Self::work`] does, then sees the work through: whoever waits for it may leave, or be
    /// told that it takes too long, and what it does last is done all the same.
    ///
    /// # Errors
    /// As [`Self::work`]; `Internal` where it panicked.
    pub async fn see_through<T: Send + 'static>(
        &self,
        client: ClientId,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        let here = self.enter(client)?;
        let begun = Instant::now();
        let place = tokio::time::timeout(self.limit, self.place_at_work(client)).await;
        let place =
            place.map_err(|_| unavailable("overloaded; nothing was done: retry in a second"))??;
        let work = self.cpu.run(client, work);
        let work = async move {
            let _places = (here, place);
            work.await
        };
        let done = self.begun.spawn(work.in_current_span());
        let left = self.limit.saturating_sub(begun.elapsed());
        match tokio::time::timeout(left, done).await {
            Ok(done) => done.map_err(|panic| Error::internal("a call panicked").with_source(panic)),
            Err(_) => Err(unavailable(
                "timed out; the operation continues in the background: check its result later",
            )),
        }
    }

    /// Works without a place among the requests and without a time limit, but computes within the share of its client.
    pub fn beside<T>(
        &self,
        client: ClientId,
        work: impl Future<Output = T>,
    ) -> impl Future<Output = T> {
        self.cpu.run(client, work)
    }

    /// Waits for work that is to be seen through, at the end of the process.
    pub async fn finish(&self) {
        self.begun.close();
        self.begun.wait().await;
    }

    /// Runs only on free capacity that no request waits for; for work that can be repeated later.
    ///
    /// # Errors
    /// `Unavailable` where it took longer than a request may.
    pub async fn spare<T>(&self, work: impl Future<Output = T>) -> Result<Option<T>> {
        let Ok(_at_work) = self.at_work.try_acquire() else { return Ok(None) };
        let done = tokio::time::timeout(self.limit, work).await;
        done.map(Some).map_err(|_| unavailable("timed out"))
    }
}

fn full() -> Error {
    unavailable("overloaded: retry in a second")
}

fn unavailable(why: &str) -> Error {
    Error::new(ErrorKind::Unavailable, why)
}
