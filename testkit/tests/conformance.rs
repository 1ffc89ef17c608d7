//! The fakes pass the tables that every adapter passes.

use throughline_testkit::conformance;
use throughline_testkit::memory::{HashEmbedder, MemoryStore};

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
