//! The API key: written into one header, and taken out of everything that is shown.

use std::sync::Arc;

use http::HeaderValue;
use secrecy::{ExposeSecret as _, SecretString};
use throughline_core::{Error, Result};

use crate::profile::ApiProfile;

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
            Some(key) => text.replace(key.expose_secret(), "<redacted>"),
            None => text.to_owned(),
        }
    }
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
