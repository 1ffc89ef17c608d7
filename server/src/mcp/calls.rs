//! Calls of models that run on while their client does something else. They live in this process alone, each for the user who
//! began it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use throughline_core::{Error, ErrorKind, Result, Scope};
use throughline_engine::admission::ClientId;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use uuid::Uuid;

/// Most calls that a process keeps, those included that have ended and were not asked for.
const MOST: usize = 128;
/// The same of one key, which leaves room to the others.
const MOST_OF_A_KEY: usize = 32;

/// What came of a call: its text and data, or how it failed.
pub(super) type Ended = std::result::Result<(String, Value), String>;

/// The calls of a process.
#[derive(Debug, Default)]
pub(super) struct Calls {
    held: Mutex<BTreeMap<Uuid, Running>>,
}

#[derive(Debug, Clone)]
struct Running {
    client: ClientId,
    scope: Scope,
    work: AbortHandle,
    ended: watch::Receiver<Option<Ended>>,
}

impl Calls {
    /// Begins a call of this id; returns the id. Where there is no room, the oldest goes that has ended: of the same key
    /// where that has too many.
    ///
    /// # Errors
    /// `RateLimited` where too many of the key run, `Unavailable` where too many of all do.
    pub(super) fn start(
        &self,
        id: Uuid,
        (client, scope): (ClientId, Scope),
        work: impl Future<Output = Ended> + Send + 'static,
    ) -> Result<Uuid> {
        let mut held = self.held();
        let is_own = |running: &Running| running.client == client;
        if held.values().filter(|running| is_own(running)).count() >= MOST_OF_A_KEY {
            forget_one(&mut held, is_own).ok_or_else(|| {
                Error::new(
                    ErrorKind::RateLimited,
                    format!(
                        "{MOST_OF_A_KEY} calls run: poll or cancel one before you start another"
                    ),
                )
            })?;
        }
        if held.len() >= MOST {
            forget_one(&mut held, |_| true).ok_or_else(|| {
                let full = format!("{MOST} calls run, those of others included: retry in a minute");
                Error::new(ErrorKind::Unavailable, full)
            })?;
        }
        let (tell, ended) = watch::channel(None);
        let work = tokio::spawn(async move {
            tell.send_replace(Some(work.await));
        });
        held.insert(id, Running { client, scope, work: work.abort_handle(), ended });
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
        let running = held.get(&id).filter(|running| running.scope == *scope).cloned();
        running.ok_or_else(|| {
            Error::not_found("there is no such call: it was polled after its end, cancelled, or is of another process")
        })
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<Uuid, Running>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Forgets the oldest of these calls that has ended, if there is one: ids are in the order of time.
fn forget_one(
    held: &mut BTreeMap<Uuid, Running>,
    which: impl Fn(&Running) -> bool,
) -> Option<Running> {
    let has_ended = |running: &Running| running.ended.borrow().is_some();
    let oldest = held.iter().find(|(_, running)| which(running) && has_ended(running));
    let id = oldest.map(|(id, _)| *id)?;
    held.remove(&id)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 5] = ["1", "2", "3", "4", "5"];

    fn caller(key: &str) -> (ClientId, Scope) {
        let id = format!("{key:0>16}").parse().unwrap();
        (ClientId::Key(id), Scope::new("acme", key, None).unwrap())
    }

    #[tokio::test]
    async fn calls_of_one_key_leave_room_to_the_others() {
        let calls = Calls::default();
        let mut ids = (0..).map(Uuid::from_u128);
        let mut start = |key: &str, ends: bool| {
            let work = async move {
                if !ends {
                    std::future::pending::<()>().await;
                }
                Ok(("done".to_owned(), Value::Null))
            };
            calls.start(ids.next().unwrap(), caller(key), work)
        };
        let first = start("1", true).unwrap();
        for _ in 1..MOST_OF_A_KEY {
            start("1", false).unwrap();
        }
        let ended = &mut calls.of(&caller("1").1, first).unwrap().ended;
        ended.wait_for(Option::is_some).await.unwrap();
        let first_of_other = start("2", true).unwrap();
        let ended = &mut calls.of(&caller("2").1, first_of_other).unwrap().ended;
        ended.wait_for(Option::is_some).await.unwrap();
        // The key's own goes, and not what another has to read yet.
        start("1", false).unwrap();
        assert!(calls.of(&caller("1").1, first).is_err());
        assert!(calls.of(&caller("2").1, first_of_other).is_ok());
        assert_eq!(start("1", true).unwrap_err().kind(), ErrorKind::RateLimited);
        for key in &KEYS[1..4] {
            let room = MOST_OF_A_KEY - usize::from(*key == "2");
            for _ in 0..room {
                start(key, false).unwrap();
            }
        }
        start(KEYS[4], false).unwrap();
        assert!(calls.of(&caller("2").1, first_of_other).is_err(), "there was no room left");
        assert_eq!(start(KEYS[4], true).unwrap_err().kind(), ErrorKind::Unavailable);
    }
}
