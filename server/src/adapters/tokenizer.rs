//! The o200k encoding of current OpenAI models; its vocabulary is in the binary.

use throughline_core::ports::Tokenizer;
use throughline_core::{Error, Result};

/// The o200k encoding.
#[derive(Clone, Copy)]
pub struct O200k {
    encoding: &'static tiktoken::CoreBpe,
}

impl O200k {
    /// Loads the vocabulary (a few tens of milliseconds, once a process).
    ///
    /// # Errors
    /// `Internal` when the vocabulary was not compiled in.
    pub fn load() -> Result<Self> {
        let encoding = tiktoken::get_encoding("o200k_base")
            .ok_or_else(|| Error::internal("the o200k vocabulary is not in this binary"))?;
        Ok(Self { encoding })
    }
}

impl Tokenizer for O200k {
    fn name(&self) -> &str {
        "o200k_base"
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn count(&self, text: &str) -> u32 {
        u32::try_from(self.encoding.count(text)).unwrap_or(u32::MAX)
    }
}
