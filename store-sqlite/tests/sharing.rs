//! Two handles on one file, as two processes have them: each sees what the other has committed.

use throughline_core::ports::{SessionRepo, Store};
use throughline_store_sqlite::{SqliteOptions, SqliteStore};
use throughline_testkit::build;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_handle_sees_the_others_writes_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("shared.db");
    let open = || SqliteStore::open(SqliteOptions::new(&path)).unwrap();
    let (one, other) = (open(), open());
    let scope = build::scope("ana");
    for turn in 1..=20_u64 {
        let (writer, reader) = if turn % 2 == 0 { (&one, &other) } else { (&other, &one) };
        let batch = build::batch(&scope).with(build::append("s", build::message("hello")));
        let applied = writer.apply(batch).await.unwrap();
        assert_eq!(applied.messages[0].seq, turn);
        assert_eq!(reader.totals(&scope).await.unwrap().messages, turn);
    }
}
