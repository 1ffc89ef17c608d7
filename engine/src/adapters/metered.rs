//! A store and a vector index that are measured: how long each call takes, how it fails, and how much
//! recall reads. A method that a port gains is one more line here.

use std::sync::Arc;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use metrics::{Key, Label, Level, Metadata};
use throughline_core::access::{ApiKey, AuditEntry};
use throughline_core::document::{Memory, Snapshot, SnapshotInfo, Vault};
use throughline_core::entity::Entity;
use throughline_core::fact::{ActiveFact, Fact, Place, RejectionKey};
use throughline_core::ids::{
    BackupId, ContextId, ExternalId, FactId, KeyId, MemoryId, MessageId, PersonaId, PresetId,
    SessionId, ShareId, TenantId, UserId, VaultId,
};
use throughline_core::index::{Namespace, TermId, UnitKey};
use throughline_core::job::Job;
use throughline_core::page::{Page, PageRequest};
use throughline_core::persona::{
    Backup, BackupHead, Persona, PersonaSession, Preset, PresetUse, Rating, RatingCount,
};
use throughline_core::ports::{
    Applied, DocumentRepo, EntityRepo, ErasureRepo, ErasureState, FactRepo, FileList, FileRepo,
    HeadLimits, Health, JobRepo, Ledger, LedgerLimits, LexicalIndex, OutboxRepo, OutboxText,
    PersonaRepo, PostingLists, ProfileRepo, RefusalCount, RefusalRepo, ScopeTotals, SessionHead,
    SessionRepo, Store, SummaryRepo, TenantBatch, TenantRepo, UsageRepo, VectorHit, VectorIndex,
    VectorItem, VectorSpace, WriteBatch,
};
use throughline_core::scope::Profile;
use throughline_core::session::{FileRef, Message, Session, Share};
use throughline_core::settings::TenantSettings;
use throughline_core::summary::Summary;
use throughline_core::time::Timestamp;
use throughline_core::usage::{ModelUse, UsageCounters, UsageDay};
use throughline_core::{Result, Scope};
use tracing::field::Empty;
use tracing::{Instrument, Span};
use uuid::Uuid;

const STORE_SECONDS: &str = "throughline_store_seconds";
const STORE_ERRORS: &str = "throughline_store_errors_total";
const INDEX_SECONDS: &str = "throughline_index_seconds";
const INDEX_ERRORS: &str = "throughline_index_errors_total";

static METADATA: Metadata<'static> =
    Metadata::new(module_path!(), Level::INFO, Some(module_path!()));

/// A store whose every call is measured.
#[must_use]
pub fn metered(store: Arc<dyn Store>) -> Arc<dyn Store> {
    Arc::new(MeteredStore(store))
}

/// A vector index whose every call is measured.
#[must_use]
pub fn metered_index(index: Arc<dyn VectorIndex>) -> Arc<dyn VectorIndex> {
    Arc::new(MeteredIndex(index))
}

struct MeteredStore(Arc<dyn Store>);

struct MeteredIndex(Arc<dyn VectorIndex>);

/// A call at work. One that its caller gives up counts with the time that it had: these are the slow ones.
struct Running {
    seconds: &'static Key,
    begun: Instant,
}

impl Drop for Running {
    fn drop(&mut self) {
        metrics::with_recorder(|recorder| recorder.register_histogram(self.seconds, &METADATA))
            .record(self.begun.elapsed());
    }
}

async fn measure<T>(
    seconds: &'static Key,
    errors: &'static str,
    operation: &'static str,
    call: impl Future<Output = Result<T>>,
) -> Result<T> {
    // A call by itself, such as a worker's look for jobs, is no trace worth keeping.
    let span = match Span::current().is_none() {
        true => Span::none(),
        false => tracing::debug_span!(
            "call",
            otel.name = operation,
            otel.status_code = Empty,
            code = Empty
        ),
    };
    let running = Running { seconds, begun: Instant::now() };
    let done = call.instrument(span.clone()).await;
    drop(running);
    if let Err(error) = &done {
        let code = error.kind().code();
        span.record("otel.status_code", "ERROR").record("code", code);
        metrics::counter!(errors, "operation" => operation, "code" => code).increment(1);
    }
    done
}

/// Implements a port by the same port of what is measured. What follows `=>` is told of what was found.
macro_rules! measured {
    ($port:ident of $metered:ident in $seconds:ident, $errors:ident {
        $(fn $method:ident($($arg:ident: $type:ty),*) -> $found:ty
            $(=> $tell:ident($about:ident))?;)*
    }) => {
        #[async_trait]
        impl $port for $metered {
            $(async fn $method(&self, $($arg: $type),*) -> Result<$found> {
                static OPERATION: [Label; 1] =
                    [Label::from_static_parts("operation", stringify!($method))];
                static SECONDS: Key = Key::from_static_parts($seconds, &OPERATION);
                let call = self.0.$method($($arg),*);
                let found = measure(&SECONDS, $errors, stringify!($method), call).await?;
                $($tell($about, &found);)?
                Ok(found)
            })*
        }
    };
}

