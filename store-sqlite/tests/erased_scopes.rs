//! A scope that is erased while its texts are being embedded: its name does not come back.

use std::sync::Arc;

use async_trait::async_trait;
use throughline_core::page::PageRequest;
use throughline_core::ports::{
    Embedder, Erasure, OutboxRepo, SessionRepo, Store, VectorSpace, Write, WriteBatch,
};
use throughline_core::services::embeddings::{EmbeddingService, Placement};
use throughline_core::{Result, Scope};
use throughline_store_sqlite::{SqliteOptions, SqliteStore};
use throughline_testkit::build::{append, at, batch, say, scope};
use throughline_testkit::{FakeClock, SequentialIds};
use uuid::Uuid;

/// Erases the scope before it answers.
struct Erasing {
    space: VectorSpace,
    store: Arc<SqliteStore>,
    scope: Scope,
}

#[async_trait]
impl Embedder for Erasing {
    fn space(&self) -> &VectorSpace {
        &self.space
    }

    fn is_instant(&self) -> bool {
        false
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let totals = self.store.totals(&self.scope).await?;
        let erasure = Erasure::Scope { through: totals.last_seq, documents: totals.documents };
        let erase = Write::Erase { erasure, seed: Uuid::from_u128(7) };
        for write in [erase, Write::DropScope] {
            let batch = WriteBatch::new(self.scope.clone(), at(9)).with(write);
            self.store.apply(batch).await?;
        }
        Ok(vec![vec![1.0, 0.0]; texts.len()])
    }
}

#[tokio::test]
async fn forgets_scope_that_was_erased_while_its_texts_were_embedded() {
    let directory = tempfile::tempdir().unwrap();
    let options = SqliteOptions::new(directory.path().join("throughline.db"));
    let store = Arc::new(SqliteStore::open(options).unwrap());
    let scope = scope("a");
    let said = say("The lamp is in the attic.").build();
    store.apply(batch(&scope).with(append("s", said))).await.unwrap();
    let space = VectorSpace { id: "test".to_owned(), dimensions: 2 };
    let embedder = Erasing { space, store: store.clone(), scope };
    let embeddings = EmbeddingService::new(
        store.clone(),
        (store.clone(), Placement::InStore),
        Arc::new(embedder),
        Arc::new(FakeClock::default()),
        Arc::new(SequentialIds::new()),
    );
    embeddings.enqueue_behind().await.unwrap();
    assert_eq!(embeddings.work(1).await.unwrap().jobs, 1);
    let left = store.scopes(&PageRequest::first(10).unwrap()).await.unwrap();
    assert_eq!(left.items, []);
}
