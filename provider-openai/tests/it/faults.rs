//! What comes of every way in which a server fails.

use serde_json::{Value, json};
use throughline_core::chat::ChatAnswer;
use throughline_core::ports::ChatProvider as _;
use throughline_core::{Error, ErrorKind, Result};
use throughline_provider_openai::{Api, EmbedderSettings, OpenAi, Settings};
use throughline_testkit::WordTokenizer;

use crate::support::{Reply, Server, client, request, settings};

async fn ask(client: &OpenAi) -> Result<ChatAnswer> {
    client.model("gpt-4.1").unwrap().complete(&request("Hello?")).await
}

fn error(status: u16, code: &str) -> Reply {
    let error = json!({"message": "free text", "type": "x", "param": null, "code": code});
    Reply::json(status, &json!({"error": error}))
}

/// Every error is said plainly: what to do, and nothing in the server's words.
fn check(error: &Error, kind: ErrorKind, part: &str) {
    assert_eq!(error.kind(), kind, "{error} {error:?}");
    assert!(error.message().contains(part), "`{part}` is not in: {error}");
    assert!(!error.message().contains("free text"), "{error}");
}

#[tokio::test]
async fn reports_permanent_failures_at_once() {
    use ErrorKind::{
        BudgetTooSmall, Declined, InvalidInput, NotFound, RateLimited, Unauthenticated, Unavailable,
    };
    for (reply, kind, part) in [
        (error(401, "invalid_api_key"), Unauthenticated, "OPENAI_API_KEY"),
        (error(403, "x"), Unauthenticated, "`providers.openai.api_key`"),
        (error(404, "model_not_found"), NotFound, "configured models: gpt-5.5, "),
        (Reply::text(404, "text/html", "<html>"), Unavailable, "`providers.openai.base_url`"),
        (Reply::text(302, "text/html", "").header("location", "/x"), Unavailable, "base_url"),
        (error(400, "context_length_exceeded"), BudgetTooSmall, "1047576 tokens"),
        (error(400, "content_filter"), Declined, "content filter"),
        (error(400, "unsupported_value"), InvalidInput, "unsupported_value"),
        (Reply::json(422, &json!({})), InvalidInput, "the log says why"),
        (error(429, "insufficient_quota"), RateLimited, "billing"),
        (Reply::text(200, "text/html", "<html>"), Unavailable, "not of OpenAI's API"),
        (
            Reply::text(200, "application/json", "{\"choices\": [{"),
            Unavailable,
            "not of OpenAI's API",
        ),
        (Reply::text(200, "application/json", "null"), Unavailable, "not of OpenAI's API"),
        (Reply::text(200, "application/json", "{\"id\"").then_cut(), Unavailable, "cut off"),
        (Reply::json(200, &json!({})), Declined, "it was empty"),
        (Reply::json(200, &json!({"choices": []})), Declined, "it was empty"),
        (error(200, "server_error"), Unavailable, "failed: try again later"),
        (error(200, "rate_limit_exceeded"), RateLimited, "try again later"),
    ] {
        let server = Server::replying([reply.clone()]).await;
        check(&ask(&client(&server)).await.unwrap_err(), kind, part);
        assert_eq!(server.received().len(), 1, "{reply:?}");
    }
}

#[tokio::test]
async fn says_why_an_answer_has_no_text() {
    let choice = |message: Value, reason: &str| json!({"choices": [{"index": 0, "message": message, "finish_reason": reason}]});
    let nothing = || json!({"role": "assistant", "content": null});
    let refusal = json!({"role": "assistant", "content": null, "refusal": "No."});
    for (answer, part) in [
        (choice(nothing(), "stop"), "it was empty"),
        (choice(nothing(), "length"), "allow it more"),
        (choice(nothing(), "content_filter"), "content filter"),
        (choice(refusal, "stop"), "it refused"),
        (choice(json!({"content": " \n"}), "stop"), "it was empty"),
    ] {
        let server = Server::replying([Reply::json(200, &answer)]).await;
        check(&ask(&client(&server)).await.unwrap_err(), ErrorKind::Declined, part);
    }
}

