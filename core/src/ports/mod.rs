//! What the domain needs from the outside. Each sentence of a port's contract is a scenario of the
//! conformance table in `testkit`, which every adapter passes.

mod archive;
mod batch;
mod cache;
mod clock;
mod heads;
mod lexical;
mod model;
mod repos;
mod store;
mod tokenizer;
mod vector;

pub use archive::{
    Archive, ArchiveSource, ArchiveTarget, Row, Rows, ScopeCounters, TABLES, Table, Value,
    ValueKind,
};
pub use batch::{Applied, AppliedMessage, Precondition, RecordKey, Write, WriteBatch};
pub use cache::{
    Admission, Cache, MAX_CACHE_TAGS, MAX_CACHED_BYTES, Rate, RateLimiter, check_cached,
};
pub use clock::{Clock, IdGen};
pub use heads::HotHeads;
pub use lexical::{
    IndexStats, IndexUnit, LexicalIndex, Namespace, Posting, PostingLists, TermId, UnitKey,
};
pub use model::Embedder;
pub use repos::{
    EntityRepo, FactRepo, HeadLimits, JobRepo, Ledger, LedgerLimits, OutboxRepo, OutboxText,
    ProfileRepo, SOURCES_READ, ScopeTotals, SessionHead, SessionRepo, SummaryRepo, UsageRepo,
};
pub use store::{Health, Store};
pub use tokenizer::Tokenizer;
pub use vector::{VectorHit, VectorIndex, VectorItem, VectorSpace};
