//! What changed, told to clients that listen. What they watch is looked at after every call here that writes to the
//! same memory, and from time to time: the HTTP interface, workers and other replicas change it as well.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::SubscriptionContext;
use rmcp::{Peer, RoleServer};
use throughline_core::access::{Permission, Usable};
use throughline_core::services::access::unauthenticated;
use throughline_core::{Error, Result, Scope};
use throughline_engine::identity::Identity;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::task;
use tokio::time::{Instant, Interval, MissedTickBehavior, interval};

use super::Server;
use super::resources::{self, path_of};
use super::sessions::Session;

/// Calls that wait for a slow subscriber before it only gets a notice that there were some.
const WAITING: usize = 256;
/// How long a change of somebody else may go unseen.
const LOOK_EVERY: Duration = Duration::from_secs(2);
/// How often the key of an idle subscriber is checked.
const PROVE_EVERY: Duration = Duration::from_secs(30);
/// Most subscriptions between being accepted and being served.
const MOST_ACCEPTED: usize = 1_024;
/// Most resources that a session or a subscription watches: each is read to see whether it changed.
const MOST_WATCHED: usize = 100;

/// The state of a resource: a hash, or missing.
pub(super) type Mark = Option<blake3::Hash>;

/// The last known state of a resource.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    /// The state at the last check.
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
pub(super) struct Changes {
    written: broadcast::Sender<Scope>,
    /// Calls since a subscription was accepted, by the task that serves it.
    accepted: Arc<Mutex<HashMap<task::Id, broadcast::Receiver<Scope>>>>,
}

impl Changes {
    pub(super) fn new() -> Self {
        Self { written: broadcast::channel(WAITING).0, accepted: Arc::default() }
    }

    /// Notifies subscribers. Having no subscribers is not an error.
    pub(super) fn announce(&self, scope: Scope) {
        let _ = self.written.send(scope);
    }

    /// Calls from now on.
    pub(super) fn calls(&self) -> broadcast::Receiver<Scope> {
        self.written.subscribe()
    }

    /// Hears calls for the subscription that this task accepts. Its client is told before the subscription is served, and
    /// may write at once.
    pub(super) fn accept(&self) {
        let Some(task) = task::try_id() else { return };
        let mut accepted = self.accepted();
        // Those whose client left before it was told are never served.
        if accepted.len() >= MOST_ACCEPTED {
            accepted.clear();
        }
        accepted.insert(task, self.calls());
    }

    /// Calls since this task accepted its subscription.
    pub(super) fn calls_since_accepted(&self) -> broadcast::Receiver<Scope> {
        let accepted = task::try_id().and_then(|task| self.accepted().remove(&task));
        accepted.unwrap_or_else(|| self.calls())
    }

