//! Vectors in Qdrant, for deployments whose vectors outgrow one machine, and files that are searched while a call runs.
//!
//! Vectors: one collection for each vector space, shared by all tenants and partitioned by payload, as
//! Qdrant's guide to multitenancy advises. A point is a vector and what filters need to know of it:
//! hits are hydrated from the store. The watermarks are points of the same collection, so that a
//! snapshot brings back vectors and watermarks of one moment: an old one costs work, never recall.
//! The files of this crate mirror `core/src/ports`.

mod collection;
mod errors;
mod file_search;
mod health;
mod hits;
mod index;
mod keys;
mod options;
mod place;
mod server;
mod vector;
mod watermark;

pub use file_search::QdrantFiles;
pub use health::QdrantHealth;
pub use index::QdrantIndex;
pub use options::QdrantOptions;
