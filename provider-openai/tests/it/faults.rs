//! What comes of every way in which a server fails.

use serde_json::{Value, json};
use throughline_core::chat::{ChatAnswer, ModelInfo, TokenUsage, usage_of};
use throughline_core::ports::ChatProvider as _;
use throughline_core::{Error, ErrorKind, Result};
use throughline_provider_openai::{Api, OpenAi, Settings};

use crate::support::{Reply, Server, client, completion, request, settings};

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
        (error(403, "model_not_found"), NotFound, "configured models: gpt-5.5, "),
        (error(403, "unsupported_country_region_territory"), InvalidInput, "unsupported_country"),
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
async fn an_answer_without_text_has_its_usage() {
    let thought = json!({
        "choices": [{"index": 0, "message": {"content": ""}, "finish_reason": "length"}],
        "usage": {"prompt_tokens": 9, "completion_tokens": 99},
    });
    let server = Server::replying([Reply::json(200, &thought)]).await;
    let error = ask(&client(&server)).await.unwrap_err();
    let expected = TokenUsage { input: 9, cached_input: 0, output: 99 };
    assert_eq!(usage_of(&error), Some(expected));
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
    let errors = [ask(&client).await.err(), client.check().await.err()];
    for error in errors.map(Option::unwrap) {
        check(&error, ErrorKind::Unauthenticated, "set OPENAI_API_KEY");
    }
}

#[tokio::test]
async fn knows_models_and_their_dated_snapshots() {
    let server = Server::replying([]).await;
    let client = client(&server);
    for (id, known) in [("gpt-4.1", true), ("gpt-4.1-2025-04-14", true), ("gpt-9", false)] {
        assert_eq!(client.model(id).is_some(), known, "{id}");
        let info = client.info(id);
        assert_eq!(info.map(|info| info.id).as_deref(), known.then_some(id));
    }
}

#[tokio::test]
async fn only_openai_has_models_behind_the_responses_api_alone() {
    let named = |id: &str| ModelInfo {
        id: id.to_owned(),
        window: 8_192,
        max_output: 1_024,
        tools: true,
        temperature: true,
        thinks: false,
        price: None,
    };
    for id in ["our-pro", "o3-pro", "openai/gpt-5-pro"] {
        let server = Server::replying([Reply::json(200, &completion("Yes."))]).await;
        let models = vec![named(id)];
        let client = OpenAi::new(Settings { models, ..settings(&server) }).unwrap();
        client.model(id).unwrap().complete(&request("Hello?")).await.unwrap();
        assert_eq!(server.received()[0].path, "/v1/chat/completions", "{id}");
    }
}

#[tokio::test]
async fn checks_servers_without_a_list_of_models() {
    for (status, works) in [(400, true), (422, true), (404, false)] {
        let replies = [404, status].map(|status| Reply::json(status, &json!({})));
        let server = Server::replying(replies).await;
        let checked = client(&server).check().await;
        assert_eq!(checked.is_ok(), works, "{status} {checked:?}");
        assert_eq!(server.received()[1].path, "/v1/chat/completions");
    }
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
