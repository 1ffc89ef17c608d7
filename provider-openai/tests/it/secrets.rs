//! The key reaches the server and nothing else: no error, no `Debug`, no URL, no log at any level.

use std::sync::Arc;

use serde_json::json;
use throughline_core::ports::{ChatProvider as _, Embedder as _};
use throughline_provider_openai::{EmbedderSettings, OpenAi, Settings};
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

    let said = format!("Incorrect API key provided: {KEY}");
    let failure = json!({"error": {"message": said, "type": KEY, "code": KEY, "param": KEY}});
    check_that_no_key_is_shown(KEY, (&failure, "authorization"), &log, async |server| {
        let client = client(server);
        let model = client.model("gpt-4.1").unwrap();
        let tokenizer = Arc::new(WordTokenizer::exact());
        let embedder = client.embedder(EmbedderSettings::new("m", tokenizer)).unwrap();
        let errors = vec![
            model.complete(&request("Hello?")).await.err(),
            streamed(&*model, &request("Hello?")).await.1.err(),
            embedder.ready().await.err(),
            client.check().await.err(),
            client.forward("/embeddings", b"{}".to_vec()).await.err(),
        ];
        (errors, format!("{client:?} {:?}", settings(server)))
    })
    .await;
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
