//! What every request shares.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use throughline_core::{Result, Scope};
use throughline_engine::admission::{AdmissionControl, AdmissionLimits, MemoryBudget};
use throughline_engine::app::App;
use throughline_engine::config::{Config, HttpConfig, McpConfig};
use throughline_engine::identity::Identity;
use tokio::runtime::Handle;
use tokio_util::sync::CancellationToken;

/// The application, and what the service knows of itself.
#[derive(Clone)]
pub(super) struct Service(Arc<Inner>);

/// What [`Service`] points at.
pub(super) struct Inner {
    /// What callers may do.
    pub app: App,
    /// Settings of the service.
    pub config: HttpConfig,
    /// Settings of MCP.
    pub mcp: McpConfig,
    /// How many requests are at work.
    pub admission: AdmissionControl,
    /// How much memory their bodies take.
    pub memory: MemoryBudget,
    /// Where requests are worked on.
    pub runtime: Handle,
    /// What `/metrics` shows.
    pub metrics: PrometheusHandle,
    /// The address that it listens on.
    pub listen: IpAddr,
    /// Who a call without a key is, while there are no keys.
    local: Scope,
    /// Whether a key was seen: from then on every call needs one.
    keys_seen: AtomicBool,
    /// Cancelled when it is shutting down.
    stopping: CancellationToken,
}

impl std::ops::Deref for Service {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl Service {
    /// The state of a service that listens on an address and has so many connections, within the runtime where its requests
    /// are worked on.
    #[must_use]
    pub(super) fn new(
        app: App,
        config: &Config,
        connections: usize,
        metrics: PrometheusHandle,
        listen: IpAddr,
        local: Scope,
    ) -> Self {
        Self(Arc::new(Inner {
            app,
            config: config.http.clone(),
            mcp: config.mcp.clone(),
            admission: AdmissionControl::new(AdmissionLimits {
                at_work: config.http.max_in_flight,
                // At work and waiting for that, half of the connections.
                of_key: config.http.max_in_flight_per_key.min((connections / 4).max(1)),
                open: (connections / 2).max(1),
                time: Duration::from_millis(config.http.timeout_ms),
            }),
            memory: MemoryBudget::new(config.http.max_bodies_mb << 20),
            runtime: Handle::current(),
            metrics,
            listen,
            local,
            keys_seen: AtomicBool::new(false),
            stopping: CancellationToken::new(),
        }))
    }

    /// The local user, where a call without a key is one: on a loopback address, as long as no key was
    /// ever made.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn local_user(&self) -> Result<Option<Identity>> {
        if !self.listen.is_loopback() || self.keys_seen.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if self.app.engine.store.has_keys().await? {
            self.keys_seen.store(true, Ordering::Relaxed);
            return Ok(None);
        }
        Ok(Some(Identity::local(self.local.clone())))
    }

    /// Tells `/readyz` that no more work should come.
    pub(super) fn stop(&self) {
        self.stopping.cancel();
    }

    /// Whether it is shutting down.
    #[must_use]
    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.is_cancelled()
    }

    /// What ends when it is shutting down.
    #[must_use]
    pub(super) fn stopping(&self) -> CancellationToken {
        self.stopping.clone()
    }
}
