//! How much there may be of personas.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::persona::PersonaLimits;
use throughline_core::{Error, Result};

/// Limits of contexts (personas), of one user each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PersonaConfig {
    /// Maximum number of contexts that are not deleted; as many deleted ones may be in their grace period.
    pub max_contexts: usize,
    /// Maximum number of presets that a user may create.
    pub max_presets: usize,
    /// Maximum number of messages in a conversation.
    pub max_conversations: u64,
    /// Maximum size of a system prompt, and of a personality, in bytes.
    pub max_prompt_bytes: usize,
    /// Largest conversation that accepts another message or can be imported, in MiB. Exports and backups have no limit.
    pub max_context_mb: usize,
    /// Days for which a deleted context can be restored before it is erased.
    pub grace_days: u32,
    /// Daily backups to keep of each context; 0 for none.
    pub daily_backups: u32,
}

impl Default for PersonaConfig {
    fn default() -> Self {
        let limits = PersonaLimits::default();
        Self {
            max_contexts: limits.contexts,
            max_presets: limits.presets,
            max_conversations: limits.conversations,
            max_prompt_bytes: limits.prompt_bytes,
            max_context_mb: limits.context_bytes >> 20,
            grace_days: limits.grace_days,
            daily_backups: limits.daily_backups,
        }
    }
}

impl PersonaConfig {
    /// Limits that a type does not tell.
    pub(super) fn check(&self) -> Result<()> {
        for (key, value, least, most) in [
            ("max_contexts", self.max_contexts as u64, 1, 10_000),
            ("max_presets", self.max_presets as u64, 1, 10_000),
            ("max_conversations", self.max_conversations, 2, 10_000),
            ("max_prompt_bytes", self.max_prompt_bytes as u64, 256, 1 << 20),
            ("max_context_mb", self.max_context_mb as u64, 1, 256),
            ("grace_days", self.grace_days.into(), 0, 3_650),
            ("daily_backups", self.daily_backups.into(), 0, 365),
        ] {
            if !(least..=most).contains(&value) {
                return Err(Error::invalid(format!(
                    "configuration key `persona.{key}` must be {least} to {most}"
                )));
            }
        }
        Ok(())
    }

    /// The limits as core has them.
    #[must_use]
    pub fn limits(&self) -> PersonaLimits {
        PersonaLimits {
            contexts: self.max_contexts,
            presets: self.max_presets,
            conversations: self.max_conversations,
            prompt_bytes: self.max_prompt_bytes,
            context_bytes: self.max_context_mb << 20,
            grace_days: self.grace_days,
            daily_backups: self.daily_backups,
        }
    }
}
