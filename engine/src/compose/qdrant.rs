//! The vector index and the stores of files on Qdrant.

use std::sync::Arc;
use std::time::Duration;

use throughline_core::Result;
use throughline_core::ports::{Embedder, FileSearch, IdGen, VectorIndex};
use throughline_store_qdrant::{QdrantFiles, QdrantIndex, QdrantOptions};

use crate::config::Config;

pub(super) fn open(config: &Config) -> Result<Arc<dyn VectorIndex>> {
    Ok(Arc::new(QdrantIndex::open(options(config))?))
}

/// Stores of files; `ids` are parts of their names.
pub(super) fn files(
    config: &Config,
    embedder: Arc<dyn Embedder>,
    ids: Arc<dyn IdGen>,
) -> Result<Arc<dyn FileSearch>> {
    Ok(Arc::new(QdrantFiles::open(options(config), embedder, ids)?))
}

fn options(config: &Config) -> QdrantOptions {
    let qdrant = &config.qdrant;
    let timeout = Duration::from_millis(qdrant.timeout_ms);
    QdrantOptions {
        api_key: qdrant.api_key.given().map(Into::into),
        prefix: qdrant.prefix.clone(),
        timeout,
        connect_timeout: timeout,
        ..QdrantOptions::new(&qdrant.url)
    }
}
