//! What the domain needs from the outside. Each sentence of a port's contract is a scenario of the
//! conformance table in `testkit`, which every adapter passes.

mod archive;
mod batch;
mod cache;
mod clock;
mod counters;
mod erasure;
mod file_search;
mod file_source;
mod ledger;
mod lexical;
mod model;
mod persona;
mod refusals;
mod repos;
mod session_cache;
mod store;
mod tenant;
mod vector;

pub use archive::{
    Archive, ArchiveSource, ArchiveTarget, Holder, Row, Rows, TABLES, TENANT_TABLES, Table, Value,
    ValueKind,
};
pub use batch::{
    Applied, AppliedMessage, IDEMPOTENCY_KEPT, Idempotency, Precondition, RecordKey, Write,
    WriteBatch,
};
pub use cache::{
    Admission, Bucket, Cache, MAX_CACHE_TAGS, MAX_CACHED_BYTES, RateLimiter, check_cached,
};
pub use clock::{Clock, IdGen, SecretGen};
pub use counters::ScopeCounters;
pub use erasure::{Erased, Erasure, ErasureRepo, ErasureState};
pub use file_search::{FileHit, FileSearch, SearchableFile, check_files, check_label};
pub use file_source::{FileRead, FileSource, FileWalk};
pub use ledger::{ErasureLedger, LedgerEntry, LedgerIdentity, NameHash, Recorded, ScopeEnd};
pub use lexical::{IndexStats, LexicalIndex, PostingLists};
pub use model::{ChatModel, ChatProvider, ChatStream, Embedder, FactReader, Summarizer, Work};
pub use persona::PersonaRepo;
pub use refusals::{RefusalCount, RefusalRepo};
pub use repos::{
    DocumentRepo, EntityRepo, FactRepo, FileList, FileRepo, HeadLimits, JobRepo, Ledger,
    LedgerLimits, MAX_FILE_LIST_BYTES, MAX_SENT_FILES_BYTES, OutboxRepo, OutboxText, ProfileRepo,
    RECENT_BYTES, SOURCES_READ, ScopeTotals, SessionHead, SessionRepo, SummaryRepo, UsageRepo,
};
pub use session_cache::SessionCache;
pub use store::{Health, Store};
pub use tenant::{TenantBatch, TenantPrecondition, TenantRepo, TenantWrite};
pub use vector::{VectorHit, VectorIndex, VectorItem, VectorSpace};
