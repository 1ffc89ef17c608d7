//! Connections: a limited number, each of which has to get on, and all of which end when the service stops.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::serve::Listener;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

/// How many connections there may be, and how long one may be silent.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionLimits {
    /// Connections at once; further ones wait to be accepted.
    pub(super) most: usize,
    /// How long the header of a request may take, from the end of the request before it or from the beginning of the
    /// connection.
    pub(super) header: Duration,
}

/// Serves connections until `stop` completes. Then it accepts no more, closes those that are idle, and returns when
/// the requests of the others are answered.
pub(super) async fn serve(
    mut listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    stop: impl Future<Output = ()>,
) {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.header);
    let places = Arc::new(Semaphore::new(limits.most));
    let connections = GracefulShutdown::new();
    let mut stop = pin!(stop);
    loop {
        let accept = async {
            let place = Arc::clone(&places).acquire_owned().await;
            (place, Listener::accept(&mut listener).await.0)
        };
        let (place, stream) = tokio::select! {
            accepted = accept => accepted,
            () = &mut stop => break,
        };
        // Or the end of an answer waits for the client to acknowledge the piece before it: 40 ms for a streamed one.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!("a connection ended early: {error}");
            continue;
        }
        let service = TowerToHyperService::new(router.clone());
        let connection = http.serve_connection(TokioIo::new(stream), service);
        let connection = connections.watch(connection);
        tokio::spawn(async move {
            let _place = place;
            if let Err(error) = connection.await {
                tracing::debug!("a connection ended early: {error}");
            }
        });
    }
    drop(listener);
    connections.shutdown().await;
}
