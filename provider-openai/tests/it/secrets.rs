//! The key reaches the server and nothing else: no error, no `Debug`, no log at any level.

use std::sync::Arc;

use futures_util::StreamExt as _;
use http::HeaderMap;
use serde_json::json;
use throughline_core::ports::ChatProvider as _;
use throughline_provider_openai::{EmbedderSettings, OpenAi, Settings};
use throughline_testkit::WordTokenizer;
use throughline_testkit::http::{Log, everything_shown as shown};

use crate::support::{KEY, Reply, Server, client, request, settings};

#[tokio::test]
async fn never_shows_the_key() {
    let log = Log::default();
    let writer = log.clone();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(move || writer.clone())
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);

    let said = format!("Incorrect API key provided: {KEY}");
    let failure = json!({"error": {"message": said, "type": KEY, "code": KEY, "param": KEY}});
    let replies = [400, 401, 404, 429, 500, 503]
        .map(|status| Reply::json(status, &failure))
        .into_iter()
        .chain([
            Reply::json(200, &failure),
            Reply::text(200, "application/json", &said),
            Reply::text(200, "text/event-stream", &format!("data: {said}\n\n")),
            Reply::text(200, "text/event-stream", &format!("data: {failure}\n\n")),
            Reply::text(500, "text/plain", &said),
            Reply::closed(),
        ]);
    for reply in replies {
        let server = Server::answering(move |_| reply.clone()).await;
        let client = client(&server);
        let model = client.model("gpt-4.1").unwrap();
        let whole = model.complete(&request("Hello?")).await.err();
        let streamed = match model.stream(&request("Hello?")).await {
            Ok(mut events) => events.next().await.and_then(Result::err),
            Err(error) => Some(error),
        };
        let tokenizer = Arc::new(WordTokenizer::exact());
        let embedded = client.embedder(EmbedderSettings::new("m", tokenizer)).await.err();
        let checked = client.check().await.err();
        let forwarded =
            client.forward("/embeddings", b"{}".to_vec(), &HeaderMap::new()).await.err();
        let errors = [whole, streamed, embedded, checked, forwarded];
        for error in errors.iter().flatten() {
            assert!(!shown(error).contains("s3cr3t"), "{}", shown(error));
        }
        let debug = format!("{client:?} {:?}", settings(&server));
        assert!(!debug.contains("s3cr3t"), "{debug}");
        let sent = server.received();
        assert!(sent.iter().all(|received| received.headers["authorization"].contains(KEY)));
    }
    let logged = log.text();
    assert!(logged.contains("a call failed and is sent again"), "the log is on: {logged}");
    assert!(!logged.contains("s3cr3t"), "{logged}");
}

#[test]
fn refuses_malformed_key_without_showing_it() {
    for key in ["sk-s3cr3t\n", "sk s3cr3t"] {
        let mut settings = Settings::default();
        settings.connection.api_key = Some(key.into());
        let error = OpenAi::new(settings).unwrap_err();
        assert!(!shown(&error).contains("s3cr3t"), "{}", shown(&error));
        assert!(error.message().contains("OPENAI_API_KEY"), "{error}");
    }
}