    fn accepted(&self) -> MutexGuard<'_, HashMap<task::Id, broadcast::Receiver<Scope>>> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The resources that somebody watches: by their paths, the URIs as the client gave them and what was seen.
#[derive(Debug, Clone, Default)]
pub(super) struct Watched(Arc<Mutex<BTreeMap<String, (String, Seen)>>>);

impl Watched {
    /// Watches a resource, of which this is there, where that is known.
    ///
    /// # Errors
    /// `NotFound` for an unknown resource; `InvalidInput` when there are too many.
    pub(super) fn add(&self, uri: String, mark: Option<Mark>) -> Result<()> {
        let path = path_of(&uri).ok_or_else(resources::unknown)?;
        let mut all = self.all();
        if all.len() >= MOST_WATCHED && !all.contains_key(&path) {
            let most = format!("at most {MOST_WATCHED} resources can be subscribed to at a time");
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

/// The pending notifications.
#[derive(Debug, PartialEq, Eq)]
enum What {
    /// The resource with this URI changed.
    Resource(String),
    /// Which resources there are changed.
    List,
}

/// The result of a check, if there was capacity for it.
type Spared<T> = Result<Option<T>>;

/// The result of a check.
#[derive(Debug, Default)]
struct Look {
    told: Vec<What>,
    /// Whether something was not seen.
    is_part: bool,
    /// The first failure.
    failed: Option<Error>,
}

impl Look {
    /// The list, if it could be read; an unreadable resource does not hide the others.
    fn at<T>(&mut self, read: Spared<T>) -> Option<T> {
        let seen = read.unwrap_or_else(|error| {
            self.failed.get_or_insert(error);
            None
        });
        self.is_part |= seen.is_none();
        seen
    }
}

/// Whether a subscriber gets changes of the list of resources.
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
    /// Whether a call wrote since all was seen.
    written: bool,
    /// When the key was last in force.
    proved: Instant,
    /// Whether the last look failed.
    is_failing: bool,
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
        // Only subscribers that asked for list changes get this confirmation.
        let listed = Seen { is_sure: list != Lists::Asked, ..Seen::default() };
        let (proved, written, is_failing) = (Instant::now(), false, false);
        Ok(Self {
            server,
            who,
            scope,
            calls,
            watched,
            list,
            listed,
            ticks,
            written,
            proved,
            is_failing,
        })
    }

    /// What is to be told next, in their order; nothing when it is time to see whether anybody still listens. `None`
    /// when the server is gone.
    ///
    /// # Errors
    /// `Unauthenticated` where the caller may listen no more.
    async fn next(&mut self) -> Result<Option<Vec<What>>> {
        tokio::select! {
            call = self.calls.recv() => match call {
                Ok(scope) if !self.concerns(&scope) => return Ok(Some(Vec::new())),
                Ok(_) | Err(RecvError::Lagged(_)) => self.written = true,
                Err(RecvError::Closed) => return Ok(None),
            },
            _ = self.ticks.tick() => {}
        }
        let look = self.look().await?;
        self.written &= look.is_part;
        if let Some(error) = &look.failed
            && !self.is_failing
        {
            let code = error.kind().code();
            tracing::warn!(
                code,
                "subscribed resources were not checked for changes: {}",
                error.message()
            );
        }
        self.is_failing = look.failed.is_some();
        Ok(Some(look.told))
    }

    /// Whether this call or one that waits wrote to the listener's memory.
    fn concerns(&mut self, scope: &Scope) -> bool {
        let mut written = *scope == self.scope;
        loop {
            match self.calls.try_recv() {
                Ok(scope) => written |= scope == self.scope,
                Err(TryRecvError::Lagged(_)) => written = true,
                Err(TryRecvError::Empty | TryRecvError::Closed) => return written,
            }
        }
    }

    async fn look(&mut self) -> Result<Look> {
        let mut look = Look::default();
        let watches = !self.watched.all().is_empty();
        let lists = match self.list {
            Lists::Unwanted => false,
            Lists::Unasked => self.written || watches || self.listed.mark.is_none(),
            Lists::Asked => true,
        };
        if !lists && !watches && self.proved.elapsed() < PROVE_EVERY {
            return Ok(look);
        }
        match look.at(self.spared(self.is_permitted()).await) {
            Some(true) => self.proved = Instant::now(),
            Some(false) => return Err(unauthenticated()),
            None => return Ok(look),
        }
        if lists {
            let now = self.spared(resources::mark_of_list(&self.server, &self.who)).await;
            if look.at(now).is_some_and(|now| self.listed.see(now, self.written)) {
                look.told.push(What::List);
            }
        }
        for path in self.watched.paths() {
            let now = self.spared(resources::mark(&self.server, &self.who, &path)).await;
            if let Some(now) = look.at(now) {
                let told = self.watched.see(&path, now, self.written);
                look.told.extend(told.map(What::Resource));
            }
        }
        Ok(look)
    }

    /// Whether its key is still in force, and permits what it did. Without one, whether there are none.
    async fn is_permitted(&self) -> Result<bool> {
        let engine = &self.server.app.engine;
        let Some(key) = &self.who.key else {
            return Ok(self.server.local.is_some() || !engine.store.has_keys().await?);
        };
        let reads = self.who.principal.permissions.has(Permission::Read);
        let (then, now) = (key, engine.clock.now());
        let key = engine.store.key(then.id).await?;
        Ok(key.is_some_and(|key| {
            key.still_usable(then, now) == Usable::Yes
                && (key.permissions.has(Permission::Read) || !reads)
        }))
    }

    /// Uses only free capacity; changes that are not seen now are seen later.
    async fn spared<T>(&self, work: impl Future<Output = Result<T>>) -> Spared<T> {
        self.server.admission.spare(work).await?.transpose()
    }

    /// Tells a session, until it has ended. Its streams end where the caller may hear no more.
    pub(super) async fn tell(self, peer: Peer<RoleServer>, session: Option<Session>) {
        let Some(Session { id, life, .. }) = session else {
            // The user of the process may.
            let _ = self.tell_all(peer).await;
            return;
        };
        let records = self.server.records.clone();
        if let Some(Err(_)) = life.run_until_cancelled(self.tell_all(peer)).await {
            records.let_go(&id);
        }
    }

    async fn tell_all(mut self, peer: Peer<RoleServer>) -> Result<()> {
        while let Some(told) = self.next().await? {
            for what in told {
                let told = match what {
                    What::List => peer.notify_resource_list_changed().await,
                    What::Resource(uri) => {
                        let told = ResourceUpdatedNotificationParam::new(uri);
                        peer.notify_resource_updated(told).await
                    }
                };
                if told.is_err() {
                    return Ok(());
                }
            }
            if peer.is_transport_closed() {
                return Ok(());
            }
        }
        Ok(())
    }

    /// Tells a subscription, until its client hangs up.
    ///
    /// # Errors
    /// `Unauthenticated` where the caller may hear no more.
    pub(super) async fn serve(mut self, subscription: &SubscriptionContext) -> Result<()> {
        loop {
            let told = tokio::select! {
                told = self.next() => told?,
                () = subscription.cancelled() => None,
            };
            let Some(told) = told else { return Ok(()) };
            for what in told {
                let told = match what {
                    What::List => subscription.sink().notify_resource_list_changed().await,
                    What::Resource(uri) => subscription.sink().notify_resource_updated(uri).await,
                };
                if told.is_err() {
                    return Ok(());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notifies_with_the_subscribed_uri() {
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

    #[tokio::test]
    async fn hears_calls_between_acceptance_and_serving() {
        let changes = Changes::new();
        let scope = Scope::new("t", "u", None).unwrap();
        let served = tokio::spawn({
            let (changes, scope) = (changes.clone(), scope.clone());
            async move {
                changes.accept();
                // Its client was told, and writes.
                changes.announce(scope);
                changes.calls_since_accepted().try_recv()
            }
        });
        assert_eq!(served.await.unwrap().unwrap(), scope);
        let other = tokio::spawn(async move { changes.calls_since_accepted().try_recv() });
        assert!(other.await.unwrap().is_err(), "another task accepted nothing");
    }

    #[test]
    fn refuses_subscriptions_over_limit() {
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
