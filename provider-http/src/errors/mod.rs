//! The one place that maps failures of servers and connections. Sentences are made here; what a server says stays
//! in the source, for logs, without the key.

use std::error::Error as StdError;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;
use throughline_core::chat::ModelInfo;
use throughline_core::{Error, ErrorKind};

use crate::profile::ApiProfile;
use crate::transport::{ApiKey, TimeLimit};

/// Longest text of a server that is kept for logs.
const MAX_MESSAGE_CHARS: usize = 500;

/// What the errors of a call name.
#[derive(Debug, Clone)]
pub struct Origin {
    pub(crate) profile: &'static ApiProfile,
    pub(crate) server: Arc<str>,
    pub(crate) operation: &'static str,
    pub(crate) model: Option<Arc<RequestedModel>>,
    pub(crate) key: ApiKey,
}

/// The model that a call is sent to.
#[derive(Debug)]
pub struct RequestedModel {
    pub(crate) id: String,
    pub(crate) window: Option<u32>,
    /// Ids of the models to choose from instead.
    pub(crate) known: Vec<String>,
}

impl RequestedModel {
    /// A model of a catalogue.
    #[must_use]
    pub fn of(info: &ModelInfo, catalogue: &[ModelInfo]) -> Arc<Self> {
        let known = catalogue.iter().map(|model| model.id.clone()).collect();
        Arc::new(Self { id: info.id.clone(), window: Some(info.window), known })
    }

    /// A model of which only the configuration says that it exists.
    #[must_use]
    pub fn named(id: &str) -> Arc<Self> {
        Arc::new(Self { id: id.to_owned(), window: None, known: vec![id.to_owned()] })
    }
}

/// What a server says of an error.
#[derive(Debug)]
pub struct ServerError {
    /// What it means.
    pub problem: Problem,
    /// Its text, for logs.
    pub message: String,
    /// Its short name.
    pub code: String,
    /// Another short name, where the first one is none.
    pub kind: String,
    /// The part of the request that it is about.
    pub param: String,
    /// How long to wait, where the body says so.
    pub retry_after: Option<Duration>,
}

/// What a reported error means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Problem {
    /// The key is missing, wrong, or may not do this.
    Key,
    /// The request does not fit into the model's window.
    ContextLength,
    /// A content filter holds the request back.
    Filtered,
    /// There is no such model.
    UnknownModel,
    /// There is no such thread.
    UnknownThread,
    /// There is no such file, or store of files.
    UnknownFiles,
    /// The account has used up what it may use.
    Quota,
    /// Too many requests at the moment.
    Busy,
    /// The server does not have this part of the API.
    WrongAddress,
    /// The server does not work at the moment.
    Failed,
    /// The request is wrong in another way.
    Refused,
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
    #[must_use]
    pub fn reported(&self, status: Option<u16>, body: &Value) -> Error {
        self.error_of(status, &(self.profile.read_error)(status, body))
    }

    pub(crate) fn error_of(&self, status: Option<u16>, said: &ServerError) -> Error {
        let (kind, sentence) = self.sentence(status, said);
        // What is said of a key repeats parts of it.
        let text = if said.problem == Problem::Key { "" } else { &said.message };
        let message: String = self.key.redact(text).chars().take(MAX_MESSAGE_CHARS).collect();
        let code = self.identifier(&said.code).or_else(|| self.identifier(&said.kind));
        let source = Reported { status, code: code.unwrap_or_default(), message };
        // Inside an answer that began well, no problem is retried.
        if status.is_none() || !said.problem.is_transient() {
            tracing::warn!(
                server = &*self.server,
                operation = self.operation,
                status,
                code = source.code,
                message = source.message,
                "a model server reported an error"
            );
        }
        self.error(kind, sentence).with_source(source)
    }

    fn sentence(&self, status: Option<u16>, said: &ServerError) -> (ErrorKind, String) {
        let server = &self.server;
        let model = self.model.as_ref();
        let id = model.map_or("the model", |model| &model.id);
        match said.problem {
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
            Problem::UnknownFiles => (
                ErrorKind::NotFound,
                format!("{server} does not have this file or store of files, or not any more"),
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
                     `{}.base_url`, which usually ends with {}",
                    status.unwrap_or(404),
                    self.profile.settings,
                    self.profile.usual_end
                ),
            ),
            Problem::Failed => {
                let status = status.map_or_else(String::new, |status| format!(" (HTTP {status})"));
                (ErrorKind::Unavailable, format!("{server} failed{status}: try again later"))
            }
            Problem::Refused => {
                let code = self.identifier(&said.code).or_else(|| self.identifier(&said.kind));
                let param =
                    self.identifier(&said.param).map(|param| format!("parameter `{param}`"));
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
        let ApiProfile { key_variable, settings, .. } = self.profile;
        format!("{server} {what}: set {key_variable} or `{settings}.api_key`")
    }

    pub(crate) fn unreachable(&self, source: reqwest::Error) -> Error {
        let sentence = format!(
            "{} cannot be reached: check the network and `{}.base_url`",
            self.server, self.profile.settings
        );
        // The URL is known, and errors of connections need not repeat it.
        self.error(ErrorKind::Unavailable, sentence).with_source(source.without_url())
    }

    /// The time for the whole call has passed.
    pub fn timed_out(&self, limit: TimeLimit) -> Error {
        let seconds = limit.after.as_secs_f32();
        let mut sentence = format!("{} did not answer within {seconds} s", self.server);
        if let Some(setting) = limit.setting {
            sentence.push_str(&format!(" (`{}.{setting}`)", self.profile.settings));
        }
        self.error(ErrorKind::Unavailable, sentence)
    }

    /// The next piece of a stream did not come in time.
    pub(crate) fn idle(&self, limit: Duration) -> Error {
        let sentence = format!(
            "{} sent nothing for {} s in the middle of an answer (`{}.idle_timeout_ms`)",
            self.server,
            limit.as_secs_f32(),
            self.profile.settings
        );
        self.error(ErrorKind::Unavailable, sentence)
    }

    /// The answer ended before it was complete.
    #[must_use]
    pub fn cut_off(&self) -> Error {
        let sentence = format!("the answer of {} was cut off: try again", self.server);
        self.error(ErrorKind::Unavailable, sentence)
    }

    /// The answer does not follow the API.
    #[must_use]
    pub fn unreadable(&self) -> Error {
        let sentence = format!(
            "the answer of {} is not of {}'s API: check `{}.base_url`",
            self.server, self.profile.service, self.profile.settings
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
    #[must_use]
    pub fn declined(&self, why: &str) -> Error {
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
#[cfg(test)]
pub(crate) use tests::{EXAMPLE, origin};
