//! The key reaches the server and nothing else: no URL, no error, no `Debug`, no log at any level.

use std::sync::Arc;

use serde_json::json;
use throughline_core::ports::ChatProvider as _;
use throughline_provider_gemini::{EmbedderSettings, Gemini, Settings};
use throughline_testkit::WordTokenizer;
use throughline_testkit::http::{Log, everything_shown as shown, streamed};

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

    let said = format!("API key not valid: {KEY}");
    let details = json!([{"@type": "google.rpc.ErrorInfo", "reason": KEY},
                         {"@type": "google.rpc.BadRequest", "fieldViolations": [{"field": KEY}]}]);
    let failure =
        json!({"error": {"code": 400, "message": said, "status": KEY, "details": details}});
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
        let model = client.model("gemini-2.5-flash").unwrap();
        let tokenizer = Arc::new(WordTokenizer::exact());
        let errors = [
            model.complete(&request("Hello?")).await.err(),
            streamed(&*model, &request("Hello?")).await.1.err(),
            client.embedder(EmbedderSettings::new("m", tokenizer)).await.err(),
            client.count_tokens("gemini-2.5-flash", &request("Hello?")).await.err(),
            client.check().await.err(),
        ];
        for error in errors.iter().flatten() {
            assert!(!shown(error).contains("s3cr3t"), "{}", shown(error));
        }
        let debug = format!("{client:?} {:?}", settings(&server));
        assert!(!debug.contains("s3cr3t"), "{debug}");
        for received in server.received() {
            assert_eq!(received.headers["x-goog-api-key"], KEY);
            assert!(!received.path.contains("s3cr3t"), "{}", received.path);
        }
    }
    let logged = log.text();
    assert!(logged.contains("a call failed and is sent again"), "the log is on: {logged}");
    assert!(!logged.contains("s3cr3t"), "{logged}");
}

#[test]
fn refuses_malformed_key_without_showing_it() {
    for key in ["AIza-s3cr3t\n", "AIza s3cr3t"] {
        let mut settings = Settings::default();
        settings.connection.api_key = Some(key.into());
        let error = Gemini::new(settings).unwrap_err();
        assert!(!shown(&error).contains("s3cr3t"), "{}", shown(&error));
        assert!(error.message().contains("GEMINI_API_KEY"), "{error}");
    }
}
