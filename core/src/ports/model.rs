//! Models. The request path waits for none but the one that answers.

use async_trait::async_trait;

use crate::chat::{ChatAnswer, ChatModelRequest};
use crate::error::Result;
use crate::ports::VectorSpace;

/// Turns texts into vectors.
#[async_trait]
pub trait Embedder: Send + Sync {
    /// The space of its vectors; it changes when the model does.
    fn space(&self) -> &VectorSpace;

    /// Whether a text takes microseconds and nothing that can be late: then texts are embedded with
    /// the write that brings them, else by jobs in the background.
    fn is_instant(&self) -> bool;

    /// One vector of `space().dimensions` values for each text, in order. A text that means nothing
    /// to the model (no word that it knows) has the vector of zeros, which is near nothing.
    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>>;
}

/// A model that answers.
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// Answers once, and asks once. `Declined` where the model, or who decides for it, refuses or says nothing;
    /// `Unavailable` where it cannot be reached or is too late. A call that is given up leaves nothing behind.
    async fn complete(&self, request: &ChatModelRequest) -> Result<ChatAnswer>;
}
