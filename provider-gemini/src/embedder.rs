//! Vectors from `embedContent` and `batchEmbedContents`.

use serde::Serialize;
use serde_json::Value;
use throughline_core::Result;
use throughline_provider_http::json::items;
use throughline_provider_http::{
    BatchLimits, Call, EmbedderSettings, EmbeddingApi, KnownEmbedding, Origin, RemoteEmbedder,
    Transport, vector,
};

use crate::provider::{Gemini, path, resource};

/// An embedding model of a server.
pub type GeminiEmbedder = RemoteEmbedder<Gemini>;

impl Gemini {
    /// An embedder of this server, which is not called yet.
    ///
    /// # Errors
    /// `InvalidInput` for a size that the model does not have, or a model that cannot be named.
    pub fn embedder(&self, settings: EmbedderSettings) -> Result<GeminiEmbedder> {
        RemoteEmbedder::new(self.clone(), settings)
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

impl EmbeddingApi for Gemini {
    const PROVIDER: &'static str = "gemini";
    const KNOWN: &'static [KnownEmbedding] = &[
        KnownEmbedding { model: "gemini-embedding-001", dimensions: 3072, shortens: true },
        KnownEmbedding { model: "gemini-embedding-2", dimensions: 3072, shortens: true },
    ];
    /// A request has at most 100 texts, and `gemini-embedding-001` reads 2,048 tokens of each.
    const LIMITS: BatchLimits = BatchLimits { texts: 100, tokens: 20_000, text_tokens: 1_700 };

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
        let request = |text| EmbedContent {
            model: resource(model),
            content: Content { parts: [Part { text }] },
            output_dimensionality: dimensions,
        };
        if let [text] = texts {
            return Call::post(path(model, "embedContent")?, &request(text), origin);
        }
        let requests = texts.iter().copied().map(request).collect();
        Call::post(path(model, "batchEmbedContents")?, &Batch { requests }, origin)
    }

    fn read(answer: &Value, count: usize) -> Option<Vec<Vec<f32>>> {
        let one = &answer["embedding"];
        let embeddings =
            if one.is_null() { items(&answer["embeddings"]) } else { std::slice::from_ref(one) };
        let vectors = embeddings.iter().map(|embedding| vector(&embedding["values"]));
        vectors.collect::<Option<Vec<_>>>().filter(|vectors| vectors.len() == count)
    }
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
            let vectors = Gemini::read(&answer, count);
            let first = vectors.map(|vectors| vectors.iter().map(|vector| vector[0]).collect());
            assert_eq!(first, expected, "{answer}");
        }
    }
}
