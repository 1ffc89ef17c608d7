//! What the domain needs from the outside. Each sentence of a port's contract is a scenario of the
//! conformance table in `testkit`, which every adapter passes.

mod batch;
mod clock;
mod lexical;
mod model;
mod repos;
mod store;
mod tokenizer;
mod vector;

pub use batch::{Applied, AppliedMessage, Precondition, RecordKey, Write, WriteBatch};
pub use clock::{Clock, IdGen};
pub use lexical::{
    IndexStats, IndexUnit, LexicalIndex, Namespace, Posting, PostingLists, TermId, UnitKey,
};
pub use model::Embedder;
pub use repos::{
    EntityRepo, FactRepo, JobRepo, Ledger, LedgerLimits, OutboxRepo, OutboxText, ProfileRepo,
    SOURCES_READ, ScopeTotals, SessionRepo, SummaryRepo, UsageRepo,
};
pub use store::{Health, Store};
pub use tokenizer::Tokenizer;
pub use vector::{VectorHit, VectorIndex, VectorItem, VectorSpace};
