//! The SQLite store passes the table that every store passes.

use std::sync::atomic::{AtomicU32, Ordering};

use throughline_store_sqlite::{SqliteOptions, SqliteStore};
use throughline_testkit::conformance;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_sqlite_store_conforms() {
    let directory = tempfile::tempdir().unwrap();
    let opened = AtomicU32::new(0);
    let make = async || {
        let n = opened.fetch_add(1, Ordering::Relaxed);
        let path = directory.path().join(format!("{n}.db"));
        SqliteStore::open(SqliteOptions::new(path)).unwrap()
    };
    conformance::store(make, &[]).await;
}