measured!(Store of MeteredStore in STORE_SECONDS, STORE_ERRORS {
    fn apply(batch: WriteBatch) -> Applied;
    fn health(deep: bool) -> Health;
});

measured!(SessionRepo of MeteredStore in STORE_SECONDS, STORE_ERRORS {
    fn session(scope: &Scope, id: &SessionId) -> Option<Session>;
    fn head(scope: &Scope, id: &SessionId, limits: HeadLimits) -> Option<SessionHead>;
    fn sessions(scope: &Scope, page: &PageRequest) -> Page<Session>;
    fn recent_messages(scope: &Scope, session: &SessionId, limit: usize) -> Vec<Message>;
    fn messages(scope: &Scope, session: &SessionId, page: &PageRequest) -> Page<Message>;
    fn messages_at(scope: &Scope, keys: &[UnitKey]) -> Vec<(UnitKey, Arc<Message>)>;
    fn messages_by_external_id(
        scope: &Scope, session: &SessionId, ids: &[ExternalId]
    ) -> Vec<Message>;
    fn unread_messages(scope: &Scope, limit: usize) -> Vec<Message>;
    fn totals(scope: &Scope) -> ScopeTotals;
});

measured!(FactRepo of MeteredStore in STORE_SECONDS, STORE_ERRORS {
    fn active_facts(scope: &Scope, numbers: &[u32]) -> Vec<Fact>;
    fn is_rejected(scope: &Scope, keys: &[RejectionKey]) -> bool;
    fn holders(scope: &Scope, places: &[Place]) -> Vec<(Place, ActiveFact)>;
    fn fact(scope: &Scope, id: FactId) -> Option<Fact>;
    fn ledger(scope: &Scope, limits: LedgerLimits) -> Ledger;
    fn facts(scope: &Scope, page: &PageRequest) -> Page<Fact>;
});

measured!(EntityRepo of MeteredStore in STORE_SECONDS, STORE_ERRORS {
    fn entities(scope: &Scope, session: &SessionId, limit: usize) -> Vec<Entity>;
});

measured!(FileRepo of MeteredStore in STORE_SECONDS, STORE_ERRORS {
    fn file_list(scope: &Scope, session: &SessionId) -> Option<FileList>;
    fn files(scope: &Scope, session: &SessionId, limit: usize) -> Vec<FileRef>;
});

measured!(DocumentRepo of MeteredStore in STORE_SECONDS, STORE_ERRORS {
    fn document(scope: &Scope, vault: &VaultId, memory: &MemoryId) -> Option<Snapshot>;
    fn snapshot(
        scope: &Scope, vault: &VaultId, memory: &MemoryId, context: &ContextId
    ) -> Option<Snapshot>;
    fn snapshots(
        scope: &Scope, vault: &VaultId, memory: &MemoryId, page: &PageRequest
    ) -> Page<SnapshotInfo>;
    fn latest_documents(scope: &Scope, numbers: &[u32], most_bytes: u64) -> Vec<Snapshot>;
    fn latest_numbers(scope: &Scope, vault: Option<&VaultId>) -> Vec<u32>;
    fn vaults(scope: &Scope, page: &PageRequest) -> Page<Vault>;
    fn memories(scope: &Scope, vault: Option<&VaultId>, page: &PageRequest) -> Page<Memory>;
});

measured!(SummaryRepo of MeteredStore in STORE_SECONDS, STORE_ERRORS {
    fn awaiting_summaries(scope: &Scope, limit: usize) -> Vec<Summary>;
    fn latest_summary(scope: &Scope, session: &SessionId) -> Option<Summary>;
    fn summaries(scope: &Scope, session: &SessionId) -> Vec<Summary>;
});

measured!(ProfileRepo of MeteredStore in STORE_SECONDS, STORE_ERRORS {
    fn profile(scope: &Scope) -> Option<Profile>;
});

measured!(PersonaRepo of MeteredStore in STORE_SECONDS, STORE_ERRORS {
    fn persona(scope: &Scope, id: PersonaId) -> Option<Persona>;
    fn personas(scope: &Scope) -> Vec<Persona>;
    fn persona_sessions(scope: &Scope) -> Vec<PersonaSession>;
    fn preset(scope: &Scope, id: &PresetId) -> Option<Preset>;
    fn presets(scope: &Scope) -> Vec<Preset>;
    fn preset_uses(scope: &Scope) -> Vec<(PresetId, PresetUse)>;
    fn persona_backups(scope: &Scope, id: PersonaId) -> Vec<BackupHead>;
    fn persona_backup(scope: &Scope, id: BackupId) -> Option<Backup>;
    fn conversation_bytes(scope: &Scope, session: &SessionId) -> u64;
    fn message_tags(scope: &Scope, session: &SessionId) -> Vec<(MessageId, Vec<String>)>;
    fn ratings(scope: &Scope, session: &SessionId) -> Vec<Rating>;
    fn rating_counts(scope: &Scope, since: Option<Timestamp>, until: Option<Timestamp>)
        -> Vec<RatingCount>;
});

