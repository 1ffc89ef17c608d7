//! Vectors from `/embeddings`.

mod batches;

use std::fmt;
use std::sync::Arc;

use async_openai::types::embeddings::{CreateEmbeddingRequest, EmbeddingInput, EncodingFormat};
use async_trait::async_trait;
use http::{HeaderMap, Method};
use serde_json::Value;
use throughline_core::ports::{Embedder, VectorSpace};
use throughline_core::tokens::Tokenizer;
use throughline_core::{Error, Result};

use crate::errors::Origin;
use crate::json::items;
use crate::provider::OpenAi;
use crate::transport::{Call, JSON};

use batches::{Limits, batches, clip, is_blank};

/// Models whose vectors have a known size, and whether a smaller one may be asked for.
const KNOWN: &[(&str, usize, bool)] = &[
    ("text-embedding-3-small", 1536, true),
    ("text-embedding-3-large", 3072, true),
    ("text-embedding-ada-002", 1536, false),
];

/// Which model makes vectors, and how much it is sent at once.
#[derive(Clone)]
pub struct EmbedderSettings {
    /// The model, such as `text-embedding-3-small`.
    pub model: String,
    /// Values of each vector. Where it is not given, it is known or asked once. Of the models that can, smaller vectors
    /// are asked for; of others, it is what their vectors have to have.
    pub dimensions: Option<usize>,
    /// Most texts of a request.
    pub max_batch_texts: usize,
    /// Most tokens of a request.
    pub max_batch_tokens: u32,
    /// Most tokens of a text; what is longer is cut. Models have 8,192; the rest is for counts that are not exact.
    pub max_text_tokens: u32,
    /// Counts the tokens.
    pub tokenizer: Arc<dyn Tokenizer>,
}

impl EmbedderSettings {
    /// The defaults, for a model.
    pub fn new(model: impl Into<String>, tokenizer: Arc<dyn Tokenizer>) -> Self {
        Self {
            model: model.into(),
            dimensions: None,
            max_batch_texts: 256,
            max_batch_tokens: 100_000,
            max_text_tokens: 7_000,
            tokenizer,
        }
    }
}

impl fmt::Debug for EmbedderSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EmbedderSettings")
            .field("model", &self.model)
            .field("dimensions", &self.dimensions)
            .field("max_batch_texts", &self.max_batch_texts)
            .field("max_batch_tokens", &self.max_batch_tokens)
            .field("max_text_tokens", &self.max_text_tokens)
            .field("tokenizer", &self.tokenizer.name())
            .finish()
    }
}

/// An embedding model of a server.
#[derive(Debug)]
pub struct OpenAiEmbedder {
    server: OpenAi,
    settings: EmbedderSettings,
    space: VectorSpace,
    /// What a request asks for; not all models let it be chosen.
    asked_dimensions: Option<u32>,
}

impl OpenAi {
    /// An embedder of this server. It asks the server only where the size of the vectors is neither known nor given.
    ///
    /// # Errors
    /// `InvalidInput` for a size that the model does not have, or an empty batch; those of [`Embedder::embed`].
    pub async fn embedder(&self, settings: EmbedderSettings) -> Result<OpenAiEmbedder> {
        let EmbedderSettings { model, dimensions, .. } = &settings;
        let limits =
            (settings.max_batch_texts, settings.max_batch_tokens, settings.max_text_tokens);
        if model.is_empty()
            || limits.0 == 0
            || limits.1 == 0
            || limits.2 == 0
            || *dimensions == Some(0)
        {
            return Err(Error::invalid(
                "an embedder needs a model, and limits and dimensions greater than 0",
            ));
        }
        let known = KNOWN.iter().find(|(name, ..)| name == model);
        let (dimensions, shortened) = match (*dimensions, known) {
            (None, known) => (known.map(|(_, size, _)| *size), false),
            (Some(asked), Some((_, size, _))) if asked == *size => (Some(asked), false),
            (Some(asked), Some((_, size, true))) if asked < *size => (Some(asked), true),
            (Some(asked), Some((_, size, _))) => {
                return Err(Error::invalid(format!(
                    "`{model}` has vectors of {size} dimensions, not of {asked}"
                )));
            }
            (Some(asked), None) => (Some(asked), false),
        };
        let mut embedder = OpenAiEmbedder {
            space: self.space(model, dimensions.unwrap_or(0), shortened),
            asked_dimensions: dimensions
                .filter(|_| shortened)
                .and_then(|size| u32::try_from(size).ok()),
            server: self.clone(),
            settings,
        };
        if dimensions.is_none() {
            let vectors = embedder.vectors(&["dimensions"]).await?;
            embedder.space.dimensions = vectors.first().map_or(0, Vec::len);
        }
        Ok(embedder)
    }

