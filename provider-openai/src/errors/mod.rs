//! The one place that maps failures of servers and connections. Sentences are made here; what a server says stays
//! in the source, for logs, without the key.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use throughline_core::{Error, ErrorKind};

use crate::json::text;
use crate::transport::ApiKey;

/// Longest text of a server that is kept for logs.
const MAX_MESSAGE_CHARS: usize = 500;

/// What the errors of a call name.
#[derive(Debug, Clone)]
pub(crate) struct Origin {
    pub(crate) server: Arc<str>,
    pub(crate) operation: &'static str,
    pub(crate) model: Option<Arc<RequestedModel>>,
    pub(crate) key: ApiKey,
}

/// The model that a call is sent to.
#[derive(Debug)]
pub(crate) struct RequestedModel {
    pub(crate) id: String,
    pub(crate) window: Option<u32>,
    /// Ids of the models to choose from instead.
    pub(crate) known: Vec<String>,
}

/// What a server says of an error, in whichever of the common forms.
#[derive(Debug, Default)]
pub(crate) struct ErrorBody {
    message: String,
    code: String,
    kind: String,
    param: String,
}

/// What a reported error means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Problem {
    Key,
    ContextLength,
    Filtered,
    UnknownModel,
    UnknownThread,
    Quota,
    Busy,
    WrongAddress,
    Failed,
    Refused,
}

