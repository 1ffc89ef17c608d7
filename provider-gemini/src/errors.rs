//! What errors of Google's APIs mean.

use std::time::Duration;

use serde_json::Value;
use throughline_provider_http::json::{items, text};
use throughline_provider_http::{Problem, ServerError, wait_of};

/// Reads `{"error": {"code", "message", "status", "details"}}`, the same in a list, as streams have it, or any text.
pub(crate) fn read(status: Option<u16>, body: &Value) -> ServerError {
    let body = items(body).first().unwrap_or(body);
    let error = &body["error"];
    let message = body.as_str().or(error.as_str()).unwrap_or_else(|| text(&error["message"]));
    let details = Details::of(&error["details"]);
    let code = error["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    let status = status.or(code).unwrap_or(0);
    ServerError {
        problem: problem(status, message, &details),
        message: message.to_owned(),
        code: details.reason.to_owned(),
        kind: text(&error["status"]).to_owned(),
        param: details.field.to_owned(),
        retry_after: details.retry_after,
    }
}

/// The fields of `error.details` that are used.
#[derive(Debug, Default)]
struct Details<'a> {
    /// Such as `API_KEY_INVALID`.
    reason: &'a str,
    /// The field of the request that is wrong.
    field: &'a str,
    retry_after: Option<Duration>,
    /// Whether a quota per day is used up: a retry within minutes does not help.
    of_a_day: bool,
}

impl<'a> Details<'a> {
    fn of(details: &'a Value) -> Self {
        let mut read = Self::default();
        for detail in items(details) {
            match text(&detail["@type"]).rsplit('.').next().unwrap_or_default() {
                "ErrorInfo" => read.reason = text(&detail["reason"]),
                "BadRequest" => read.field = text(&detail["fieldViolations"][0]["field"]),
                "RetryInfo" => read.retry_after = delay(text(&detail["retryDelay"])),
                "QuotaFailure" => {
                    let mut violations = items(&detail["violations"]).iter();
                    read.of_a_day = violations.any(|one| text(&one["quotaId"]).contains("PerDay"));
                }
                _ => {}
            }
        }
        read
    }
}

/// A duration in the form of protocol buffers, such as `42s` or `0.5s`.
fn delay(text: &str) -> Option<Duration> {
    text.strip_suffix('s')?.parse().ok().and_then(wait_of)
}

fn problem(status: u16, message: &str, details: &Details<'_>) -> Problem {
    let message = message.to_lowercase();
    let says = |parts: &[&str]| parts.iter().all(|part| message.contains(part));
    // A key that is wrong is answered with the status 400.
    let about_key = details.reason.starts_with("API_KEY_") || says(&["api key"]);
    match status {
        401 | 403 => Problem::Key,
        400 if about_key => Problem::Key,
        400 if says(&["token count", "exceed"]) => Problem::ContextLength,
        404 if says(&["model"]) => Problem::UnknownModel,
        429 if details.of_a_day => Problem::Quota,
        429 => Problem::Busy,
        300..=399 | 404 | 405 => Problem::WrongAddress,
        // Timed out, aborted or cancelled; or an error inside an answer.
        0 | 408 | 409 | 499.. => Problem::Failed,
        _ => Problem::Refused,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn google(code: u16, status: &str, message: &str, details: Value) -> Value {
        json!({"error": {"code": code, "message": message, "status": status, "details": details}})
    }

    fn info(reason: &str) -> Value {
        json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": reason,
                "domain": "googleapis.com"}])
    }

    #[test]
    fn classifies_errors() {
        let none = || json!([]);
        let quota = |id: &str| {
            json!([{"@type": "type.googleapis.com/google.rpc.QuotaFailure",
                    "violations": [{"quotaMetric": "m", "quotaId": id}]}])
        };
        for (body, problem) in [
            (
                google(400, "INVALID_ARGUMENT", "API key not valid.", info("API_KEY_INVALID")),
                Problem::Key,
            ),
            (google(400, "INVALID_ARGUMENT", "API key expired. Renew it.", none()), Problem::Key),
            (google(403, "PERMISSION_DENIED", "Unregistered callers", none()), Problem::Key),
            (google(401, "UNAUTHENTICATED", "", none()), Problem::Key),
            (
                google(
                    400,
                    "INVALID_ARGUMENT",
                    "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
                    none(),
                ),
                Problem::ContextLength,
            ),
            (
                google(
                    404,
                    "NOT_FOUND",
                    "models/gemini-9 is not found for API version v1beta",
                    none(),
                ),
                Problem::UnknownModel,
            ),
            (google(404, "NOT_FOUND", "", none()), Problem::WrongAddress),
            (
                google(429, "RESOURCE_EXHAUSTED", "", quota("GenerateRequestsPerMinutePerProject")),
                Problem::Busy,
            ),
            (
                google(429, "RESOURCE_EXHAUSTED", "", quota("GenerateRequestsPerDayPerProject")),
                Problem::Quota,
            ),
            (google(500, "INTERNAL", "", none()), Problem::Failed),
            (google(503, "UNAVAILABLE", "The model is overloaded.", none()), Problem::Failed),
            (google(504, "DEADLINE_EXCEEDED", "", none()), Problem::Failed),
            (google(409, "ABORTED", "", none()), Problem::Failed),
            (google(400, "FAILED_PRECONDITION", "User location", none()), Problem::Refused),
        ] {
            let status = body["error"]["code"].as_u64().and_then(|code| u16::try_from(code).ok());
            assert_eq!(read(status, &body).problem, problem, "{body}");
            // In the middle of a stream there is no status, and some streams are lists.
            assert_eq!(read(None, &body).problem, problem, "{body}");
            assert_eq!(read(status, &json!([body])).problem, problem, "{body}");
        }
        for text in ["", "<html>502 Bad Gateway</html>"] {
            assert_eq!(read(Some(502), &json!(text)).problem, Problem::Failed);
            assert_eq!(read(Some(429), &json!(text)).problem, Problem::Busy);
            assert_eq!(read(Some(404), &json!(text)).problem, Problem::WrongAddress);
            assert_eq!(read(None, &json!(text)).problem, Problem::Failed);
        }
    }

    #[test]
    fn reads_errors_in_openais_form() {
        let wrong = json!({"error": {"message": "API key not valid.", "type": "invalid_request_error",
                                     "param": null, "code": "invalid_api_key"}});
        assert_eq!(read(Some(400), &wrong).problem, Problem::Key);
        let wrong = json!({"error": {"message": "Unknown field", "code": null}});
        assert_eq!(read(Some(400), &wrong).problem, Problem::Refused);
    }

    #[test]
    fn reads_details() {
        let details = json!([
            {"@type": "type.googleapis.com/google.rpc.Help", "links": []},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "42.5s"},
            {"@type": "type.googleapis.com/google.rpc.BadRequest",
             "fieldViolations": [{"field": "contents[0].role", "description": "wrong"}]},
        ]);
        let said = read(Some(429), &google(429, "RESOURCE_EXHAUSTED", "Slow down.", details));
        assert_eq!(said.retry_after, Some(Duration::from_millis(42_500)));
        assert_eq!(
            (said.message.as_str(), said.kind.as_str()),
            ("Slow down.", "RESOURCE_EXHAUSTED")
        );
        assert_eq!(said.param, "contents[0].role");
        for (text, wait) in [("0s", Some(0)), ("-5s", Some(0)), ("soon", None), ("", None)] {
            assert_eq!(delay(text), wait.map(Duration::from_secs), "{text}");
        }
        assert_eq!(read(None, &json!({"error": "Broken."})).message, "Broken.");
    }
}
