//! What callers do, by feature: each service gathers through the ports, lets the policy decide, and writes.

pub mod access;
pub mod archive;
pub mod contexts;
pub mod documents;
pub mod embeddings;
pub mod erasure;
pub mod facts;
pub mod file_stores;
pub mod model_jobs;
mod pause;
pub mod personas;
pub mod profiles;
pub mod removals;
pub mod repeats;
pub mod sessions;
pub mod settings;
pub mod shares;
