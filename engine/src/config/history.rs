//! The recent messages of a session in a context.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::turn::Fading;

/// Settings of recent history.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HistoryConfig {
    /// How messages are shortened as they get older.
    pub fading: FadingKind,
}

/// The forms of shortening that can be named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FadingKind {
    /// In steps: between two steps the bytes stay the same, so prompt caches stay valid.
    Steps,
    /// With every message: two are whole, three are cut in the middle, older ones are one line.
    ByAge,
}

impl From<FadingKind> for Fading {
    fn from(kind: FadingKind) -> Self {
        match kind {
            FadingKind::Steps => Self::Steps,
            FadingKind::ByAge => Self::ByAge,
        }
    }
}

impl Default for HistoryConfig {
    fn default() -> Self {
        Self { fading: FadingKind::Steps }
    }
}
