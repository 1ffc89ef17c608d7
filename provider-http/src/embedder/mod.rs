//! Embedding models on servers: which texts are sent, how many at once, and vectors of one size and length.

mod batches;

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::Value;
use throughline_core::ports::{Embedder, VectorSpace};
use throughline_core::tokens::Tokenizer;
use throughline_core::{Error, Result};

use crate::errors::{Origin, RequestedModel};
use crate::transport::{Call, TimeLimit, Transport};

use batches::{batches, clip, is_blank};

pub use batches::BatchLimits;

/// How long the size of the vectors is asked for.
const SIZE_TIMEOUT: Duration = Duration::from_secs(15);

/// Which model makes vectors.
#[derive(Clone)]
pub struct EmbedderSettings {
    /// The model, such as `text-embedding-3-small`.
    pub model: String,
    /// Values of each vector. Where they are not given and the model is not known, the first answer shows them. Models
    /// that can are asked for smaller vectors; those of others must have this size.
    pub dimensions: Option<usize>,
    /// How long one text may take, with retries; more texts may take as much longer. Where it is not given, the timeout
    /// of the connection counts.
    pub timeout: Option<Duration>,
    /// Counts the tokens of what is sent.
    pub tokenizer: Arc<dyn Tokenizer>,
}

impl EmbedderSettings {
    /// A model with the dimensions that it has.
    pub fn new(model: impl Into<String>, tokenizer: Arc<dyn Tokenizer>) -> Self {
        Self { model: model.into(), dimensions: None, timeout: None, tokenizer }
    }
}

impl fmt::Debug for EmbedderSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbedderSettings")
            .field("model", &self.model)
            .field("dimensions", &self.dimensions)
            .field("timeout", &self.timeout)
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
pub trait EmbeddingApi: Send + Sync {
    /// The name of the provider, such as `openai`.
    const PROVIDER: &'static str;
    /// The models that are known.
    const KNOWN: &'static [KnownEmbedding];
    /// How much one request may hold.
    const LIMITS: BatchLimits;

    /// The connection to the server.
    fn transport(&self) -> &Transport;

    /// The request for one vector of each text; `dimensions` where a smaller one is asked for.
    ///
    /// # Errors
    /// `InvalidInput` for a model that cannot be named.
    fn call(
        &self,
        model: &str,
        texts: &[&str],
        dimensions: Option<u32>,
        origin: Origin,
    ) -> Result<Call>;

    /// The vectors of an answer in the order of their texts; `None` unless there are `count` of them and all are valid.
    fn read(answer: &Value, count: usize) -> Option<Vec<Vec<f32>>>;
}

/// An embedding model of a server.
#[derive(Debug)]
pub struct RemoteEmbedder<A> {
    api: A,
    settings: EmbedderSettings,
    /// The space before its size is known.
    unknown: VectorSpace,
    space: OnceLock<VectorSpace>,
    /// What a request asks for; not all models let it be chosen.
    asked_dimensions: Option<u32>,
}

impl<A: EmbeddingApi> RemoteEmbedder<A> {
    /// An embedder of a server that is not called yet.
    ///
    /// # Errors
    /// `InvalidInput` for a size that the model does not have, or a model that cannot be named.
    pub fn new(api: A, settings: EmbedderSettings) -> Result<Self> {
        let EmbedderSettings { model, dimensions, .. } = &settings;
        if model.is_empty() || *dimensions == Some(0) {
            return Err(Error::invalid("an embedder needs a model, and dimensions greater than 0"));
        }
        let known = A::KNOWN.iter().find(|known| known.model == model);
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
        // Two servers may give one name to two models, so the host is part of the space.
        let host = &api.transport().endpoint().host;
        let id = format!("{}:{host}/{model}", A::PROVIDER);
        let id = match dimensions {
            Some(dimensions) if shortened => format!("{id}@{dimensions}"),
            _ => id,
        };
        let embedder = Self {
            unknown: VectorSpace { id, dimensions: 0 },
            space: OnceLock::new(),
            asked_dimensions: dimensions
                .filter(|_| shortened)
                .and_then(|size| u32::try_from(size).ok()),
            api,
            settings,
        };
        if let Some(dimensions) = dimensions {
            embedder.dimensions_or(dimensions);
        }
        embedder.call(&["text"])?;
        Ok(embedder)
    }

