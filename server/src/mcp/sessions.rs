//! Sessions of revision 2025-11-25: whose they are, and how they survive a restart.
//!
//! rmcp gives a session to whoever knows its id. [`guard`] stands before it and answers 404 to all but its owner. What
//! a session began with is kept in the cache that replicas share, where there is one: then any of them takes the
//! session up again, after a restart as well. Without, it is kept in this process, and another one answers 404, to
//! which the protocol has clients begin anew.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use crate::wire::held::held;
use crate::wire::problem::Failure;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use futures_util::future::BoxFuture;
use rmcp::model::InitializeRequestParams;
use rmcp::transport::streamable_http_server::session::store::{
    SessionState, SessionStore, SessionStoreError,
};
use throughline_core::ids::KeyId;
use throughline_core::ports::{Cache, Clock};
use throughline_core::time::Timestamp;
use throughline_core::{Error, ErrorKind, Scope};
use throughline_engine::admission::ClientId;
use throughline_engine::identity::Identity;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::subscriptions::Watched;

/// How long a session may be left alone.
pub(super) const KEPT: Duration = Duration::from_secs(24 * 3_600);
/// How long a session may be idle before its memory here is freed; its next request loads it again.
const IDLE: Duration = Duration::from_secs(3_600);
/// How often sessions are looked after that have no requests.
const TEND_EVERY: Duration = Duration::from_secs(60);
/// Most sessions of one owner in this process: the one that was left alone longest goes.
const MOST_OF_AN_OWNER: usize = 64;
/// Most sessions of one key, which may invent owners.
const MOST_OF_A_KEY: usize = 1_024;
/// Most streams of `subscriptions/listen` that one key has open in this process: it may invent users and workspaces.
const MOST_STREAMS: usize = 128;
/// Most bytes of what a session began with.
const MOST_BYTES: usize = 64 << 10;
/// The header that names a session.
const SESSION_ID: &str = "mcp-session-id";

tokio::task_local! {
    /// The caller of the request at work: rmcp does not hand it to a [`SessionStore`].
    static CALLER: Owner;
}

/// Who began a session.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Owner {
    scope: Scope,
    key: Option<KeyId>,
}

impl Owner {
    fn of(identity: &Identity) -> throughline_core::Result<Self> {
        Ok(Self { scope: identity.scope()?, key: identity.principal.key })
    }

    /// Under which the shared cache knows a session of this owner.
    fn name(&self, id: &str) -> String {
        let key = self.key.map(|key| key.to_string()).unwrap_or_default();
        format!("mcp session {key} {id}")
    }
}

struct Record {
    owner: Owner,
    state: SessionState,
    used: Timestamp,
    /// When a request or a stream of it was last seen open.
    heard: Timestamp,
    /// When it was last written to the cache that replicas share, if it was.
    shared_at: Option<Timestamp>,
    /// Local to this process: after a restart, and on another replica, a client subscribes again.
    watched: Watched,
    /// Held by its requests until their answers are read, and by its streams.
    open: Arc<()>,
    /// Ends the tasks of the session; cancelled once they were freed.
    life: CancellationToken,
    /// Closes what rmcp holds of it.
    closing: TaskTracker,
    /// Whether its owner ended it and the shared cache was not told yet.
    is_over: bool,
}

impl Record {
    fn new(owner: Owner, state: SessionState, now: Timestamp) -> Self {
        Self {
            owner,
            state,
            used: now,
            heard: now,
            shared_at: None,
            watched: Watched::default(),
            open: Arc::default(),
            life: CancellationToken::new(),
            closing: TaskTracker::new(),
            is_over: false,
        }
    }

    /// When it was last used or heard.
    fn last(&self) -> Timestamp {
        self.used.max(self.heard)
    }

    fn is_open(&self) -> bool {
        Arc::strong_count(&self.open) > 1
    }

    /// Whether it was left alone for so long.
    fn is_left(&self, time: Duration, now: Timestamp) -> bool {
        self.last().plus(time) <= now
    }
}

