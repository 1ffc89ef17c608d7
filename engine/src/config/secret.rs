//! A setting that must not be shown.

use std::borrow::Cow;
use std::fmt;
use std::path::PathBuf;

use figment::value::Value;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use throughline_core::{Error, Result};

use super::layers::{Layers, explain_error, leaf_keys};

/// What stands for a secret wherever it is shown.
pub(super) const SHOWN: &str = "(secret)";
/// Before the path of a file that holds the secret.
const FILE: &str = "file:";

/// A password, a key, or a URL with one: itself, or `file:` with the path of a file that holds it.
/// It is shown neither by `Debug` nor by `config explain`.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(String);

impl Secret {
    /// A secret of this text.
    #[must_use]
    pub fn new(secret: impl Into<String>) -> Self {
        Self(secret.into())
    }

    /// The secret itself.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The secret, where there is one.
    #[must_use]
    pub fn given(&self) -> Option<&str> {
        Some(self.expose()).filter(|secret| !secret.is_empty())
    }

    /// Reads the file that it refers to, if it refers to one.
    pub(super) fn resolve(&mut self, key: &str) -> Result<()> {
        let Some(path) = self.0.strip_prefix(FILE) else {
            return Ok(());
        };
        let read = std::fs::read_to_string(path).map_err(|error| {
            Error::invalid(format!("configuration key `{key}`: {path} cannot be read: {error}"))
        })?;
        self.0 = read.trim().to_owned();
        Ok(())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_empty() { "(none)" } else { SHOWN })
    }
}

impl Serialize for Secret {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.serialize_str(if self.is_empty() { "" } else { SHOWN })
    }
}

impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Self, D::Error> {
        super::text(deserializer).map(Self)
    }
}

impl JsonSchema for Secret {
    fn schema_name() -> Cow<'static, str> {
        "Secret".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        String::json_schema(generator)
    }
}

impl Layers {
    /// The files that settings refer to as secrets, by key. They need not exist.
    ///
    /// # Errors
    /// `InvalidInput` when the layers cannot be read.
    pub fn secret_files(&self) -> Result<Vec<(String, PathBuf)>> {
        let value: Value = self.figment()?.extract().map_err(|error| explain_error(&error))?;
        let file = |key: String| {
            let found = value.clone().find(&key)?;
            let path = found.as_str()?.strip_prefix(FILE)?.into();
            Some((key, path))
        };
        Ok(leaf_keys("", &value).into_iter().filter_map(file).collect())
    }
}
