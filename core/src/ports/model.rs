//! Models. The request path waits for none but the one that answers.

use async_trait::async_trait;

use crate::context::ContextMessage;
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

/// What a chat model is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatModelRequest {
    /// The system prompt.
    pub system: String,
    /// What was said, the last message being what to answer.
    pub messages: Vec<ContextMessage>,
    /// Diversity, 0.0 to 1.0.
    pub temperature: f64,
    /// Most tokens of the answer.
    pub max_tokens: u32,
}

/// What a chat model answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatAnswer {
    /// The text; it is not empty, nor white space alone.
    pub text: String,
    /// Why it ended, where it says so, such as `endTurn` or `maxTokens`.
    pub stop_reason: Option<String>,
}

/// A model that answers.
#[async_trait]
pub trait ChatModel: Send + Sync {
    /// Answers once, and asks once. `Declined` where the model, or who decides for it, refuses or says nothing;
    /// `Unavailable` where it cannot be reached or is too late. A call that is given up leaves nothing behind.
    async fn complete(&self, request: &ChatModelRequest) -> Result<ChatAnswer>;
}
