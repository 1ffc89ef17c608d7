//! AdmissionControl for requests: so many are at work, as many again wait for a place, and more are turned away at once.

use std::sync::Arc;
use std::time::Duration;

use throughline_core::{Error, ErrorKind, Result};
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

/// The places of a service, whatever the interface.
#[derive(Clone)]
pub struct AdmissionControl {
    at_work: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    limit: Duration,
    /// Work that is seen through.
    begun: TaskTracker,
}

impl AdmissionControl {
    /// `most` at work, each for no longer than the limit, its wait included.
    pub fn new(most: usize, limit: Duration) -> Self {
        Self {
            at_work: Arc::new(Semaphore::new(most)),
            waiting: Arc::new(Semaphore::new(2 * most)),
            limit,
            begun: TaskTracker::new(),
        }
    }

    /// As many as anyone wants, for as long as it takes: for a process with one caller.
    pub fn boundless() -> Self {
        Self::new(Semaphore::MAX_PERMITS / 2, Duration::MAX)
    }

    /// Waits for a place, then works for as long as a request may take. It ends with whoever waits for it.
    ///
    /// # Errors
    /// `Unavailable` where there are too many, or it took too long.
    pub async fn work<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        let _waiting = self.waiting.try_acquire().map_err(|_| full())?;
        let work = async {
            let _at_work = self.at_work.acquire().await;
            work.await
        };
        tokio::time::timeout(self.limit, work).await.map_err(|_| {
            unavailable(
                "timed out; each write was stored completely or not at all: retry the request, \
                 over HTTP with the same Idempotency-Key",
            )
        })
    }

    /// Waits for a place as [`Self::work`] does, then sees the work through: whoever waits for it may leave, or be
    /// told that it takes too long, and what it does last is done all the same.
    ///
    /// # Errors
    /// As [`Self::work`]; `Internal` where it panicked.
    pub async fn see_through<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T> {
        let waiting = Arc::clone(&self.waiting).try_acquire_owned().map_err(|_| full())?;
        let begun = Instant::now();
        let place = tokio::time::timeout(self.limit, Arc::clone(&self.at_work).acquire_owned());
        let place = place
            .await
            .map_err(|_| unavailable("overloaded; nothing was done: retry in a second"))?;
        let work = async move {
            let _places = (waiting, place);
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use tokio::sync::oneshot;

    use super::*;

    /// Waiting longer than this means that the test hangs.
    const LIMIT: Duration = Duration::from_millis(20);

    /// Work that ends on a signal and reports that it runs.
    fn work() -> (oneshot::Sender<()>, Arc<AtomicBool>, impl Future<Output = u8> + Send + 'static) {
        let (go, told) = oneshot::channel();
        let done = Arc::new(AtomicBool::new(false));
        let says = Arc::clone(&done);
        let work = async move {
            told.await.unwrap();
            says.store(true, Ordering::Relaxed);
            7
        };
        (go, done, work)
    }

    #[tokio::test]
    async fn write_completes_after_its_caller_left() {
        for leaves in [true, false] {
            let places = AdmissionControl::new(1, LIMIT);
            let (go, done, work) = work();
            let mut call = Box::pin(places.see_through(work));
            if leaves {
                assert!(futures_util::poll!(&mut call).is_pending());
            } else {
                let told = call.as_mut().await.unwrap_err();
                assert!(told.message().contains("continues in the background"), "{told}");
            }
            drop(call);
            // Its place is taken until it is done.
            let refused = places.work(async {}).await.unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Unavailable);
            assert!(!done.load(Ordering::Relaxed));
            go.send(()).unwrap();
            places.finish().await;
            assert!(done.load(Ordering::Relaxed));
            places.work(async {}).await.unwrap();
        }
    }

    #[tokio::test]
    async fn read_is_cancelled_with_its_caller() {
        let places = AdmissionControl::new(1, LIMIT);
        let (go, _, work) = work();
        let told = places.work(work).await.unwrap_err();
        assert!(told.message().contains("timed out"), "{told}");
        assert!(go.is_closed());
        places.finish().await;
    }

    #[tokio::test]
    async fn refused_work_does_not_start() {
        let places = AdmissionControl::new(1, LIMIT);
        let (go, _, first) = work();
        let (_second_go, second_done, second) = work();
        let mut held = Box::pin(places.see_through(first));
        assert!(futures_util::poll!(&mut held).is_pending());
        let refused = places.see_through(second).await.unwrap_err();
        assert!(refused.message().contains("nothing was done"), "{refused}");
        assert!(!second_done.load(Ordering::Relaxed));
        go.send(()).unwrap();
        drop(held);
        places.finish().await;
        assert_eq!(AdmissionControl::boundless().see_through(async { 7 }).await.unwrap(), 7);
    }

    #[tokio::test]
    async fn a_call_that_panics_is_told_so() {
        let places = AdmissionControl::boundless();
        let told: Result<()> = places.see_through(async { panic!("on purpose") }).await;
        assert_eq!(told.unwrap_err().kind(), ErrorKind::Internal);
        places.finish().await;
    }

    #[tokio::test]
    async fn spare_work_never_waits_for_capacity() {
        let places = AdmissionControl::new(1, Duration::from_secs(60));
        assert_eq!(places.spare(async { 7 }).await.unwrap(), Some(7));
        let within = async { places.spare(async { 7 }).await.unwrap() };
        assert_eq!(places.work(within).await.unwrap(), None);
        let never =
            AdmissionControl::new(1, Duration::ZERO).spare(std::future::pending::<()>()).await;
        assert_eq!(never.unwrap_err().kind(), ErrorKind::Unavailable);
    }
}
