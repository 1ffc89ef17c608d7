//! What comes of every way in which a server fails.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use throughline_core::chat::ChatAnswer;
use throughline_core::ports::ChatProvider as _;
use throughline_core::{Error, ErrorKind, Result};
use throughline_provider_openai::{Api, BreakerSettings, EmbedderSettings, OpenAi, Settings};
use throughline_testkit::WordTokenizer;

use crate::support::{Reply, Server, completion, request};

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
async fn retries_transient_failures() {
    let good = || Reply::json(200, &completion("Good."));
    for failure in [
        Reply::text(500, "text/html", "<html>Internal Server Error</html>"),
        error(503, "overloaded"),
        error(408, "timeout"),
        error(409, "conflict"),
        error(429, "rate_limit_exceeded"),
        Reply::text(429, "text/plain", "slow down"),
        error(429, "rate_limit_exceeded").header("retry-after", "0"),
        Reply::text(429, "text/plain", "slow down").header("retry-after-ms", "1"),
        error(503, "x")
            .header("date", "Wed, 21 Oct 2026 07:28:00 GMT")
            .header("retry-after", "Wed, 21 Oct 2026 07:28:00 GMT"),
        Reply::closed(),
    ] {
        let server = Server::replying([failure.clone(), failure.clone(), good()]).await;
        let answer = ask(&server.client()).await;
        assert_eq!(answer.unwrap().text, "Good.", "{failure:?}");
        assert_eq!(server.received().len(), 3);

        let server = Server::replying([failure.clone(), failure.clone(), failure, good()]).await;
        ask(&server.client()).await.unwrap_err();
        assert_eq!(server.received().len(), 3, "not more often than allowed");
    }
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
        check(&ask(&server.client()).await.unwrap_err(), kind, part);
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
        check(&ask(&server.client()).await.unwrap_err(), ErrorKind::Declined, part);
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
        let read = ask(&server.client()).await.unwrap();
        assert_eq!((read.text.as_str(), read.stop_reason.as_deref()), ("Yes.", reason), "{answer}");
        assert_eq!(read.usage, None);
    }
}

#[tokio::test]
async fn does_not_wait_longer_than_max_retry_after() {
    for reply in [
        error(429, "rate_limit_exceeded").header("retry-after", "90"),
        error(429, "rate_limit_exceeded")
            .header("date", "Wed, 21 Oct 2026 07:28:00 GMT")
            .header("retry-after", "Wed, 21 Oct 2026 07:29:30 GMT"),
        Reply::text(429, "text/html", "<html>").header("retry-after", "90"),
    ] {
        let server = Server::replying([reply, Reply::json(200, &completion("No."))]).await;
        let error = ask(&server.client()).await.unwrap_err();
        check(&error, ErrorKind::RateLimited, "try again later");
        assert_eq!(error.retry_after(), Some(Duration::from_secs(90)));
        assert_eq!(server.received().len(), 1);
    }
}

#[tokio::test]
async fn does_not_retry_past_the_deadline() {
    let busy = error(429, "rate_limit_exceeded").header("retry-after", "15");
    let server = Server::replying([busy]).await;
    let settings = Settings { request_timeout: Duration::from_secs(10), ..server.settings() };
    let began = Instant::now();
    let error = ask(&OpenAi::new(settings).unwrap()).await.unwrap_err();
    check(&error, ErrorKind::RateLimited, "try again later");
    assert!(began.elapsed() < Duration::from_secs(10), "it does not wait for what comes too late");
    assert_eq!(server.received().len(), 1);
}

#[tokio::test]
async fn gives_up_at_request_timeout() {
    for reply in
        [Reply::no_answer(), Reply::text(200, "application/json", "{\"choices\"").then_silence()]
    {
        let server = Server::replying([reply]).await;
        let settings =
            Settings { request_timeout: Duration::from_millis(100), ..server.settings() };
        let error = ask(&OpenAi::new(settings).unwrap()).await.unwrap_err();
        check(&error, ErrorKind::Unavailable, "within 0.1 s (`providers.openai.request_timeout`)");
    }
}

#[tokio::test]
async fn accepts_times_without_end() {
    let server = Server::replying([error(500, "x"), Reply::json(200, &completion("Good."))]).await;
    let forever = Duration::MAX;
    let settings = Settings {
        request_timeout: forever,
        idle_timeout: forever,
        max_retry_after: forever,
        breaker: BreakerSettings { failures: 2, open_for: forever },
        ..server.settings()
    };
    assert_eq!(ask(&OpenAi::new(settings).unwrap()).await.unwrap().text, "Good.");
}

#[tokio::test]
async fn reports_unreachable_server() {
    // A port that was free a moment ago.
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base_url = format!("http://{}/v1", free.local_addr().unwrap());
    drop(free);
    let first_retry_delay = Duration::from_millis(1);
    let settings = Settings { base_url, first_retry_delay, ..Settings::default() };
    let client = || OpenAi::new(settings.clone()).unwrap();
    check(&ask(&client()).await.unwrap_err(), ErrorKind::Unavailable, "cannot be reached");
    check(&client().check().await.unwrap_err(), ErrorKind::Unavailable, "cannot be reached");
}

