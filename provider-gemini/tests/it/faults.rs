//! What comes of every way in which a server fails.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use throughline_core::chat::{ChatAnswer, ModelInfo, TokenUsage, usage_of};
use throughline_core::ports::ChatProvider as _;
use throughline_core::{Error, ErrorKind, Result};
use throughline_provider_gemini::{EmbedderSettings, Gemini, Settings};
use throughline_testkit::WordTokenizer;

use crate::support::{
    KEY, Reply, Server, answer, client, client_with, error, request, response, settings,
};

async fn ask(client: &Gemini) -> Result<ChatAnswer> {
    client.model("gemini-2.5-flash").unwrap().complete(&request("Hello?")).await
}

/// Every error is said plainly: what to do, and nothing in the server's words.
fn check(error: &Error, kind: ErrorKind, part: &str) {
    assert_eq!(error.kind(), kind, "{error} {error:?}");
    assert!(error.message().contains(part), "`{part}` is not in: {error}");
    assert!(!error.message().contains("free text"), "{error}");
}

fn detail(kind: &str, mut fields: Value) -> Value {
    fields["@type"] = json!(format!("type.googleapis.com/google.rpc.{kind}"));
    json!([fields])
}

#[tokio::test]
async fn retries_what_passes() {
    let wait = || detail("RetryInfo", json!({"retryDelay": "0.001s"}));
    for failure in [
        error(429, "RESOURCE_EXHAUSTED", "free text", wait()),
        error(500, "INTERNAL", "free text", json!([])),
        error(503, "UNAVAILABLE", "The model is overloaded.", json!([])),
        error(504, "DEADLINE_EXCEEDED", "free text", json!([])),
        Reply::text(502, "text/html", "<html>Bad Gateway</html>"),
        Reply::closed(),
    ] {
        let server = Server::replying([failure.clone(), Reply::json(200, &answer("Good."))]).await;
        assert_eq!(ask(&client(&server)).await.unwrap().text, "Good.", "{failure:?}");
        assert_eq!(server.received().len(), 2);
    }
}

#[tokio::test]
async fn reports_how_long_to_wait() {
    let wait = detail("RetryInfo", json!({"retryDelay": "42s"}));
    let busy = error(429, "RESOURCE_EXHAUSTED", "free text", wait);
    let server = Server::replying([busy, Reply::json(200, &answer("No."))]).await;
    let error = ask(&client(&server)).await.unwrap_err();
    check(&error, ErrorKind::RateLimited, "try again later");
    assert_eq!(error.retry_after(), Some(Duration::from_secs(42)));
    assert_eq!(server.received().len(), 1, "42 s are more than is waited for");
}

#[tokio::test]
async fn reports_permanent_failures_at_once() {
    use ErrorKind::{
        BudgetTooSmall, Declined, InvalidInput, NotFound, RateLimited, Unauthenticated, Unavailable,
    };
    let none = || json!([]);
    let invalid = detail("ErrorInfo", json!({"reason": "API_KEY_INVALID"}));
    let per_day = detail("QuotaFailure", json!({"violations": [{"quotaId": "RequestsPerDay"}]}));
    let field = detail("BadRequest", json!({"fieldViolations": [{"field": "contents[0].role"}]}));
    let too_long =
        "The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).";
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}});
    let no_content = |reason: &str| json!({"candidates": [{"finishReason": reason, "index": 0}]});
    let thoughts = response(json!([{"text": "Hm.", "thought": true}]), json!("MAX_TOKENS"));
    let malformed = "its call of a tool was malformed";
    for (reply, kind, part) in [
        (
            error(400, "INVALID_ARGUMENT", "API key not valid. free text", invalid),
            Unauthenticated,
            "refuses the API key: set GEMINI_API_KEY or `providers.gemini.api_key`",
        ),
        (error(403, "PERMISSION_DENIED", "free text", none()), Unauthenticated, "GEMINI_API_KEY"),
        (
            error(404, "NOT_FOUND", "models/x is not found for API version v1beta", none()),
            NotFound,
            "configured models: gemini-4-carbon, ",
        ),
        (Reply::text(404, "text/html", "<html>"), Unavailable, "which usually ends with /v1beta"),
        (Reply::text(302, "text/html", "").header("location", "/x"), Unavailable, "base_url"),
        (error(400, "INVALID_ARGUMENT", too_long, none()), BudgetTooSmall, "1048576 tokens"),
        (
            error(400, "INVALID_ARGUMENT", "free text", field),
            InvalidInput,
            "INVALID_ARGUMENT, parameter `contents[0].role`",
        ),
        (
            error(400, "FAILED_PRECONDITION", "free text", none()),
            InvalidInput,
            "FAILED_PRECONDITION",
        ),
        (error(429, "RESOURCE_EXHAUSTED", "free text", per_day), RateLimited, "billing"),
        (Reply::text(200, "text/html", "<html>"), Unavailable, "not of Gemini's API"),
        (Reply::text(200, "application/json", "{\"candidates\": [{"), Unavailable, "not of Gemini"),
        (Reply::text(200, "application/json", "[]"), Unavailable, "not of Gemini's API"),
        (Reply::text(200, "application/json", "{\"a\"").then_cut(), Unavailable, "cut off"),
        (Reply::json(200, &json!({})), Declined, "it was empty"),
        (Reply::json(200, &answer(" \n")), Declined, "it was empty"),
        (Reply::json(200, &no_content("STOP")), Declined, "it was empty"),
        (Reply::json(200, &blocked), Declined, "content filter of the provider"),
        (Reply::json(200, &no_content("SAFETY")), Declined, "content filter of the provider"),
        (Reply::json(200, &no_content("MALFORMED_FUNCTION_CALL")), Declined, malformed),
        (Reply::json(200, &thoughts), Declined, "allow it more"),
        (
            Reply::json(200, &json!({"error": {"code": 503, "message": "free text"}})),
            Unavailable,
            "failed: try again later",
        ),
    ] {
        let server = Server::replying([reply.clone()]).await;
        check(&ask(&client(&server)).await.unwrap_err(), kind, part);
        assert_eq!(server.received().len(), 1, "{reply:?}");
    }
}

