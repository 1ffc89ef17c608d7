//! In-memory fakes of the storage ports: simple over fast, and held to the same tables as the real
//! adapters. The files mirror `core/src/ports`.

mod apply;
mod cache;
mod documents;
mod entities;
mod erasure;
mod facts;
mod file_search;
mod file_source;
mod files;
mod interrupt;
mod jobs;
mod ledger;
mod lexical;
mod model;
mod outbox;
mod personas;
mod profiles;
mod refusals;
mod sessions;
mod summaries;
mod tenant;
mod usage;
mod vector;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use throughline_core::entity::Entity;
use throughline_core::fact::RejectionKey;
use throughline_core::ids::{
    BackupId, FileRefId, MessageId, PersonaId, PresetId, SessionId, UserId,
};
use throughline_core::index::{IndexUnit, Namespace, UnitKey};
use throughline_core::job::Job;
use throughline_core::persona::{Backup, Persona, Preset, PresetUse, Rating};
use throughline_core::ports::{Applied, FileList, Health, ScopeCounters, Store, WriteBatch};
use throughline_core::scope::Profile;
use throughline_core::session::FileRef;
use throughline_core::summary::Summary;
use throughline_core::usage::{UsageCounters, UsageDay};
use throughline_core::{Result, Scope};
use tokio::sync::Notify;

pub use cache::{MemoryCache, MemoryRateLimiter};
pub use file_search::MemoryFileSearch;
pub use file_source::MemoryFiles;
pub use ledger::MemoryLedger;
pub use model::{Answering, HashEmbedder, ScriptedModel};
use vector::Vectors;

/// Everything of the `Store` and `VectorIndex` ports, in memory and behind one lock.
#[derive(Debug, Default)]
pub struct MemoryStore {
    state: Mutex<State>,
    enqueued: Notify,
    interrupt: interrupt::Interrupt,
}

#[derive(Debug, Clone, Default)]
struct State {
    scopes: BTreeMap<Scope, ScopeState>,
    /// The scopes in the order in which they were first written to.
    order: Vec<Scope>,
    /// How many scopes there ever were.
    begun: u64,
    vectors: Vectors,
    /// Of all scopes, in the order in which they were enqueued.
    jobs: Vec<Job>,
    tenants: tenant::Tenants,
    noted: erasure::Noted,
    /// By interface and code.
    refusals: BTreeMap<(String, String), u64>,
}

#[derive(Debug, Clone, Default)]
struct ScopeState {
    /// The numbers given last; what is held is counted anew where it is asked for.
    counters: ScopeCounters,
    /// Of this scope, after those of every scope that began before it.
    erasures: u64,
    /// By number.
    sessions: Vec<sessions::Thread>,
    /// By number.
    facts: Vec<facts::Held>,
    entities: Vec<Entity>,
    summaries: BTreeMap<SessionId, Vec<Summary>>,
    profile: Option<Profile>,
    usage: BTreeMap<UsageDay, UsageCounters>,
    index: BTreeMap<(Namespace, UnitKey), IndexUnit>,
    rejected: BTreeSet<RejectionKey>,
    files: BTreeMap<FileRefId, FileRef>,
    file_lists: BTreeMap<SessionId, FileList>,
    personas: BTreeMap<PersonaId, Persona>,
    presets: BTreeMap<PresetId, Preset>,
    preset_uses: BTreeMap<PresetId, PresetUse>,
    backups: BTreeMap<BackupId, Backup>,
    tags: BTreeMap<MessageId, Vec<String>>,
    ratings: BTreeMap<(MessageId, UserId), Rating>,
    /// In the order in which they were first written to.
    documents: Vec<documents::Document>,
    /// By idempotency key.
    answers: BTreeMap<[u8; 16], apply::Answer>,
}

impl MemoryStore {
    /// An empty store.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.interrupt.call();
        // The state is swapped as a whole, so that a panic cannot leave it half-changed.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another store that holds the same: a backup.
    #[must_use]
    pub fn copy(&self) -> Self {
        Self { state: Mutex::new(self.state().clone()), ..Self::default() }
    }

    /// Has something done after so many further calls, before the next one: what another caller does
    /// between two calls of the one at hand. It may call the store.
    pub fn interrupt(&self, after: usize, what: impl FnOnce() + Send + 'static) {
        self.interrupt.set(after, Box::new(what));
    }

    /// Takes an interruption back that has not happened. Returns whether there was one.
    pub fn cancel_interruption(&self) -> bool {
        self.interrupt.cancel()
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
