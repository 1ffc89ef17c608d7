//! Vectors from `/embeddings`.

use async_openai::types::embeddings::{CreateEmbeddingRequest, EmbeddingInput, EncodingFormat};
use serde_json::Value;
use throughline_core::Result;
use throughline_provider_http::json::items;
use throughline_provider_http::{
    BatchLimits, Call, EmbedderSettings, EmbeddingApi, KnownEmbedding, Origin, RemoteEmbedder,
    Transport, vector,
};

use crate::provider::OpenAi;

/// An embedding model of a server.
pub type OpenAiEmbedder = RemoteEmbedder<OpenAi>;

impl OpenAi {
    /// An embedder of this server, which is not called yet.
    ///
    /// # Errors
    /// `InvalidInput` for a size that the model does not have.
    pub fn embedder(&self, settings: EmbedderSettings) -> Result<OpenAiEmbedder> {
        RemoteEmbedder::new(self.clone(), settings)
    }
}

impl EmbeddingApi for OpenAi {
    const PROVIDER: &'static str = "openai";
    const KNOWN: &'static [KnownEmbedding] = &[
        KnownEmbedding { model: "text-embedding-3-small", dimensions: 1536, shortens: true },
        KnownEmbedding { model: "text-embedding-3-large", dimensions: 3072, shortens: true },
        KnownEmbedding { model: "text-embedding-ada-002", dimensions: 1536, shortens: false },
    ];
    /// Models take texts of 8,192 tokens.
    const LIMITS: BatchLimits = BatchLimits { texts: 256, tokens: 100_000, text_tokens: 7_000 };

    fn transport(&self) -> &Transport {
        &self.transport
    }

    fn call(
        &self,
        model: &str,
        texts: &[&str],
        dimensions: Option<u32>,
        origin: Origin,
    ) -> Result<Call> {
        let texts = texts.iter().map(|text| (*text).to_owned()).collect();
        let body = CreateEmbeddingRequest {
            model: model.to_owned(),
            input: EmbeddingInput::StringArray(texts),
            encoding_format: Some(EncodingFormat::Float),
            user: None,
            dimensions,
        };
        Call::post("/embeddings", &body, origin)
    }

    fn read(answer: &Value, count: usize) -> Option<Vec<Vec<f32>>> {
        let mut vectors = vec![None; count];
        for (at, item) in items(&answer["data"]).iter().enumerate() {
            let index = match &item["index"] {
                Value::Null => at,
                index => usize::try_from(index.as_u64()?).ok()?,
            };
            *vectors.get_mut(index)? = Some(vector(&item["embedding"])?);
        }
        vectors.into_iter().collect()
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
            let vectors = OpenAi::read(&json!({"data": data}), 2);
            let first = vectors.map(|vectors| vectors.iter().map(|vector| vector[0]).collect());
            assert_eq!(first, expected, "{data}");
        }
    }
}
