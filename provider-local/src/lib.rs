//! Embedders that run in this process, without a key and, but for fetching a model, without a
//! network.
//!
//! [`StaticEmbedder`] is the default: a table of token vectors in the binary, fast enough to be
//! asked within a request. Behind the feature `local-model` there is `MiniLm`, a small transformer
//! for the background, and `fetch`, which gets its files.

#[cfg(feature = "local-model")]
mod local_model;
mod static_table;

#[cfg(feature = "local-model")]
pub use local_model::{FetchProgress, FetchStep, Fetched, MiniLm, Source, fetch};
pub use static_table::{StaticEmbedder, encode_table};