#[tokio::test]
async fn accepts_missing_and_unknown_fields() {
    let message = json!({"content": "Yes.", "reasoning_content": "Hm.", "tool_calls": null});
    let parts =
        json!({"content": [{"type": "text", "text": "Ye"}, {"type": "text", "text": "s."}]});
    for (answer, reason) in [
        (json!({"choices": [{"message": {"content": "Yes."}}]}), None),
        (json!({"choices": [{"message": message, "finish_reason": null}], "x": [1]}), None),
        (
            json!({"choices": [{"message": parts, "finish_reason": "eos"}], "error": null}),
            Some("eos"),
        ),
        (
            json!({"choices": [{"message": {"content": "Yes."}, "finish_reason": "content_filter"}]}),
            Some("contentFilter"),
        ),
        (
            json!({"choices": [{"message": {"content": "Yes."}, "finish_reason": "length"}]}),
            Some("maxTokens"),
        ),
    ] {
        let server = Server::replying([Reply::json(200, &answer)]).await;
        let read = ask(&client(&server)).await.unwrap();
        assert_eq!((read.text.as_str(), read.stop_reason.as_deref()), ("Yes.", reason), "{answer}");
        assert_eq!(read.usage, None);
    }
}

#[tokio::test]
async fn requires_key_for_openai() {
    let client = OpenAi::new(Settings::default()).unwrap();
    let errors = [ask(&client).await.err(), client.check().await.err(), client.require_key().err()];
    for error in errors.map(Option::unwrap) {
        check(&error, ErrorKind::Unauthenticated, "set OPENAI_API_KEY");
    }
}

#[tokio::test]
async fn lists_models_when_one_is_unknown() {
    let server = Server::replying([]).await;
    let client = client(&server);
    assert!(client.model("gpt-9").is_none());
    let error = client.require_model("gpt-9").err().unwrap();
    check(&error, ErrorKind::NotFound, "`gpt-9`");
    check(&error, ErrorKind::NotFound, "gpt-4.1");
    assert!(client.require_model("gpt-4.1-2025-04-14").is_ok());
}

#[tokio::test]
async fn refuses_threads_that_cannot_go_on() {
    let server = Server::replying([]).await;
    let mut asked = request("Hello?");
    asked.thread = Some("resp_1".to_owned());
    let error = client(&server).model("gpt-4.1").unwrap().complete(&asked).await.unwrap_err();
    check(&error, ErrorKind::InvalidInput, "`providers.openai.api`");
    assert!(server.received().is_empty());

    let gone = error_of_a_lost_thread();
    let server = Server::replying([gone]).await;
    let client = OpenAi::new(Settings { api: Api::Responses, ..settings(&server) }).unwrap();
    let error = client.model("gpt-4.1").unwrap().complete(&asked).await.unwrap_err();
    check(&error, ErrorKind::NotFound, "send the whole conversation");
}

fn error_of_a_lost_thread() -> Reply {
    error(400, "previous_response_not_found")
}

#[tokio::test]
async fn reports_embedding_failures() {
    use throughline_core::ports::Embedder as _;
    let vector = |values: Value| json!({"data": [{"index": 0, "embedding": values}]});
    let of_model = |model: &str, dimensions| EmbedderSettings {
        dimensions,
        ..EmbedderSettings::new(model, std::sync::Arc::new(WordTokenizer::exact()))
    };
    for (reply, kind, part) in [
        (
            Reply::json(200, &vector(json!([1.0, 2.0, 3.0]))),
            ErrorKind::InvalidInput,
            "3 dimensions instead of 2",
        ),
        (Reply::json(200, &json!({"data": []})), ErrorKind::Unavailable, "not of OpenAI's API"),
        (
            Reply::json(200, &vector(json!([null, 1.0]))),
            ErrorKind::Unavailable,
            "not of OpenAI's API",
        ),
        (error(404, "model_not_found"), ErrorKind::NotFound, "`m`"),
        (error(401, "x"), ErrorKind::Unauthenticated, "OPENAI_API_KEY"),
    ] {
        let server = Server::replying([reply]).await;
        let embedder = client(&server).embedder(of_model("m", Some(2))).await.unwrap();
        check(&embedder.embed(&["Hello."]).await.unwrap_err(), kind, part);
    }
    let server = Server::replying([]).await;
    for (model, dimensions, part) in [
        ("text-embedding-3-small", Some(1537), "1536 dimensions, not of 1537"),
        ("text-embedding-ada-002", Some(512), "1536 dimensions, not of 512"),
        ("m", Some(0), "greater than 0"),
        ("", None, "needs a model"),
    ] {
        let error = client(&server).embedder(of_model(model, dimensions)).await.unwrap_err();
        check(&error, ErrorKind::InvalidInput, part);
    }
    let known = client(&server).embedder(of_model("text-embedding-3-large", None)).await.unwrap();
    assert_eq!(known.space().dimensions, 3072);
    assert!(!known.is_instant());
    assert!(server.received().is_empty(), "what is known is not asked");
}
