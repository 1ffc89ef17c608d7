//! Counting what was used without making anybody wait: counts gather in memory and are written every
//! second. A process that is killed loses at most the last ones.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::{join_all, try_join_all};
use throughline_core::context::AssembledContext;
use throughline_core::ports::{Clock, LedgerIdentity, Precondition, Store, Write, WriteBatch};
use throughline_core::services::erasure::EraseService;
use throughline_core::time::Timestamp;
use throughline_core::usage::{UsageCounters, UsageDay};
use throughline_core::{Result, Scope};
use tokio::sync::watch;

use crate::compose::Engine;

/// How often what gathered is written.
const EVERY: Duration = Duration::from_secs(1);
/// How much later than a user was erased something may be counted that was at work then, by another
/// machine's clock.
const LATE: Duration = Duration::from_secs(5);

/// Counts that wait to be written.
#[derive(Clone)]
pub struct UsageMeter {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    erase: EraseService,
    names: LedgerIdentity,
    waiting: Arc<Mutex<Waiting>>,
}

struct Waiting {
    /// By scope, each with when its first count was.
    counts: HashMap<Scope, (Timestamp, UsageCounters)>,
    /// How far the ledger of erasures was read when what waits began to gather, and how far it is now.
    read: [u64; 2],
}

impl UsageMeter {
    /// A meter of an engine's use.
    ///
    /// # Errors
    /// Those of the ledger of erasures.
    pub async fn new(engine: &Engine) -> Result<Self> {
        let last = engine.erase.last_entry().await?;
        Ok(Self {
            store: Arc::clone(&engine.store),
            clock: Arc::clone(&engine.clock),
            erase: engine.erase.clone(),
            names: engine.names.clone(),
            waiting: Arc::new(Mutex::new(Waiting { counts: HashMap::new(), read: [last; 2] })),
        })
    }

    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an assembled context.
    pub fn count(&self, scope: Scope, context: &AssembledContext) {
        self.wait(scope, self.clock.now(), &context.usage());
    }

    fn wait(&self, scope: Scope, at: Timestamp, counters: &UsageCounters) {
        let mut waiting = self.waiting();
        let (since, counted) = waiting.counts.entry(scope).or_insert((at, Default::default()));
        *since = at.min(*since);
        counted.add(counters);
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

    /// Writes what gathered, but nothing of a user who was erased meanwhile, by whichever server: it would
    /// bring the name back.
    pub async fn write(&self) {
        if let Err(error) = self.try_write().await {
            tracing::warn!(code = error.kind().code(), "some usage was not counted");
        }
    }

    async fn try_write(&self) -> Result<()> {
        let (counts, [before, _]) = {
            let mut waiting = self.waiting();
            (std::mem::take(&mut waiting.counts), waiting.read)
        };
        if counts.is_empty() {
            return Ok(());
        }
        // Before the ledger: whoever is erased once it was read is erased after this.
        let erasures = counts.keys().map(|scope| self.store.erasures(scope));
        let erasures = try_join_all(erasures).await?;
        let (erased, last) = self.erase.users_since(before).await?;
        {
            let read = &mut self.waiting().read;
            *read = [read[1], last];
        }
        let stays = |scope: &Scope, since: Timestamp| {
            let name = self.names.user(&scope.tenant, &scope.user);
            !erased.iter().any(|(user, at)| *user == name && at.plus(LATE) >= since)
        };
        let counts = counts.into_iter().zip(erasures);
        let counts = counts.filter(|((scope, (since, _)), _)| stays(scope, *since));
        let now = self.clock.now();
        let writes = counts.map(|((scope, (since, counters)), erasures)| async move {
            let usage = Write::AddUsage(UsageDay::of(now), counters);
            let mut batch = WriteBatch::new(scope.clone(), now).with(usage);
            batch.preconditions.extend(erasures.map(Precondition::IfErasures));
            match self.store.apply(batch).await {
                // Whose it is, the ledger tells the next time.
                Err(error) if error.is_lost_race() => {
                    self.wait(scope, since, &counters);
                    Ok(())
                }
                applied => applied.map(|_| ()),
            }
        });
        join_all(writes).await.into_iter().collect()
    }
}
