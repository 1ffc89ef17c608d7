//! How to reach a server, and what of it is ours.

use std::fmt;
use std::time::Duration;

use throughline_core::{Error, Result};

/// Longest prefix: with it, the name of a collection stays below Qdrant's 255 bytes.
const MAX_PREFIX_BYTES: usize = 64;

/// How to reach Qdrant, and what its collections are called.
#[derive(Clone)]
pub struct QdrantOptions {
    /// Where it speaks gRPC, such as `http://127.0.0.1:6334`.
    pub url: String,
    /// Its API key, where it wants one.
    pub api_key: Option<String>,
    /// What the names of our collections start with: letters, digits, `-` and `_`. Two deployments
    /// may share a server under two prefixes.
    pub prefix: String,
    /// How long a call may take.
    pub timeout: Duration,
    /// How long a connection may take to be made.
    pub connect_timeout: Duration,
}

impl QdrantOptions {
    /// The defaults, for a server.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            api_key: None,
            prefix: "throughline".to_owned(),
            timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(3),
        }
    }

    /// Whether a client can be made of it. The driver would print a key that is no header into its
    /// error, and the URL into each: neither gets so far.
    pub(crate) fn check(&self) -> Result<()> {
        check_url(&self.url)?;
        if !self.api_key.as_deref().is_none_or(is_header) {
            return Err(Error::invalid(
                "`qdrant.api_key` is empty, or has characters other than printable ASCII",
            ));
        }
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if self.prefix.is_empty()
            || self.prefix.len() > MAX_PREFIX_BYTES
            || !self.prefix.bytes().all(allowed)
        {
            return Err(Error::invalid(format!(
                "`qdrant.prefix` must be 1 to {MAX_PREFIX_BYTES} letters, digits, `-` or `_`"
            )));
        }
        Ok(())
    }
}

fn check_url(url: &str) -> Result<()> {
    let Some(("http" | "https", rest)) = url.split_once("://") else {
        return Err(Error::invalid(
            "`qdrant.url` must start with http:// or https://, such as http://127.0.0.1:6334",
        ));
    };
    if rest.contains('@') {
        return Err(Error::invalid(
            "`qdrant.url` must not contain credentials: put the key into `qdrant.api_key`",
        ));
    }
    if rest.is_empty() || rest.starts_with([':', '/']) {
        return Err(Error::invalid(
            "`qdrant.url` has no host: it must look like http://127.0.0.1:6334",
        ));
    }
    Ok(())
}

fn is_header(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|byte| byte.is_ascii_graphic())
}

/// Without the key, and without a URL that has credentials in it.
impl fmt::Debug for QdrantOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let url = if self.url.contains('@') { "<redacted>" } else { &self.url };
        f.debug_struct("QdrantOptions")
            .field("url", &url)
            .field("api_key", &self.api_key.as_ref().map(|_| "<redacted>"))
            .field("prefix", &self.prefix)
            .field("timeout", &self.timeout)
            .field("connect_timeout", &self.connect_timeout)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use throughline_core::ErrorKind;

    use super::*;

    const KEY: &str = "s3cr3t-kéy";

    #[test]
    fn what_is_wrong_is_named_and_no_secret_is_shown() {
        let good = QdrantOptions::new("http://127.0.0.1:6334");
        good.check().unwrap();
        let key = |key: &str| QdrantOptions { api_key: Some(key.to_owned()), ..good.clone() };
        let url = |url: &str| QdrantOptions { url: url.to_owned(), ..good.clone() };
        let prefix = |prefix: &str| QdrantOptions { prefix: prefix.to_owned(), ..good.clone() };
        for (wrong, named) in [
            (key(KEY), "qdrant.api_key"),
            (key(""), "qdrant.api_key"),
            (key("two\nlines"), "qdrant.api_key"),
            (url("127.0.0.1:6334"), "qdrant.url"),
            (url("ftp://there"), "qdrant.url"),
            (url("http://"), "qdrant.url"),
            (url("http://:6334"), "qdrant.url"),
            (url("http://me:s3cr3t-@there:6334"), "qdrant.api_key"),
            (prefix(""), "qdrant.prefix"),
            (prefix("a.b"), "qdrant.prefix"),
            (prefix("a/b"), "qdrant.prefix"),
            (prefix(&"a".repeat(65)), "qdrant.prefix"),
        ] {
            let error = wrong.check().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            let said = format!("{error} {error:?} {wrong:?}");
            assert!(said.contains(named), "{said}");
            assert!(!said.contains("s3cr3t"), "{said}");
        }
    }

    #[test]
    fn a_key_is_never_in_debug() {
        let options = QdrantOptions {
            api_key: Some("s3cr3t".to_owned()),
            ..QdrantOptions::new("http://there:6334")
        };
        let shown = format!("{options:?} {options:#?}");
        assert!(!shown.contains("s3cr3t"), "{shown}");
        assert!(shown.contains("there:6334") && shown.contains("redacted"), "{shown}");
    }
}
