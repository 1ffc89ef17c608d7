//! The key reaches the server and nothing else: no error, no `Debug`, no URL, no log at any level.

use std::sync::Arc;

use serde_json::json;
use throughline_core::ports::{ChatProvider as _, Embedder as _};
use throughline_provider_gemini::{EmbedderSettings, Gemini, Settings};
use throughline_testkit::WordTokenizer;
use throughline_testkit::http::{
    Log, check_that_no_key_is_shown, everything_shown as shown, streamed,
};

use crate::support::{KEY, client, request, settings};

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
    check_that_no_key_is_shown(KEY, (&failure, "x-goog-api-key"), &log, async |server| {
        let client = client(server);
        let model = client.model("gemini-2.5-flash").unwrap();
        let tokenizer = Arc::new(WordTokenizer::exact());
        let embedder = client.embedder(EmbedderSettings::new("m", tokenizer)).unwrap();
        let errors = vec![
            model.complete(&request("Hello?")).await.err(),
            streamed(&*model, &request("Hello?")).await.1.err(),
            embedder.ready().await.err(),
            client.check().await.err(),
            client.count_tokens("gemini-2.5-flash", &request("Hello?")).await.err(),
        ];
        (errors, format!("{client:?} {:?}", settings(server)))
    })
    .await;
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
