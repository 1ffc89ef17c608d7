//! Counting what a payload costs.

use crate::ports::Tokenizer;

/// Tokens that chat formats add around each message (role and delimiters). Three and one for
/// OpenAI's format; other providers are at or below it.
pub const PER_MESSAGE: u32 = 4;

/// Tokens that prime the answer, once a payload.
pub const PER_PAYLOAD: u32 = 3;

/// Tokens of one message on the wire: its content and what the chat format adds.
pub fn message_tokens(tokenizer: &dyn Tokenizer, content: &str) -> u32 {
    tokenizer.count(content).saturating_add(PER_MESSAGE)
}