/// Handle for the tasks of one session.
pub(super) struct Session {
    pub(super) id: String,
    /// Its subscriptions.
    pub(super) watched: Watched,
    /// Until when.
    pub(super) life: CancellationToken,
}

/// Closes the session of rmcp that has this id.
type Close = Box<dyn Fn(&str) -> BoxFuture<'static, ()> + Send + Sync>;

/// The sessions that were begun and not ended, and how many streams there are beside them.
#[derive(Clone)]
pub(super) struct Records {
    here: Arc<Mutex<HashMap<String, Record>>>,
    streams: Arc<Mutex<HashMap<ClientId, usize>>>,
    shared: Option<Arc<dyn Cache>>,
    clock: Arc<dyn Clock>,
    idle: Duration,
    close: Arc<OnceLock<Close>>,
}

impl Records {
    /// With a cache that replicas share, if any. A call may wait so long for its client.
    pub(super) fn new(
        shared: Option<Arc<dyn Cache>>,
        clock: Arc<dyn Clock>,
        patience: Duration,
    ) -> Self {
        let idle = IDLE.max(2 * patience).min(KEPT);
        let (here, streams, close) = Default::default();
        Self { here, streams, shared, clock, idle, close }
    }

    /// Has what rmcp holds of a session closed with it, and looks after them until the service stops.
    pub(super) fn serve(
        &self,
        close: impl Fn(&str) -> BoxFuture<'static, ()> + Send + Sync + 'static,
        leaving: CancellationToken,
    ) {
        // A server has one route.
        let _ = self.close.set(Box::new(close));
        let records = self.clone();
        tokio::spawn(leaving.run_until_cancelled_owned(async move {
            loop {
                tokio::time::sleep(TEND_EVERY).await;
                records.tend().await;
            }
        }));
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Record>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Those that were not left alone for too long.
    fn swept(&self, now: Timestamp) -> MutexGuard<'_, HashMap<String, Record>> {
        let mut here = self.lock();
        for (id, record) in here.iter_mut() {
            if record.is_open() {
                record.heard = now;
            } else if record.is_left(self.idle, now) {
                self.rest(id, record);
            }
        }
        here.retain(|_, record| !record.is_left(KEPT, now));
        here
    }

    /// Ends what works for a session.
    fn rest(&self, id: &str, record: &Record) {
        if !record.life.is_cancelled() {
            record.life.cancel();
            if let Some(close) = self.close.get() {
                // One whose client reads nothing may take its time.
                record.closing.spawn(close(id));
            }
        }
    }

    /// Ends what works for a session. The next request of its owner takes it up again.
    pub(super) fn let_go(&self, id: &str) {
        if let Some(record) = self.lock().get(id) {
            self.rest(id, record);
        }
    }

    /// Ends a session here.
    fn end(&self, id: &str) {
        if let Some(record) = self.lock().remove(id) {
            self.rest(id, &record);
        }
    }

    /// A session that is this owner's is used now, and held by what this gives.
    async fn used(&self, owner: &Owner, id: &str) -> Option<Arc<()>> {
        let now = self.clock.now();
        match self.lock().get_mut(id) {
            Some(record) if record.owner != *owner || record.is_over => return None,
            // Before it is looked which ones were left alone.
            Some(record) if !record.is_left(KEPT, now) => record.used = now,
            _ => {}
        }
        drop(self.swept(now));
        if !self.goes_on(owner, id, now).await {
            return None;
        }
        let (open, closing) = {
            let mut here = self.lock();
            let record = here.get_mut(id).filter(|record| !record.is_over)?;
            if record.life.is_cancelled() {
                record.life = CancellationToken::new();
            }
            (Arc::clone(&record.open), record.closing.clone())
        };
        // Free what rmcp holds of the session before it is created again.
        closing.close();
        closing.wait().await;
        Some(open)
    }

