//! Sessions of revision 2025-11-25: whose they are, and how they survive a restart.
//!
//! rmcp gives a session to whoever knows its id. [`guard`] stands before it and answers 404 to all but its owner. What
//! a session began with is kept in the cache that replicas share, where there is one: then any of them takes the
//! session up again, after a restart as well. Without, it is kept in this process, and another one answers 404, to
//! which the protocol has clients begin anew.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, Method, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use rmcp::transport::streamable_http_server::session::store::{
    SessionState, SessionStore, SessionStoreError,
};
use throughline_core::ids::KeyId;
use throughline_core::ports::{Cache, Clock};
use throughline_core::time::Timestamp;
use throughline_core::{Error, Scope};

use super::changes::Watched;
use crate::identity::Identity;

/// How long a session may be left alone.
const KEPT: Duration = Duration::from_secs(24 * 3_600);
/// Most sessions of one owner in this process: the one that was left alone longest goes.
const MOST_OF_AN_OWNER: usize = 64;
/// The header that names a session.
const SESSION_ID: &str = "mcp-session-id";

tokio::task_local! {
    /// The caller of the request at work: rmcp does not hand it to a [`SessionStore`].
    static CALLER: Owner;
}

/// Who began a session.
#[derive(Debug, Clone, PartialEq, Eq)]
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
    /// When it was last written to the cache that replicas share, if there is one.
    shared_at: Timestamp,
    /// Here only: after a restart, and on another replica, a client subscribes anew.
    watched: Watched,
}

impl Record {
    fn new(owner: Owner, state: SessionState, now: Timestamp) -> Self {
        Self { owner, state, used: now, shared_at: now, watched: Watched::default() }
    }
}

/// The sessions that were begun and not ended.
#[derive(Clone)]
pub(super) struct Records {
    here: Arc<Mutex<HashMap<String, Record>>>,
    shared: Option<Arc<dyn Cache>>,
    clock: Arc<dyn Clock>,
}

impl Records {
    pub(super) fn new(shared: Option<Arc<dyn Cache>>, clock: Arc<dyn Clock>) -> Self {
        Self { here: Arc::default(), shared, clock }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Record>> {
        self.here.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether a session is this owner's; then it was used now. The cache that replicas share has the last word:
    /// another one may have ended it. One that is away says nothing.
    async fn is_of(&self, owner: &Owner, id: &str) -> bool {
        let now = self.clock.now();
        let here = {
            let mut here = self.lock();
            here.retain(|_, held| held.used.plus(KEPT) > now);
            match here.get_mut(id) {
                Some(record) if record.owner != *owner => return false,
                Some(record) => {
                    record.used = now;
                    Some(record.shared_at)
                }
                None => None,
            }
        };
        let Some(shared) = &self.shared else { return here.is_some() };
        let name = owner.name(id);
        match (shared.get(&owner.scope, &name).await, here) {
            (Ok(Some(bytes)), None) => {
                let Ok(state) = serde_json::from_slice(&bytes) else { return false };
                self.keep(id, Record::new(owner.clone(), state, now));
                true
            }
            (Ok(Some(bytes)), Some(shared_at)) => {
                if shared_at.plus(KEPT / 2) < now {
                    // The next request tries again.
                    let _ = shared.put(&owner.scope, &name, &bytes, KEPT, &[&name]).await;
                    if let Some(record) = self.lock().get_mut(id) {
                        record.shared_at = now;
                    }
                }
                true
            }
            (Ok(None), _) => {
                self.lock().remove(id);
                false
            }
            (Err(_), here) => here.is_some(),
        }
    }

    /// What the session of a request watches, where it belongs to one.
    pub(super) fn watched(&self, headers: &HeaderMap) -> Option<Watched> {
        let id = headers.get(SESSION_ID)?.to_str().ok()?;
        self.lock().get(id).map(|record| record.watched.clone())
    }

    /// Keeps a session here, in the place of the owner's that was left alone longest where there are too many.
    fn keep(&self, id: &str, record: Record) {
        let mut here = self.lock();
        here.retain(|_, held| held.used.plus(KEPT) > record.used);
        let of_owner = || here.iter().filter(|(_, held)| held.owner == record.owner);
        if of_owner().count() >= MOST_OF_AN_OWNER {
            let oldest = of_owner().min_by_key(|(_, held)| held.used).map(|(id, _)| id.clone());
            if let Some(oldest) = oldest {
                here.remove(&oldest);
            }
        }
        here.insert(id.to_owned(), record);
    }
}

#[async_trait::async_trait]
impl SessionStore for Records {
    async fn load(&self, id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        Ok(self.lock().get(id).map(|record| record.state.clone()))
    }

    async fn store(&self, id: &str, state: &SessionState) -> Result<(), SessionStoreError> {
        let owner = CALLER.try_with(Clone::clone)?;
        if let Some(shared) = &self.shared {
            let bytes = serde_json::to_vec(state)?;
            shared.put(&owner.scope, &owner.name(id), &bytes, KEPT, &[&owner.name(id)]).await?;
        }
        self.keep(id, Record::new(owner, state.clone(), self.clock.now()));
        Ok(())
    }

    async fn delete(&self, id: &str) -> Result<(), SessionStoreError> {
        let owner = CALLER.try_with(Clone::clone)?;
        if let Some(shared) = &self.shared {
            shared.invalidate(&owner.scope, &owner.name(id)).await?;
        }
        self.lock().remove(id);
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
        .ok_or_else(throughline_core::access::unauthenticated)
        .and_then(Owner::of);
    let owner = match owner {
        Ok(owner) => owner,
        Err(error) => return crate::http::failed(error),
    };
    let id = request.headers().get(SESSION_ID).map(|id| id.to_str().unwrap_or_default().to_owned());
    if let Some(id) = id
        && !records.is_of(&owner, &id).await
    {
        let error = Error::not_found("no session under this Mcp-Session-Id: initialize anew");
        return crate::http::failed(error).into_response();
    }
    let ends = request.method() == Method::DELETE;
    let mut response = CALLER.scope(owner, next.run(request)).await;
    if ends && response.status() == StatusCode::ACCEPTED {
        // It is over, and clients warn of a session that will be over at some time.
        *response.status_mut() = StatusCode::NO_CONTENT;
    }
    response
}
