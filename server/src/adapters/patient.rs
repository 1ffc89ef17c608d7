//! A limit to how long an embedder may take.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use throughline_core::ports::{Embedder, VectorSpace};
use throughline_core::{Error, ErrorKind, Result};

/// An embedder that is not waited for longer than a while: a turn must not hang on it.
///
/// A question is one text and gets `patience`; batches come from jobs and may take longer in
/// proportion.
pub struct Patient {
    inner: Arc<dyn Embedder>,
    patience: Duration,
}

impl Patient {
    /// `inner`, with `patience` for each text.
    #[must_use]
    pub fn new(inner: Arc<dyn Embedder>, patience: Duration) -> Self {
        Self { inner, patience }
    }
}

#[async_trait]
impl Embedder for Patient {
    fn space(&self) -> &VectorSpace {
        self.inner.space()
    }

    fn is_instant(&self) -> bool {
        self.inner.is_instant()
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let count = u32::try_from(texts.len()).unwrap_or(u32::MAX).max(1);
        let patience = self.patience.saturating_mul(count);
        let late = |_| {
            Error::new(
                ErrorKind::Unavailable,
                format!(
                    "the embedder `{}` did not answer within {} ms",
                    self.space().id,
                    patience.as_millis()
                ),
            )
        };
        tokio::time::timeout(patience, self.inner.embed(texts)).await.map_err(late)?
    }
}
