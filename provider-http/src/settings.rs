//! How to reach a server, and how long to wait for it.

use std::fmt;
use std::time::Duration;

use reqwest::Url;
use secrecy::SecretString;
use throughline_core::{Error, Result};

use crate::profile::ApiProfile;

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

/// How to reach a server, and how long to wait for it.
#[derive(Clone)]
pub struct ConnectionSettings {
    /// What paths such as `/chat/completions` are appended to.
    pub base_url: String,
    /// The API key; servers other than the provider's own may need none.
    pub api_key: Option<SecretString>,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
    /// How long a call may take as a whole, with its retries and its stream.
    pub request_timeout: Duration,
    /// How long the next piece of a stream may take. It is not used for calls that may pause ([`Call::may_pause`]),
    /// because models send nothing while they think.
    ///
    /// [`Call::may_pause`]: crate::Call::may_pause
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

impl ConnectionSettings {
    /// The defaults, for a server.
    pub fn new(base_url: impl Into<String>) -> Self {
        Self {
            base_url: base_url.into(),
            api_key: None,
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
impl fmt::Debug for ConnectionSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = if self.base_url.contains('@') { "<redacted>" } else { &self.base_url };
        f.debug_struct("ConnectionSettings")
            .field("base_url", &url)
            .field("api_key", &self.api_key.as_ref().map(|_| "<redacted>"))
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
pub struct Endpoint {
    /// Without a slash at its end.
    pub base: String,
    /// Host, and port where one is given.
    pub host: String,
    /// Whether it is the provider's own service, in any of its regions.
    pub is_own: bool,
}

impl Endpoint {
    /// # Errors
    /// `InvalidInput` that names the setting and never repeats it: it may hold a password.
    pub(crate) fn parse(base_url: &str, profile: &ApiProfile) -> Result<Self> {
        let settings = profile.settings;
        let wrong = |what: &str| {
            Error::invalid(format!(
                "`{settings}.base_url` {what}: it must look like {}",
                profile.base_url
            ))
        };
        let url = Url::parse(base_url.trim()).map_err(|_| wrong("is not a URL"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(wrong("is neither http nor https"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(wrong(&format!(
                "contains credentials, which belong into `{settings}.api_key`"
            )));
        }
        if url.query().is_some() || url.fragment().is_some() {
            return Err(wrong("has a query or fragment"));
        }
        let name = url.host_str().filter(|host| !host.is_empty());
        let name = name.ok_or_else(|| wrong("has no host"))?;
        let host = url.port().map_or_else(|| name.to_owned(), |port| format!("{name}:{port}"));
        let is_own = name == profile.host || name.ends_with(&format!(".{}", profile.host));
        Ok(Self { base: url.as_str().trim_end_matches('/').to_owned(), host, is_own })
    }

    /// What errors call the server.
    pub(crate) fn label(&self, profile: &ApiProfile) -> String {
        if self.is_own {
            profile.service.to_owned()
        } else {
            format!("the model server at {}", self.host)
        }
    }
}

#[cfg(test)]
mod tests {
    use throughline_core::ErrorKind;

    use super::*;
    use crate::errors::EXAMPLE;

    #[test]
    fn explains_invalid_base_urls() {
        for (url, part) in [
            ("", "not a URL"),
            ("api.example.com/v1", "not a URL"),
            ("ftp://there/v1", "neither http"),
            ("https://me:s3cr3t@there/v1", "credentials"),
            ("https://s3cr3t@there/v1", "credentials"),
            ("https://there/v1?api-key=s3cr3t", "query"),
            ("https://there/v1#s3cr3t", "fragment"),
        ] {
            let error = Endpoint::parse(url, &EXAMPLE).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            let said = format!("{error} {error:?}");
            assert!(
                said.contains(part) && said.contains("providers.example.base_url"),
                "{url}: {said}"
            );
            assert!(!said.contains("s3cr3t"), "{said}");
        }
    }

    #[test]
    fn recognizes_own_service_by_host() {
        for (url, base, host, is_own) in [
            ("https://api.example.com/v1/", "https://api.example.com/v1", "api.example.com", true),
            (
                "https://eu.api.example.com/v1",
                "https://eu.api.example.com/v1",
                "eu.api.example.com",
                true,
            ),
            ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1", "127.0.0.1:11434", false),
            (
                "https://api.example.com.evil.net",
                "https://api.example.com.evil.net",
                "api.example.com.evil.net",
                false,
            ),
        ] {
            let endpoint = Endpoint::parse(url, &EXAMPLE).unwrap();
            assert_eq!(
                (endpoint.base.as_str(), endpoint.host.as_str(), endpoint.is_own),
                (base, host, is_own)
            );
        }
    }

    #[test]
    fn debug_shows_no_secret() {
        let settings = ConnectionSettings {
            api_key: Some(SecretString::from("sk-s3cr3t")),
            ..ConnectionSettings::new("https://me:s3cr3t@there")
        };
        let shown = format!("{settings:?} {settings:#?}");
        assert!(!shown.contains("s3cr3t") && shown.contains("redacted"), "{shown}");
    }
}
