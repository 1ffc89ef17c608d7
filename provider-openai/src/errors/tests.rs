//! Every form of an error, what it is taken for, and what is said of it.

use serde_json::json;

use super::*;

fn origin(key: Option<&str>) -> Origin {
    let model = RequestedModel {
        id: "gpt-4o".to_owned(),
        window: Some(128_000),
        known: vec!["gpt-4o".to_owned(), "o3".to_owned()],
    };
    Origin {
        server: Arc::from("OpenAI"),
        operation: "chat",
        model: Some(Arc::new(model)),
        key: ApiKey::new(key.map(Into::into)).unwrap(),
    }
}

#[test]
fn classifies_errors_of_many_servers() {
    let openai = |code: &str, message: &str| json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": code}});
    for (status, body, problem) in [
        (Some(401), openai("invalid_api_key", "Incorrect API key"), Problem::Key),
        (Some(403), json!({"detail": "Forbidden"}), Problem::Key),
        (Some(400), openai("context_length_exceeded", "too long"), Problem::ContextLength),
        // vLLM, llama.cpp.
        (
            Some(400),
            json!({"object": "error", "message": "This model's maximum context length is 4096 tokens.",
                   "type": "BadRequestError", "param": null, "code": 400}),
            Problem::ContextLength,
        ),
        (
            Some(400),
            json!({"error": {"code": 400, "message": "the request exceeds the available context size",
                   "type": "exceed_context_size_error", "n_ctx": 4096}}),
            Problem::ContextLength,
        ),
        (Some(400), openai("content_filter", "The response was filtered"), Problem::Filtered),
        (
            Some(404),
            openai("model_not_found", "The model `x` does not exist"),
            Problem::UnknownModel,
        ),
        // Ollama.
        (
            Some(404),
            json!({"error": {"message": "model \"x\" not found, try pulling it first",
                   "type": "api_error", "param": null, "code": null}}),
            Problem::UnknownModel,
        ),
        (Some(404), json!({"error": "model 'x' not found"}), Problem::UnknownModel),
        (Some(400), openai("previous_response_not_found", "Not found"), Problem::UnknownThread),
        (Some(429), openai("insufficient_quota", "You exceeded your quota"), Problem::Quota),
        (
            Some(402),
            json!({"error": {"message": "Insufficient credits", "code": 402}}),
            Problem::Quota,
        ),
        (Some(429), openai("rate_limit_exceeded", "Limit reached, context length"), Problem::Busy),
        (Some(404), json!({"detail": "Not Found"}), Problem::WrongAddress),
        (Some(301), json!(null), Problem::WrongAddress),
        (Some(500), openai("server_error", "The server had an error"), Problem::Failed),
        (Some(409), json!({}), Problem::Failed),
        (Some(400), openai("unsupported_parameter", "Unsupported parameter"), Problem::Refused),
        (
            Some(422),
            json!({"detail": [{"loc": ["body"], "msg": "field required"}]}),
            Problem::Refused,
        ),
        // Inside an answer: OpenRouter has the status as the code.
        (None, json!({"error": {"message": "Rate limit", "code": 429}}), Problem::Busy),
        (None, json!({"error": {"message": "Bad gateway", "code": 502}}), Problem::Failed),
        (None, openai("server_error", "The server had an error"), Problem::Failed),
        (None, openai("rate_limit_exceeded", "Slow down"), Problem::Busy),
    ] {
        let bytes = body.to_string();
        assert_eq!(
            ErrorBody::parse(bytes.as_bytes()).problem(status),
            problem,
            "{status:?} {body}"
        );
    }
    for text in ["", "<html>502 Bad Gateway</html>", "\u{0}\u{1}"] {
        assert_eq!(ErrorBody::parse(text.as_bytes()).problem(Some(502)), Problem::Failed);
        assert_eq!(ErrorBody::parse(text.as_bytes()).problem(Some(429)), Problem::Busy);
    }
}

#[test]
fn says_what_to_do() {
    for (status, body, kind, part) in [
        (
            401,
            json!({}),
            ErrorKind::Unauthenticated,
            "OPENAI_API_KEY or `providers.openai.api_key`",
        ),
        (
            400,
            json!({"error": {"code": "context_length_exceeded"}}),
            ErrorKind::BudgetTooSmall,
            "128000 tokens",
        ),
        (404, json!({"error": {"code": "model_not_found"}}), ErrorKind::NotFound, "gpt-4o, o3"),
        (429, json!({}), ErrorKind::RateLimited, "try again later"),
        (402, json!({}), ErrorKind::RateLimited, "billing"),
        (404, json!({}), ErrorKind::Unavailable, "ends with /v1"),
        (503, json!({}), ErrorKind::Unavailable, "HTTP 503"),
        (
            400,
            json!({"error": {"code": "unsupported_value", "param": "messages[0].role",
                   "message": "free text"}}),
            ErrorKind::InvalidInput,
            "unsupported_value, parameter `messages[0].role`",
        ),
        (400, json!({"error": {"code": "two words"}}), ErrorKind::InvalidInput, "the log says why"),
        (400, json!({"error": {"code": "content_filter"}}), ErrorKind::Declined, "content filter"),
    ] {
        let error = origin(None).reported(Some(status), &ErrorBody::of(&body));
        assert_eq!(error.kind(), kind, "{status} {body}");
        assert!(error.message().contains(part), "{status} {body}: {error}");
        assert!(!error.message().contains("free text"), "no text of a server in a sentence");
        assert_eq!(error.operation(), Some("chat"));
    }
}

#[test]
fn never_repeats_the_key() {
    const KEY: &str = "sk-proj-s3cr3t";
    let echo = format!("Incorrect API key provided: {KEY}");
    for status in [400, 401, 403, 404, 429, 500] {
        let body = json!({"error": {"message": echo, "code": KEY, "type": KEY, "param": KEY}});
        let error = origin(Some(KEY)).reported(Some(status), &ErrorBody::of(&body));
        let source = error.source().unwrap();
        let said = format!("{error} {error:?} {source} {source:?} {:?}", origin(Some(KEY)));
        assert!(!said.contains("s3cr3t"), "{said}");
    }
    // A part of the key, as OpenAI repeats it.
    let body = json!({"error": {"message": "Incorrect API key provided: sk-proj-*****cr3t."}});
    let error = origin(Some(KEY)).reported(Some(401), &ErrorBody::of(&body));
    assert!(!format!("{error:?}").contains("cr3t"), "{error:?}");
}