#[tokio::test]
async fn accepts_missing_and_unknown_fields() {
    for (body, reason) in [
        (json!({"candidates": [{"content": {"parts": [{"text": "Yes."}]}}]}), None),
        (
            json!({"candidates": [{"content": {"parts": [{"text": "Yes."}, {"x": 1}], "y": 2},
                                   "finishReason": "SOMETHING_NEW", "safetyRatings": [{"category": "HARM_CATEGORY_NEW"}]}],
                   "error": null, "z": []}),
            Some("SOMETHING_NEW"),
        ),
        (
            json!({"candidates": [{"content": {"parts": [{"text": "Ye"}, {"text": "s."}]},
                                   "finishReason": "RECITATION"}]}),
            Some("contentFilter"),
        ),
    ] {
        let server = Server::replying([Reply::json(200, &body)]).await;
        let read = ask(&client(&server)).await.unwrap();
        assert_eq!((read.text.as_str(), read.stop_reason.as_deref()), ("Yes.", reason), "{body}");
        assert_eq!(read.usage, None);
    }
}

#[tokio::test]
async fn gives_up_on_slow_servers() {
    let server = Server::replying([Reply::no_answer()]).await;
    let limit = Duration::from_millis(100);
    let client = client_with(&server, |connection| connection.request_timeout = limit);
    let part = "within 0.1 s (`providers.gemini.timeout_ms`)";
    check(&ask(&client).await.unwrap_err(), ErrorKind::Unavailable, part);
    server.hung_up(1).await;
}

#[tokio::test]
async fn requires_key_for_own_service() {
    let client = Gemini::new(Settings::default()).unwrap();
    for error in [ask(&client).await.err(), client.check().await.err()].map(Option::unwrap) {
        check(&error, ErrorKind::Unauthenticated, "Gemini needs an API key: set GEMINI_API_KEY");
    }
}

#[tokio::test]
async fn the_key_is_in_a_header_and_in_no_url() {
    let server = Server::replying([Reply::json(200, &json!({"models": []}))]).await;
    client(&server).check().await.unwrap();
    let received = &server.received()[0];
    assert_eq!(received.path, "/v1beta/models?pageSize=1");
    assert_eq!(received.headers["x-goog-api-key"], KEY);
    assert_eq!(received.headers.get("authorization"), None);
}

#[tokio::test]
async fn models_are_of_the_catalogue_or_the_configuration() {
    let server = Server::replying([Reply::json(200, &answer("Yes."))]).await;
    let configured = |id: &str| ModelInfo {
        id: id.to_owned(),
        window: 8_192,
        max_output: 1_024,
        tools: true,
        temperature: true,
        thinks: false,
        price: None,
    };
    let tuned = Settings { models: vec![configured("tunedModels/mine")], ..settings(&server) };
    let client = Gemini::new(tuned).unwrap();
    assert!(client.model("gemini-9").is_none());
    let error = client.count_tokens("gemini-9", &request("Hello?")).await.unwrap_err();
    check(&error, ErrorKind::NotFound, "tunedModels/mine, gemini-4-carbon");
    client.model("tunedModels/mine").unwrap().complete(&request("Hello?")).await.unwrap();
    assert_eq!(server.received()[0].path, "/v1beta/tunedModels/mine:generateContent");

    for wrong in ["a?key=b", "../models", "a b", ""] {
        let wrong = Settings { models: vec![configured(wrong)], ..settings(&server) };
        let error = Gemini::new(wrong).unwrap_err();
        check(&error, ErrorKind::InvalidInput, "`providers.gemini.models`");
    }
}

#[tokio::test]
async fn refuses_threads() {
    let server = Server::replying([]).await;
    let mut asked = request("Hello?");
    asked.thread = Some("thread_1".to_owned());
    let model = client(&server).model("gemini-2.5-flash").unwrap();
    let error = model.complete(&asked).await.unwrap_err();
    check(&error, ErrorKind::InvalidInput, "send the whole conversation");
    assert!(server.received().is_empty());
}

#[test]
fn refuses_models_that_cannot_be_named() {
    let client = Gemini::new(Settings::default()).unwrap();
    let settings = EmbedderSettings::new("a?b", Arc::new(WordTokenizer::exact()));
    let error = client.embedder(settings).err().unwrap();
    check(&error, ErrorKind::InvalidInput, "is not a name of a model");
}

#[tokio::test]
async fn a_server_without_a_list_of_models_has_another_address() {
    let server = Server::replying([Reply::json(404, &json!({}))]).await;
    let error = client(&server).check().await.unwrap_err();
    check(&error, ErrorKind::Unavailable, "`providers.gemini.base_url`");
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn an_answer_without_text_has_its_usage() {
    let mut thoughts = response(json!([{"text": "Hm.", "thought": true}]), json!("MAX_TOKENS"));
    thoughts["usageMetadata"]["thoughtsTokenCount"] = json!(90);
    let server = Server::replying([Reply::json(200, &thoughts)]).await;
    let error = ask(&client(&server)).await.unwrap_err();
    let expected = TokenUsage { input: 10, cached_input: 0, output: 95 };
    assert_eq!(usage_of(&error), Some(expected));
}
