//! Files that are searched in this process pass the table that every search of files passes.

use std::sync::Arc;

use throughline_core::ports::{FileSearch, SearchableFile};
use throughline_store_sqlite::InProcessFiles;
use throughline_testkit::conformance;
use throughline_testkit::memory::HashEmbedder;

fn with_vectors() -> InProcessFiles {
    InProcessFiles::new(Some(Arc::new(HashEmbedder::new(512))))
}

fn file(name: &str, text: &str) -> SearchableFile {
    SearchableFile { name: name.to_owned(), text: text.to_owned() }
}

#[tokio::test]
async fn search_by_words_conforms() {
    conformance::file_search(async || InProcessFiles::new(None), &[]).await;
}

#[tokio::test]
async fn search_by_words_and_meaning_conforms() {
    conformance::file_search(async || with_vectors(), &[]).await;
}

#[tokio::test]
async fn finds_passage_within_long_file_and_names_of_code() {
    for files in [InProcessFiles::new(None), with_vectors()] {
        let store = files.create("test").await.unwrap();
        let filler = "Nothing of interest is on this line of the log.\n".repeat(400);
        let log = format!("{filler}\nThe lighthouse keeper retires in May.\n\n{filler}");
        let code = "fn open_file_stores() {}\n";
        let all = vec![file("a.log", &log), file("src/b.rs", code), file("empty", "")];
        files.add(&store, all).await.unwrap();
        let hits =
            files.search(&store, "When does the lighthouse keeper retire?", 3).await.unwrap();
        assert!(hits[0].text.contains("lighthouse") && hits[0].text.len() <= 1_600, "{hits:?}");
        for question in ["open_file_stores", "opening of stores"] {
            let hits = files.search(&store, question, 1).await.unwrap();
            assert_eq!(hits[0].file, "src/b.rs", "{question}");
        }
    }
}
