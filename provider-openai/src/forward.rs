//! Requests of OpenAI's own clients, passed on under our key without reading the answer.

use std::fmt;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use http::{HeaderMap, HeaderName, Method};
use throughline_core::{Error, Result};
use throughline_provider_http::{Call, is_path};

use crate::provider::OpenAi;

/// What a client may send along. Everything else is between it and us, or between us and the server.
const SENT: &[&str] = &["accept", "idempotency-key", "openai-beta", "x-client-request-id"];

/// What a client is given of the answer's headers, beside those of OpenAI and of its rate limits.
const GIVEN: &[&str] = &["content-type", "retry-after", "retry-after-ms", "x-request-id"];
const GIVEN_PREFIXES: &[&str] = &["openai-", "x-ratelimit-"];
/// It names the account that the key belongs to.
const ORGANIZATION: &[&str] = &["openai-organization", "openai-project"];

/// An answer that was not read.
pub struct Forwarded {
    /// Its HTTP status.
    pub status: u16,
    /// Those of its headers that a client may see.
    pub headers: HeaderMap,
    /// Its body, as it comes. An error is the last item; dropping it ends the request.
    pub body: BoxStream<'static, Result<Bytes>>,
}

impl fmt::Debug for Forwarded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Forwarded")
            .field("status", &self.status)
            .field("headers", &self.headers)
            .finish_non_exhaustive()
    }
}

impl OpenAi {
    /// Posts `body`, which is JSON, to `path` behind the base URL, such as `/chat/completions`, and gives back the
    /// answer whatever its status is. Of `headers`, only those that a client may choose are sent. It is sent again only
    /// where no connection could be made. A stream of events must not pause longer than `idle_timeout`.
    ///
    /// # Errors
    /// `InvalidInput` for a path that is none; `Unauthenticated` where the key is missing or refused, because what the
    /// server says of it repeats parts of it; `Unavailable` where there is no answer.
    pub async fn forward(
        &self,
        path: &str,
        body: Vec<u8>,
        headers: &HeaderMap,
    ) -> Result<Forwarded> {
        if !is_path(path) {
            return Err(Error::invalid(
                "the path is not one of the API, such as `/chat/completions`",
            ));
        }
        let call = Call {
            method: Method::POST,
            headers: kept(headers, |name| SENT.contains(&name.as_str())),
            body: body.into(),
            accept: "*/*",
            any_status: true,
            ..Call::get(path, self.transport.origin("forward", None))
        };
        let answer = self.transport.send(&call).await?;
        Ok(Forwarded {
            status: answer.status.as_u16(),
            headers: kept(&answer.headers, is_given),
            body: answer.body,
        })
    }
}

fn is_given(name: &HeaderName) -> bool {
    let text = name.as_str();
    GIVEN.contains(&text)
        || GIVEN_PREFIXES.iter().any(|prefix| text.starts_with(prefix))
            && !ORGANIZATION.contains(&text)
}

fn kept(headers: &HeaderMap, keep: impl Fn(&HeaderName) -> bool) -> HeaderMap {
    let kept = headers.iter().filter(|(name, _)| keep(name));
    kept.map(|(name, value)| (name.clone(), value.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn filters_account_and_connection_headers() {
        let given = |name: &'static str| is_given(&HeaderName::from_static(name));
        for name in ["content-type", "x-request-id", "openai-version", "x-ratelimit-limit-tokens"] {
            assert!(given(name), "{name}");
        }
        for name in ["openai-organization", "set-cookie", "transfer-encoding", "server"] {
            assert!(!given(name), "{name}");
        }
        let sent = |name: &'static str| SENT.contains(&name);
        assert!(sent("openai-beta") && !sent("authorization") && !sent("cookie") && !sent("host"));
    }
}
