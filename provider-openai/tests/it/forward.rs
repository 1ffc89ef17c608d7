//! Requests that are passed on, and answers that nobody reads on the way.

use std::time::Duration;

use futures_util::StreamExt as _;
use serde_json::json;
use throughline_core::{ErrorKind, Result};
use throughline_provider_openai::{ApiProfile, Forwarded, OPENAI, OpenAi, Settings};

use crate::support::{KEY, Reply, Server, chunk, client, client_with, settings};

async fn forward(client: &OpenAi) -> Result<Forwarded> {
    client.forward("/embeddings", b"{}".to_vec()).await
}

async fn body(forwarded: Forwarded) -> String {
    let pieces: Vec<_> = forwarded.body.map(Result::unwrap).collect().await;
    String::from_utf8(pieces.concat()).unwrap()
}

#[tokio::test]
async fn forwards_body_and_filters_headers() {
    let events = Reply::events(&[chunk(json!({"content": "Hi"}), json!(null)).to_string()])
        .header("x-request-id", "req_1")
        .header("openai-version", "2020-10-01")
        .header("openai-organization", "acme")
        .header("set-cookie", "a=b");
    let server = Server::replying([events]).await;
    let asked = json!({"model": "x", "unknown": {"kept": true}, "stream": true});
    let asked_bytes = asked.to_string().into_bytes();
    let answer = client(&server).forward("/chat/completions", asked_bytes).await.unwrap();

    assert_eq!(answer.status, 200);
    let given: Vec<_> = answer.headers.keys().map(http::HeaderName::as_str).collect();
    assert_eq!(given, ["content-type", "x-request-id", "openai-version"]);
    assert!(body(answer).await.starts_with("data: {"));

    let received = &server.received()[0];
    assert_eq!((received.path.as_str(), &received.body), ("/v1/chat/completions", &asked));
    let header = |name: &str| received.headers.get(name).map(String::as_str);
    assert_eq!(header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(header("content-type"), Some("application/json"));
}

#[tokio::test]
async fn forwards_failures_without_retry() {
    for status in [400, 404, 429, 500, 503] {
        let failure = Reply::json(status, &json!({"error": {"message": "as it is"}}))
            .header("retry-after", "7");
        let server = Server::replying([failure]).await;
        let answer = forward(&client(&server)).await.unwrap();
        assert_eq!(
            (answer.status, &answer.headers["retry-after"]),
            (status, &"7".parse().unwrap())
        );
        assert_eq!(body(answer).await, r#"{"error":{"message":"as it is"}}"#);
        assert_eq!(server.received().len(), 1);
    }
}

#[tokio::test]
async fn does_not_repeat_a_request_whose_connection_was_lost() {
    let server = Server::replying([Reply::closed(), Reply::json(200, &json!({}))]).await;
    let error = forward(&client(&server)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn hides_answers_about_the_key() {
    let body = || json!({"error": {"message": format!("wrong key: {KEY}")}});
    for status in [401, 403] {
        let server = Server::replying([Reply::json(status, &body())]).await;
        let error = forward(&client(&server)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unauthenticated);
        assert!(!format!("{error} {error:?}").contains("s3cr3t"), "{error:?}");
    }
}

#[tokio::test]
async fn takes_the_key_out_of_every_answer() {
    let echo = || json!({"error": {"message": format!("you sent Bearer {KEY}")}});
    let events = || Reply::events(&[echo().to_string()]);
    let mut replies = vec![events()];
    replies.extend([200, 400, 429, 500].map(|status| Reply::json(status, &echo())));
    for reply in replies {
        let server = Server::replying([reply]).await;
        let told = body(forward(&client(&server)).await.unwrap()).await;
        assert!(told.contains("you sent Bearer <redacted>"), "{told}");
    }
}

#[tokio::test]
async fn passes_on_what_is_not_about_the_key() {
    let body = json!({"error": {"message": "no access", "code": "model_not_found"}});
    let server = Server::replying([Reply::json(403, &body)]).await;
    let answer = forward(&client(&server)).await.unwrap();
    assert_eq!(answer.status, 403);
    assert_eq!(self::body(answer).await, body.to_string());
}

/// Another service with this API, which refuses keys in a form of its own.
static OTHER: ApiProfile = ApiProfile {
    service: "Other",
    host: "api.other.com",
    base_url: "https://api.other.com/v1",
    usual_end: "/v1",
    settings: "providers.other",
    key_variable: "OTHER_API_KEY",
    key_header: "authorization",
    key_prefix: "Bearer ",
    read_error: |status, body| {
        let status = status.map(|status| if status == 400 { 401 } else { status });
        (OPENAI.read_error)(status, body)
    },
};

#[tokio::test]
async fn errors_name_the_settings_of_the_service() {
    let server = Server::replying([Reply::json(400, &json!({"error": KEY}))]).await;
    let settings = Settings { profile: &OTHER, ..settings(&server) };
    let error = forward(&OpenAi::new(settings).unwrap()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthenticated);
    assert!(error.message().contains("OTHER_API_KEY or `providers.other.api_key`"), "{error}");
}

#[tokio::test]
async fn streams_may_pause_for_the_whole_call() {
    let event = chunk(json!({"content": "Hm"}), json!(null)).to_string();
    let server = Server::replying([Reply::events(&[event]).then_silence()]).await;
    let client = client_with(&server, |connection| {
        connection.idle_timeout = Duration::from_millis(1);
        connection.request_timeout = Duration::from_millis(300);
    });
    let answer = forward(&client).await.unwrap();
    let last = answer.body.collect::<Vec<_>>().await.pop().unwrap();
    let error = last.unwrap_err();
    assert!(error.message().contains("`providers.openai.timeout_ms`"), "{error}");
}

#[tokio::test]
async fn refuses_paths_outside_base_url() {
    let server = Server::replying([]).await;
    let client = client(&server);
    for path in ["chat", "/../admin", "//there/x", "/a?b"] {
        let error = client.forward(path, Vec::new()).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{path}");
    }
    assert!(server.received().is_empty());
}

#[tokio::test]
async fn sends_no_key_when_none_is_set() {
    let server = Server::replying([Reply::json(200, &json!({}))]).await;
    let client = client_with(&server, |connection| connection.api_key = None);
    forward(&client).await.unwrap();
    assert_eq!(server.received()[0].headers.get("authorization"), None);

    let client = OpenAi::new(Settings::default()).unwrap();
    let error = forward(&client).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unauthenticated);
}
