//! What changed, told to clients that listen. What they watch is looked at after every call here that writes to the
//! same memory, and from time to time: the HTTP interface, workers and other replicas change it as well.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::SubscriptionContext;
use rmcp::{Peer, RoleServer};
use throughline_core::{Error, Result, Scope};
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::time::{Interval, MissedTickBehavior, interval};

use super::Server;
use super::resources::{self, path_of};
use crate::identity::Identity;

/// Calls that wait for a slow listener before it is told that there were some.
const WAITING: usize = 256;
/// How long a change of somebody else may go unseen.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// Most resources that a session or a subscription watches: each is read to see whether it changed.
const MOST_WATCHED: usize = 100;

/// What is there: something with this hash, or nothing.
pub(super) type Mark = Option<blake3::Hash>;

/// What was seen of a thing.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// What it was, once somebody looked.
    mark: Option<Mark>,
    /// Whether that was so before its client was told that it is watched. Else the first call that writes counts as
    /// a change, for it may have come before the look.
    is_sure: bool,
}

impl Seen {
    /// Notes what is there now; whether that is to be told.
    fn see(&mut self, now: Mark, written: bool) -> bool {
        let is_new = written && !self.is_sure;
        self.is_sure |= written;
        self.mark.replace(now).is_some_and(|before| before != now) || is_new
    }
}

/// Where calls that wrote are announced.
#[derive(Clone)]
pub(super) struct Changes(broadcast::Sender<Scope>);

impl Changes {
    pub(super) fn new() -> Self {
        Self(broadcast::channel(WAITING).0)
    }

    /// Tells whoever listens. Nobody is nobody to tell.
    pub(super) fn announce(&self, scope: Scope) {
        let _ = self.0.send(scope);
    }

    /// Calls from now on.
    pub(super) fn calls(&self) -> broadcast::Receiver<Scope> {
        self.0.subscribe()
    }
}

/// The resources that somebody watches: by their paths, the URIs as the client gave them and what was seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Watched(Arc<Mutex<BTreeMap<String, (String, Seen)>>>);

impl Watched {
    /// Watches a resource, of which this is there, where that is known.
    ///
    /// # Errors
    /// `NotFound` for none of ours; `InvalidInput` where there are too many.
    pub(super) fn add(&self, uri: String, mark: Option<Mark>) -> Result<()> {
        let path = path_of(&uri).ok_or_else(resources::unknown)?;
        let mut all = self.all();
        if all.len() >= MOST_WATCHED && !all.contains_key(&path) {
            let most = format!("at most {MOST_WATCHED} resources are watched at a time");
            return Err(Error::invalid(most));
        }
        all.insert(path, (uri, Seen { mark, is_sure: mark.is_some() }));
        Ok(())
    }

    /// Watches it no more.
    pub(super) fn remove(&self, uri: &str) {
        if let Some(path) = path_of(uri) {
            self.all().remove(&path);
        }
    }

    /// Their paths.
    pub(super) fn paths(&self) -> Vec<String> {
        self.all().keys().cloned().collect()
    }

    /// Notes what is there now; the URI, where that is to be told.
    fn see(&self, path: &str, now: Mark, written: bool) -> Option<String> {
        let mut all = self.all();
        let (uri, seen) = all.get_mut(path)?;
        seen.see(now, written).then(|| uri.clone())
    }

    fn all(&self) -> MutexGuard<'_, BTreeMap<String, (String, Seen)>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What is to be told.
#[derive(Debug, PartialEq, Eq)]
enum What {
    /// The resource with this URI changed.
    Resource(String),
    /// Which resources there are changed.
    List,
}

/// Whether one who listens is told which resources there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Lists {
    /// Not at all.
    Unwanted,
    /// A session is, unasked: of calls here, and of what others do while it watches something.
    Unasked,
    /// It asked.
    Asked,
}

/// Looks for one who listens.
pub(super) struct Listener {
    server: Server,
    who: Identity,
    scope: Scope,
    calls: broadcast::Receiver<Scope>,
    watched: Watched,
    list: Lists,
    /// Which resources there were.
    listed: Seen,
    ticks: Interval,
}

impl Listener {
    /// One who listens from `calls` on.
    ///
    /// # Errors
    /// Those of an identity without a user.
    pub(super) fn new(
        server: Server,
        who: Identity,
        calls: broadcast::Receiver<Scope>,
        watched: Watched,
        list: Lists,
    ) -> Result<Self> {
        let mut ticks = interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let scope = who.scope()?;
        // Nobody is told that lists are watched who did not ask.
        let listed = Seen { is_sure: list != Lists::Asked, ..Seen::default() };
        Ok(Self { server, who, scope, calls, watched, list, listed, ticks })
    }

