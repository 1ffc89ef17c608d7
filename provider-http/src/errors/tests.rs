//! What is said of every problem, and what never is.

use serde_json::json;
use throughline_testkit::http::Log;

use super::*;

/// An API whose errors name their problem.
pub(crate) static EXAMPLE: ApiProfile = ApiProfile {
    service: "Example",
    host: "api.example.com",
    base_url: "https://api.example.com/v1",
    usual_end: "/v1",
    settings: "providers.example",
    key_variable: "EXAMPLE_API_KEY",
    key_header: "authorization",
    key_prefix: "Bearer ",
    read_error: read,
};

fn read(status: Option<u16>, body: &Value) -> ServerError {
    let text = |key: &str| body[key].as_str().unwrap_or_default().to_owned();
    let problem = match (text("code").as_str(), status) {
        (_, Some(401)) => Problem::Key,
        ("context", _) => Problem::ContextLength,
        ("filter", _) => Problem::Filtered,
        ("model", _) => Problem::UnknownModel,
        ("thread", _) => Problem::UnknownThread,
        ("quota", _) => Problem::Quota,
        (_, Some(429)) => Problem::Busy,
        (_, Some(404)) => Problem::WrongAddress,
        (_, None | Some(500..)) => Problem::Failed,
        _ => Problem::Refused,
    };
    ServerError {
        problem,
        message: text("message"),
        code: text("code"),
        kind: text("type"),
        param: text("param"),
        retry_after: None,
    }
}

pub(crate) fn origin(key: Option<&str>) -> Origin {
    let model = RequestedModel {
        id: "large".to_owned(),
        window: Some(128_000),
        known: vec!["large".to_owned(), "small".to_owned()],
    };
    Origin {
        profile: &EXAMPLE,
        server: Arc::from("Example"),
        operation: "chat",
        model: Some(Arc::new(model)),
        key: ApiKey::new(key.map(Into::into), &EXAMPLE).unwrap(),
    }
}

#[test]
fn says_what_to_do() {
    let code = |code: &str| json!({"code": code, "message": "free text"});
    for (status, body, kind, part) in [
        (
            401,
            json!({}),
            ErrorKind::Unauthenticated,
            "needs an API key: set EXAMPLE_API_KEY or `providers.example.api_key`",
        ),
        (400, code("context"), ErrorKind::BudgetTooSmall, "128000 tokens"),
        (400, code("filter"), ErrorKind::Declined, "content filter"),
        (404, code("model"), ErrorKind::NotFound, "large, small"),
        (400, code("thread"), ErrorKind::NotFound, "send the whole conversation"),
        (429, json!({}), ErrorKind::RateLimited, "try again later"),
        (429, code("quota"), ErrorKind::RateLimited, "billing"),
        (
            404,
            json!({}),
            ErrorKind::Unavailable,
            "`providers.example.base_url`, which usually ends with /v1",
        ),
        (503, json!({}), ErrorKind::Unavailable, "HTTP 503"),
        (
            400,
            json!({"code": "two words", "type": "unsupported", "param": "messages[0].role",
                   "message": "free text"}),
            ErrorKind::InvalidInput,
            "unsupported, parameter `messages[0].role`",
        ),
        (400, code("two words"), ErrorKind::InvalidInput, "the log says why"),
    ] {
        let error = origin(None).reported(Some(status), &body);
        assert_eq!(error.kind(), kind, "{status} {body}");
        assert!(error.message().contains(part), "{status} {body}: {error}");
        assert!(!error.message().contains("free text"), "no text of a server in a sentence");
        assert_eq!(error.operation(), Some("chat"));
    }
}

#[test]
fn logs_what_is_not_retried() {
    const KEY: &str = "sk-proj-s3cr3t";
    let said = |status: u16, code: &str| {
        let log = Log::default();
        let writer = log.clone();
        let subscriber = tracing_subscriber::fmt().with_writer(move || writer.clone()).finish();
        let body = json!({"code": code, "message": format!("free text with {KEY}")});
        tracing::subscriber::with_default(subscriber, || {
            origin(Some(KEY)).reported(Some(status), &body)
        });
        log.text()
    };
    for (status, code) in [(400, "unsupported"), (400, "context"), (404, "model"), (404, "")] {
        let logged = said(status, code);
        for part in
            ["WARN", "Example", "chat", &status.to_string(), code, "free text with <redacted>"]
        {
            assert!(logged.contains(part), "{status} {code}: {part} is not in {logged}");
        }
    }
    let logged = said(401, "");
    assert!(logged.contains("401") && !logged.contains("free text"), "{logged}");
    for status in [429, 503] {
        assert_eq!(said(status, ""), "", "what is retried is logged by the retry");
    }
}

#[test]
fn never_repeats_the_key() {
    const KEY: &str = "sk-proj-s3cr3t";
    let echo = format!("Incorrect API key provided: {KEY}");
    for status in [400, 401, 403, 404, 429, 500] {
        let body = json!({"message": echo, "code": KEY, "type": KEY, "param": KEY});
        let error = origin(Some(KEY)).reported(Some(status), &body);
        let source = error.source().unwrap();
        let said = format!("{error} {error:?} {source} {source:?} {:?}", origin(Some(KEY)));
        assert!(!said.contains("s3cr3t"), "{said}");
    }
    // A part of the key, as servers repeat it.
    let body = json!({"message": "Incorrect API key provided: sk-proj-*****cr3t."});
    let error = origin(Some(KEY)).reported(Some(401), &body);
    assert!(!format!("{error:?}").contains("cr3t"), "{error:?}");
}
