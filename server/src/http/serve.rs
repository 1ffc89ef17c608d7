//! Serving: binding, what runs beside, and an end that finishes what was accepted.

use std::net::SocketAddr;
use std::time::Duration;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use throughline_core::{Error, ErrorKind, Result};
use throughline_engine::admission::ClientId;
use throughline_engine::app::App;
use throughline_engine::backups::DailyBackups;
use throughline_engine::compose::Engine;
use throughline_engine::config::Config;
use throughline_engine::worker;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::connections::{self, ConnectionLimits};
use super::front::Front;
use super::service::Service;

/// Bounds of histograms of seconds.
const SECONDS: &[f64] =
    &[0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
/// Bounds of histograms of tokens and of how many.
const COUNTS: &[f64] = &[
    1.0, 5.0, 10.0, 25.0, 50.0, 100.0, 250.0, 500.0, 1_000.0, 1_500.0, 2_000.0, 3_000.0, 5_000.0,
    10_000.0, 50_000.0,
];

/// How long values wait for their histogram.
const UPKEEP: Duration = Duration::from_secs(5);

/// A service that is bound, and can be served.
pub struct Served {
    listener: TcpListener,
    service: Service,
    limits: ConnectionLimits,
    drain: Duration,
    with_worker: bool,
    backups: Option<DailyBackups>,
}

/// Binds the service of a configuration.
///
/// # Errors
/// `InvalidInput` where it would serve others than this machine without keys; `Unavailable` where the
/// address is taken; those of the store.
pub async fn serve(engine: Engine, config: &Config) -> Result<Served> {
    let listen = config.listen_address()?;
    let backups = DailyBackups::of(config, &engine);
    let limits = limits(config);
    let (listener, service) = bind(engine, config, limits, ("listen", listen)).await?;
    Ok(Served {
        listener,
        service,
        limits,
        drain: Duration::from_millis(config.http.drain_ms),
        with_worker: config.http.worker,
        backups,
    })
}

/// The bound server of a worker's health and metrics.
pub struct Shown {
    listener: TcpListener,
    service: Service,
    limits: ConnectionLimits,
}

/// Binds what a worker shows of itself, where the configuration has an address for it.
///
/// # Errors
/// As [`serve`].
pub async fn show(engine: Engine, config: &Config) -> Result<Option<Shown>> {
    let Some(listen) = config.jobs.address()? else { return Ok(None) };
    let limits = limits(config);
    let (listener, service) = bind(engine, config, limits, ("jobs.listen", listen)).await?;
    Ok(Some(Shown { listener, service, limits }))
}

fn limits(config: &Config) -> ConnectionLimits {
    ConnectionLimits::new(&config.http)
}

/// Listens on an address, which is that of the setting `key`.
async fn bind(
    engine: Engine,
    config: &Config,
    limits: ConnectionLimits,
    (key, listen): (&str, SocketAddr),
) -> Result<(TcpListener, Service)> {
    if !listen.ip().is_loopback() && !engine.store.has_keys().await? {
        return Err(Error::invalid(format!(
            "other machines can reach {listen}, and there are no keys: create one with \
             `throughline keys create --tenant {} --user {} --permissions read,write`, or listen \
             on 127.0.0.1",
            config.identity.tenant, config.identity.user
        )));
    }
    #[cfg(feature = "mcp-fixtures")]
    if config.mcp.fixtures && !listen.ip().is_loopback() {
        return Err(Error::invalid(format!(
            "other machines can reach {listen}, and --mcp-fixtures is for this machine only: \
             listen on 127.0.0.1"
        )));
    }
    let listener = TcpListener::bind(listen).await.map_err(|error| {
        Error::new(
            ErrorKind::Unavailable,
            format!(
                "cannot listen on {listen} ({error}): stop the program that uses it, or change \
                 `{key}`"
            ),
        )
    })?;
    let app = App::new(engine).await?;
    let metrics = install_metrics()?;
    let service = Service::new(app, config, limits.most, metrics, listen.ip(), config.scope()?);
    Ok((listener, service))
}

fn address(listener: &TcpListener) -> Result<SocketAddr> {
    let told = listener.local_addr();
    told.map_err(|error| Error::internal("the address is not known").with_source(error))
}

impl Shown {
    /// Where it listens.
    ///
    /// # Errors
    /// `Internal` when the system does not tell.
    pub fn address(&self) -> Result<SocketAddr> {
        address(&self.listener)
    }

    /// Serves until it is dropped.
    ///
    /// # Errors
    /// `Internal` where the system starts no threads for it.
    pub async fn run(self) -> Result<()> {
        let router = super::operations(&self.service);
        let (front, never) = (Front::start()?, std::future::pending());
        tokio::select! {
            () = front.run(connections::serve(self.listener, router, self.limits, never)) => {}
            () = keep_metrics(&self.service.metrics) => {}
        }
        Ok(())
    }
}

fn install_metrics() -> Result<PrometheusHandle> {
    let broken =
        |error| Error::internal("the metrics recorder cannot be installed").with_source(error);
    PrometheusBuilder::new()
        .set_buckets_for_metric(Matcher::Suffix("_seconds".to_owned()), SECONDS)
        .and_then(|builder| {
            builder.set_buckets_for_metric(Matcher::Suffix("_tokens".to_owned()), COUNTS)
        })
        .and_then(|builder| {
            builder.set_buckets_for_metric(Matcher::Suffix("_candidates".to_owned()), COUNTS)
        })
        .and_then(|builder| {
            builder
                .set_buckets_for_metric(Matcher::Prefix("throughline_recall_".to_owned()), COUNTS)
        })
        .map_err(broken)?
        .install_recorder()
        .map_err(broken)
}

impl Served {
    /// Where it listens.
    ///
    /// # Errors
    /// `Internal` when the system does not tell.
    pub fn address(&self) -> Result<SocketAddr> {
        address(&self.listener)
    }

    /// Serves until `stop` completes; then takes nothing new, finishes what it accepted within the
    /// configured time, and ends.
    ///
    /// # Errors
    /// `Internal` when its routes cannot be built, or the system starts no threads for it.
    pub async fn run(self, stop: impl Future<Output = ()> + Send + 'static) -> Result<()> {
        let Self { listener, service, limits, drain, with_worker, backups } = self;
        let (stopping, stopped) = watch::channel(false);
        let beside = run_beside(service.clone(), with_worker, backups, stopped.clone());
        let beside = tokio::spawn(beside);
        let router = super::router(&service)?;
        let front = Front::start()?;
        let signalled = {
            let service = service.clone();
            async move {
                stop.await;
                service.stop();
                // Having no receivers is not an error.
                let _ = stopping.send(true);
            }
        };
        let mut late = stopped.clone();
        let deadline = async move {
            // Those who tell are gone only after they have told.
            let _ = late.wait_for(|stopping| *stopping).await;
            tokio::time::sleep(drain).await;
        };
        let finished = async {
            front.run(connections::serve(listener, router, limits, signalled)).await;
            // Wait for operations that continue in the background.
            service.admission.finish().await;
        };
        tokio::select! {
            () = finished => {}
            () = deadline => {
                tracing::warn!("requests were still running after http.drain_ms and were aborted");
            }
        }
        service.app.close_file_stores().await;
        if let Err(error) = beside.await {
            tracing::error!("background work panicked: {error}");
        }
        // Save the usage of requests that still ran when the meter stopped.
        service.app.meter.write().await;
        Ok(())
    }
}

/// The background tasks of the service: usage counts, upkeep of metrics, jobs, and the copies of the store.
async fn run_beside(
    service: Service,
    with_worker: bool,
    backups: Option<DailyBackups>,
    stopped: watch::Receiver<bool>,
) {
    let jobs = async {
        if !with_worker {
            return;
        }
        let work = worker::run(&service.app.engine, stopped.clone(), worker::measure);
        let worked = service.admission.beside(ClientId::Jobs, work).await;
        if let Err(error) = worked {
            tracing::error!(
                code = error.kind().code(),
                "background jobs stopped: {}",
                error.message()
            );
        }
    };
    let upkeep = async {
        let mut stopped = stopped.clone();
        tokio::select! {
            () = keep_metrics(&service.metrics) => {}
            _ = stopped.wait_for(|stopped| *stopped) => {}
        }
    };
    let copies = async {
        if let Some(backups) = backups {
            backups.run(stopped.clone()).await;
        }
    };
    tokio::join!(service.app.meter.run(stopped.clone()), upkeep, jobs, copies);
}

/// Adds what was recorded to its histograms, which would hold every value by itself until someone reads them; it
/// ends when it is dropped.
async fn keep_metrics(metrics: &PrometheusHandle) {
    loop {
        tokio::time::sleep(UPKEEP).await;
        metrics.run_upkeep();
    }
}
