//! Which connections wait for their clients, and since when.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody};
use hyper::body::{Frame, Incoming, SizeHint};
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;

/// The connections that are open.
#[derive(Debug)]
pub(super) struct Connections {
    most: usize,
    open: Mutex<Open>,
    /// Told when one ends, or begins to wait for its client.
    changed: Notify,
}

#[derive(Debug, Default)]
struct Open {
    next: u64,
    held: HashMap<u64, Weak<Connection>>,
}

/// One connection, in its place among the others until it is dropped.
#[derive(Debug)]
pub(super) struct Connection {
    id: u64,
    /// Since when it waits for its client: for a header, the rest of a body, or the end of an answer to be read. `None`
    /// while this service works on a request.
    waits: Mutex<Option<Instant>>,
    /// Until when its answer has to be read.
    read_by: watch::Sender<Option<Instant>>,
    close: CancellationToken,
    among: Arc<Connections>,
}

impl Connections {
    /// At most so many.
    pub(super) fn new(most: usize) -> Self {
        Self { most, open: Mutex::default(), changed: Notify::new() }
    }

    fn open(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for a new connection, where there is one.
    pub(super) fn place(self: &Arc<Self>) -> Option<Arc<Connection>> {
        let mut open = self.open();
        if open.held.len() >= self.most {
            return None;
        }
        let id = open.next;
        open.next += 1;
        let connection = Arc::new(Connection {
            id,
            waits: Mutex::new(Some(Instant::now())),
            read_by: watch::Sender::new(None),
            close: CancellationToken::new(),
            among: Arc::clone(self),
        });
        open.held.insert(id, Arc::downgrade(&connection));
        Some(connection)
    }

    /// Closes the connection that has waited longest for its client, where one waits and none is closing already.
    pub(super) fn close_one(&self) {
        let held: Vec<_> = self.open().held.values().filter_map(Weak::upgrade).collect();
        if held.iter().any(|connection| connection.close.is_cancelled()) {
            return;
        }
        let waiting =
            held.iter().filter_map(|connection| Some((connection.waits_since()?, connection)));
        if let Some((_, longest)) = waiting.min_by_key(|(since, _)| *since) {
            longest.close.cancel();
        }
    }

    /// Waits until a connection ended or began to wait for its client.
    pub(super) async fn changed(&self) {
        self.changed.notified().await;
    }
}

impl Connection {
    fn waits_since(&self) -> Option<Instant> {
        *self.waits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn set(&self, waits: Option<Instant>) {
        *self.waits.lock().unwrap_or_else(PoisonError::into_inner) = waits;
    }

    /// This service works on a request of it.
    pub(super) fn works(&self) {
        self.set(None);
    }

    /// From now on, or since it began to, it waits for its client.
    fn waits(&self) {
        if self.waits_since().is_none() {
            self.set(Some(Instant::now()));
            self.among.changed.notify_one();
        }
    }

    /// Its answer has so much time to be read.
    pub(super) fn is_read_within(&self, time: Duration) {
        self.read_by.send_replace(Instant::now().checked_add(time));
    }

    /// Waits until it is to be closed: for another one, or because its answer was not read in time.
    pub(super) async fn closed(&self) {
        let mut changed = self.read_by.subscribe();
        loop {
            let read_by = *changed.borrow_and_update();
            let late = async {
                match read_by {
                    Some(read_by) => tokio::time::sleep_until(read_by.into()).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = self.close.cancelled() => return,
                () = late => return,
                // The sender is here.
                _ = changed.changed() => {}
            }
        }
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.among.open().held.remove(&self.id);
        self.among.changed.notify_one();
    }
}

/// The body of a request: while a piece of it is awaited, the connection waits for its client.
pub(super) struct FromClient {
    body: Incoming,
    connection: Arc<Connection>,
}

impl FromClient {
    pub(super) fn new(body: Incoming, connection: Arc<Connection>) -> Self {
        Self { body, connection }
    }
}

impl HttpBody for FromClient {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let polled = Pin::new(&mut self.body).poll_frame(cx);
        match &polled {
            Poll::Pending => self.connection.waits(),
            Poll::Ready(_) => self.connection.works(),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// The body of an answer: while a piece of it is written, and after the last one, the connection waits for its client.
pub(super) struct ToClient {
    body: Body,
    connection: Arc<Connection>,
}

impl ToClient {
    pub(super) fn new(body: Body, connection: Arc<Connection>) -> Self {
        Self { body, connection }
    }
}

impl HttpBody for ToClient {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        self.connection.works();
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        self.connection.waits();
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for ToClient {
    fn drop(&mut self) {
        self.connection.read_by.send_replace(None);
        self.connection.waits();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closes_the_connection_that_waits_longest() {
        let connections = Arc::new(Connections::new(3));
        let mut held: Vec<_> = (0..3).filter_map(|_| connections.place()).collect();
        assert!(held.len() == 3 && connections.place().is_none());
        // The first works; the second begins to wait after the third.
        held[0].works();
        held[1].works();
        held[1].waits();
        for expected in [Some(2), Some(1), None] {
            connections.close_one();
            // Once more: one is closing already.
            connections.close_one();
            let closed: Vec<_> =
                (0..held.len()).filter(|at| held[*at].close.is_cancelled()).collect();
            assert_eq!(closed, expected.into_iter().collect::<Vec<_>>());
            held.retain(|one| !one.close.is_cancelled());
        }
    }

    #[test]
    fn a_connection_that_ended_leaves_its_place() {
        let connections = Arc::new(Connections::new(1));
        let first = connections.place();
        assert!(first.is_some() && connections.place().is_none());
        drop(first);
        assert!(connections.place().is_some());
    }
}
