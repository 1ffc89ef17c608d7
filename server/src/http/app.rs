//! What every request shares.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;
use throughline_core::access::{Permissions, Principal};
use throughline_core::ids::SessionId;
use throughline_core::{Result, Scope};
use tokio_util::sync::CancellationToken;

use super::caller::Caller;
use crate::admission::AdmissionControl;
use crate::compose::Engine;
use crate::config::{Config, HttpConfig, McpConfig};
use crate::identity::pseudonym;
use crate::metering::UsageMeter;

/// The engine, and what the service knows of itself.
#[derive(Clone)]
pub(super) struct App(Arc<Inner>);

/// What [`App`] points at.
pub(super) struct Inner {
    /// Core's services.
    pub engine: Engine,
    /// Settings of the service.
    pub config: HttpConfig,
    /// Settings of MCP.
    pub mcp: McpConfig,
    /// Counts contexts without making them wait.
    pub usage: UsageMeter,
    /// AdmissionControl for requests.
    pub places: AdmissionControl,
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

impl std::ops::Deref for App {
    type Target = Inner;

    fn deref(&self) -> &Inner {
        &self.0
    }
}

impl App {
    /// The state of a service that listens on an address.
    #[must_use]
    pub(super) fn new(
        engine: Engine,
        config: &Config,
        usage: UsageMeter,
        metrics: PrometheusHandle,
        listen: IpAddr,
        local: Scope,
    ) -> Self {
        Self(Arc::new(Inner {
            engine,
            config: config.http.clone(),
            mcp: config.mcp.clone(),
            usage,
            places: AdmissionControl::new(
                config.http.max_in_flight,
                Duration::from_millis(config.http.timeout_ms),
            ),
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
    pub(super) async fn local_user(&self) -> Result<Option<Principal>> {
        if !self.listen.is_loopback() || self.keys_seen.load(Ordering::Relaxed) {
            return Ok(None);
        }
        if self.engine.store.has_keys().await? {
            self.keys_seen.store(true, Ordering::Relaxed);
            return Ok(None);
        }
        Ok(Some(Principal {
            key: None,
            tenant: self.local.tenant.clone(),
            user: Some(self.local.user.clone()),
            workspace: self.local.workspace.clone(),
            permissions: Permissions::ALL,
        }))
    }

    /// Adds what a caller did to the audit log of its tenant.
    pub(super) async fn audit<P>(&self, caller: &Caller<P>, action: &str, target: String) {
        caller.audit(&self.engine, action, target).await;
    }

    /// What the audit log calls a session.
    #[must_use]
    pub(super) fn pseudonym(&self, scope: &Scope, session: &SessionId) -> String {
        pseudonym(&self.engine, scope, session)
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
