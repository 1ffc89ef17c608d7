//! Two runtimes. Connections have threads of their own, where bodies arrive, who calls is proved, and `/healthz` is
//! answered. Requests are worked on where everything else runs: however long they compute, connections get on.

use axum::body::{Body, HttpBody};
use axum::response::Response;
use futures_util::stream;
use http_body_util::{BodyExt, StreamBody};
use throughline_core::{Error, Result};
use throughline_engine::admission::ClientId;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use super::service::Service;
use crate::wire::request::{self, request_id};

/// Threads of connections: what they do for a request takes microseconds.
const THREADS: usize = 2;

/// The runtime of connections.
pub(super) struct Front(Option<Runtime>);

impl Front {
    /// Starts its threads.
    ///
    /// # Errors
    /// `Internal` where the system starts none.
    pub(super) fn start() -> Result<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(THREADS)
            .thread_name("connections")
            .enable_all()
            .build()
            .map_err(|error| {
                Error::internal("the threads of connections cannot start").with_source(error)
            })?;
        Ok(Self(Some(runtime)))
    }

    /// Runs there until it ends, or whoever waits for it is gone.
    pub(super) async fn run(&self, work: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.0
            && let Err(error) = AbortOnDropHandle::new(runtime.spawn(work)).await
        {
            tracing::error!("the task of connections panicked: {error}");
        }
    }
}

impl Drop for Front {
    fn drop(&mut self) {
        // Waiting for its threads would block those that drop it.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

/// Works on a request away from its connection. The work ends with whoever waits for it.
///
/// # Errors
/// `Internal` where it panicked.
pub(super) async fn away<T: Send + 'static>(
    service: &Service,
    work: impl Future<Output = T> + Send + 'static,
) -> Result<T> {
    let work = request::within(request_id(), work).in_current_span();
    let done = AbortOnDropHandle::new(service.runtime.spawn(work)).await;
    done.map_err(|panic| Error::internal("a request panicked").with_source(panic))
}

/// An answer whose pieces are made away from its connection, in the client's places to compute.
pub(super) fn made_away(service: &Service, client: ClientId, response: Response) -> Response {
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    response.map(|mut body| {
        let (send, mut pieces) = mpsc::channel(1);
        let admission = service.admission.clone();
        let making = async move {
            loop {
                let piece = tokio::select! {
                    piece = body.frame() => piece,
                    () = send.closed() => return,
                };
                let Some(piece) = piece else { return };
                if send.send(piece).await.is_err() {
                    return;
                }
            }
        };
        let making = async move { admission.beside(client, making).await };
        service.runtime.spawn(making.in_current_span());
        Body::new(StreamBody::new(stream::poll_fn(move |context| pieces.poll_recv(context))))
    })
}
