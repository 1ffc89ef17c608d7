//! What errors of OpenAI's API mean, and those of servers that report them in forms of their own.

use serde_json::Value;
use throughline_provider_http::json::text;
use throughline_provider_http::{Problem, ServerError};

/// Reads `{"error": {...}}`, `{"error": "..."}`, the error alone, a FastAPI `{"detail": ...}`, or any text.
pub(crate) fn read(status: Option<u16>, body: &Value) -> ServerError {
    let error = if body["error"].is_null() { body } else { &body["error"] };
    let plain = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Number(number) => number.to_string(),
        _ => String::new(),
    };
    let message = match error {
        Value::String(message) => message.clone(),
        _ if error["message"].is_null() => plain(&error["detail"]),
        _ => plain(&error["message"]),
    };
    let (code, kind) = (plain(&error["code"]), text(&error["type"]).to_owned());
    let problem = problem(status, &message, &code, &kind);
    let param = plain(&error["param"]);
    ServerError { problem, message, code, kind, param, retry_after: None }
}

fn problem(status: Option<u16>, message: &str, code: &str, kind: &str) -> Problem {
    let status = status.or_else(|| code.parse().ok()).unwrap_or(0);
    let named = |names: &[&str]| names.contains(&code) || names.contains(&kind);
    let message = message.to_lowercase();
    let says = |parts: &[&str]| parts.iter().any(|part| message.contains(part));
    // Both come with the status 403, which otherwise is about the key.
    if named(&["model_not_found"]) {
        return Problem::UnknownModel;
    }
    if named(&["unsupported_country_region_territory"]) {
        return Problem::Refused;
    }
    if matches!(status, 401 | 403) || named(&["invalid_api_key", "authentication_error"]) {
        return Problem::Key;
    }
    if named(&["context_length_exceeded", "exceed_context_size_error"])
        || status != 429 && says(&["context length", "context window", "context size"])
    {
        return Problem::ContextLength;
    }
    if named(&["content_filter", "content_policy_violation", "moderation_blocked"]) {
        return Problem::Filtered;
    }
    if named(&["previous_response_not_found"]) {
        return Problem::UnknownThread;
    }
    if matches!(status, 400 | 404)
        && says(&["model"])
        && says(&["not found", "does not exist", "not exist"])
    {
        return Problem::UnknownModel;
    }
    if status == 404
        && says(&["no vector store", "no such vector", "no file found", "no such file"])
    {
        return Problem::UnknownFiles;
    }
    match status {
        402 => Problem::Quota,
        _ if named(&["insufficient_quota"]) => Problem::Quota,
        429 => Problem::Busy,
        _ if named(&["rate_limit_exceeded", "rate_limit_error"]) => Problem::Busy,
        300..=399 | 404 | 405 => Problem::WrongAddress,
        // Timed out, or locked for the moment; or an error inside an answer.
        0 | 408 | 409 | 500.. => Problem::Failed,
        _ if named(&["server_error", "overloaded_error"]) => Problem::Failed,
        _ => Problem::Refused,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn classifies_errors_of_many_servers() {
        let openai = |code: &str, message: &str| json!({"error": {"message": message, "type": "invalid_request_error", "param": null, "code": code}});
        for (status, body, problem) in [
            (Some(401), openai("invalid_api_key", "Incorrect API key"), Problem::Key),
            (Some(403), json!({"detail": "Forbidden"}), Problem::Key),
            (
                Some(403),
                openai("model_not_found", "Project `p` does not have access to model `x`"),
                Problem::UnknownModel,
            ),
            (
                Some(403),
                openai("unsupported_country_region_territory", "Country not supported"),
                Problem::Refused,
            ),
            (Some(404), openai("", "No vector store found with id 'vs_1'."), Problem::UnknownFiles),
            (Some(404), openai("", "No such File object: file_1"), Problem::UnknownFiles),
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
            (
                Some(429),
                openai("rate_limit_exceeded", "Limit reached, context length"),
                Problem::Busy,
            ),
            (Some(404), json!({"detail": "Not Found"}), Problem::WrongAddress),
            (Some(301), json!(null), Problem::WrongAddress),
            (Some(500), openai("server_error", "The server had an error"), Problem::Failed),
            (Some(408), json!({}), Problem::Failed),
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
            assert_eq!(read(status, &body).problem, problem, "{status:?} {body}");
        }
        for text in ["", "<html>502 Bad Gateway</html>", "\u{0}\u{1}"] {
            assert_eq!(read(Some(502), &json!(text)).problem, Problem::Failed);
            assert_eq!(read(Some(429), &json!(text)).problem, Problem::Busy);
        }
    }

    #[test]
    fn reads_every_form_of_an_error() {
        for (body, message, code) in [
            (json!({"error": {"message": "No.", "code": "x"}}), "No.", "x"),
            (json!({"error": "No."}), "No.", ""),
            (json!({"message": "No.", "code": 400}), "No.", "400"),
            (json!({"detail": "No."}), "No.", ""),
            (json!({"detail": [{"msg": "No."}]}), "", ""),
            (json!("<html>No.</html>"), "<html>No.</html>", ""),
        ] {
            let said = read(Some(400), &body);
            assert_eq!((said.message.as_str(), said.code.as_str()), (message, code), "{body}");
        }
    }
}