    /// Whether a session of this owner goes on. The cache that replicas share has the last word: another one may have
    /// begun it or ended it. One that is away says nothing.
    async fn goes_on(&self, owner: &Owner, id: &str, now: Timestamp) -> bool {
        let here = self.lock().get(id).map(|record| record.shared_at);
        let Some(shared) = &self.shared else { return here.is_some() };
        match (shared.get(&owner.scope, &owner.name(id)).await, here) {
            (Ok(Some(bytes)), None) => {
                let Ok(state) = serde_json::from_slice(&bytes) else { return false };
                let mut record = Record::new(owner.clone(), state, now);
                record.shared_at = Some(now);
                self.keep(id, record);
                // Another one may have written it long ago.
                let _ = self.share(owner, id, &bytes).await;
                true
            }
            (Ok(Some(bytes)), Some(at)) => {
                if at.is_none_or(|at| at.plus(KEPT / 2) < now) {
                    // The next request tries again.
                    let _ = self.share(owner, id, &bytes).await;
                }
                true
            }
            // It began while the cache was away.
            (Ok(None), Some(None)) => {
                let state = self.lock().get(id).map(|record| record.state.clone());
                if let Some(Ok(bytes)) = state.map(|state| serde_json::to_vec(&state)) {
                    let _ = self.share(owner, id, &bytes).await;
                }
                true
            }
            (Ok(None), _) => {
                self.end(id);
                false
            }
            (Err(_), here) => here.is_some(),
        }
    }

    /// Writes a session to the cache that replicas share, if any.
    async fn share(&self, owner: &Owner, id: &str, bytes: &[u8]) -> throughline_core::Result<()> {
        let Some(shared) = &self.shared else { return Ok(()) };
        let name = owner.name(id);
        shared.put(&owner.scope, &name, bytes, KEPT, &[&name]).await?;
        if let Some(record) = self.lock().get_mut(id) {
            record.shared_at = Some(self.clock.now());
        }
        Ok(())
    }

    /// Ends a session everywhere. Until the others could be told it is known here that it is over.
    async fn forget(&self, owner: &Owner, id: &str) -> throughline_core::Result<()> {
        if let Some(shared) = &self.shared {
            if let Some(record) = self.lock().get_mut(id) {
                record.is_over = true;
                self.rest(id, record);
            }
            shared.invalidate(&owner.scope, &owner.name(id)).await?;
        }
        self.end(id);
        Ok(())
    }

    /// Looks after the sessions that have no requests: ends those that were left alone or ended elsewhere.
    async fn tend(&self) {
        let now = self.clock.now();
        let due = |(id, record): (&String, &Record)| {
            (record.is_over || record.is_open())
                .then(|| (id.clone(), record.owner.clone(), record.is_over))
        };
        let due: Vec<_> = self.swept(now).iter().filter_map(due).collect();
        for (id, owner, is_over) in due {
            if is_over {
                // The next change is reported again.
                let _ = self.forget(&owner, &id).await;
            } else {
                self.goes_on(&owner, &id, now).await;
            }
        }
    }

    /// The session of a request, where it belongs to one.
    pub(super) fn session(&self, headers: &HeaderMap) -> Option<Session> {
        let id = headers.get(SESSION_ID)?.to_str().ok()?;
        let here = self.lock();
        let Record { watched, life, .. } = here.get(id)?;
        Some(Session { id: id.to_owned(), watched: watched.clone(), life: life.clone() })
    }

    /// Keeps a session here that is not yet, in the place of the owner's or the key's that was left alone longest where
    /// there are too many.
    fn keep(&self, id: &str, record: Record) {
        let mut here = self.swept(record.used);
        if here.contains_key(id) {
            return;
        }
        self.make_room(&mut here, MOST_OF_AN_OWNER, |owner| *owner == record.owner);
        self.make_room(&mut here, MOST_OF_A_KEY, |owner| owner.key == record.owner.key);
        here.insert(id.to_owned(), record);
    }

    /// Ends the session that was left alone longest, where so many or more are of such an owner.
    fn make_room(
        &self,
        here: &mut HashMap<String, Record>,
        most: usize,
        is_of: impl Fn(&Owner) -> bool,
    ) {
        let counted = || here.iter().filter(|(_, held)| is_of(&held.owner));
        if counted().count() < most {
            return;
        }
        let oldest = counted()
            .min_by_key(|(_, held)| (held.is_open() || held.is_over, held.last(), held.used));
        let oldest = oldest.map(|(id, _)| id.clone());
        if let Some((id, oldest)) = oldest.and_then(|id| here.remove_entry(&id)) {
            self.rest(&id, &oldest);
        }
    }