    /// Two servers may give one name to two models, so the host is part of the space.
    fn space(&self, model: &str, dimensions: usize, shortened: bool) -> VectorSpace {
        let host = &self.transport.endpoint().host;
        let id = format!("openai:{host}/{model}");
        let id = if shortened { format!("{id}@{dimensions}") } else { id };
        VectorSpace { id, dimensions }
    }
}

impl OpenAiEmbedder {
    fn origin(&self) -> Origin {
        let requested =
            self.server.requested(&self.settings.model, None, vec![self.settings.model.clone()]);
        self.server.transport.origin("embed", Some(requested))
    }

    /// One vector for each text, of whatever size the server gives them.
    async fn vectors(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let body = CreateEmbeddingRequest {
            model: self.settings.model.clone(),
            input: EmbeddingInput::StringArray(
                texts.iter().map(|text| (*text).to_owned()).collect(),
            ),
            encoding_format: Some(EncodingFormat::Float),
            user: None,
            dimensions: self.asked_dimensions,
        };
        let origin = self.origin();
        let body = serde_json::to_vec(&body)
            .map_err(|error| Error::internal("a request cannot be written").with_source(error))?;
        let call = Call {
            method: Method::POST,
            path: "/embeddings".to_owned(),
            headers: HeaderMap::new(),
            body: body.into(),
            accept: JSON,
            any_status: false,
            may_pause: false,
            origin: origin.clone(),
        };
        let answer = self.server.transport.json(&call).await?;
        read(&answer, texts.len()).ok_or_else(|| origin.unreadable())
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

#[async_trait]
impl Embedder for OpenAiEmbedder {
    fn space(&self) -> &VectorSpace {
        &self.space
    }

    fn is_instant(&self) -> bool {
        false
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        let mut vectors = vec![vec![0.0; self.space.dimensions]; texts.len()];
        let tokenizer = &*self.settings.tokenizer;
        let limits = Limits {
            texts: self.settings.max_batch_texts,
            tokens: u64::from(self.settings.max_batch_tokens),
        };
        // The API refuses empty texts, and what it makes of white space means nothing.
        let sent = texts.iter().enumerate().filter(|(_, text)| !is_blank(text));
        let (places, sent): (Vec<_>, Vec<_>) = sent
            .map(|(place, text)| (place, clip(text, self.settings.max_text_tokens, tokenizer)))
            .unzip();
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

/// The vectors of an answer in the order of their texts; none where there are not as many, or one is none.
fn read(answer: &Value, count: usize) -> Option<Vec<Vec<f32>>> {
    let data = items(&answer["data"]);
    let mut vectors = vec![None; count];
    for (at, item) in data.iter().enumerate() {
        let index = match &item["index"] {
            Value::Null => at,
            index => usize::try_from(index.as_u64()?).ok()?,
        };
        let values = item["embedding"].as_array()?.iter().map(value);
        let vector = values.collect::<Option<Vec<_>>>().filter(|vector| !vector.is_empty())?;
        *vectors.get_mut(index)? = Some(vector);
    }
    vectors.into_iter().collect()
}

fn value(value: &Value) -> Option<f32> {
    value.as_f64().map(|value| value as f32).filter(|value| value.is_finite())
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
    fn orders_vectors_by_their_index() {
        let item = |index: Value, value: f64| json!({"index": index, "embedding": [value, 0.0]});
        let one = json!(1);
        for (data, expected) in [
            (json!([item(json!(1), 2.0), item(json!(0), 1.0)]), Some(vec![1.0, 2.0])),
            (json!([item(Value::Null, 1.0), item(Value::Null, 2.0)]), Some(vec![1.0, 2.0])),
            (json!([item(json!(0), 1.0)]), None),
            (json!([item(one.clone(), 1.0), item(one, 2.0)]), None),
            (json!([item(json!(0), 1.0), item(json!(2), 2.0)]), None),
            (json!([item(json!(0), 1.0), item(json!(1), 1e300)]), None),
            (json!([{"embedding": [null]}, {"embedding": [1.0]}]), None),
            (json!([{"embedding": []}, {"embedding": [1.0]}]), None),
            (json!(null), None),
        ] {
            let vectors = read(&json!({"data": data}), 2);
            let first = vectors.map(|vectors| vectors.iter().map(|vector| vector[0]).collect());
            assert_eq!(first, expected, "{data}");
        }
    }

    #[test]
    fn vectors_have_the_length_one() {
        let mut vector = [3.0, -4.0];
        normalize(&mut vector);
        assert_eq!(vector, [0.6, -0.8]);
        let mut nothing = [0.0, 0.0];
        normalize(&mut nothing);
        assert_eq!(nothing, [0.0, 0.0]);
    }
}