#[tokio::test]
async fn opens_circuit_after_repeated_failures() {
    let server = Server::answering(|_| error(500, "x")).await;
    let breaker = BreakerSettings { failures: 3, open_for: Duration::from_secs(60) };
    let settings = Settings { breaker, max_retries: 0, ..server.settings() };
    let client = OpenAi::new(settings).unwrap();
    for _ in 0..3 {
        check(&ask(&client).await.unwrap_err(), ErrorKind::Unavailable, "HTTP 500");
    }
    let error = ask(&client).await.unwrap_err();
    check(&error, ErrorKind::Unavailable, "requests are sent again in 60 s");
    assert!(error.retry_after().is_some_and(|wait| wait <= Duration::from_secs(60)));
    assert_eq!(server.received().len(), 3);
}

#[tokio::test]
async fn keeps_the_error_that_opened_the_circuit() {
    let server = Server::answering(|_| error(500, "x")).await;
    let breaker = BreakerSettings { failures: 2, open_for: Duration::from_secs(60) };
    let client = OpenAi::new(Settings { breaker, max_retries: 5, ..server.settings() }).unwrap();
    check(&ask(&client).await.unwrap_err(), ErrorKind::Unavailable, "HTTP 500");
    assert_eq!(server.received().len(), 2, "an open circuit ends the retries");
}

#[tokio::test]
async fn closes_circuit_after_success() {
    let server = Server::replying([error(500, "x"), Reply::json(200, &completion("Back."))]).await;
    let breaker = BreakerSettings { failures: 1, open_for: Duration::ZERO };
    let client = OpenAi::new(Settings { breaker, max_retries: 0, ..server.settings() }).unwrap();
    ask(&client).await.unwrap_err();
    assert_eq!(ask(&client).await.unwrap().text, "Back.");
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
    let client = server.client();
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
    let error = server.client().model("gpt-4.1").unwrap().complete(&asked).await.unwrap_err();
    check(&error, ErrorKind::InvalidInput, "`providers.openai.api`");
    assert!(server.received().is_empty());

    let gone = error_of_a_lost_thread();
    let server = Server::replying([gone]).await;
    let client = OpenAi::new(Settings { api: Api::Responses, ..server.settings() }).unwrap();
    let error = client.model("gpt-4.1").unwrap().complete(&asked).await.unwrap_err();
    check(&error, ErrorKind::NotFound, "send the whole conversation");
}

fn error_of_a_lost_thread() -> Reply {
    error(400, "previous_response_not_found")
}

#[tokio::test]
async fn checks_server_by_its_model_list() {
    for (reply, kind) in [
        (Reply::json(200, &json!({"object": "list", "data": []})), None),
        (Reply::text(404, "text/plain", "404 page not found"), None),
        (error(401, "invalid_api_key"), Some(ErrorKind::Unauthenticated)),
        (error(429, "rate_limit_exceeded"), Some(ErrorKind::RateLimited)),
        (error(503, "x"), Some(ErrorKind::Unavailable)),
        (error(400, "x"), Some(ErrorKind::Unavailable)),
    ] {
        let server = Server::replying([reply.clone()]).await;
        let checked = server.client().check().await;
        assert_eq!(checked.err().map(|error| error.kind()), kind, "{reply:?}");
        let received = server.received();
        assert_eq!((received[0].method.as_str(), received[0].path.as_str()), ("GET", "/v1/models"));
    }
}

#[tokio::test]
async fn reports_embedding_failures() {
    use throughline_core::ports::Embedder as _;
    let vector = |values: Value| json!({"data": [{"index": 0, "embedding": values}]});
    let settings = |model: &str, dimensions| EmbedderSettings {
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
        let embedder = server.client().embedder(settings("m", Some(2))).await.unwrap();
        check(&embedder.embed(&["Hello."]).await.unwrap_err(), kind, part);
    }
    let server = Server::replying([]).await;
    for (model, dimensions, part) in [
        ("text-embedding-3-small", Some(1537), "1536 dimensions, not of 1537"),
        ("text-embedding-ada-002", Some(512), "1536 dimensions, not of 512"),
        ("m", Some(0), "greater than 0"),
        ("", None, "needs a model"),
    ] {
        let error = server.client().embedder(settings(model, dimensions)).await.unwrap_err();
        check(&error, ErrorKind::InvalidInput, part);
    }
    let known = server.client().embedder(settings("text-embedding-3-large", None)).await.unwrap();
    assert_eq!(known.space().dimensions, 3072);
    assert!(!known.is_instant());
    assert!(server.received().is_empty(), "what is known is not asked");
}
