//! Models. The request path waits for none but the one that answers.

use async_trait::async_trait;

use crate::error::Result;
use crate::ports::VectorSpace;

/// Turns texts into vectors.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// The space of its vectors; it changes when the model does.
    fn space(&self) -> &VectorSpace;

    /// One vector of `space().dimensions` values for each text, in order.
    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>>;
}