    /// Opens a stream that stands alone.
    ///
    /// # Errors
    /// `Conflict` where its key has too many.
    pub(super) fn open_stream(&self, client: ClientId) -> throughline_core::Result<Stream> {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        let open = streams.entry(client).or_default();
        if *open >= MOST_STREAMS {
            let most = format!("too many streams: at most {MOST_STREAMS} can be open at a time");
            return Err(Error::new(ErrorKind::Conflict, most));
        }
        *open += 1;
        Ok(Stream { client, streams: Arc::clone(&self.streams) })
    }
}

/// A stream that is open as long as this is held.
pub(super) struct Stream {
    client: ClientId,
    streams: Arc<Mutex<HashMap<ClientId, usize>>>,
}

impl Drop for Stream {
    fn drop(&mut self) {
        let mut streams = self.streams.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = streams.get_mut(&self.client) {
            *open -= 1;
            if *open == 0 {
                streams.remove(&self.client);
            }
        }
    }
}

/// Whether so much of a session can be kept.
///
/// # Errors
/// `InvalidInput` where it is too much.
pub(super) fn check(began: &InitializeRequestParams) -> throughline_core::Result<()> {
    let broken = |error| Error::internal("a session has no JSON form").with_source(error);
    let size = serde_json::to_vec(began).map_err(broken)?.len();
    if size <= MOST_BYTES {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the request `initialize` has {size} bytes, and at most {MOST_BYTES} are allowed: shorten \
         the client's description"
    )))
}

#[async_trait::async_trait]
impl SessionStore for Records {
    async fn load(&self, id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        Ok(self.lock().get(id).map(|record| record.state.clone()))
    }

    async fn store(&self, id: &str, state: &SessionState) -> Result<(), SessionStoreError> {
        let owner = CALLER.try_with(Clone::clone)?;
        check(&state.initialize_params)?;
        let bytes = serde_json::to_vec(state)?;
        self.keep(id, Record::new(owner.clone(), state.clone(), self.clock.now()));
        if let Err(error) = self.share(&owner, id, &bytes).await {
            let code = error.kind().code();
            tracing::warn!(
                code,
                "a session could not be saved to the shared cache: {}",
                error.message()
            );
        }
        Ok(())
    }

    async fn delete(&self, id: &str) -> Result<(), SessionStoreError> {
        let owner = CALLER.try_with(Clone::clone)?;
        if let Err(error) = self.forget(&owner, id).await {
            let code = error.kind().code();
            tracing::warn!(
                code,
                "the end of a session could not be saved to the shared cache: {}",
                error.message()
            );
        }
        Ok(())
    }
}

/// Lets a caller through to its own sessions only. It needs the [`Identity`] in the request's extensions.
pub(super) async fn guard(
    State(records): State<Records>,
    request: Request,
    next: Next,
) -> Response {
    let owner = request
        .extensions()
        .get::<Identity>()
        .ok_or_else(throughline_core::services::access::unauthenticated)
        .and_then(Owner::of);
    let owner = match owner {
        Ok(owner) => owner,
        Err(error) => return Failure::from(error).into_response(),
    };
    let id = request.headers().get(SESSION_ID).map(|id| id.to_str().unwrap_or_default().to_owned());
    let mut open = None;
    if let Some(id) = id {
        open = records.used(&owner, &id).await;
        if open.is_none() {
            let error = Error::not_found(
                "there is no session with this Mcp-Session-Id: send `initialize` again",
            );
            return Failure::from(error).into_response();
        }
    }
    let ends = request.method() == Method::DELETE;
    let mut response = CALLER.scope(owner, next.run(request)).await;
    if open.is_some() {
        response = held(response, open);
    }
    if ends && response.status() == StatusCode::ACCEPTED {
        // It is over, and clients warn of a session that will be over at some time.
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}

#[cfg(test)]
mod tests;
