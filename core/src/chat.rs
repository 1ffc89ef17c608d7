//! What a model is sent, and what it answers.

use crate::session::Role;

/// A message of the payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextMessage {
    /// Who speaks.
    pub role: Role,
    /// The text.
    pub content: String,
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
