//! Requests of OpenAI's own clients, passed on with the configured key, and their answers without it.

use std::fmt;

use bytes::Bytes;
use futures_util::stream::BoxStream;
use http::{HeaderMap, HeaderName, Method};
use throughline_core::{Error, Result};
use throughline_provider_http::{Call, is_path};

use crate::provider::OpenAi;

/// What a client is given of the answer's headers, beside those of OpenAI and of its rate limits.
const GIVEN: &[&str] = &["content-type", "retry-after", "retry-after-ms", "x-request-id"];
const GIVEN_PREFIXES: &[&str] = &["openai-", "x-ratelimit-"];
/// It names the account that the key belongs to.
const ORGANIZATION: &[&str] = &["openai-organization", "openai-project"];

/// An answer as it came, but for the key.
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
    /// Posts `body`, which is JSON, to `path` behind the base URL, such as `/chat/completions`, and returns the answer
    /// with any status. The request is sent again only where no connection could be made. A stream may pause for as long
    /// as the call may take, because models send nothing while they think.
    ///
    /// # Errors
    /// `InvalidInput` for an invalid path; `Unauthenticated` where the key is missing or refused, because what the server
    /// says of it repeats parts of it; `Unavailable` where there is no answer.
    pub async fn forward(&self, path: &str, body: Vec<u8>) -> Result<Forwarded> {
        if !is_path(path) {
            return Err(Error::invalid(
                "the path is not one of the API, such as `/chat/completions`",
            ));
        }
        let call = Call {
            method: Method::POST,
            body: body.into(),
            accept: "*/*",
            any_status: true,
            may_pause: true,
            ..Call::get(path, self.transport.origin("forward", None))
        };
        let answer = self.transport.send(&call).await?;
        let given = answer.headers.iter().filter(|(name, _)| is_given(name));
        Ok(Forwarded {
            status: answer.status.as_u16(),
            headers: given.map(|(name, value)| (name.clone(), value.clone())).collect(),
            body: self.transport.without_key(answer.body),
        })
    }
}

fn is_given(name: &HeaderName) -> bool {
    let text = name.as_str();
    GIVEN.contains(&text)
        || GIVEN_PREFIXES.iter().any(|prefix| text.starts_with(prefix))
            && !ORGANIZATION.contains(&text)
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
    }
}
