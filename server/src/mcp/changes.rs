//! What changed, told to clients that listen: what this process did, to whoever's memory it is.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::model::ResourceUpdatedNotificationParam;
use rmcp::service::SubscriptionContext;
use rmcp::{Peer, RoleServer};
use throughline_core::Scope;
use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use super::resources::path_of;

/// Changes that wait for a slow listener before it misses the oldest.
const WAITING: usize = 256;

/// What changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum What {
    /// The resource at a path.
    Resource(String),
    /// Which resources there are.
    List,
}

/// Where changes are announced.
#[derive(Clone)]
pub(super) struct Changes(broadcast::Sender<(Scope, What)>);

impl Changes {
    pub(super) fn new() -> Self {
        Self(broadcast::channel(WAITING).0)
    }

    /// Tells whoever listens. Nobody is nobody to tell.
    pub(super) fn announce(&self, scope: Scope, what: What) {
        let _ = self.0.send((scope, what));
    }

    /// Changes of a scope, from now on.
    pub(super) fn of(&self, scope: Scope) -> Listener {
        Listener { scope, changes: self.0.subscribe() }
    }
}

/// Hears of the changes of one scope.
pub(super) struct Listener {
    scope: Scope,
    changes: broadcast::Receiver<(Scope, What)>,
}

impl Listener {
    /// The next change; `None` when the server is gone. Who missed some goes on with those that are left.
    pub(super) async fn next(&mut self) -> Option<What> {
        loop {
            match self.changes.recv().await {
                Ok((scope, what)) if scope == self.scope => return Some(what),
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return None,
            }
        }
    }

    /// Tells a session what it watches, until it has ended.
    pub(super) async fn tell(mut self, peer: Peer<RoleServer>, watched: Watched) {
        while let Some(what) = self.next().await {
            let told = match what {
                What::List => peer.notify_resource_list_changed().await,
                What::Resource(path) => match watched.uri(&path) {
                    Some(uri) => {
                        let told = ResourceUpdatedNotificationParam::new(uri);
                        peer.notify_resource_updated(told).await
                    }
                    None if peer.is_transport_closed() => return,
                    None => continue,
                },
            };
            if told.is_err() {
                return;
            }
        }
    }

    /// Tells a subscription what it asked for, until its client hangs up.
    pub(super) async fn serve(mut self, subscription: &SubscriptionContext) {
        let wanted = subscription.accepted().clone();
        let watched = Watched::default();
        for uri in wanted.resource_subscriptions.into_iter().flatten() {
            watched.add(uri);
        }
        loop {
            let change = tokio::select! {
                change = self.next() => change,
                () = subscription.cancelled() => None,
            };
            let told = match change {
                Some(What::List) if wanted.resources_list_changed == Some(true) => {
                    subscription.sink().notify_resource_list_changed().await
                }
                Some(What::Resource(path)) => match watched.uri(&path) {
                    Some(uri) => subscription.sink().notify_resource_updated(uri).await,
                    None => continue,
                },
                Some(What::List) => continue,
                None => return,
            };
            if told.is_err() {
                return;
            }
        }
    }
}

/// The resources that a session watches: URIs as it gave them, by their paths.
#[derive(Debug, Clone, Default)]
pub(super) struct Watched(Arc<Mutex<BTreeMap<String, String>>>);

impl Watched {
    /// Watches a resource; whether it is one of ours.
    pub(super) fn add(&self, uri: String) -> bool {
        let Some(path) = path_of(&uri).map(str::to_owned) else { return false };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(path, uri);
        true
    }

    /// Watches it no more.
    pub(super) fn remove(&self, uri: &str) {
        if let Some(path) = path_of(uri) {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
        }
    }

    fn uri(&self, path: &str) -> Option<String> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(path).cloned()
    }
}

#[cfg(test)]
mod tests {
    use throughline_core::ids::{TenantId, UserId};

    use super::*;

    fn scope(tenant: &str) -> Scope {
        Scope {
            tenant: TenantId::new(tenant).unwrap(),
            user: UserId::new("ana").unwrap(),
            workspace: None,
        }
    }

    #[tokio::test]
    async fn changes_are_told_within_their_scope_only() {
        let changes = Changes::new();
        let mut own = changes.of(scope("acme"));
        changes.announce(scope("bolt"), What::Resource("contexts".to_owned()));
        changes.announce(scope("acme"), What::List);
        assert_eq!(own.next().await, Some(What::List));
        drop(changes);
        assert_eq!(own.next().await, None);
    }

    #[test]
    fn a_resource_is_told_under_the_uri_that_was_given() {
        let watched = Watched::default();
        assert!(watched.add("mcp-llm-generator://contexts".to_owned()));
        assert!(!watched.add("file:///etc/passwd".to_owned()));
        assert_eq!(watched.uri("contexts").as_deref(), Some("mcp-llm-generator://contexts"));
        watched.remove("throughline://contexts");
        assert_eq!(watched.uri("contexts"), None);
    }
}
