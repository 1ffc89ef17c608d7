//! all-MiniLM-L6-v2 on the CPU: better vectors than the static table's, at a thousandth of its
//! speed or less, so that it is for the background.

mod bert;
mod fetch;
mod files;

use std::path::Path;
use std::sync::Arc;

use async_trait::async_trait;
use candle_core::{DType, Device, Tensor};
use candle_nn::VarBuilder;
use throughline_core::ports::{Embedder, VectorSpace};
use throughline_core::{Error, ErrorKind, Result};
use tokenizers::{Tokenizer, TruncationParams};

use self::bert::{Encoder, HIDDEN};
use self::files::{TOKENIZER, WEIGHTS};
use crate::static_table::{head, normalise};

pub use self::fetch::{FetchProgress, FetchStep, Fetched, Source, fetch};

/// Of a text, the markers of its beginning and end among them; the model was made for that.
const MAX_TOKENS: usize = 256;
/// Bytes that are looked at for them.
const MAX_BYTES: usize = 8 * 1_024;
/// `[UNK]`, `[CLS]` and `[SEP]`.
const MEANINGLESS: [u32; 3] = [100, 101, 102];
/// Tokens of a batch with its padding; larger ones are not faster, but take more memory.
const BATCH: usize = 4_096;

/// The model in memory. Clones share it.
///
/// A vector has 384 values and length 1, but that of a text without a known token is all zeros. The
/// text's first 256 tokens count; markers such as `[SEP]` in a text are plain text.
#[derive(Debug, Clone)]
pub struct MiniLm {
    space: VectorSpace,
    model: Arc<Model>,
}

#[derive(Debug)]
struct Model {
    tokenizer: Tokenizer,
    encoder: Encoder,
}

impl MiniLm {
    /// Reads the model from a folder that [`fetch`] filled, in a fraction of a second. The weights
    /// are known by their hash, so that no `config.json` needs to tell their sizes.
    ///
    /// # Errors
    /// `NotFound` or `Corrupt`, with the file's name, when one of the two files is missing or is
    /// not the model's.
    pub fn load(folder: &Path) -> Result<Self> {
        let tokenizer = tokenizer(&TOKENIZER.read(folder)?).map_err(|error| {
            let message = format!("{} cannot be used", folder.join(TOKENIZER.name).display());
            Error::new(ErrorKind::Corrupt, message).with_source(error)
        })?;
        let weights = WEIGHTS.read(folder)?;
        let encoder = VarBuilder::from_slice_safetensors(&weights, DType::F32, &Device::Cpu)
            .and_then(|weights| Encoder::new(&weights))
            .map_err(|error| {
                let message = format!("{} cannot be used", folder.join(WEIGHTS.name).display());
                Error::new(ErrorKind::Corrupt, message).with_source(error)
            })?;
        let space = VectorSpace { id: "all-MiniLM-L6-v2".to_owned(), dimensions: HIDDEN };
        Ok(Self { space, model: Arc::new(Model { tokenizer, encoder }) })
    }

    /// One vector for each text, in order. It computes on every core, for milliseconds a
    /// text; so call it from a thread that may block.
    ///
    /// # Errors
    /// `Internal` only.
    pub fn embed_blocking(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        self.model.embed(texts)
    }

    /// The tokens that the model knows, in the order of their ids, special ones among them.
    #[must_use]
    pub fn vocabulary(&self) -> Vec<String> {
        let mut tokens: Vec<_> = self.model.tokenizer.get_vocab(true).into_iter().collect();
        tokens.sort_by_key(|(_, id)| *id);
        tokens.into_iter().map(|(token, _)| token).collect()
    }

    /// One vector for each token by itself, between the markers of a text's beginning and end: what
    /// a table of token vectors can be made of. It blocks as [`Self::embed_blocking`] does.
    ///
    /// # Errors
    /// `InvalidInput` for an id that is not one of [`Self::vocabulary`].
    pub fn embed_tokens_blocking(&self, ids: &[u32]) -> Result<Vec<Vec<f32>>> {
        let known = self.model.tokenizer.get_vocab_size(true);
        if let Some(id) = ids.iter().find(|id| **id as usize >= known) {
            return Err(Error::invalid(format!("the model has {known} tokens, none has id {id}")));
        }
        let marker = |name| {
            self.model.tokenizer.token_to_id(name).ok_or_else(|| {
                Error::internal(format!("the local model's tokenizer has no {name}"))
            })
        };
        let (begin, end) = (marker("[CLS]")?, marker("[SEP]")?);
        let texts: Vec<_> =
            ids.iter().enumerate().map(|(at, id)| (at, vec![begin, *id, end])).collect();
        let mut vectors = Vec::with_capacity(ids.len());
        for batch in texts.chunks(BATCH / 3) {
            vectors.extend(self.model.batch(batch).map_err(failed)?);
        }
        Ok(vectors)
    }
}

