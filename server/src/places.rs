//! Places for requests: so many are at work, as many again wait for a place, and more are turned away at once.

use std::sync::Arc;
use std::time::Duration;

use throughline_core::{Error, ErrorKind, Result};
use tokio::sync::Semaphore;

/// The places of a service, whatever the interface.
#[derive(Clone)]
pub(crate) struct Places {
    at_work: Arc<Semaphore>,
    waiting: Arc<Semaphore>,
    limit: Duration,
}

impl Places {
    /// `most` at work, each for no longer than the limit, its wait included.
    pub(crate) fn new(most: usize, limit: Duration) -> Self {
        Self {
            at_work: Arc::new(Semaphore::new(most)),
            waiting: Arc::new(Semaphore::new(2 * most)),
            limit,
        }
    }

    /// Waits for a place, then works for as long as a request may take.
    ///
    /// # Errors
    /// `Unavailable` where there are too many, or it took too long.
    pub(crate) async fn work<T>(&self, work: impl Future<Output = T>) -> Result<T> {
        let unavailable = |why: &str| Error::new(ErrorKind::Unavailable, why);
        let Ok(_waiting) = self.waiting.try_acquire() else {
            return Err(unavailable("the service is at its limit: come again"));
        };
        let work = async {
            let _at_work = self.at_work.acquire().await;
            work.await
        };
        tokio::time::timeout(self.limit, work).await.map_err(|_| {
            unavailable(
                "the request took too long and was given up: what it wrote is there or not at all; \
                 repeat it, over HTTP with the same Idempotency-Key",
            )
        })
    }
}
