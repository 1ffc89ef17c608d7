//! One conformance table for each port: every sentence of a contract is a scenario, and every
//! adapter runs all of them.
//!
//! A scenario gets a fresh, empty instance. One run shows everything: what fails is collected by
//! name, and the run panics once, at its end. What an adapter cannot do it names in its skips, with
//! the reason; a skip that names no scenario is an error.

mod cache;
mod chat_model;
mod embedded;
mod embedder;
mod file_search;
mod file_source;
mod ledger;
mod rate_limiter;
mod replicas;
mod runner;
mod store;
mod vectors;

use std::sync::Arc;

use throughline_core::ports::{
    Cache, Embedder, ErasureLedger, FileSearch, RateLimiter, Store, VectorIndex,
};

pub use chat_model::DirectedModel;
pub use file_source::DirectedFiles;
pub use replicas::{Replicas, Time};

/// A scenario that an adapter does not pass, and why that is right.
#[derive(Debug, Clone, Copy)]
pub struct Skip {
    /// Group and name, such as `jobs::a_lease_that_passed_is_due_again`.
    pub name: &'static str,
    /// Why.
    pub reason: &'static str,
}

/// Runs the table of the `Store` port. `make` opens a fresh, empty store for each scenario.
///
/// # Panics
/// With the names of all scenarios that failed, or of skips that no scenario has.
pub async fn store<S: Store + 'static>(make: impl AsyncFn() -> S, skips: &[Skip]) {
    let table = store::table();
    let make = async || Arc::new(make().await) as Arc<dyn Store>;
    runner::run("Store", &table, make, skips).await;
}

/// A store that keeps vectors itself.
pub(crate) trait EmbeddedIndex: Store + VectorIndex {}

impl<S: Store + VectorIndex> EmbeddedIndex for S {}

/// Runs the table of a store that is a vector index as well: what its batches do to its vectors.
/// `make` opens a fresh, empty one for each scenario.
///
/// # Panics
/// With the names of all scenarios that failed, or of skips that no scenario has.
pub async fn embedded_index<S: Store + VectorIndex + 'static>(
    make: impl AsyncFn() -> S,
    skips: &[Skip],
) {
    let make = async || Arc::new(make().await) as Arc<dyn EmbeddedIndex>;
    runner::run("Store with VectorIndex", embedded::TABLE, make, skips).await;
}

/// Runs the table of the `VectorIndex` port. `make` opens a fresh, empty index for each scenario.
///
/// # Panics
/// With the names of all scenarios that failed, or of skips that no scenario has.
pub async fn vector_index<I: VectorIndex + 'static>(make: impl AsyncFn() -> I, skips: &[Skip]) {
    let make = async || Arc::new(make().await) as Arc<dyn VectorIndex>;
    runner::run("VectorIndex", vectors::TABLE, make, skips).await;
}

/// Runs the table of the `FileSearch` port. `make` gives one without stores for each scenario.
///
/// # Panics
/// With the names of all scenarios that failed, or of skips that no scenario has.
pub async fn file_search<F: FileSearch + 'static>(make: impl AsyncFn() -> F, skips: &[Skip]) {
    let make = async || Arc::new(make().await) as Arc<dyn FileSearch>;
    runner::run("FileSearch", file_search::TABLE, make, skips).await;
}

/// Runs the table of the `FileSource` port. `make` gives one without files for each scenario, which then says what is there.
///
/// # Panics
/// With the names of all scenarios that failed, or of skips that no scenario has.
pub async fn file_source<F: DirectedFiles + 'static>(make: impl AsyncFn() -> F, skips: &[Skip]) {
    let make = async || Arc::new(make().await) as Arc<dyn DirectedFiles>;
    runner::run("FileSource", file_source::TABLE, make, skips).await;
}

/// Runs the table of the `Embedder` port. `make` gives an embedder for each scenario, which may be
/// one and the same.
///
/// # Panics
/// With the names of all scenarios that failed, or of skips that no scenario has.
pub async fn embedder<E: Embedder + 'static>(make: impl AsyncFn() -> E, skips: &[Skip]) {
    let make = async || Arc::new(make().await) as Arc<dyn Embedder>;
    runner::run("Embedder", embedder::TABLE, make, skips).await;
}

/// Runs the table of the `ChatModel` port. `make` gives a model for each scenario that was asked nothing,
/// and does what the scenario says.
///
/// # Panics
/// With the names of all scenarios that failed, or of skips that no scenario has.
pub async fn chat_model<M: DirectedModel + 'static>(make: impl AsyncFn() -> M, skips: &[Skip]) {
    let make = async || Arc::new(make().await) as Arc<dyn DirectedModel>;
    runner::run("ChatModel", chat_model::TABLE, make, skips).await;
}

/// Runs the table of the `ErasureLedger` port. `make` opens a fresh, empty ledger for each scenario.
///
/// # Panics
/// With the names of all scenarios that failed, or of skips that no scenario has.
pub async fn ledger<L: ErasureLedger + 'static>(make: impl AsyncFn() -> L, skips: &[Skip]) {
    let make = async || Arc::new(make().await) as Arc<dyn ErasureLedger>;
    runner::run("ErasureLedger", ledger::TABLE, make, skips).await;
}

/// Runs the table of the `Cache` port. `make` opens two replicas of a fresh, empty cache for each
/// scenario, and says how time passes for it.
///
/// # Panics
/// With the names of all scenarios that failed, or of skips that no scenario has.
pub async fn cache<C: Cache + 'static>(make: impl AsyncFn() -> Replicas<C>, skips: &[Skip]) {
    let make = async || Arc::new(make().await.map(|cache| Arc::new(cache) as Arc<dyn Cache>));
    runner::run("Cache", cache::TABLE, make, skips).await;
}

/// Runs the table of the `RateLimiter` port. `make` opens two replicas of a limiter that has counted
/// nothing for each scenario, and says how time passes for it.
///
/// # Panics
/// With the names of all scenarios that failed, or of skips that no scenario has.
pub async fn rate_limiter<L: RateLimiter + 'static>(
    make: impl AsyncFn() -> Replicas<L>,
    skips: &[Skip],
) {
    let make =
        async || Arc::new(make().await.map(|limiter| Arc::new(limiter) as Arc<dyn RateLimiter>));
    runner::run("RateLimiter", rate_limiter::TABLE, make, skips).await;
}
