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
pub struct TimeoutEmbedder {
    inner: Arc<dyn Embedder>,
    patience: Duration,
}

impl TimeoutEmbedder {
    /// `inner`, with `patience` for each text.
    #[must_use]
    pub fn new(inner: Arc<dyn Embedder>, patience: Duration) -> Self {
        Self { inner, patience }
    }
}

#[async_trait]
impl Embedder for TimeoutEmbedder {
    fn space(&self) -> &VectorSpace {
        self.inner.space()
    }

    async fn ready(&self) -> Result<()> {
        self.inner.ready().await
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

#[cfg(test)]
mod tests {
    use super::*;

    /// One that never answers.
    struct Silent(VectorSpace);

    #[async_trait]
    impl Embedder for Silent {
        fn space(&self) -> &VectorSpace {
            &self.0
        }

        fn is_instant(&self) -> bool {
            false
        }

        async fn embed(&self, _: &[&str]) -> Result<Vec<Vec<f32>>> {
            std::future::pending().await
        }
    }

    #[tokio::test]
    async fn what_never_answers_is_not_waited_for() {
        let silent = Silent(VectorSpace { id: "silent".to_owned(), dimensions: 2 });
        let patient = TimeoutEmbedder::new(Arc::new(silent), Duration::from_millis(5));
        let error = patient.embed(&["anyone?", "hello?"]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unavailable);
        assert!(error.message().contains("`silent` did not answer within 10 ms"), "{error}");
    }
}
