//! Settings, as the providers get them.

use throughline_core::ErrorKind;
use throughline_testkit::http::{Reply, Server};

use super::*;
use crate::config::{EmbedderKind, ProvidersConfig, Secret};

fn of_gemini(base_url: String) -> Config {
    let mut providers = ProvidersConfig::default();
    providers.gemini.base_url = base_url;
    providers.gemini.api_key = Secret::new("AIza-s3cr3t");
    Config { providers, ..Config::default() }
}

#[tokio::test]
async fn errors_of_geminis_compatible_endpoint_name_its_settings() {
    let wrong = r#"[{"error": {"code": 400, "message": "API key not valid. AIza-s3cr3t", "status": "INVALID_ARGUMENT"}}]"#;
    let server = Server::replying([
        Reply::text(400, "application/json", wrong),
        Reply::text(400, "application/json", "{\"error\": {\"message\": \"Unknown field\"}}"),
    ])
    .await;
    let models = open(&of_gemini(format!("{}/v1beta", server.url()))).unwrap();
    let (name, api) = &models.compatible[0];
    assert_eq!(*name, "gemini");
    let error = api.forward("/chat/completions", b"{}".to_vec()).await.err().unwrap();
    assert_eq!(error.kind(), ErrorKind::Unauthenticated);
    assert!(error.message().contains("GEMINI_API_KEY or `providers.gemini.api_key`"), "{error}");
    assert!(!format!("{error:?}").contains("s3cr3t"), "{error:?}");
    let answer = api.forward("/chat/completions", b"{}".to_vec()).await.unwrap();
    assert_eq!(answer.status, 400, "other failures are passed on");

    let unreachable = open(&of_gemini("http://127.0.0.1:1/v1beta".to_owned())).unwrap();
    let (_, api) = &unreachable.compatible[0];
    let error = api.forward("/chat/completions", b"{}".to_vec()).await.err().unwrap();
    assert!(error.message().contains("`providers.gemini.base_url`"), "{error}");
}

#[tokio::test]
async fn the_configured_size_of_vectors_is_not_asked_for() {
    let server = Server::replying([]).await;
    let mut config = of_gemini(format!("{}/v1beta", server.url()));
    config.embedder = EmbedderKind::Gemini("text-embedding-x".to_owned());
    let unknown = gemini_embedder(&config, "text-embedding-x").unwrap();
    assert_eq!(unknown.space().dimensions, 0, "opening asks nothing");
    config.providers.gemini.embed_dimensions = 8;
    let known = gemini_embedder(&config, "text-embedding-x").unwrap();
    known.ready().await.unwrap();
    assert_eq!(known.space().dimensions, 8);
    assert!(server.received().is_empty());
}
