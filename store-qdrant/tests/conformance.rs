//! Qdrant passes the tables that every vector index and every search of files pass.

#[path = "support/mod.rs"]
mod support;

use std::cell::Cell;
use std::sync::Arc;

use throughline_store_qdrant::{QdrantFiles, QdrantOptions};
use throughline_testkit::memory::HashEmbedder;
use throughline_testkit::{SequentialIds, conformance};

use support::Fresh;

#[tokio::test]
async fn the_qdrant_index_conforms() {
    let last = Cell::new(None);
    let make = async || {
        if let Some(last) = last.take() {
            Fresh::end(last).await;
        }
        let fresh = Fresh::new().await;
        let index = fresh.index();
        last.set(Some(fresh));
        index
    };
    conformance::vector_index(make, &[]).await;
    if let Some(last) = last.take() {
        last.end().await;
    }
}

#[expect(clippy::unwrap_used, reason = "a failure is the answer")]
fn files(fresh: &Fresh) -> QdrantFiles {
    let options =
        QdrantOptions { prefix: fresh.prefix.clone(), ..QdrantOptions::new(support::url()) };
    let embedder = Arc::new(HashEmbedder::new(512));
    QdrantFiles::open(options, embedder, Arc::new(SequentialIds::new())).unwrap()
}

#[tokio::test]
async fn files_in_qdrant_conform() {
    let last = Cell::new(None);
    let make = async || {
        if let Some(last) = last.take() {
            Fresh::end(last).await;
        }
        let fresh = Fresh::new().await;
        let files = files(&fresh);
        last.set(Some(fresh));
        files
    };
    conformance::file_search(make, &[]).await;
    if let Some(last) = last.take() {
        last.end().await;
    }
}
