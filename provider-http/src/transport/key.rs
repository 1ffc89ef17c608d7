//! The API key: written into one header, and taken out of everything that is shown.

use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use http::HeaderValue;
use memchr::memmem;
use secrecy::{ExposeSecret as _, SecretString};
use throughline_core::{Error, Result};

use super::Body;
use crate::profile::ApiProfile;

/// Stands in the place of the key.
const REDACTED: &str = "<redacted>";
/// A shorter key is no secret: servers on one's own machine take any word, and answers may have that word.
const SECRET_BYTES: usize = 12;

/// An API key, or none. `Debug` does not show it.
#[derive(Debug, Clone)]
pub(crate) struct ApiKey(Option<Arc<SecretString>>);

impl ApiKey {
    /// # Errors
    /// `InvalidInput` where it cannot be sent in a header. An empty one counts as none.
    pub(crate) fn new(key: Option<SecretString>, profile: &ApiProfile) -> Result<Self> {
        let key = key.filter(|key| !key.expose_secret().is_empty());
        let sendable =
            |key: &SecretString| key.expose_secret().bytes().all(|byte| byte.is_ascii_graphic());
        if !key.as_ref().is_none_or(sendable) {
            let ApiProfile { key_variable, settings, .. } = profile;
            return Err(Error::invalid(format!(
                "the API key in {key_variable} or `{settings}.api_key` has a space, a line break \
                 or another character that keys do not have"
            )));
        }
        Ok(Self(key.map(Arc::new)))
    }

    pub(crate) fn is_given(&self) -> bool {
        self.0.is_some()
    }

    /// The value of the header that it is sent in, which `Debug` does not show.
    pub(crate) fn header(&self, prefix: &str) -> Option<HeaderValue> {
        let sent = format!("{prefix}{}", self.0.as_ref()?.expose_secret());
        let mut value = HeaderValue::try_from(sent).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    /// `text` without the key.
    pub(crate) fn redact(&self, text: &str) -> String {
        match &self.0 {
            Some(key) => text.replace(key.expose_secret(), REDACTED),
            None => text.to_owned(),
        }
    }

    /// `body` without the key, wherever its pieces end. A piece waits for the next one only where it ends with a beginning of
    /// the key.
    pub(crate) fn redact_body(&self, body: Body) -> Body {
        let Some(key) = &self.0 else { return body };
        if key.expose_secret().len() < SECRET_BYTES {
            return body;
        }
        let pieces = body.map(Some).chain(stream::iter([None]));
        let shown = pieces.scan((Arc::clone(key), Vec::new()), |(key, held), piece| {
            let shown = match piece {
                Some(Ok(piece)) => Ok(redact_piece(key.expose_secret().as_bytes(), held, piece)),
                Some(Err(error)) => Err(error),
                None => Ok(std::mem::take(held).into()),
            };
            std::future::ready(Some(shown))
        });
        let is_something = |piece: &Result<Bytes>| !piece.as_ref().is_ok_and(Bytes::is_empty);
        shown.filter(move |piece| std::future::ready(is_something(piece))).boxed()
    }
}

/// The next piece without the key, after what was held back; what may be the beginning of a key is held back.
fn redact_piece(key: &[u8], held: &mut Vec<u8>, piece: Bytes) -> Bytes {
    let begun = |text: &[u8]| {
        (1..key.len().min(text.len() + 1)).rev().find(|&length| text.ends_with(&key[..length]))
    };
    if held.is_empty() && begun(&piece).is_none() && memmem::find(&piece, key).is_none() {
        return piece;
    }
    held.extend_from_slice(&piece);
    let mut rest = held.as_slice();
    let mut shown = Vec::with_capacity(rest.len());
    while let Some(at) = memmem::find(rest, key) {
        shown.extend_from_slice(&rest[..at]);
        shown.extend_from_slice(REDACTED.as_bytes());
        rest = &rest[at + key.len()..];
    }
    let (all, last) = rest.split_at(rest.len() - begun(rest).unwrap_or(0));
    shown.extend_from_slice(all);
    *held = last.to_vec();
    shown.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::errors::EXAMPLE;

    #[test]
    fn is_redacted() {
        let key = ApiKey::new(Some("sk-s3cr3t".into()), &EXAMPLE).unwrap();
        let header = key.header(EXAMPLE.key_prefix).unwrap();
        assert_eq!(header.as_bytes(), b"Bearer sk-s3cr3t");
        let shown = format!("{key:?} {header:?} {}", key.redact("{\"key\": \"sk-s3cr3t\"}"));
        assert!(!shown.contains("s3cr3t"), "{shown}");
    }

    #[tokio::test]
    async fn is_redacted_wherever_pieces_end() {
        async fn shown(key: &str, pieces: &[&str]) -> Vec<String> {
            let key = ApiKey::new(Some(key.into()), &EXAMPLE).unwrap();
            let pieces = pieces.iter().map(|piece| Ok(Bytes::from(piece.to_string())));
            let body = stream::iter(pieces.collect::<Vec<_>>()).boxed();
            let text = |piece: Result<Bytes>| String::from_utf8(piece.unwrap().to_vec()).unwrap();
            key.redact_body(body).map(text).collect().await
        }
        let key = "sk-s3cr3t-0123";
        let table: &[(&[&str], &[&str])] = &[
            (&["no key", " here"], &["no key", " here"]),
            (&["a sk-s3cr3t-0123 b"], &["a <redacted> b"]),
            (&["sk-s3cr3t-0123sk-s3cr3t-0123"], &["<redacted><redacted>"]),
            (&["a sk-s3", "cr3t-", "0123 b"], &["a ", "<redacted> b"]),
            (&["a sk-s3", "sk-s3cr3t-0123"], &["a ", "sk-s3<redacted>"]),
            (&["ends with sk-s3cr3t"], &["ends with ", "sk-s3cr3t"]),
            (&["s", "s", "k"], &["s", "sk"]),
            (&[], &[]),
        ];
        for (pieces, expected) in table {
            assert_eq!(shown(key, pieces).await, *expected, "{pieces:?}");
        }
        assert_eq!(shown("ollama", &["I am ollama."]).await, ["I am ollama."]);
    }

    #[test]
    fn refuses_keys_that_no_header_can_hold() {
        for key in ["sk-s3cr3t\n", "sk s3cr3t", "sk-s3cr3té"] {
            let error = ApiKey::new(Some(key.into()), &EXAMPLE).unwrap_err();
            let said = format!("{error} {error:?}");
            assert!(said.contains("EXAMPLE_API_KEY") && !said.contains("s3cr3t"), "{said}");
        }
        assert!(!ApiKey::new(Some("".into()), &EXAMPLE).unwrap().is_given());
    }
}
