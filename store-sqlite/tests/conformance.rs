//! The SQLite store passes the tables that every store and every vector index passes.

use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

use throughline_store_sqlite::{SqliteLedger, SqliteOptions, SqliteStore};
use throughline_testkit::conformance;

/// Holds every vector of a table's stores.
const CACHE: u64 = 128 << 20;

/// Opens a fresh store in `directory` at every call; the search for vectors is exact to so many, and
/// so many bytes of them are kept in memory.
#[expect(clippy::unwrap_used, reason = "a store that does not open fails the test")]
fn fresh(
    directory: &Path,
    exact_vectors: u64,
    vector_cache_bytes: u64,
) -> impl AsyncFn() -> SqliteStore {
    let opened = AtomicU32::new(0);
    async move || {
        let n = opened.fetch_add(1, Ordering::Relaxed);
        let options = SqliteOptions::new(directory.join(format!("{n}.db")));
        SqliteStore::open(SqliteOptions { exact_vectors, vector_cache_bytes, ..options }).unwrap()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_sqlite_store_conforms() {
    let directory = tempfile::tempdir().unwrap();
    conformance::store(fresh(directory.path(), 100_000, CACHE), &[]).await;
}

#[tokio::test]
async fn the_sqlite_vector_index_conforms() {
    let directory = tempfile::tempdir().unwrap();
    conformance::vector_index(fresh(directory.path(), 100_000, CACHE), &[]).await;
}

#[tokio::test]
async fn the_sqlite_vector_index_conforms_where_signs_come_first() {
    let directory = tempfile::tempdir().unwrap();
    conformance::vector_index(fresh(directory.path(), 0, CACHE), &[]).await;
}

#[tokio::test]
async fn the_sqlite_vector_index_conforms_where_vectors_are_read_one_by_one() {
    let directory = tempfile::tempdir().unwrap();
    conformance::vector_index(fresh(directory.path(), 0, 0), &[]).await;
}

#[tokio::test]
async fn the_sqlite_store_conforms_as_an_index() {
    let directory = tempfile::tempdir().unwrap();
    conformance::embedded_index(fresh(directory.path(), 100_000, CACHE), &[]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_sqlite_ledger_conforms() {
    let directory = tempfile::tempdir().unwrap();
    let opened = AtomicU32::new(0);
    let make = async || {
        let n = opened.fetch_add(1, Ordering::Relaxed);
        SqliteLedger::open(&directory.path().join(format!("{n}.db"))).unwrap()
    };
    conformance::ledger(make, &[]).await;
}
