//! Requests that are passed on, and answers that nobody reads on the way.

use futures_util::StreamExt as _;
use http::HeaderMap;
use serde_json::json;
use throughline_core::{ErrorKind, Result};
use throughline_provider_openai::{Forwarded, OpenAi, Settings};

use crate::support::{KEY, Reply, Server, chunk, client, client_with};

async fn forward(client: &OpenAi) -> Result<Forwarded> {
    client.forward("/embeddings", b"{}".to_vec(), &HeaderMap::new()).await
}

async fn body(forwarded: Forwarded) -> String {
    let pieces: Vec<_> = forwarded.body.map(Result::unwrap).collect().await;
    String::from_utf8(pieces.concat()).unwrap()
}

fn headers(given: &[(&'static str, &'static str)]) -> HeaderMap {
    given.iter().map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())).collect()
}

#[tokio::test]
async fn forwards_body_and_allowed_headers() {
    let events = Reply::events(&[chunk(json!({"content": "Hi"}), json!(null)).to_string()])
        .header("x-request-id", "req_1")
        .header("openai-version", "2020-10-01")
        .header("openai-organization", "acme")
        .header("set-cookie", "a=b");
    let server = Server::replying([events]).await;
    let sent = headers(&[
        ("authorization", "Bearer theirs"),
        ("cookie", "a=b"),
        ("openai-beta", "assistants=v2"),
        ("content-type", "text/plain"),
    ]);
    let asked = json!({"model": "x", "unknown": {"kept": true}, "stream": true});
    let asked_bytes = asked.to_string().into_bytes();
    let answer = client(&server).forward("/chat/completions", asked_bytes, &sent).await.unwrap();

    assert_eq!(answer.status, 200);
    let given: Vec<_> = answer.headers.keys().map(http::HeaderName::as_str).collect();
    assert_eq!(given, ["content-type", "x-request-id", "openai-version"]);
    assert!(body(answer).await.starts_with("data: {"));

    let received = &server.received()[0];
    assert_eq!((received.path.as_str(), &received.body), ("/v1/chat/completions", &asked));
    let header = |name: &str| received.headers.get(name).map(String::as_str);
    assert_eq!(header("authorization"), Some(format!("Bearer {KEY}").as_str()));
    assert_eq!(header("openai-beta"), Some("assistants=v2"));
    assert_eq!(header("content-type"), Some("application/json"));
    assert_eq!(header("cookie"), None);
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
    for status in [401, 403] {
        let failure =
            Reply::json(status, &json!({"error": {"message": format!("wrong key: {KEY}")}}));
        let server = Server::replying([failure]).await;
        let error = forward(&client(&server)).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unauthenticated);
        assert!(!format!("{error} {error:?}").contains("s3cr3t"), "{error:?}");
    }
}

#[tokio::test]
async fn refuses_paths_outside_base_url() {
    let server = Server::replying([]).await;
    let client = client(&server);
    for path in ["chat", "/../admin", "//there/x", "/a?b"] {
        let error = client.forward(path, Vec::new(), &HeaderMap::new()).await.unwrap_err();
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
