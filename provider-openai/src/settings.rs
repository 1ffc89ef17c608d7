//! How to reach a server, and how long to wait for it.

use std::fmt;
use std::time::Duration;

use reqwest::Url;
use secrecy::SecretString;
use throughline_core::chat::ModelInfo;
use throughline_core::{Error, Result};

/// Where OpenAI itself serves its API.
const OPENAI_URL: &str = "https://api.openai.com/v1";
const OPENAI_HOST: &str = "api.openai.com";

/// Which of the two chat APIs is used. Models that have the Responses API only, such as `o3-pro`, are asked
/// through it whatever is chosen here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Api {
    /// `/chat/completions`, which every compatible server has.
    #[default]
    ChatCompletions,
    /// `/responses`, where the server may keep the conversation.
    Responses,
}

/// When calls are refused at once, because the server keeps failing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BreakerSettings {
    /// Attempts that fail in a row before calls are refused; 0 never refuses.
    pub failures: u32,
    /// How long calls are refused before one may try again.
    pub open_for: Duration,
}

impl Default for BreakerSettings {
    fn default() -> Self {
        Self { failures: 5, open_for: Duration::from_secs(30) }
    }
}

/// How to reach an OpenAI-compatible server, and how long to wait for it.
#[derive(Clone)]
pub struct Settings {
    /// What paths such as `/chat/completions` are appended to.
    pub base_url: String,
    /// The API key; servers other than OpenAI's may need none.
    pub api_key: Option<SecretString>,
    /// Models beside the built-in catalogue; one of the same id replaces a built-in one.
    pub models: Vec<ModelInfo>,
    /// The chat API.
    pub api: Api,
    /// Whether the Responses API keeps conversations, so that answers have a thread. Where it is not given, OpenAI's
    /// own server does and others do not.
    pub keep_threads: Option<bool>,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// How long a call may take as a whole, with its retries and its stream.
    pub request_timeout: Duration,
    /// How long the next piece of a stream may take. Reasoning models, which send nothing while they think, have the
    /// whole time of the call.
    pub idle_timeout: Duration,
    /// How often a failed call is sent again.
    pub max_retries: u32,
    /// The wait before the first retry; it doubles with each, and a random part of it is added.
    pub first_retry_delay: Duration,
    /// The longest `Retry-After` that is waited for; beyond it, the call fails at once and says so.
    pub max_retry_after: Duration,
    /// The circuit breaker.
    pub breaker: BreakerSettings,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            base_url: OPENAI_URL.to_owned(),
            api_key: None,
            models: Vec::new(),
            api: Api::default(),
            keep_threads: None,
            connect_timeout: Duration::from_secs(10),
            request_timeout: Duration::from_secs(600),
            idle_timeout: Duration::from_secs(120),
            max_retries: 2,
            first_retry_delay: Duration::from_millis(500),
            max_retry_after: Duration::from_secs(20),
            breaker: BreakerSettings::default(),
        }
    }
}

/// Without the key, and without a URL that has credentials in it.
impl fmt::Debug for Settings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = if self.base_url.contains('@') { "<redacted>" } else { &self.base_url };
        f.debug_struct("Settings")
            .field("base_url", &url)
            .field("api_key", &self.api_key.as_ref().map(|_| "<redacted>"))
            .field("models", &self.models)
            .field("api", &self.api)
            .field("keep_threads", &self.keep_threads)
            .field("connect_timeout", &self.connect_timeout)
            .field("request_timeout", &self.request_timeout)
            .field("idle_timeout", &self.idle_timeout)
            .field("max_retries", &self.max_retries)
            .field("first_retry_delay", &self.first_retry_delay)
            .field("max_retry_after", &self.max_retry_after)
            .field("breaker", &self.breaker)
            .finish()
    }
}

/// A base URL that was checked.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    /// Without a slash at its end.
    pub(crate) base: String,
    /// Host, and port where one is given.
    pub(crate) host: String,
    /// Whether it is OpenAI's own server, in any of its regions.
    pub(crate) is_openai: bool,
}

impl Endpoint {
    /// # Errors
    /// `InvalidInput` that names `providers.openai.base_url` and never repeats it: it may hold a password.
    pub(crate) fn parse(base_url: &str) -> Result<Self> {
        let wrong = |what: &str| {
            Error::invalid(format!(
                "`providers.openai.base_url` {what}: it must look like {OPENAI_URL}"
            ))
        };
        let url = Url::parse(base_url.trim()).map_err(|_| wrong("is not a URL"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("is neither http nor https"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong(
                "contains credentials, which belong into `providers.openai.api_key`",
            ));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("has a query or fragment"));
        }
        let name = url.host_str().filter(|host| !host.is_empty());
        let name = name.ok_or_else(|| wrong("has no host"))?;
        let host = url.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"));
        let is_openai = name == OPENAI_HOST || name.ends_with(&format!(".{OPENAI_HOST}"));
        Ok(Self { base: url.as_str().trim_end_matches('/').to_owned(), host, is_openai })
    }

    /// What errors call the server.
    pub(crate) fn label(&self) -> String {
        if self.is_openai {
            "OpenAI".to_owned()
        } else {
            format!("the model server at {}", self.host)
        }
    }
}

#[cfg(test)]
mod tests {
    use throughline_core::ErrorKind;

    use super::*;

    #[test]
    fn explains_invalid_base_urls() {
        for (url, part) in [
            ("", "not a URL"),
            ("api.openai.com/v1", "not a URL"),
            ("ftp://there/v1", "neither http"),
            ("https://me:s3cr3t@there/v1", "credentials"),
            ("https://s3cr3t@there/v1", "credentials"),
            ("https://there/v1?api-key=s3cr3t", "query"),
            ("https://there/v1#s3cr3t", "fragment"),
        ] {
            let error = Endpoint::parse(url).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            let said = format!("{error} {error:?}");
            assert!(said.contains(part) && said.contains("base_url"), "{url}: {said}");
            assert!(!said.contains("s3cr3t"), "{said}");
        }
    }

    #[test]
    fn recognizes_openai_by_host() {
        for (url, base, host, is_openai) in [
            ("https://api.openai.com/v1/", "https://api.openai.com/v1", "api.openai.com", true),
            (
                "https://eu.api.openai.com/v1",
                "https://eu.api.openai.com/v1",
                "eu.api.openai.com",
                true,
            ),
            ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1", "127.0.0.1:11434", false),
            (
                "https://api.openai.com.evil.net",
                "https://api.openai.com.evil.net",
                "api.openai.com.evil.net",
                false,
            ),
        ] {
            let endpoint = Endpoint::parse(url).unwrap();
            assert_eq!(
                (endpoint.base.as_str(), endpoint.host.as_str(), endpoint.is_openai),
                (base, host, is_openai)
            );
        }
    }

    #[test]
    fn debug_shows_no_secret() {
        let settings = Settings {
            api_key: Some(SecretString::from("sk-s3cr3t")),
            base_url: "https://me:s3cr3t@there".to_owned(),
            ..Settings::default()
        };
        let shown = format!("{settings:?} {settings:#?}");
        assert!(!shown.contains("s3cr3t") && shown.contains("redacted"), "{shown}");
    }
}