    /// What is to be told next, in their order; nothing when it is time to see whether anybody still listens. `None`
    /// when the server is gone.
    async fn next(&mut self) -> Option<Vec<What>> {
        let written = tokio::select! {
            call = self.calls.recv() => match call {
                Ok(scope) => self.concerns(scope),
                Err(RecvError::Lagged(_)) => true,
                Err(RecvError::Closed) => return None,
            },
            _ = self.ticks.tick() => false,
        };
        let told = self.look(written).await.unwrap_or_else(|error| {
            let code = error.kind().code();
            tracing::warn!(code, "what a client watches was not looked at: {}", error.message());
            Vec::new()
        });
        Some(told)
    }

    /// Whether this call or one that waits wrote to the listener's memory.
    fn concerns(&mut self, scope: Scope) -> bool {
        let mut written = scope == self.scope;
        loop {
            match self.calls.try_recv() {
                Ok(scope) => written |= scope == self.scope,
                Err(TryRecvError::Lagged(_)) => written = true,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return written,
            }
        }
    }

    async fn look(&mut self, written: bool) -> Result<Vec<What>> {
        let mut told = Vec::new();
        let paths = self.watched.paths();
        let wanted = match self.list {
            Lists::Unwanted => false,
            Lists::Unasked => written || !paths.is_empty() || self.listed.mark.is_none(),
            Lists::Asked => true,
        };
        if wanted {
            let now = resources::mark_of_list(&self.server, &self.who).await?;
            if self.listed.see(now, written) {
                told.push(What::List);
            }
        }
        for path in paths {
            let now = resources::mark(&self.server, &self.who, &path).await?;
            told.extend(self.watched.see(&path, now, written).map(What::Resource));
        }
        Ok(told)
    }

    /// Tells a session, until it has ended.
    pub(super) async fn tell(mut self, peer: Peer<RoleServer>) {
        while let Some(told) = self.next().await {
            for what in told {
                let told = match what {
                    What::List => peer.notify_resource_list_changed().await,
                    What::Resource(uri) => {
                        let told = ResourceUpdatedNotificationParam::new(uri);
                        peer.notify_resource_updated(told).await
                    }
                };
                if told.is_err() {
                    return;
                }
            }
            if peer.is_transport_closed() {
                return;
            }
        }
    }

    /// Tells a subscription, until its client hangs up.
    pub(super) async fn serve(mut self, subscription: &SubscriptionContext) {
        loop {
            let told = tokio::select! {
                told = self.next() => told,
                () = subscription.cancelled() => None,
            };
            let Some(told) = told else { return };
            for what in told {
                let told = match what {
                    What::List => subscription.sink().notify_resource_list_changed().await,
                    What::Resource(uri) => subscription.sink().notify_resource_updated(uri).await,
                };
                if told.is_err() {
                    return;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_is_told_under_the_uri_that_was_given() {
        let watched = Watched::default();
        let uri = "mcp-llm-generator://contexts".to_owned();
        watched.add(uri.clone(), None).unwrap();
        assert!(watched.add("file:///etc/passwd".to_owned(), None).is_err());
        let mark = |text: &str| Some(blake3::hash(text.as_bytes()));
        assert_eq!(watched.see("contexts", mark("a"), false), None);
        assert_eq!(watched.see("contexts", mark("b"), false), Some(uri.clone()));
        assert_eq!(watched.see("contexts", None, false), Some(uri.clone()));
        // A call that began before the first look may have changed what was looked at.
        assert_eq!(watched.see("contexts", None, true), Some(uri.clone()));
        assert_eq!(watched.see("contexts", None, true), None);
        // Whoever knew what was there hears of what is another thing only.
        watched.add(uri.clone(), Some(mark("c"))).unwrap();
        assert_eq!(watched.see("contexts", mark("c"), true), None);
        assert_eq!(watched.see("contexts", mark("d"), true), Some(uri));
        watched.remove("throughline://contexts");
        assert_eq!(watched.see("contexts", mark("d"), true), None);
    }

    #[test]
    fn one_watches_so_much_and_no_more() {
        let watched = Watched::default();
        let uri = |nth: usize| format!("throughline://vault/v/memory/m{nth}");
        for nth in 0..MOST_WATCHED {
            watched.add(uri(nth), None).unwrap();
        }
        watched.add(uri(0), None).unwrap();
        let refused = watched.add(uri(MOST_WATCHED), None).unwrap_err();
        assert!(refused.message().contains("at most"), "{}", refused.message());
    }
}
