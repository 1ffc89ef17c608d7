//! Embedding models on servers: which texts are sent, how many at once, and vectors of one size and length.

mod batches;

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use throughline_core::ports::{Embedder, VectorSpace};
use throughline_core::tokens::Tokenizer;
use throughline_core::{Error, Result};

use batches::{batches, clip, is_blank};

pub use batches::BatchLimits;

/// Which model makes vectors.
#[derive(Clone)]
pub struct EmbedderSettings {
    /// The model, such as `text-embedding-3-small`.
    pub model: String,
    /// Values of each vector. Where it is not given, it is known or asked once. Of the models that can, smaller vectors
    /// are asked for; of others, it is what their vectors have to have.
    pub dimensions: Option<usize>,
    /// Counts the tokens of what is sent.
    pub tokenizer: Arc<dyn Tokenizer>,
}

impl EmbedderSettings {
    /// A model with the dimensions that it has.
    pub fn new(model: impl Into<String>, tokenizer: Arc<dyn Tokenizer>) -> Self {
        Self { model: model.into(), dimensions: None, tokenizer }
    }
}

impl fmt::Debug for EmbedderSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbedderSettings")
            .field("model", &self.model)
            .field("dimensions", &self.dimensions)
            .field("tokenizer", &self.tokenizer.name())
            .finish()
    }
}

/// A model whose vectors have a known size.
#[derive(Debug, Clone, Copy)]
pub struct KnownEmbedding {
    /// The model.
    pub model: &'static str,
    /// Values of its vectors.
    pub dimensions: usize,
    /// Whether a smaller vector may be asked for.
    pub shortens: bool,
}

/// The embeddings of an API.
#[async_trait]
pub trait EmbeddingApi: Send + Sync {
    /// The name of the provider, such as `openai`.
    fn provider(&self) -> &'static str;

    /// The host of the server.
    fn host(&self) -> &str;

    /// The models that are known.
    fn known(&self) -> &'static [KnownEmbedding];

    /// How much one request may hold.
    fn limits(&self) -> BatchLimits;

    /// One vector for each text, of whatever size the server gives them; `dimensions` where a smaller one is asked for.
    ///
    /// # Errors
    /// Those of the server, and `Unavailable` where it answers something else.
    async fn vectors(
        &self,
        model: &str,
        texts: &[&str],
        dimensions: Option<u32>,
    ) -> Result<Vec<Vec<f32>>>;
}

/// An embedding model of a server.
#[derive(Debug)]
pub struct RemoteEmbedder<A> {
    api: A,
    settings: EmbedderSettings,
    space: VectorSpace,
    /// What a request asks for; not all models let it be chosen.
    asked_dimensions: Option<u32>,
}

impl<A: EmbeddingApi> RemoteEmbedder<A> {
    /// An embedder. It asks the server only where the size of the vectors is neither known nor given.
    ///
    /// # Errors
    /// `InvalidInput` for a size that the model does not have; those of [`Embedder::embed`].
    pub async fn open(api: A, settings: EmbedderSettings) -> Result<Self> {
        let EmbedderSettings { model, dimensions, .. } = &settings;
        if model.is_empty() || *dimensions == Some(0) {
            return Err(Error::invalid("an embedder needs a model, and dimensions greater than 0"));
        }
        let known = api.known().iter().find(|known| known.model == model);
        let (dimensions, shortened) = match (*dimensions, known) {
            (None, known) => (known.map(|known| known.dimensions), false),
            (Some(asked), None) => (Some(asked), false),
            (Some(asked), Some(known)) if asked == known.dimensions => (Some(asked), false),
            (Some(asked), Some(known)) if asked < known.dimensions && known.shortens => {
                (Some(asked), true)
            }
            (Some(asked), Some(known)) => {
                return Err(Error::invalid(format!(
                    "`{model}` has vectors of {} dimensions, not of {asked}",
                    known.dimensions
                )));
            }
        };
        let mut embedder = Self {
            space: space(&api, model, dimensions.unwrap_or(0), shortened),
            asked_dimensions: dimensions
                .filter(|_| shortened)
                .and_then(|size| u32::try_from(size).ok()),
            api,
            settings,
        };
        if dimensions.is_none() {
            let vectors = embedder.vectors(&["dimensions"]).await?;
            embedder.space.dimensions = vectors.first().map_or(0, Vec::len);
        }
        Ok(embedder)
    }

