//! A server that does what a test says, and the shapes of what it is asked and answers.

use std::time::Duration;

use serde_json::{Value, json};
use throughline_provider_gemini::{ConnectionSettings, Gemini, Settings};
pub(crate) use throughline_testkit::http::{Received, Reply, Server, request};

/// A key that nothing may repeat.
pub(crate) const KEY: &str = "AIza-test-s3cr3t0123456789";

/// Settings that reach a server and do not wait before they try again.
pub(crate) fn settings(server: &Server) -> Settings {
    let connection = ConnectionSettings {
        api_key: Some(KEY.into()),
        first_retry_delay: Duration::from_millis(1),
        ..ConnectionSettings::new(format!("{}/v1beta", server.url()))
    };
    Settings { connection, ..Settings::default() }
}

/// A client with these settings, and a connection that is changed.
pub(crate) fn client_with(server: &Server, change: impl FnOnce(&mut ConnectionSettings)) -> Gemini {
    let mut settings = settings(server);
    change(&mut settings.connection);
    Gemini::new(settings).unwrap()
}

/// A client with these settings.
pub(crate) fn client(server: &Server) -> Gemini {
    client_with(server, |_| {})
}

/// A response of `generateContent`, or a piece of a stream of them.
pub(crate) fn response(parts: Value, finish_reason: Value) -> Value {
    json!({
        "candidates": [{
            "content": {"parts": parts, "role": "model"}, "finishReason": finish_reason, "index": 0,
        }],
        "usageMetadata": {"promptTokenCount": 10, "candidatesTokenCount": 5, "totalTokenCount": 15},
        "modelVersion": "gemini-2.5-flash", "responseId": "resp1",
    })
}

/// A whole answer of text.
pub(crate) fn answer(text: &str) -> Value {
    response(json!([{"text": text}]), json!("STOP"))
}

/// An error in Google's form.
pub(crate) fn error(code: u16, status: &str, message: &str, details: Value) -> Reply {
    let error = json!({"code": code, "message": message, "status": status, "details": details});
    Reply::json(code, &json!({"error": error}))
}
