//! Connections: a limited number, all of which end when the service stops. While all are in use, a new one takes the
//! place of the one that has waited longest for its client, so that clients that send nothing lock nobody out.

mod waiting;

use std::convert::Infallible;
use std::io::ErrorKind;
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, HttpBody};
use axum::extract::Request;
use axum::response::Response;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use throughline_engine::config::HttpConfig;
use tokio::net::{TcpListener, TcpStream};
use tokio_io_timeout::TimeoutStream;

use waiting::{Connection, Connections, FromClient, ToClient};

/// Most bytes of the header of a request, its first line included.
const MAX_HEADER_BYTES: usize = 32 << 10;
/// Most bytes of an answer that a connection buffers, beside the piece that it is handed last.
const MAX_BUFFER_BYTES: usize = 64 << 10;
/// How long to wait before connections are accepted again after the system refused one.
const REFUSED_WAIT: Duration = Duration::from_millis(100);
/// A condition that lasts is logged once in this time.
const LOG_EVERY: Duration = Duration::from_secs(10);

/// How many connections there may be, and how long one may be silent.
#[derive(Debug, Clone, Copy)]
pub(super) struct ConnectionLimits {
    /// Connections at once.
    pub(super) most: usize,
    /// How long the header of a request may take, from the end of the request before it or from the beginning of the
    /// connection; and how long a client may read nothing of an answer.
    silence: Duration,
    /// How long a client may take to read so many bytes of an answer whose size is known.
    reading: (Duration, usize),
}

impl ConnectionLimits {
    /// The configured limits. The process keeps some of the files that it may open for its store and its own
    /// connections.
    pub(super) fn new(config: &HttpConfig) -> Self {
        let most = config.max_connections;
        let files = files_allowed();
        let fit = files.map_or(most, connections_of_files);
        if let Some(files) = files.filter(|_| fit < most) {
            tracing::warn!(
                "this process may open {files} files, so it accepts {fit} connections instead of \
                 {most} (http.max_connections): raise the limit, such as by `ulimit -n` or \
                 LimitNOFILE="
            );
        }
        let reading = (config.body_timeout(), config.max_body_bytes());
        Self { most: most.min(fit), silence: config.read_timeout(), reading }
    }

    /// How long an answer of so many bytes may take to be read: as long as a body of that size takes to arrive, where it
    /// is larger than a body may be.
    fn time_to_read(&self, bytes: u64) -> Duration {
        let (time, size) = self.reading;
        let times = bytes.div_ceil(size as u64).max(1);
        time.saturating_mul(u32::try_from(times).unwrap_or(u32::MAX))
    }
}

/// How many files this process may open, where the system tells.
fn files_allowed() -> Option<usize> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    soft_limit(&limits)
}

