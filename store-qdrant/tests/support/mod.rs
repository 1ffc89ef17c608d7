//! A fresh part of the server that the environment names, which is left as it was found.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test support outside of test functions: a failure is the answer"
)]

use std::path::Path;
use std::process;
use std::sync::atomic::{AtomicU32, Ordering};

use qdrant_client::Qdrant;
use throughline_store_qdrant::{QdrantIndex, QdrantOptions};

const VARIABLE: &str = "THROUGHLINE_TEST_QDRANT";
const OURS: &str = "throughline-test";

/// Where the server is.
pub(crate) fn url() -> String {
    std::env::var(VARIABLE).unwrap_or_else(|_| {
        panic!(
            "{VARIABLE} is not set: run `cargo xtask services up` and set what it prints, or run \
             `cargo xtask test --all`"
        )
    })
}

/// A prefix on the server that nothing else has.
pub(crate) struct Fresh {
    pub(crate) prefix: String,
    /// The driver, for what the index has no words for.
    pub(crate) driver: Qdrant,
}

impl Fresh {
    pub(crate) async fn new() -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let driver = Qdrant::from_url(&url()).skip_compatibility_check().build().unwrap();
        if n == 0 {
            clean(&driver).await;
        }
        Self { prefix: format!("{OURS}-{}-{n}", process::id()), driver }
    }

    pub(crate) fn index(&self) -> QdrantIndex {
        let options = QdrantOptions { prefix: self.prefix.clone(), ..QdrantOptions::new(url()) };
        QdrantIndex::open(options).unwrap()
    }

    /// The collections of the prefix.
    pub(crate) async fn collections(&self) -> Vec<String> {
        let all = self.driver.list_collections().await.unwrap().collections;
        let start = format!("{}.", self.prefix);
        all.into_iter().map(|one| one.name).filter(|name| name.starts_with(&start)).collect()
    }

    /// Deletes the collections of the prefix. A test that fails does not come so far: the next run
    /// finds what it left.
    pub(crate) async fn end(self) {
        for name in self.collections().await {
            self.driver.delete_collection(name).await.unwrap();
        }
    }
}

/// Deletes what test processes left that have ended.
async fn clean(driver: &Qdrant) {
    let all = driver.list_collections().await.unwrap().collections;
    for name in all.into_iter().map(|one| one.name).filter(|name| is_left_over(name)) {
        // Another process may have the same thought.
        let _ = driver.delete_collection(name).await;
    }
}

/// Whether a collection is of a test process that has ended.
fn is_left_over(name: &str) -> bool {
    let rest = name.strip_prefix(OURS).and_then(|rest| rest.strip_prefix('-'));
    let process = rest.and_then(|rest| rest.split_once('-')?.0.parse::<u32>().ok());
    process.is_some_and(|id| {
        id != process::id()
            && Path::new("/proc/self").exists()
            && !Path::new("/proc").join(id.to_string()).exists()
    })
}
