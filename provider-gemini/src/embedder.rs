//! Vectors from `embedContent` and `batchEmbedContents`.

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;
use throughline_core::Result;
use throughline_provider_http::json::items;
use throughline_provider_http::{
    BatchLimits, Call, EmbedderSettings, EmbeddingApi, KnownEmbedding, RemoteEmbedder,
    RequestedModel, vector,
};

use crate::provider::{Gemini, path, resource};

const KNOWN: &[KnownEmbedding] = &[
    KnownEmbedding { model: "gemini-embedding-001", dimensions: 3072, shortens: true },
    KnownEmbedding { model: "gemini-embedding-2", dimensions: 3072, shortens: true },
];

/// A request has at most 100 texts, and `gemini-embedding-001` reads 2,048 tokens of each.
const LIMITS: BatchLimits = BatchLimits { texts: 100, tokens: 20_000, text_tokens: 1_700 };

/// An embedding model of a server.
pub type GeminiEmbedder = RemoteEmbedder<Gemini>;

impl Gemini {
    /// An embedder of this server. It asks the server only where the size of the vectors is neither known nor given.
    ///
    /// # Errors
    /// `InvalidInput` for a size that the model does not have; those of the server.
    pub async fn embedder(&self, settings: EmbedderSettings) -> Result<GeminiEmbedder> {
        RemoteEmbedder::open(self.clone(), settings).await
    }
}

#[derive(Serialize)]
struct Batch<'a> {
    requests: Vec<EmbedContent<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EmbedContent<'a> {
    model: String,
    content: Content<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_dimensionality: Option<u32>,
}

#[derive(Serialize)]
struct Content<'a> {
    parts: [Part<'a>; 1],
}

#[derive(Serialize)]
struct Part<'a> {
    text: &'a str,
}

#[async_trait]
impl EmbeddingApi for Gemini {
    fn provider(&self) -> &'static str {
        "gemini"
    }

    fn host(&self) -> &str {
        &self.transport.endpoint().host
    }

    fn known(&self) -> &'static [KnownEmbedding] {
        KNOWN
    }

    fn limits(&self) -> BatchLimits {
        LIMITS
    }

    async fn vectors(
        &self,
        model: &str,
        texts: &[&str],
        dimensions: Option<u32>,
    ) -> Result<Vec<Vec<f32>>> {
        let request = |text| EmbedContent {
            model: resource(model),
            content: Content { parts: [Part { text }] },
            output_dimensionality: dimensions,
        };
        let origin = self.transport.origin("embed", Some(RequestedModel::named(model)));
        let call = match texts {
            [text] => Call::post(path(model, "embedContent")?, &request(text), origin)?,
            texts => {
                let requests = texts.iter().copied().map(request).collect();
                Call::post(path(model, "batchEmbedContents")?, &Batch { requests }, origin)?
            }
        };
        let answer = self.transport.json(&call).await?;
        read(&answer, texts.len()).ok_or_else(|| call.origin.unreadable())
    }
}

/// The vectors of an answer, in the order of their texts; none where there are not as many, or one is none.
fn read(answer: &Value, count: usize) -> Option<Vec<Vec<f32>>> {
    let one = &answer["embedding"];
    let embeddings =
        if one.is_null() { items(&answer["embeddings"]) } else { std::slice::from_ref(one) };
    let vectors = embeddings.iter().map(|embedding| vector(&embedding["values"]));
    vectors.collect::<Option<Vec<_>>>().filter(|vectors| vectors.len() == count)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_as_many_vectors_as_texts() {
        let values = |value: f64| json!({"values": [value, 0.0]});
        for (answer, count, expected) in [
            (json!({"embedding": values(1.0)}), 1, Some(vec![1.0])),
            (json!({"embeddings": [values(2.0), values(1.0)]}), 2, Some(vec![2.0, 1.0])),
            (json!({"embeddings": [values(1.0)]}), 2, None),
            (json!({"embedding": values(1.0)}), 2, None),
            (json!({"embeddings": [values(1.0), {"values": []}]}), 2, None),
            (json!({"embeddings": [values(1.0), {}]}), 2, None),
            (json!({}), 1, None),
        ] {
            let vectors = read(&answer, count);
            let first = vectors.map(|vectors| vectors.iter().map(|vector| vector[0]).collect());
            assert_eq!(first, expected, "{answer}");
        }
    }
}
