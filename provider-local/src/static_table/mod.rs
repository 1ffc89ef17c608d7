//! Static token vectors: a text is the sum of its tokens' rows in a table that is part of the
//! program. It is instant, so that what is written can be found by meaning with the next call.

mod format;
#[cfg(test)]
mod golden;
mod vocabulary;
mod words;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

use async_trait::async_trait;
use throughline_core::ports::{Embedder, VectorSpace};
use throughline_core::{Error, ErrorKind, Result};

pub use format::encode_table;
use vocabulary::Vocabulary;

/// The table in the binary.
static BUNDLED: &[u8] = include_bytes!("../../assets/static-minilm.tlvt");

/// What a text is read up to: its first tokens, words that are not known among them.
pub(crate) const MAX_TOKENS: usize = 512;
/// Bytes that are looked at for them, several times of what they take in any script; it bounds
/// what a text of blanks or of one endless word costs.
const MAX_BYTES: usize = 16 * 1_024;
/// A file that is larger is not read.
const MAX_FILE: u64 = 256 * 1_024 * 1_024;

/// Embeds by a table of token vectors.
///
/// A vector has length 1, but that of a text without any known token is all zeros: it means
/// nothing and is never near anything. Equal texts have equal bytes, in every run and on every
/// machine: sums go in the order of tokens, by IEEE arithmetic alone.
///
/// Texts are read as BERT reads them (uncased), but markers such as `[SEP]` in a text are plain
/// text. Only the first 512 tokens of a text count.
#[derive(Debug, Clone)]
pub struct StaticEmbedder {
    space: VectorSpace,
    vocabulary: Vocabulary,
    scales: Vec<f32>,
    file: Cow<'static, [u8]>,
    /// Where the values begin in `file`.
    values: usize,
}

impl StaticEmbedder {
    /// The table that is part of this program.
    ///
    /// # Errors
    /// `Corrupt` when the program was built with a damaged table.
    pub fn bundled() -> Result<Self> {
        Self::from_bytes(BUNDLED)
    }

    /// A table as [`encode_table`] writes it; borrowed bytes are not copied.
    ///
    /// # Errors
    /// `Corrupt` for bytes that are not a table or are damaged, `SchemaTooNew` for a later version.
    pub fn from_bytes(bytes: impl Into<Cow<'static, [u8]>>) -> Result<Self> {
        let file = bytes.into();
        let format::Parts { id, dimensions, vocabulary, scales, values } = format::parse(&file)?;
        Ok(Self { space: VectorSpace { id, dimensions }, vocabulary, scales, file, values })
    }

    /// A table in a file.
    ///
    /// # Errors
    /// `NotFound`, or `Unavailable` for a file that cannot be read; those of
    /// [`Self::from_bytes`], with the file's name.
    pub fn from_file(path: &Path) -> Result<Self> {
        let mut bytes = Vec::new();
        std::fs::File::open(path)
            .and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut bytes))
            .map_err(|error| {
                let kind = match error.kind() {
                    std::io::ErrorKind::NotFound => ErrorKind::NotFound,
                    _ => ErrorKind::Unavailable,
                };
                let message = format!(
                    "the table of token vectors {} cannot be read ({error}): name another file, or \
                     leave `static.table` empty to use the built-in table",
                    path.display()
                );
                Error::new(kind, message).with_source(error)
            })?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(Error::new(
                ErrorKind::Corrupt,
                format!("{} is too large for a table of token vectors", path.display()),
            ));
        }
        Self::from_bytes(bytes).map_err(|error| {
            Error::new(error.kind(), format!("{}: {}", path.display(), error.message()))
        })
    }

    /// How many tokens the table knows.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.vocabulary.len()
    }

    /// The vector of one text. It takes microseconds, whatever the text.
    #[must_use]
    pub fn embed_one(&self, text: &str) -> Vec<f32> {
        let mut vector = vec![0.0; self.space.dimensions];
        self.each_token(text, |row| {
            if let Some(row) = row {
                self.add(row as usize, &mut vector);
            }
        });
        normalise(&mut vector);
        vector
    }

    /// The rows that the text's vector is the sum of, in the order of its tokens; a row as often as
    /// its token. It is for the program that makes tables, so that it reads texts as they are
    /// read here.
    #[must_use]
    pub fn rows(&self, text: &str) -> Vec<u32> {
        let mut rows = Vec::new();
        self.each_token(text, |row| rows.extend(row));
        rows
    }

    /// Calls `each` for the tokens that count, `None` for a word that is not known.
    fn each_token(&self, text: &str, mut each: impl FnMut(Option<u32>)) {
        let mut left = MAX_TOKENS;
        self.vocabulary.tokens(head(text, MAX_BYTES), |row| {
            each(row);
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
    }

    fn add(&self, row: usize, sum: &mut [f32]) {
        let begin = self.values + row * self.space.dimensions;
        let (Some(values), Some(scale)) =
            (self.file.get(begin..begin + self.space.dimensions), self.scales.get(row))
        else {
            return;
        };
        for (sum, value) in sum.iter_mut().zip(values) {
            *sum += f32::from(value.cast_signed()) * scale;
        }
    }
}

/// The beginning of a text, cut between characters.
pub(crate) fn head(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}

/// To length 1. What has no direction stays all zeros.
pub(crate) fn normalise(vector: &mut [f32]) {
    // In order and in f64: no other sum of these values is as safe from rounding to another one.
    let square: f64 = vector.iter().map(|value| f64::from(*value) * f64::from(*value)).sum();
    if square > 0.0 {
        let norm = square.sqrt();
        vector.iter_mut().for_each(|value| *value = (f64::from(*value) / norm) as f32);
    }
}

#[async_trait]
impl Embedder for StaticEmbedder {
    fn space(&self) -> &VectorSpace {
        &self.space
    }

    fn is_instant(&self) -> bool {
        true
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        Ok(texts.iter().map(|text| self.embed_one(text)).collect())
    }
}