measured!(JobRepo of MeteredStore in STORE_SECONDS, STORE_ERRORS {
    fn claim_jobs(kinds: &[&str], now: Timestamp, lease: Duration, limit: usize) -> Vec<Job>;
    fn await_jobs(patience: Duration) -> ();
    fn jobs(scope: &Scope, page: &PageRequest) -> Page<Job>;
});

measured!(UsageRepo of MeteredStore in STORE_SECONDS, STORE_ERRORS {
    fn usage(scope: &Scope, from: UsageDay, to: UsageDay) -> Vec<(UsageDay, UsageCounters)>;
});

measured!(RefusalRepo of MeteredStore in STORE_SECONDS, STORE_ERRORS {
    fn add_refusals(refusals: &[RefusalCount]) -> ();
    fn take_refusals() -> Vec<RefusalCount>;
});

measured!(OutboxRepo of MeteredStore in STORE_SECONDS, STORE_ERRORS {
    fn texts_after(
        scope: &Scope, namespace: Namespace, after: u64, limit: usize
    ) -> Vec<OutboxText>;
    fn scopes(page: &PageRequest) -> Page<(Scope, ScopeTotals)>;
});

measured!(TenantRepo of MeteredStore in STORE_SECONDS, STORE_ERRORS {
    fn apply_tenant(batch: TenantBatch) -> ();
    fn key(id: KeyId) -> Option<ApiKey>;
    fn has_keys() -> bool;
    fn keys(tenant: &TenantId, page: &PageRequest) -> Page<ApiKey>;
    fn touch_key(tenant: &TenantId, id: KeyId, at: Timestamp) -> ();
    fn settings(tenant: &TenantId) -> Option<TenantSettings>;
    fn share(tenant: &TenantId, id: ShareId) -> Option<Share>;
    fn share_of(owner: &Scope, session: &SessionId) -> Option<Share>;
    fn shared_with(tenant: &TenantId, user: &UserId, page: &PageRequest) -> Page<Share>;
    fn audit(tenant: &TenantId, page: &PageRequest) -> Page<AuditEntry>;
    fn model_use(tenant: &TenantId, from: UsageDay, to: UsageDay) -> Vec<ModelUse>;
});

measured!(ErasureRepo of MeteredStore in STORE_SECONDS, STORE_ERRORS {
    fn erasure_state() -> ErasureState;
    fn bind_ledger(id: Uuid) -> ();
    fn erasures_applied(after: u64, limit: usize) -> Vec<u64>;
    fn note_erasures(numbers: &[u64]) -> ();
    fn erasures(scope: &Scope) -> Option<u64>;
    fn scopes_of(tenant: &TenantId, user: &UserId) -> Vec<(Scope, ScopeTotals)>;
    fn held_messages(scope: &Scope, session: &SessionId, ids: &[MessageId]) -> Vec<(MessageId, Option<ExternalId>)>;
    fn purge() -> ();
});

measured!(LexicalIndex of MeteredStore in STORE_SECONDS, STORE_ERRORS {
    fn postings(
        scope: &Scope, namespace: Namespace, terms: &[TermId], most: usize
    ) -> PostingLists => tell_lists(namespace);
    fn frequencies(scope: &Scope, namespace: Namespace, terms: &[TermId]) -> Vec<u64>;
});

measured!(VectorIndex of MeteredIndex in INDEX_SECONDS, INDEX_ERRORS {
    fn upsert(
        scope: &Scope, namespace: Namespace, space: &VectorSpace, items: &[VectorItem], through: u64
    ) -> ();
    fn remove(scope: &Scope, namespace: Namespace, keys: &[UnitKey]) -> ();
    fn keep_only(scope: &Scope, space: &VectorSpace) -> ();
    fn forget(scope: &Scope) -> ();
    fn keys(
        scope: &Scope, namespace: Namespace, space: &VectorSpace, after: Option<UnitKey>,
        limit: usize
    ) -> Vec<UnitKey>;
    fn index_health() -> Health;
    fn watermark(scope: &Scope, namespace: Namespace, space: &VectorSpace) -> u64;
    fn search(
        scope: &Scope, namespace: Namespace, space: &VectorSpace, query: &[f32], limit: usize,
        also: &[UnitKey]
    ) -> Vec<VectorHit> => tell_hits(namespace);
});

fn label(namespace: Namespace) -> &'static str {
    match namespace {
        Namespace::Message => "message",
        Namespace::Fact => "fact",
        Namespace::Document => "document",
    }
}

fn tell_lists(namespace: Namespace, found: &PostingLists) {
    let read: usize = found.lists.iter().map(Vec::len).sum();
    metrics::histogram!("throughline_recall_list_postings", "namespace" => label(namespace))
        .record(read as f64);
}

fn tell_hits(namespace: Namespace, found: &[VectorHit]) {
    metrics::histogram!("throughline_recall_hits", "namespace" => label(namespace))
        .record(found.len() as f64);
}

#[cfg(test)]
mod tests;
