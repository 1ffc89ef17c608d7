//! The fakes pass the tables that every adapter passes.

use std::sync::Arc;

use throughline_core::ports::Clock;
use throughline_testkit::conformance::{Replicas, Time};
use throughline_testkit::memory::{
    HashEmbedder, MemoryCache, MemoryFileSearch, MemoryFiles, MemoryLedger, MemoryRateLimiter,
    MemoryStore, ScriptedModel,
};
use throughline_testkit::{FakeClock, conformance};

/// Two clones of what goes by a clock that is moved.
fn replicas<P: Clone>(make: impl Fn(Arc<dyn Clock>) -> P) -> Replicas<P> {
    let clock = Arc::new(FakeClock::default());
    let one = make(clock.clone());
    Replicas { other: one.clone(), one, time: Time::Moved(clock) }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_memory_store_conforms() {
    conformance::store(async || MemoryStore::new(), &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_memory_vector_index_conforms() {
    conformance::vector_index(async || MemoryStore::new(), &[]).await;
}

#[tokio::test]
async fn the_memory_store_conforms_as_an_index() {
    conformance::embedded_index(async || MemoryStore::new(), &[]).await;
}

#[tokio::test]
async fn the_hash_embedder_conforms() {
    conformance::embedder(async || HashEmbedder::new(256), &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_scripted_model_conforms() {
    conformance::chat_model(async || ScriptedModel::default(), &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_memory_cache_conforms() {
    conformance::cache(async || replicas(MemoryCache::new), &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_memory_rate_limiter_conforms() {
    conformance::rate_limiter(async || replicas(MemoryRateLimiter::new), &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_memory_ledger_conforms() {
    conformance::ledger(async || MemoryLedger::new(), &[]).await;
}

#[tokio::test]
async fn the_memory_file_search_conforms() {
    conformance::file_search(async || MemoryFileSearch::default(), &[]).await;
}

#[tokio::test]
async fn the_memory_files_conform() {
    conformance::file_source(async || MemoryFiles::default(), &[]).await;
}
