//! Embedders of an API that a test makes up: sizes, failures and timeouts.

#![expect(
    clippy::unwrap_used,
    reason = "helpers outside of test functions: a failure is the answer"
)]

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use throughline_core::ports::Embedder as _;
use throughline_core::{Error, ErrorKind, Result};
use throughline_provider_http::json::{items, text};
use throughline_provider_http::{
    ApiProfile, BatchLimits, BreakerSettings, Call, ConnectionSettings, EmbedderSettings,
    EmbeddingApi, KnownEmbedding, Origin, Problem, RemoteEmbedder, ServerError, Transport, vector,
};
use throughline_testkit::http::{Received, Reply, Server};
use throughline_testkit::{WordTokenizer, conformance};

static EXAMPLE: ApiProfile = ApiProfile {
    service: "Example",
    host: "api.example.com",
    base_url: "https://api.example.com/v1",
    usual_end: "/v1",
    settings: "providers.example",
    key_variable: "EXAMPLE_API_KEY",
    key_header: "x-example-key",
    key_prefix: "",
    read_error: |status, body| ServerError {
        problem: match status {
            Some(401) => Problem::Key,
            Some(404) => Problem::UnknownModel,
            _ => Problem::Failed,
        },
        message: body.to_string(),
        code: String::new(),
        kind: String::new(),
        param: String::new(),
        retry_after: None,
    },
};

struct Example(Transport);

impl EmbeddingApi for Example {
    const PROVIDER: &'static str = "example";
    const KNOWN: &'static [KnownEmbedding] = &[
        KnownEmbedding { model: "shortens", dimensions: 8, shortens: true },
        KnownEmbedding { model: "fixed", dimensions: 8, shortens: false },
    ];
    const LIMITS: BatchLimits = BatchLimits { texts: 4, tokens: 1_000, text_tokens: 100 };

    fn transport(&self) -> &Transport {
        &self.0
    }

    fn call(
        &self,
        model: &str,
        texts: &[&str],
        dimensions: Option<u32>,
        origin: Origin,
    ) -> Result<Call> {
        let body = json!({"model": model, "texts": texts, "dimensions": dimensions});
        Call::post("/vectors", &body, origin)
    }

    fn read(answer: &Value, count: usize) -> Option<Vec<Vec<f32>>> {
        let vectors: Option<Vec<_>> = items(&answer["vectors"]).iter().map(vector).collect();
        vectors.filter(|vectors| vectors.len() == count)
    }
}

fn of_model(model: &str, dimensions: Option<usize>) -> EmbedderSettings {
    EmbedderSettings {
        dimensions,
        ..EmbedderSettings::new(model, Arc::new(WordTokenizer::exact()))
    }
}

fn embedder(server: &Server, settings: EmbedderSettings) -> Result<RemoteEmbedder<Example>> {
    let connection = ConnectionSettings {
        max_retries: 0,
        breaker: BreakerSettings { failures: 3, open_for: Duration::from_secs(60) },
        ..ConnectionSettings::new(server.url())
    };
    RemoteEmbedder::new(Example(Transport::new(&connection, &EXAMPLE).unwrap()), settings)
}

fn vectors(vectors: Value) -> Reply {
    Reply::json(200, &json!({"vectors": vectors}))
}

fn check(error: &Error, kind: ErrorKind, part: &str) {
    assert_eq!(error.kind(), kind, "{error} {error:?}");
    assert!(error.message().contains(part), "`{part}` is not in: {error}");
}

/// Vectors from the bytes of a text, not of the length 1.
fn embed(received: &Received) -> Reply {
    let of_text = |said: &Value| {
        let mut vector = [0.5; 8];
        for (at, byte) in text(said).bytes().enumerate() {
            vector[at % 8] += f64::from(byte) * (1 + at % 5) as f64;
        }
        vector
    };
    vectors(items(&received.body["texts"]).iter().map(of_text).collect())
}

