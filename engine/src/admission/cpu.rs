//! The processor, shared fairly between clients.

use std::sync::Arc;
use std::task::Poll;

use tokio::sync::Semaphore;

use super::shares::{ClientId, Shares};

/// How many requests compute at once, of all clients. One client has half of the places, which is enough to use every
/// core; so another finds a place at once, and the system divides the cores between their threads.
pub fn cpu_places() -> usize {
    2 * std::thread::available_parallelism().map_or(2, usize::from)
}

/// Places for work that computes. Work takes one whenever it goes on, and gives it back when it waits for something.
#[derive(Debug, Clone)]
pub(super) struct CpuPlaces(Option<Places>);

#[derive(Debug, Clone)]
struct Places {
    all: Arc<Semaphore>,
    share: Arc<Shares>,
}

impl CpuPlaces {
    pub(super) fn new(places: usize) -> Self {
        let share = Arc::new(Shares::new(places, (places / 2).max(1)));
        Self(Some(Places { all: Arc::new(Semaphore::new(places)), share }))
    }

    /// As many as anyone wants.
    pub(super) fn boundless() -> Self {
        Self(None)
    }

    /// Work that takes a place each time that it is polled.
    pub(super) fn run<T, F: Future<Output = T>>(
        &self,
        client: ClientId,
        work: F,
    ) -> impl Future<Output = T> + use<T, F> {
        let places = self.0.clone();
        // Futures of requests are large, and each of those around them would hold a copy.
        let mut work = Box::pin(work);
        async move {
            let Some(Places { all, share }) = places else { return work.await };
            let share = share.of(client);
            loop {
                // The semaphores are never closed. The client's own places come first: so few of its polls are among
                // those that the others wait for.
                let place = (share.acquire().await, all.acquire().await);
                let polled =
                    std::future::poll_fn(|context| Poll::Ready(work.as_mut().poll(context)));
                let polled = polled.await;
                drop(place);
                match polled {
                    Poll::Ready(done) => return done,
                    Poll::Pending => woken().await,
                }
            }
        }
    }
}

/// Waits until the task is woken, by whatever its work waits for.
async fn woken() {
    let mut waited = false;
    std::future::poll_fn(|_| {
        let ready = if waited { Poll::Ready(()) } else { Poll::Pending };
        waited = true;
        ready
    })
    .await;
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Three calls of one client compute, of which two have places; a call of another client is not held up.
    #[tokio::test(flavor = "multi_thread", worker_threads = 6)]
    async fn a_client_that_computes_leaves_places_to_the_others() {
        let places = CpuPlaces::new(4);
        let key = |id: &str| ClientId::Key(id.parse().unwrap());
        let (started, starts) = mpsc::channel();
        let mut ends = Vec::new();
        let mut calls = Vec::new();
        for _ in 0..3 {
            let (end, ended) = mpsc::channel::<()>();
            ends.push(end);
            let (places, started) = (places.clone(), started.clone());
            calls.push(tokio::spawn(async move {
                let work = async move {
                    started.send(()).unwrap();
                    let _ = ended.recv();
                };
                places.run(key("0000000000000001"), work).await;
            }));
        }
        (0..2).for_each(|_| starts.recv().unwrap());
        let other = async {
            tokio::task::yield_now().await;
            7
        };
        assert_eq!(places.run(key("0000000000000002"), other).await, 7);
        assert!(starts.try_recv().is_err(), "the third waits");
        drop(ends);
        for call in calls {
            call.await.unwrap();
        }
        starts.recv().unwrap();
    }
}
