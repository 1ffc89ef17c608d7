//! The embedded default: every repository, the lexical index and the job queue in one SQLite file.
//!
//! One thread owns the writing connection and groups waiting batches into one transaction with a
//! savepoint each (group commit); readers come from a pool and never wait for it (WAL). The files
//! of this crate mirror `core/src/ports`.

mod apply;
mod archive;
mod backup;
mod connection;
mod documents;
mod entities;
mod erase;
mod facts;
mod file_search;
mod files;
mod fold;
mod health;
mod idempotency;
mod jobs;
mod ledger;
mod lexical;
mod outbox;
mod personas;
mod profiles;
mod records;
mod refusals;
mod sessions;
mod store;
mod summaries;
mod tenant;
mod usage;
mod vectors;
mod writer;

pub use archive::SqliteArchive;
pub use backup::{BackupProgress, erasures_of, restore};
pub use connection::{Durability, SqliteOptions};
pub use file_search::InProcessFiles;
pub use ledger::SqliteLedger;
pub use store::SqliteStore;