/// The soft limit of open files in the form of `/proc/self/limits`.
fn soft_limit(limits: &str) -> Option<usize> {
    let line = limits.lines().find_map(|line| line.strip_prefix("Max open files"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The connections that fit into so many files: a quarter, and at least 64, is for everything else.
fn connections_of_files(files: usize) -> usize {
    files.saturating_sub((files / 4).max(64)).max(1)
}

/// Serves connections until `stop` completes. Then it accepts no more, closes those that are idle, and returns when
/// the requests of the others are answered.
pub(super) async fn serve(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
    stop: impl Future<Output = ()>,
) {
    let listener = match here(listener) {
        Ok(listener) => listener,
        Err(error) => {
            tracing::error!("the address cannot be listened on: {error}");
            return;
        }
    };
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(limits.silence)
        .max_header_size(MAX_HEADER_BYTES)
        .max_buf_size(MAX_BUFFER_BYTES);
    let connections = Arc::new(Connections::new(limits.most));
    let graceful = GracefulShutdown::new();
    let mut log = LogSometimes::default();
    let mut stop = pin!(stop);
    loop {
        let accept = async {
            let stream = accept(&listener, &connections, &mut log).await;
            (place(&connections, limits.most, &mut log).await, stream)
        };
        let (connection, stream) = tokio::select! {
            accepted = accept => accepted,
            () = &mut stop => break,
        };
        // Or the end of an answer waits for the client to acknowledge the piece before it: 40 ms for a streamed one.
        if let Err(error) = stream.set_nodelay(true) {
            tracing::debug!("a connection ended early: {error}");
            continue;
        }
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(limits.silence));
        let (router, of_requests) = (router.clone(), Arc::clone(&connection));
        let service = service_fn(move |request| {
            answer(router.clone(), limits, Arc::clone(&of_requests), request)
        });
        let served = http.serve_connection(TokioIo::new(Box::pin(stream)), service);
        let served = graceful.watch(served);
        tokio::spawn(async move {
            tokio::select! {
                ended = served => if let Err(error) = ended {
                    tracing::debug!("a connection ended early: {error}");
                },
                () = connection.closed() => {
                    tracing::debug!("a connection waited for its client and was closed");
                }
            }
        });
    }
    drop(listener);
    graceful.shutdown().await;
}

/// A listener of this runtime.
fn here(listener: TcpListener) -> std::io::Result<TcpListener> {
    TcpListener::from_std(listener.into_std()?)
}

/// The next connection. Where the system has no more files or memory, one that waits for its client is closed, and
/// accepting is tried again.
async fn accept(
    listener: &TcpListener,
    connections: &Connections,
    log: &mut LogSometimes,
) -> TcpStream {
    loop {
        match listener.accept().await {
            Ok((stream, _)) => return stream,
            // The client left before it was accepted.
            Err(error)
                if matches!(
                    error.kind(),
                    ErrorKind::ConnectionAborted
                        | ErrorKind::ConnectionRefused
                        | ErrorKind::ConnectionReset
                ) => {}
            Err(error) => {
                log.warn(|| format!("no connection can be accepted, trying again: {error}"));
                connections.close_one();
                tokio::time::sleep(REFUSED_WAIT).await;
            }
        }
    }
}

/// A place among the connections.
async fn place(
    connections: &Arc<Connections>,
    most: usize,
    log: &mut LogSometimes,
) -> Arc<Connection> {
    loop {
        if let Some(place) = connections.place() {
            return place;
        }
        log.warn(|| {
            format!(
                "all {most} connections are in use: those that wait longest for their client are \
                 closed for new ones (http.max_connections)"
            )
        });
        connections.close_one();
        connections.changed().await;
    }
}

/// Answers one request, and tells the connection what it waits for.
async fn answer(
    router: Router,
    limits: ConnectionLimits,
    connection: Arc<Connection>,
    request: hyper::Request<Incoming>,
) -> Result<Response, Infallible> {
    connection.works();
    let request: Request =
        request.map(|body| Body::new(FromClient::new(body, Arc::clone(&connection))));
    let response = TowerToHyperService::new(router).call(request).await?;
    connection.works();
    if let Some(size) = response.body().size_hint().exact() {
        connection.is_read_within(limits.time_to_read(size));
    }
    Ok(response.map(|body| Body::new(ToClient::new(body, connection))))
}

/// Logs a condition that lasts, but not each time.
#[derive(Default)]
struct LogSometimes(Option<Instant>);

impl LogSometimes {
    fn warn(&mut self, message: impl FnOnce() -> String) {
        if self.0.is_none_or(|last| last.elapsed() >= LOG_EVERY) {
            self.0 = Some(Instant::now());
            tracing::warn!("{}", message());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_files_for_the_rest() {
        let limits = "Limit           Soft Limit  Hard Limit  Units\n\
                      Max processes   100         200         processes\n\
                      Max open files  1024        524288      files\n";
        assert_eq!(soft_limit(limits), Some(1_024));
        assert_eq!(soft_limit("Max open files  unlimited  unlimited  files\n"), None);
        assert_eq!(soft_limit(""), None);
        for (files, connections) in [(1_024, 768), (128, 64), (64, 1), (0, 1), (65_536, 49_152)] {
            assert_eq!(connections_of_files(files), connections, "{files}");
        }
    }
}
