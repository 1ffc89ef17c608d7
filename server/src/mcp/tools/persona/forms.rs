//! The wire types of personas, presets and conversations.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use throughline_core::ids::UserId;
use throughline_core::persona::{
    BackupHead, Effectiveness, Finding, Overrides, Persona, PresetView, Settings, Template,
    TemplateField,
};
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

/// A template.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct TemplateForm {
    id: &'static str,
    name: &'static str,
    description: &'static str,
    fields: Vec<FieldForm>,
    system_prompt: &'static str,
    personality: &'static str,
    temperature: f64,
}

#[derive(Debug, Serialize)]
struct FieldForm {
    name: &'static str,
    description: &'static str,
    required: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    default: Option<&'static str>,
}

impl From<Template> for TemplateForm {
    fn from(template: Template) -> Self {
        let field = |field: &TemplateField| FieldForm {
            name: field.name,
            description: field.description,
            required: field.default.is_none(),
            default: field.default,
        };
        Self {
            id: template.id,
            name: template.name,
            description: template.description,
            fields: template.fields.iter().map(field).collect(),
            system_prompt: template.system_prompt,
            personality: template.personality,
            temperature: template.temperature,
        }
    }
}

/// How well a version of a preset does.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EffectivenessForm {
    #[serde(skip_serializing_if = "Option::is_none")]
    preset_id: Option<String>,
    /// Missing if the contexts were changed since.
    #[serde(skip_serializing_if = "Option::is_none")]
    version: Option<u64>,
    contexts: u64,
    turns: u64,
    rated: u64,
    helpful: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    helpful_share: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_rated_at: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    last_rated_at: Option<String>,
}

impl From<Effectiveness> for EffectivenessForm {
    fn from(of: Effectiveness) -> Self {
        Self {
            helpful_share: of.helpful_share(),
            preset_id: of.preset.map(|id| id.to_string()),
            version: of.preset_version,
            contexts: of.contexts,
            turns: of.turns,
            rated: of.rated,
            helpful: of.helpful,
            first_rated_at: of.first_at.map(Timestamp::to_rfc3339),
            last_rated_at: of.last_at.map(Timestamp::to_rfc3339),
        }
    }
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
    /// Who spoke, where it is not the owner.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    content: String,
    token_count: u32,
    created_at: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    /// The user's rating.
    #[serde(skip_serializing_if = "Option::is_none")]
    helpful: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<String>,
}

impl ConversationForm {
    /// A message of a context, with the rating that `user` gave it.
    pub(crate) fn of(
        conversation: Conversation,
        context: &str,
        (user, secrets): (&UserId, SecretPolicy),
    ) -> Self {
        let Conversation { message, tags, ratings } = conversation;
        let rating = ratings.into_iter().find(|rating| rating.user == *user);
        Self {
            id: message.id.to_string(),
            context_id: context.to_owned(),
            role: message.role.as_str(),
            name: message.name,
            content: message.content,
            token_count: message.tokens,
            created_at: message.created_at.to_rfc3339(),
            tags,
            helpful: rating.as_ref().map(|rating| rating.helpful),
            note: rating
                .and_then(|rating| rating.note)
                .map(|note| secrets.shown(&note).into_owned()),
        }
    }
}
