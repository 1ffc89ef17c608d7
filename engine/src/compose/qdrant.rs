//! The vector index on Qdrant.

use std::sync::Arc;
use std::time::Duration;

use throughline_core::Result;
use throughline_core::ports::VectorIndex;
use throughline_store_qdrant::{QdrantIndex, QdrantOptions};

use crate::config::Config;

pub(super) fn open(config: &Config) -> Result<Arc<dyn VectorIndex>> {
    let qdrant = &config.qdrant;
    let timeout = Duration::from_millis(qdrant.timeout_ms);
    let options = QdrantOptions {
        api_key: qdrant.api_key.given().map(Into::into),
        prefix: qdrant.prefix.clone(),
        timeout,
        connect_timeout: timeout,
        ..QdrantOptions::new(&qdrant.url)
    };
    Ok(Arc::new(QdrantIndex::open(options)?))
}