impl ErrorBody {
    /// Reads the body of an answer that is no success: JSON in several forms, or any text.
    pub(crate) fn parse(body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(value) => Self::of(&value),
            Err(_) => {
                Self { message: String::from_utf8_lossy(body).into_owned(), ..Self::default() }
            }
        }
    }

    /// Reads `{"error": {...}}`, `{"error": "..."}`, the error alone, or a FastAPI `{"detail": ...}`.
    pub(crate) fn of(value: &Value) -> Self {
        let error = if value["error"].is_null() { value } else { &value["error"] };
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
        let kind = text(&error["type"]).to_owned();
        Self { message, code: plain(&error["code"]), kind, param: plain(&error["param"]) }
    }

    /// What it is, with the status of the answer; none for an error inside an answer that began well.
    pub(crate) fn problem(&self, status: Option<u16>) -> Problem {
        let status = status.or_else(|| self.code.parse().ok()).unwrap_or(0);
        let named = |names: &[&str]| names.contains(&&*self.code) || names.contains(&&*self.kind);
        let message = self.message.to_lowercase();
        let says = |parts: &[&str]| parts.iter().any(|part| message.contains(part));
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
        if named(&["model_not_found"])
            || matches!(status, 400 | 404)
                && says(&["model"])
                && says(&["not found", "does not exist", "not exist"])
        {
            return Problem::UnknownModel;
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
}

impl Problem {
    /// Whether the same call may succeed if it is sent again soon.
    pub(crate) fn is_transient(self) -> bool {
        matches!(self, Self::Busy | Self::Failed)
    }

    /// Whether it shows that the server does not work.
    pub(crate) fn is_server_failure(self) -> bool {
        self == Self::Failed
    }
}

impl Origin {
    /// An error that a server reports: in its status, or inside an answer that began well.
    pub(crate) fn reported(&self, status: Option<u16>, body: &ErrorBody) -> Error {
        let problem = body.problem(status);
        let (kind, sentence) = self.sentence(problem, status, body);
        // What is said of a key repeats parts of it.
        let said = if problem == Problem::Key { "" } else { &body.message };
        let said = self.key.redact(said).chars().take(MAX_MESSAGE_CHARS).collect();
        let code = self.identifier(&body.code).or_else(|| self.identifier(&body.kind));
        let source = Reported { status, code: code.unwrap_or_default(), message: said };
        self.error(kind, sentence).with_source(source)
    }

    fn sentence(
        &self,
        problem: Problem,
        status: Option<u16>,
        body: &ErrorBody,
    ) -> (ErrorKind, String) {
        let server = &self.server;
        let model = self.model.as_ref();
        let id = model.map_or("the model", |model| &model.id);
        match problem {
            Problem::Key => (ErrorKind::Unauthenticated, self.key_needed(self.key.is_given())),
            Problem::ContextLength => {
                let window = model.and_then(|model| model.window);
                let window = window.map_or_else(String::new, |size| format!(" of {size} tokens"));
                let sentence = format!(
                    "the request does not fit into the window{window} of `{id}`: lower the token \
                     budget, or use a model with a larger window"
                );
                (ErrorKind::BudgetTooSmall, sentence)
            }
            Problem::Filtered => (
                ErrorKind::Declined,
                format!("the content filter of {server} does not let the request through"),
            ),
            Problem::UnknownModel => {
                let known = model.map_or_else(String::new, |model| model.known.join(", "));
                let sentence = format!(
                    "{server} has no model `{id}`, or this key may not use it; configured models: \
                     {known}"
                );
                (ErrorKind::NotFound, sentence)
            }
            Problem::UnknownThread => (
                ErrorKind::NotFound,
                format!("{server} does not have the thread any more: send the whole conversation"),
            ),
            Problem::Quota => (
                ErrorKind::RateLimited,
                format!("the quota of the account at {server} is used up: check its billing"),
            ),
            Problem::Busy => (
                ErrorKind::RateLimited,
                format!("{server} limits the rate of requests: try again later"),
            ),
            Problem::WrongAddress => (
                ErrorKind::Unavailable,
                format!(
                    "{server} does not have this part of the API (HTTP {}): check \
                     `providers.openai.base_url`, which usually ends with /v1",
                    status.unwrap_or(404)
                ),
            ),
            Problem::Failed => {
                let status = status.map_or_else(String::new, |status| format!(" (HTTP {status})"));
                (ErrorKind::Unavailable, format!("{server} failed{status}: try again later"))
            }
            Problem::Refused => {
                let code = self.identifier(&body.code).or_else(|| self.identifier(&body.kind));
                let param =
                    self.identifier(&body.param).map(|param| format!("parameter `{param}`"));
                let details: Vec<_> = code.into_iter().chain(param).collect();
                let status = status.unwrap_or(400);
                let sentence = if details.is_empty() {
                    format!("{server} refused the request (HTTP {status}); the log says why")
                } else {
                    format!("{server} refused the request (HTTP {status}): {}", details.join(", "))
                };
                (ErrorKind::InvalidInput, sentence)
            }
        }
    }

    /// No key, or one that the server refuses.
    pub(crate) fn unauthenticated(&self) -> Error {
        self.error(ErrorKind::Unauthenticated, self.key_needed(self.key.is_given()))
    }

    fn key_needed(&self, given: bool) -> String {
        let server = &self.server;
        let what = if given { "refuses the API key" } else { "needs an API key" };
        format!("{server} {what}: set OPENAI_API_KEY or `providers.openai.api_key`")
    }

    pub(crate) fn unreachable(&self, source: reqwest::Error) -> Error {
        let sentence = format!(
            "{} cannot be reached: check the network and `providers.openai.base_url`",
            self.server
        );
        // The URL is known, and errors of connections need not repeat it.
        self.error(ErrorKind::Unavailable, sentence).with_source(source.without_url())
    }

    /// The time for the whole call has passed.
    pub(crate) fn timed_out(&self, limit: Duration) -> Error {
        let sentence = format!(
            "{} did not answer within {} s (`providers.openai.request_timeout`)",
            self.server,
            limit.as_secs_f32()
        );
        self.error(ErrorKind::Unavailable, sentence)
    }

    /// The next piece of a stream did not come in time.
    pub(crate) fn idle(&self, limit: Duration) -> Error {
        let sentence = format!(
            "{} sent nothing for {} s in the middle of an answer \
             (`providers.openai.idle_timeout`)",
            self.server,
            limit.as_secs_f32()
        );
        self.error(ErrorKind::Unavailable, sentence)
    }

    /// The answer ended before it was complete.
    pub(crate) fn cut_off(&self) -> Error {
        let sentence = format!("the answer of {} was cut off: try again", self.server);
        self.error(ErrorKind::Unavailable, sentence)
    }

    /// The answer does not follow the API.
    pub(crate) fn unreadable(&self) -> Error {
        let sentence = format!(
            "the answer of {} is not of OpenAI's API: check `providers.openai.base_url`",
            self.server
        );
        self.error(ErrorKind::Unavailable, sentence)
    }

    /// The circuit breaker is open.
    pub(crate) fn circuit_open(&self, wait: Duration) -> Error {
        let sentence = format!(
            "{} failed several times in a row: requests are sent again in {} s",
            self.server,
            wait.as_secs_f32().ceil()
        );
        self.error(ErrorKind::Unavailable, sentence).with_retry_after(wait)
    }

    /// The model, or who decides for it, gives no answer.
    pub(crate) fn declined(&self, why: &str) -> Error {
        let id = self.model.as_ref().map_or("the model", |model| &model.id);
        self.error(ErrorKind::Declined, format!("`{id}` gave no answer: {why}"))
    }

    pub(crate) fn error(&self, kind: ErrorKind, sentence: impl Into<String>) -> Error {
        Error::new(kind, sentence).during(self.operation)
    }

    /// A short name that may stand in a sentence; no text of a server does.
    fn identifier(&self, name: &str) -> Option<String> {
        let allowed = |char: char| char.is_ascii_alphanumeric() || "_.-[]".contains(char);
        let name = self.key.redact(name);
        let fits = (1..=64).contains(&name.len()) && name.chars().all(allowed);
        fits.then_some(name)
    }
}

/// What a server said, for logs.
#[derive(Debug)]
struct Reported {
    status: Option<u16>,
    code: String,
    message: String,
}

impl fmt::Display for Reported {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.status {
            Some(status) => write!(f, "HTTP {status}")?,
            None => f.write_str("an error inside the answer")?,
        }
        write!(f, " {}: {}", self.code, self.message)
    }
}

impl StdError for Reported {}

#[cfg(test)]
mod tests;
