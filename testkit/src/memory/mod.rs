//! In-memory fakes of the storage ports: simple over fast, and held to the same tables as the real
//! adapters. The files mirror `core/src/ports`.

mod apply;
mod cache;
mod entities;
mod facts;
mod jobs;
mod lexical;
mod model;
mod outbox;
mod profiles;
mod sessions;
mod summaries;
mod usage;
mod vector;

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use throughline_core::entity::Entity;
use throughline_core::ids::SessionId;
use throughline_core::job::Job;
use throughline_core::ports::{Applied, Health, IndexUnit, Namespace, Store, UnitKey, WriteBatch};
use throughline_core::scope::Profile;
use throughline_core::summary::Summary;
use throughline_core::usage::{UsageCounters, UsageDay};
use throughline_core::{Result, Scope};
use tokio::sync::Notify;

pub use cache::{MemoryCache, MemoryRateLimiter};
pub use model::HashEmbedder;
use vector::Vectors;

/// Everything of the `Store` and `VectorIndex` ports, in memory and behind one lock.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<State>,
    enqueued: Notify,
}

#[derive(Debug, Clone, Default)]
struct State {
    scopes: BTreeMap<Scope, ScopeState>,
    /// The scopes in the order in which they were first written to.
    order: Vec<Scope>,
    vectors: Vectors,
    /// Of all scopes, in the order in which they were enqueued.
    jobs: Vec<Job>,
}

#[derive(Debug, Clone, Default)]
struct ScopeState {
    last_seq: u64,
    /// By number, the first one being 1.
    sessions: Vec<sessions::Thread>,
    /// By number, the first one being 1.
    facts: Vec<facts::Held>,
    entities: Vec<Entity>,
    summaries: BTreeMap<SessionId, Vec<Summary>>,
    profile: Option<Profile>,
    usage: BTreeMap<UsageDay, UsageCounters>,
    index: BTreeMap<(Namespace, UnitKey), IndexUnit>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // The state is swapped as a whole, so that a panic cannot leave it half-changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reads a scope; one that was never written to reads as empty.
    fn read<T>(&self, scope: &Scope, work: impl FnOnce(&ScopeState) -> T) -> T {
        let state = self.state();
        match state.scopes.get(scope) {
            Some(held) => work(held),
            None => work(&ScopeState::default()),
        }
    }
}

#[async_trait]
impl Store for MemoryStore {
    async fn apply(&self, batch: WriteBatch) -> Result<Applied> {
        let mut state = self.state();
        let mut next = state.clone();
        let applied = apply::apply(&mut next, &batch)?;
        *state = next;
        if batch.enqueues() {
            // Those who wait, and the next one who would.
            self.enqueued.notify_waiters();
            self.enqueued.notify_one();
        }
        Ok(applied)
    }

    async fn health(&self, _deep: bool) -> Result<Health> {
        Ok(Health { backend: "memory".to_owned(), schema_version: 0, problems: Vec::new() })
    }
}
