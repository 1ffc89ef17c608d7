//! The wire types of personas, presets and conversations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use throughline_core::persona::{BackupHead, Finding, Overrides, Persona, PresetView, Settings};
use throughline_core::secret::SecretPolicy;
use throughline_core::services::personas::Conversation;
use throughline_core::time::Timestamp;

/// A persona.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ContextForm {
    id: String,
    name: String,
    system_prompt: String,
    personality: String,
    temperature: f64,
    max_tokens: u32,
    max_history_tokens: u32,
    expiry_days: u32,
    created_at: String,
    updated_at: String,
    expires_at: String,
    is_active: bool,
    /// active, expiring, expired or deleted.
    status: &'static str,
    tags: Vec<String>,
    /// Whether its turns recall the user's other memory.
    memory: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    preset_id: Option<String>,
    session_id: String,
    version: u64,
}

impl ContextForm {
    pub(crate) fn of(persona: &Persona, secrets: SecretPolicy, now: Timestamp) -> Self {
        let (is_active, status) = (persona.is_active(), persona.status(now).as_str());
        let persona = persona.clone().for_model(secrets);
        let Settings { temperature, max_tokens, max_history_tokens, expiry_days } =
            persona.settings;
        Self {
            id: persona.id.to_string(),
            name: persona.name,
            system_prompt: persona.system_prompt,
            personality: persona.personality,
            temperature,
            max_tokens,
            max_history_tokens,
            expiry_days,
            created_at: persona.created_at.to_rfc3339(),
            updated_at: persona.updated_at.to_rfc3339(),
            expires_at: persona.expires_at.to_rfc3339(),
            is_active,
            status,
            tags: persona.tags,
            memory: persona.memory,
            preset_id: persona.preset.as_ref().map(ToString::to_string),
            session_id: persona.session.to_string(),
            version: persona.version,
        }
    }
}

/// A preset.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct PresetForm {
    id: String,
    name: String,
    description: String,
    system_prompt: String,
    default_personality: String,
    default_settings: SettingsForm,
    created_at: String,
    updated_at: String,
    is_active: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<Value>,
    is_built_in: bool,
    version: u64,
    usage: UsageForm,
    /// Problems of its prompt.
    findings: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct SettingsForm {
    temperature: f64,
    max_tokens: u32,
    max_history_tokens: u32,
    expiry_days: u32,
}

#[derive(Debug, Serialize, JsonSchema)]
struct UsageForm {
    contexts: u64,
    turns: u64,
    truncations: u64,
}

/// A backup of a context.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct BackupForm {
    id: String,
    taken_at: String,
    /// daily, deletion or expiry.
    reason: String,
    bytes: u64,
}

impl From<BackupHead> for BackupForm {
    fn from(head: BackupHead) -> Self {
        Self {
            id: head.id.to_string(),
            taken_at: head.taken_at.to_rfc3339(),
            reason: head.reason.to_string(),
            bytes: head.bytes,
        }
    }
}

impl PresetForm {
    pub(crate) fn of(view: PresetView, secrets: SecretPolicy) -> Self {
        let PresetView { preset, is_built_in, usage, findings } = view;
        let preset = preset.for_model(secrets);
        let Settings { temperature, max_tokens, max_history_tokens, expiry_days } = preset.settings;
        Self {
            id: preset.id.to_string(),
            name: preset.name,
            description: preset.description,
            system_prompt: preset.system_prompt,
            default_personality: preset.default_personality,
            default_settings: SettingsForm {
                temperature,
                max_tokens,
                max_history_tokens,
                expiry_days,
            },
            created_at: preset.created_at.to_rfc3339(),
            updated_at: preset.updated_at.to_rfc3339(),
            is_active: preset.is_active,
            metadata: preset.metadata.and_then(|text| serde_json::from_str(&text).ok()),
            is_built_in,
            version: preset.version,
            usage: UsageForm {
                contexts: usage.contexts,
                turns: usage.turns,
                truncations: usage.truncations,
            },
            findings: said(&findings),
        }
    }
}

/// The problems of a prompt, in sentences.
pub(super) fn said(findings: &[Finding]) -> Vec<String> {
    findings.iter().map(|finding| format!("{}: {finding}", finding.code())).collect()
}

/// The given settings.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct GivenSettings {
    #[schemars(range(min = 0.0, max = 1.0))]
    pub temperature: Option<f64>,
    pub max_tokens: Option<u32>,
    pub max_history_tokens: Option<u32>,
    pub expiry_days: Option<u32>,
}

impl From<GivenSettings> for Overrides {
    fn from(said: GivenSettings) -> Self {
        Self {
            temperature: said.temperature,
            max_tokens: said.max_tokens,
            max_history_tokens: said.max_history_tokens,
            expiry_days: said.expiry_days,
        }
    }
}

/// A message of a persona.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ConversationForm {
    id: String,
    context_id: String,
    role: &'static str,
    content: String,
    token_count: u32,
    created_at: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
}

impl ConversationForm {
    pub(crate) fn of(conversation: Conversation, context: &str) -> Self {
        let Conversation { message, tags } = conversation;
        Self {
            id: message.id.to_string(),
            context_id: context.to_owned(),
            role: message.role.as_str(),
            content: message.content,
            token_count: message.tokens,
            created_at: message.created_at.to_rfc3339(),
            tags,
        }
    }
}
