//! Named roles that answer turns.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::turn::Tier;
use throughline_core::{Error, Result};

/// Longest name, as providers allow it for functions.
const MAX_NAME: usize = 64;

/// A role that answers turns of a session with a prompt and a model of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct SpecialistConfig {
    /// Its name: letters, digits, `_` and `-`. It has to be given.
    #[serde(default)]
    pub name: String,
    /// What to ask it for, for a model that delegates to it.
    #[serde(default)]
    pub description: String,
    /// Its system prompt, which has to be given.
    #[serde(default)]
    pub prompt: String,
    /// Its model, as `provider:model`; empty for the model of the turn.
    #[serde(default)]
    pub model: String,
    /// How much of the session it is shown.
    #[serde(default)]
    pub tier: WindowTier,
}

/// The sizes of a window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum WindowTier {
    /// Recent messages and entities.
    Light,
    /// More messages, and the summary.
    Standard,
    /// Still more messages, and the titles of files.
    #[default]
    Full,
}

impl From<WindowTier> for Tier {
    fn from(tier: WindowTier) -> Self {
        match tier {
            WindowTier::Light => Self::Light,
            WindowTier::Standard => Self::Standard,
            WindowTier::Full => Self::Full,
        }
    }
}

/// Checks the names and prompts of all specialists.
pub(super) fn check(specialists: &[SpecialistConfig]) -> Result<()> {
    let mut names = HashSet::new();
    for SpecialistConfig { name, prompt, .. } in specialists {
        let is_name = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'_' | b'-');
        let wrong = if name.is_empty() || name.len() > MAX_NAME || !name.bytes().all(is_name) {
            format!("`name` must be 1 to {MAX_NAME} letters, digits, `_` or `-`")
        } else if prompt.trim().is_empty() {
            "`prompt` must not be empty".to_owned()
        } else if !names.insert(name) {
            "`name` is there twice".to_owned()
        } else {
            continue;
        };
        return Err(Error::invalid(format!(
            "configuration key `specialists`: the specialist `{name}`: {wrong}"
        )));
    }
    Ok(())
}
