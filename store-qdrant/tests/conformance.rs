//! Qdrant passes the table that every vector index passes.

#[path = "support/mod.rs"]
mod support;

use std::cell::Cell;

use throughline_testkit::conformance;

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
