//! Throughline on Postgres: every repository, the lexical index, the job queue, and vectors with
//! pgvector.
//!
//! A batch is one transaction that holds its scope's row, so that no sequence number commits late. Every
//! transaction sets its scope (`SET LOCAL`), and row-level security shows it nothing else: what a
//! statement forgets to ask for, it does not get. The files of this crate mirror `core/src/ports`.

mod apply;
mod archive;
mod clock;
mod connection;
mod documents;
mod entities;
mod erase;
mod facts;
mod files;
mod health;
mod idempotency;
mod jobs;
mod known;
mod lexical;
mod listen;
mod migrate;
mod outbox;
mod personas;
mod preconditions;
mod profiles;
mod rate_limiter;
mod records;
mod refusals;
mod replica;
mod sessions;
mod store;
mod summaries;
mod tenant;
mod tenant_write;
mod timed;
mod usage;
mod vectors;

pub use clock::ClockOffset;
pub use connection::PostgresOptions;
pub use erase::PostgresLedger;
pub use migrate::{Deferred, migrate};
pub use store::PostgresStore;