#[async_trait]
impl Embedder for MiniLm {
    fn space(&self) -> &VectorSpace {
        &self.space
    }

    fn is_instant(&self) -> bool {
        false
    }

    /// On a thread of the Tokio runtime that may block; it must be called within one.
    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let model = Arc::clone(&self.model);
        let texts: Vec<String> = texts.iter().map(|text| (*text).to_owned()).collect();
        let embedded = tokio::task::spawn_blocking(move || {
            let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
            model.embed(&texts)
        });
        embedded.await.map_err(failed)?
    }
}

impl Model {
    fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let mut ids = Vec::with_capacity(texts.len());
        for (at, text) in texts.iter().enumerate() {
            let encoding = self.tokenizer.encode_fast(head(text, MAX_BYTES), true);
            let encoding = encoding.map_err(failed)?;
            // The model has a vector for nothing, too, which is near to what happens to be.
            if encoding.get_ids().iter().any(|id| !MEANINGLESS.contains(id)) {
                ids.push((at, encoding.get_ids().to_vec()));
            }
        }
        // Texts of like length together: little of a batch is padding.
        ids.sort_by_key(|(_, ids)| ids.len());
        let mut vectors = vec![vec![0.0; HIDDEN]; texts.len()];
        let mut rest = ids.as_slice();
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(batch(rest));
            let embedded = self.batch(batch).map_err(failed)?;
            for ((at, _), vector) in batch.iter().zip(embedded) {
                vectors[*at] = vector;
            }
            rest = after;
        }
        Ok(vectors)
    }

    /// The mean of the hidden states of each text's tokens.
    fn batch(&self, texts: &[(usize, Vec<u32>)]) -> candle_core::Result<Vec<Vec<f32>>> {
        let length = texts.iter().map(|(_, ids)| ids.len()).max().unwrap_or_default();
        let shape = (texts.len(), length);
        let padded = |value: fn(u32) -> u32| -> Vec<u32> {
            let padded = texts.iter().flat_map(|(_, ids)| {
                let padding = std::iter::repeat_n(0, length - ids.len());
                ids.iter().map(move |id| value(*id)).chain(padding)
            });
            padded.collect()
        };
        let ids = Tensor::from_vec(padded(|id| id), shape, &Device::Cpu)?;
        let mask = Tensor::from_vec(padded(|_| 1), shape, &Device::Cpu)?;
        let states = self.encoder.forward(&ids, &mask)?;
        let mask = mask.to_dtype(DType::F32)?.unsqueeze(2)?;
        let mut vectors = states.broadcast_mul(&mask)?.sum(1)?.to_vec2::<f32>()?;
        // Of the sum and of the mean, which has the same direction.
        vectors.iter_mut().for_each(|vector| normalise(vector));
        Ok(vectors)
    }
}

fn tokenizer(bytes: &[u8]) -> tokenizers::Result<Tokenizer> {
    let mut tokenizer = Tokenizer::from_bytes(bytes)?;
    tokenizer.with_padding(None);
    let truncation = TruncationParams { max_length: MAX_TOKENS, ..TruncationParams::default() };
    tokenizer.with_truncation(Some(truncation))?;
    // What a text says is no marker.
    tokenizer.set_encode_special_tokens(true);
    Ok(tokenizer)
}

/// How many of the texts, the shortest first, go together.
fn batch(texts: &[(usize, Vec<u32>)]) -> usize {
    let fits = texts.iter().enumerate().take_while(|(at, (_, ids))| (at + 1) * ids.len() <= BATCH);
    fits.count().max(1)
}

fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Error {
    Error::internal("the local model failed to embed a text; the logs say more").with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_bounded_with_their_padding() {
        let of = |lengths: &[usize]| -> Vec<(usize, Vec<u32>)> {
            lengths.iter().map(|length| (0, vec![0; *length])).collect()
        };
        assert_eq!(batch(&of(&[2; 3_000])), 2_048);
        assert_eq!(batch(&of(&[10, 256, 256])), 3);
        assert_eq!(batch(&of(&[256; 20])), 16);
        assert_eq!(batch(&of(&[1, 2, BATCH])), 2);
        assert_eq!(batch(&of(&[BATCH + 1])), 1);
    }

    #[test]
    fn a_missing_model_says_what_to_do() {
        let error = MiniLm::load(Path::new("there-is-no-such-folder")).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound);
        assert!(error.message().contains("throughline model fetch"), "{error}");
        assert!(error.message().contains(TOKENIZER.name), "{error}");
    }
}
