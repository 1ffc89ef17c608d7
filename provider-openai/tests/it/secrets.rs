//! The key reaches the server and nothing else: no error, no `Debug`, no log at any level.

use std::error::Error as _;
use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use futures_util::StreamExt as _;
use http::HeaderMap;
use serde_json::json;
use throughline_core::Error;
use throughline_core::ports::ChatProvider as _;
use throughline_provider_openai::{EmbedderSettings, OpenAi, Settings};
use throughline_testkit::WordTokenizer;
use tracing_subscriber::fmt::MakeWriter;

use crate::support::{KEY, Reply, Server, request};

/// What is logged.
#[derive(Debug, Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Log {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}

/// Everything that can be shown of an error.
fn shown(error: &Error) -> String {
    let mut shown = format!("{error} {error:?} {error:#?}");
    let mut source = error.source();
    while let Some(cause) = source {
        shown.push_str(&format!(" {cause} {cause:?}"));
        source = cause.source();
    }
    shown
}

#[tokio::test]
async fn never_shows_the_key() {
    let log = Log::default();
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_writer(log.clone())
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
        let client = server.client();
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
        let debug = format!("{client:?} {:?}", server.settings());
        assert!(!debug.contains("s3cr3t"), "{debug}");
        let sent = server.received();
        assert!(sent.iter().all(|received| received.headers["authorization"].contains(KEY)));
    }
    let logged = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    assert!(logged.contains("a call failed and is sent again"), "the log is on: {logged}");
    assert!(!logged.contains("s3cr3t"), "{logged}");
}

#[test]
fn refuses_malformed_key_without_showing_it() {
    for key in ["sk-s3cr3t\n", "sk s3cr3t"] {
        let error = OpenAi::new(Settings { api_key: Some(key.into()), ..Settings::default() });
        let error = error.unwrap_err();
        assert!(!shown(&error).contains("s3cr3t"), "{}", shown(&error));
        assert!(error.message().contains("OPENAI_API_KEY"), "{error}");
    }
}
