//! Calls of models that run on while their client does something else. They live in this process alone, each for the user who
//! began it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use throughline_core::{Error, ErrorKind, Result, Scope};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use uuid::Uuid;

/// Most calls that a process keeps, those included that have ended and were not asked for.
const MOST: usize = 32;

/// What came of a call: its text and data, or how it failed.
pub(super) type Ended = std::result::Result<(String, Value), String>;

/// The calls of a process.
#[derive(Debug, Default)]
pub(super) struct Calls {
    held: Mutex<BTreeMap<Uuid, Running>>,
}

#[derive(Debug)]
struct Running {
    scope: Scope,
    work: AbortHandle,
    ended: watch::Receiver<Option<Ended>>,
}

impl Calls {
    /// Begins a call of this id; returns the id.
    ///
    /// # Errors
    /// `RateLimited` where too many run.
    pub(super) fn start(
        &self,
        (id, scope): (Uuid, Scope),
        work: impl Future<Output = Ended> + Send + 'static,
    ) -> Result<Uuid> {
        let mut held = self.held();
        if held.len() >= MOST {
            // Ids are in the order of time: the oldest goes.
            let done = held.iter().find(|(_, running)| running.ended.borrow().is_some());
            let Some(done) = done.map(|(id, _)| *id) else {
                return Err(Error::new(
                    ErrorKind::RateLimited,
                    format!("{MOST} calls run: poll or cancel one before you start another"),
                ));
            };
            held.remove(&done);
        }
        let (tell, ended) = watch::channel(None);
        let work = tokio::spawn(async move {
            tell.send_replace(Some(work.await));
        });
        held.insert(id, Running { scope, work: work.abort_handle(), ended });
        Ok(id)
    }

    /// What came of a call, if it ends within this time. One that has ended is forgotten.
    ///
    /// # Errors
    /// `NotFound` for another user's, and one that was polled after its end or cancelled.
    pub(super) async fn poll(
        &self,
        scope: &Scope,
        id: Uuid,
        wait: Duration,
    ) -> Result<Option<Ended>> {
        let mut ended = self.of(scope, id)?.ended.clone();
        let outcome = match tokio::time::timeout(wait, ended.wait_for(Option::is_some)).await {
            Err(_) => return Ok(None),
            Ok(Ok(outcome)) => outcome.clone(),
            Ok(Err(_)) => Some(Err("internal: the call ended without an answer".to_owned())),
        };
        self.held().remove(&id);
        Ok(outcome)
    }

    /// Gives a call up.
    ///
    /// # Errors
    /// As [`Self::poll`].
    pub(super) fn cancel(&self, scope: &Scope, id: Uuid) -> Result<()> {
        self.of(scope, id)?.work.abort();
        self.held().remove(&id);
        Ok(())
    }

    /// Gives all calls up, because their client is gone.
    pub(super) fn cancel_all(&self) {
        for (_, running) in std::mem::take(&mut *self.held()) {
            running.work.abort();
        }
    }

    fn of(&self, scope: &Scope, id: Uuid) -> Result<Running> {
        let held = self.held();
        let running = held.get(&id).filter(|running| running.scope == *scope);
        let running = running.map(|Running { scope, work, ended }| Running {
            scope: scope.clone(),
            work: work.clone(),
            ended: ended.clone(),
        });
        running.ok_or_else(|| {
            Error::not_found("there is no such call: it was polled after its end, cancelled, or is of another process")
        })
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<Uuid, Running>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
