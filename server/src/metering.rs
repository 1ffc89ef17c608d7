//! Counting what was used without making anybody wait: counts gather in memory and are written every
//! second. A process that is killed loses at most the last ones.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use throughline_core::Scope;
use throughline_core::context::AssembledContext;
use throughline_core::ids::{TenantId, UserId};
use throughline_core::ports::{Clock, Store, Write, WriteBatch};
use throughline_core::usage::{UsageCounters, UsageDay};
use tokio::sync::watch;

/// How often what gathered is written.
const EVERY: Duration = Duration::from_secs(1);

/// Counts that wait to be written.
#[derive(Clone)]
pub struct UsageMeter {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    waiting: Arc<Mutex<HashMap<Scope, UsageCounters>>>,
}

impl UsageMeter {
    /// A meter over its ports.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock, waiting: Arc::default() }
    }

    /// Counts an assembled context.
    pub fn count(&self, scope: Scope, context: &AssembledContext) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.entry(scope).or_default().add(&UsageCounters::of_context(context));
    }

    /// Leaves out what waits to be counted of a user who is erased: written later, it would bring the name
    /// back.
    pub fn forget(&self, tenant: &TenantId, user: &UserId) {
        let mut waiting = self.waiting.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.retain(|scope, _| (&scope.tenant, &scope.user) != (tenant, user));
    }

    /// Writes what gathers, until it is stopped, and then the rest.
    pub async fn run(&self, mut stopped: watch::Receiver<bool>) {
        loop {
            let ended = tokio::select! {
                () = tokio::time::sleep(EVERY) => false,
                _ = stopped.wait_for(|stopped| *stopped) => true,
            };
            self.write().await;
            if ended {
                break;
            }
        }
    }

    /// Writes what gathered.
    pub async fn write(&self) {
        let waiting =
            std::mem::take(&mut *self.waiting.lock().unwrap_or_else(PoisonError::into_inner));
        let now = self.clock.now();
        let writes = waiting.into_iter().map(|(scope, counters)| {
            let usage = Write::AddUsage(UsageDay::of(now), counters);
            self.store.apply(WriteBatch::new(scope, now).with(usage))
        });
        let failed =
            futures_util::future::join_all(writes).await.into_iter().filter_map(Result::err).last();
        if let Some(error) = failed {
            tracing::warn!(code = error.kind().code(), "some use was not counted");
        }
    }
}