    /// The size of the vectors, which is `seen` unless it was known before.
    fn dimensions_or(&self, seen: usize) -> usize {
        let space = || VectorSpace { dimensions: seen, ..self.unknown.clone() };
        self.space.get_or_init(space).dimensions
    }

    fn call(&self, texts: &[&str]) -> Result<Call> {
        let model = &self.settings.model;
        let origin = self.api.transport().origin("embed", Some(RequestedModel::named(model)));
        self.api.call(model, texts, self.asked_dimensions, origin)
    }

    async fn vectors(&self, texts: &[&str], timeout: Option<TimeLimit>) -> Result<Vec<Vec<f32>>> {
        let call = Call { timeout, ..self.call(texts)? };
        let answer = self.api.transport().json(&call).await?;
        let vectors = A::read(&answer, texts.len()).ok_or_else(|| call.origin.unreadable())?;
        let expected = self.dimensions_or(vectors.first().map_or(0, Vec::len));
        match vectors.iter().find(|vector| vector.len() != expected) {
            None => Ok(vectors),
            Some(other) => Err(Error::invalid(format!(
                "`{}` gave a vector of {} dimensions instead of {expected}: set the dimensions of \
                 the embedder to what the model has",
                self.settings.model,
                other.len()
            ))
            .during("embed")),
        }
    }

    /// How long so many texts may take.
    fn timeout(&self, texts: usize) -> Option<TimeLimit> {
        let count = u32::try_from(texts).unwrap_or(u32::MAX);
        let after = self.settings.timeout?.saturating_mul(count);
        Some(TimeLimit { after, setting: Some("embed_timeout_ms") })
    }
}

#[async_trait]
impl<A: EmbeddingApi> Embedder for RemoteEmbedder<A> {
    fn space(&self) -> &VectorSpace {
        self.space.get().unwrap_or(&self.unknown)
    }

    async fn ready(&self) -> Result<()> {
        if self.space.get().is_some() {
            return Ok(());
        }
        let timeout = TimeLimit { after: SIZE_TIMEOUT, setting: None };
        let asked = self.vectors(&["dimensions"], Some(timeout)).await;
        asked.map(drop).inspect_err(|error| {
            tracing::warn!(
                space = self.unknown.id,
                "the embedder cannot be used before the size of its vectors is known, and asking \
                 for it failed: {}",
                error.message()
            );
        })
    }

    fn is_instant(&self) -> bool {
        false
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let mut vectors = vec![None; texts.len()];
        let tokenizer = &*self.settings.tokenizer;
        // APIs refuse empty texts, and what they make of white space means nothing.
        let sent = texts.iter().enumerate().filter(|(_, text)| !is_blank(text));
        let (places, sent): (Vec<_>, Vec<_>) =
            sent.map(|(place, text)| (place, clip(text, A::LIMITS.text_tokens, tokenizer))).unzip();
        if sent.is_empty() && !texts.is_empty() {
            self.ready().await?;
        }
        let mut places = places.into_iter();
        for batch in batches(&sent, A::LIMITS) {
            let texts: Vec<_> = batch.iter().map(|(text, _)| *text).collect();
            let batch = self.vectors(&texts, self.timeout(texts.len())).await?;
            // `zip` reads its first iterator before the second: with the places first, one would be lost.
            for (mut vector, place) in batch.into_iter().zip(places.by_ref()) {
                normalize(&mut vector);
                vectors[place] = Some(vector);
            }
        }
        let zeros = || vec![0.0; self.space().dimensions];
        Ok(vectors.into_iter().map(|vector| vector.unwrap_or_else(zeros)).collect())
    }
}

/// The values of a vector; `None` where it is empty or one of them is not a finite number.
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
