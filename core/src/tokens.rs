//! Counting what a payload costs.

/// A model's tokenizer: counts locally, and at once.
pub trait Tokenizer: Send + Sync {
    /// Name of the encoding, such as `o200k_base`.
    fn name(&self) -> &str;

    /// Whether counts are those of the model. Where not, callers keep a margin free.
    fn is_exact(&self) -> bool;

    /// Tokens of `text`.
    fn count(&self, text: &str) -> u32;
}

/// Tokens that chat formats add around each message (role and delimiters). Three and one for
/// OpenAI's format; other providers are at or below it.
pub const PER_MESSAGE: u32 = 4;

/// Tokens that prime the answer, once a payload.
pub const PER_PAYLOAD: u32 = 3;

/// Tokens of one message on the wire: its content and what the chat format adds.
pub fn message_tokens(tokenizer: &dyn Tokenizer, content: &str) -> u32 {
    tokenizer.count(content).saturating_add(PER_MESSAGE)
}
