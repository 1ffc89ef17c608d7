//! Counting tokens, locally and synchronously.

/// A model's tokenizer.
pub trait Tokenizer: Send + Sync {
    /// Name of the encoding, such as `o200k_base`.
    fn name(&self) -> &str;

    /// Whether counts are those of the model. Where not, callers keep a margin free.
    fn is_exact(&self) -> bool;

    /// Tokens of `text`.
    fn count(&self, text: &str) -> u32;
}
