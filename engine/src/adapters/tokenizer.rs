//! The o200k encoding of current OpenAI models; its vocabulary is in the binary.

use std::sync::LazyLock;

use throughline_core::tokens::Tokenizer;

const NAME: &str = "o200k_base";

#[expect(clippy::expect_used, reason = "a feature of the crate compiles it in")]
static ENCODING: LazyLock<&tiktoken::CoreBpe> =
    LazyLock::new(|| tiktoken::get_encoding(NAME).expect("the o200k vocabulary is in the binary"));

/// The o200k encoding. The first count of a process loads the vocabulary, which takes a tenth of a second.
#[derive(Clone, Copy)]
pub struct O200k;

impl Tokenizer for O200k {
    fn name(&self) -> &str {
        NAME
    }

    fn is_exact(&self) -> bool {
        true
    }

    fn count(&self, text: &str) -> u32 {
        u32::try_from(ENCODING.count(text)).unwrap_or(u32::MAX)
    }
}
