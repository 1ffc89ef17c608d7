//! A server that does what a test says, and the shapes of what it is asked and answers.

use std::time::Duration;

use serde_json::{Value, json};
use throughline_provider_openai::{ConnectionSettings, OpenAi, Settings};
pub(crate) use throughline_testkit::http::{Received, Reply, Server, request};

/// A key that nothing may repeat.
pub(crate) const KEY: &str = "sk-test-s3cr3t0123456789";

/// The base URL of a server.
pub(crate) fn base_url(server: &Server) -> String {
    format!("{}/v1", server.url())
}

/// Settings that reach a server and do not wait before they try again.
pub(crate) fn settings(server: &Server) -> Settings {
    let connection = ConnectionSettings {
        api_key: Some(KEY.into()),
        first_retry_delay: Duration::from_millis(1),
        ..ConnectionSettings::new(base_url(server))
    };
    Settings { connection, ..Settings::default() }
}

/// A client with these settings, and a connection that is changed.
pub(crate) fn client_with(server: &Server, change: impl FnOnce(&mut ConnectionSettings)) -> OpenAi {
    let mut settings = settings(server);
    change(&mut settings.connection);
    OpenAi::new(settings).unwrap()
}

/// A client with these settings.
pub(crate) fn client(server: &Server) -> OpenAi {
    client_with(server, |_| {})
}

/// A whole answer of `/chat/completions`.
pub(crate) fn completion(text: &str) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "gpt-4.1",
        "choices": [{
            "index": 0,
            "message": {"role": "assistant", "content": text, "refusal": null},
            "logprobs": null, "finish_reason": "stop",
        }],
        "usage": {"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15},
    })
}

/// A chunk of a stream of `/chat/completions`.
pub(crate) fn chunk(delta: Value, finish_reason: Value) -> Value {
    json!({
        "id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "gpt-4.1",
        "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": finish_reason}],
    })
}