    async fn vectors(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        self.api.vectors(&self.settings.model, texts, self.asked_dimensions).await
    }

    fn check(&self, vectors: &[Vec<f32>]) -> Result<()> {
        let expected = self.space.dimensions;
        match vectors.iter().find(|vector| vector.len() != expected) {
            None => Ok(()),
            Some(other) => Err(Error::invalid(format!(
                "`{}` gave a vector of {} dimensions instead of {expected}: set the dimensions of \
                 the embedder to what the model has",
                self.settings.model,
                other.len()
            ))
            .during("embed")),
        }
    }
}

/// Two servers may give one name to two models, so the host is part of the space.
fn space(api: &impl EmbeddingApi, model: &str, dimensions: usize, shortened: bool) -> VectorSpace {
    let id = format!("{}:{}/{model}", api.provider(), api.host());
    let id = if shortened { format!("{id}@{dimensions}") } else { id };
    VectorSpace { id, dimensions }
}

#[async_trait]
impl<A: EmbeddingApi> Embedder for RemoteEmbedder<A> {
    fn space(&self) -> &VectorSpace {
        &self.space
    }

    fn is_instant(&self) -> bool {
        false
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let mut vectors = vec![vec![0.0; self.space.dimensions]; texts.len()];
        let tokenizer = &*self.settings.tokenizer;
        let limits = self.api.limits();
        // APIs refuse empty texts, and what they make of white space means nothing.
        let sent = texts.iter().enumerate().filter(|(_, text)| !is_blank(text));
        let (places, sent): (Vec<_>, Vec<_>) =
            sent.map(|(place, text)| (place, clip(text, limits.text_tokens, tokenizer))).unzip();
        let mut places = places.into_iter();
        for batch in batches(&sent, limits) {
            let texts: Vec<_> = batch.iter().map(|(text, _)| *text).collect();
            let batch = self.vectors(&texts).await?;
            self.check(&batch)?;
            // `zip` reads its first iterator before the second: with the places first, one would be lost.
            for (mut vector, place) in batch.into_iter().zip(places.by_ref()) {
                normalize(&mut vector);
                vectors[place] = vector;
            }
        }
        Ok(vectors)
    }
}

/// The values of a vector; none where it is empty or one of them is no finite number.
#[must_use]
pub fn vector(values: &Value) -> Option<Vec<f32>> {
    let number =
        |value: &Value| value.as_f64().map(|value| value as f32).filter(|value| value.is_finite());
    let vector = values.as_array()?.iter().map(number).collect::<Option<Vec<_>>>();
    vector.filter(|vector| !vector.is_empty())
}

/// To the length 1, which not every model's vectors have.
fn normalize(vector: &mut [f32]) {
    let norm = vector.iter().map(|value| f64::from(*value).powi(2)).sum::<f64>().sqrt();
    if norm > 0.0 {
        vector.iter_mut().for_each(|value| *value = (f64::from(*value) / norm) as f32);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn vectors_have_the_length_one() {
        let mut vector = [3.0, -4.0];
        normalize(&mut vector);
        assert_eq!(vector, [0.6, -0.8]);
        let mut nothing = [0.0, 0.0];
        normalize(&mut nothing);
        assert_eq!(nothing, [0.0, 0.0]);
    }

    #[test]
    fn refuses_what_is_no_vector() {
        assert_eq!(vector(&json!([1, -0.5])), Some(vec![1.0, -0.5]));
        for wrong in [json!([]), json!(null), json!([1e300]), json!([null]), json!(["1"])] {
            assert_eq!(vector(&wrong), None, "{wrong}");
        }
    }
}