#[tokio::test]
async fn embedders_of_unknown_size_conform() {
    let server = Server::answering(embed).await;
    conformance::embedder(async || embedder(&server, of_model("m", None)).unwrap(), &[]).await;
}

#[tokio::test]
async fn reports_embedding_failures() {
    for (reply, kind, part) in [
        (vectors(json!([[1, 2, 3]])), ErrorKind::InvalidInput, "3 dimensions instead of 2"),
        (vectors(json!([])), ErrorKind::Unavailable, "not of Example's API"),
        (vectors(json!([[null, 1]])), ErrorKind::Unavailable, "not of Example's API"),
        (Reply::json(404, &json!({})), ErrorKind::NotFound, "`m`"),
        (Reply::json(401, &json!({})), ErrorKind::Unauthenticated, "EXAMPLE_API_KEY"),
    ] {
        let server = Server::replying([reply]).await;
        let embedder = embedder(&server, of_model("m", Some(2))).unwrap();
        check(&embedder.embed(&["Hello."]).await.unwrap_err(), kind, part);
    }
}

#[tokio::test]
async fn refuses_sizes_that_a_model_does_not_have() {
    let server = Server::replying([]).await;
    for (model, dimensions, part) in [
        ("shortens", Some(9), "8 dimensions, not of 9"),
        ("fixed", Some(4), "8 dimensions, not of 4"),
        ("m", Some(0), "greater than 0"),
        ("", None, "needs a model"),
    ] {
        let error = embedder(&server, of_model(model, dimensions)).err().unwrap();
        check(&error, ErrorKind::InvalidInput, part);
    }
    for (model, dimensions) in [("shortens", None), ("fixed", None), ("m", Some(8))] {
        let known = embedder(&server, of_model(model, dimensions)).unwrap();
        known.ready().await.unwrap();
        assert_eq!(known.space().dimensions, 8);
        assert!(!known.is_instant());
    }
    assert!(server.received().is_empty(), "what is known is not asked");
}

#[tokio::test]
async fn asks_for_shorter_vectors_of_another_space() {
    let server = Server::replying([vectors(json!([[3, 4]]))]).await;
    let short = embedder(&server, of_model("shortens", Some(2))).unwrap();
    assert!(short.space().id.ends_with("/shortens@2"), "{:?}", short.space());
    assert_eq!(short.embed(&["Hello."]).await.unwrap(), [[0.6, 0.8]]);
    assert_eq!(server.received()[0].body["dimensions"], 2);
}

#[tokio::test]
async fn is_ready_when_the_server_comes_back() {
    let server = Server::replying([
        Reply::text(503, "text/plain", "starting"),
        vectors(json!([[3, 4]])),
        vectors(json!([[0, 2]])),
    ])
    .await;
    let embedder = embedder(&server, of_model("m", None)).unwrap();
    let id = embedder.space().id.clone();
    assert_eq!(embedder.ready().await.unwrap_err().kind(), ErrorKind::Unavailable);
    assert_eq!(embedder.space().dimensions, 0);
    embedder.ready().await.unwrap();
    assert_eq!((embedder.space().id.as_str(), embedder.space().dimensions), (id.as_str(), 2));
    assert_eq!(embedder.embed(&["", "Hello."]).await.unwrap(), [[0.0, 0.0], [0.0, 1.0]]);
}

#[tokio::test]
async fn slow_servers_open_the_circuit() {
    let server = Server::answering(|_| Reply::no_answer()).await;
    let timeout = Some(Duration::from_millis(20));
    let settings = EmbedderSettings { timeout, ..of_model("fixed", None) };
    let embedder = embedder(&server, settings).unwrap();
    for _ in 0..3 {
        let error = embedder.embed(&["One.", "Two."]).await.unwrap_err();
        let part = "within 0.04 s (`providers.example.embed_timeout_ms`)";
        check(&error, ErrorKind::Unavailable, part);
    }
    let error = embedder.embed(&["One."]).await.unwrap_err();
    check(&error, ErrorKind::Unavailable, "failed several times in a row");
    assert_eq!(server.received().len(), 3);
}
