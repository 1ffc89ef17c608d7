//! The forms of contexts.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use throughline_core::persona::{Finding, Overrides, Persona, PersonaChange};
use throughline_core::services::personas::TakenIn;
use throughline_core::time::Timestamp;
use utoipa::ToSchema;

use crate::http::service::Service;
use crate::http::written::Receipt;

/// A problem of a prompt.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FindingJson {
    /// `no_role`, `contradicts_settings` or `over_budget`.
    code: String,
    /// One sentence.
    detail: String,
}

impl From<&Finding> for FindingJson {
    fn from(finding: &Finding) -> Self {
        Self { code: finding.code().to_owned(), detail: finding.to_string() }
    }
}

/// A conversation with a fixed character.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "0193d2f0-5a3c-7b1e-9c55-0b1f6a1f0c21", "session": "context-0193d2f0-5a3c-7b1e-9c55-0b1f6a1f0c21",
    "name": "Counselor", "system_prompt": "You are a calm counselor.", "personality": "Calm",
    "temperature": 0.6, "max_tokens": 1200, "max_history_tokens": 15000, "expiry_days": 14,
    "memory": true, "tags": ["work"], "preset_id": "preset-calm-counselor", "status": "active",
    "is_active": true, "created_at": "2026-03-02T09:14:00Z", "updated_at": "2026-03-02T09:14:00Z",
    "last_interaction_at": "2026-03-02T09:14:00Z", "expires_at": "2026-03-16T09:14:00Z",
    "deleted_at": null, "erased_from": null, "turn_count": 0, "truncation_count": 0, "version": 1,
    "findings": []
}))]
pub(crate) struct ContextJson {
    id: String,
    /// The session with its conversation.
    session: String,
    name: String,
    /// The system prompt.
    system_prompt: String,
    /// A description of the personality.
    personality: String,
    /// Diversity of answers, 0.0 to 1.0.
    temperature: f64,
    /// Maximum number of tokens of an answer.
    max_tokens: u32,
    /// Maximum number of tokens that a turn sends.
    max_history_tokens: u32,
    /// Days from the last interaction to expiry.
    expiry_days: u32,
    /// Whether its turns recall the user's other memory.
    memory: bool,
    tags: Vec<String>,
    /// The preset that it was created from.
    preset_id: Option<String>,
    /// `active`, `expiring` (within 24 hours), `expired` or `deleted`.
    status: String,
    /// False if it was deleted.
    is_active: bool,
    #[schema(format = DateTime)]
    created_at: String,
    /// When it was last edited.
    #[schema(format = DateTime)]
    updated_at: String,
    #[schema(format = DateTime)]
    last_interaction_at: String,
    /// When it expires.
    #[schema(format = DateTime)]
    expires_at: String,
    #[schema(format = DateTime)]
    deleted_at: Option<String>,
    /// When it will be erased, if it is deleted.
    #[schema(format = DateTime)]
    erased_from: Option<String>,
    /// Turns that it answered.
    turn_count: u64,
    /// Turns that did not send the whole history.
    truncation_count: u64,
    /// Increases with every change and every answer.
    version: u64,
    /// Problems found in its prompt.
    findings: Vec<FindingJson>,
    /// Messages that were left out because they have been erased; only after an import or a restore.
    #[serde(skip_serializing_if = "Option::is_none")]
    held_back: Option<u64>,
}

impl ContextJson {
    /// One that was made of an export or a backup.
    pub(super) fn taken_in(service: &Service, taken: TakenIn) -> Self {
        let context = Self::of(service, taken.made.value);
        Self { held_back: Some(taken.held_back), ..context }
    }

    pub(super) fn of(service: &Service, persona: Persona) -> Self {
        let personas = &service.app.engine.personas;
        let grace = personas.limits().grace_days;
        Self {
            id: persona.id.to_string(),
            session: persona.session.to_string(),
            status: persona.status(personas.now()).as_str().to_owned(),
            is_active: persona.is_active(),
            erased_from: persona.erased_from(grace).map(Timestamp::to_rfc3339),
            findings: personas.findings(&persona).iter().map(FindingJson::from).collect(),
            name: persona.name,
            system_prompt: persona.system_prompt,
            personality: persona.personality,
            temperature: persona.settings.temperature,
            max_tokens: persona.settings.max_tokens,
            max_history_tokens: persona.settings.max_history_tokens,
            expiry_days: persona.settings.expiry_days,
            memory: persona.memory,
            tags: persona.tags,
            preset_id: persona.preset.map(|id| id.to_string()),
            created_at: persona.created_at.to_rfc3339(),
            updated_at: persona.updated_at.to_rfc3339(),
            last_interaction_at: persona.last_interaction_at.to_rfc3339(),
            expires_at: persona.expires_at.to_rfc3339(),
            deleted_at: persona.deleted_at.map(Timestamp::to_rfc3339),
            turn_count: persona.turns,
            truncation_count: persona.truncations,
            version: persona.version,
            held_back: None,
        }
    }
}

impl From<ContextJson> for Receipt {
    fn from(context: ContextJson) -> Self {
        let ContextJson { id, session, version, held_back, .. } = context;
        Self {
            id: Some(id),
            session: Some(session),
            version: Some(version),
            held_back,
            ..Self::default()
        }
    }
}

/// A context to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "name": "Counselor", "system_prompt": "You are a calm counselor.", "temperature": 0.6, "tags": ["work"]
}))]
pub(crate) struct NewContextJson {
    /// Required without `preset_id` and `template_id`; otherwise that of the preset or template if not given.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 200)]
    pub(super) name: Option<String>,
    /// The system prompt; required without `preset_id` and `template_id`.
    #[serde(default)]
    #[schema(min_length = 1)]
    pub(super) system_prompt: Option<String>,
    /// A description of the personality.
    #[serde(default)]
    pub(super) personality: Option<String>,
    /// The preset for all fields that are not given.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 80, pattern = "^[a-z0-9-]+$")]
    pub(super) preset_id: Option<String>,
    /// The template to fill in.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 80, pattern = "^[a-z0-9-]+$")]
    pub(super) template_id: Option<String>,
    /// Values of the template's fields, by name.
    #[serde(default)]
    pub(super) fields: BTreeMap<String, String>,
    /// 0.0 to 1.0; default 0.7.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1)]
    temperature: Option<f64>,
    /// Maximum number of tokens of an answer; default 1,000.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 200_000)]
    max_tokens: Option<u32>,
    /// Maximum number of tokens that a turn sends; default 15,000.
    #[serde(default)]
    #[schema(minimum = 100, maximum = 1_000_000)]
    max_history_tokens: Option<u32>,
    /// Days from the last interaction to expiry; default 7.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 3650)]
    expiry_days: Option<u32>,
    /// Whether its turns recall the user's other memory, except other contexts; default false.
    #[serde(default)]
    pub(super) memory: bool,
    #[serde(default)]
    #[schema(max_items = 16)]
    pub(super) tags: Vec<String>,
}

impl NewContextJson {
    pub(super) fn settings(&self) -> Overrides {
        Overrides {
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            max_history_tokens: self.max_history_tokens,
            expiry_days: self.expiry_days,
        }
    }
}

/// What to change; fields that are not given stay as they are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"temperature": 0.4, "tags": ["work", "weekly"]}))]
pub(crate) struct ContextChangeJson {
    #[serde(default)]
    #[schema(min_length = 1, max_length = 200)]
    name: Option<String>,
    #[serde(default)]
    #[schema(min_length = 1)]
    system_prompt: Option<String>,
    #[serde(default)]
    personality: Option<String>,
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1)]
    temperature: Option<f64>,
    #[serde(default)]
    #[schema(minimum = 1, maximum = 200_000)]
    max_tokens: Option<u32>,
    #[serde(default)]
    #[schema(minimum = 100, maximum = 1_000_000)]
    max_history_tokens: Option<u32>,
    /// Changes the expiry by the difference.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 3650)]
    expiry_days: Option<u32>,
    #[serde(default)]
    memory: Option<bool>,
    /// Replaces the current ones.
    #[serde(default)]
    #[schema(max_items = 16)]
    tags: Option<Vec<String>>,
    /// The version that you read; if it has changed, the call is a conflict.
    #[serde(default)]
    #[schema(minimum = 1)]
    expected_version: Option<u64>,
}

impl ContextChangeJson {
    pub(super) fn change(self) -> (PersonaChange, Option<u64>) {
        let settings = Overrides {
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            max_history_tokens: self.max_history_tokens,
            expiry_days: self.expiry_days,
        };
        let change = PersonaChange {
            name: self.name,
            system_prompt: self.system_prompt,
            personality: self.personality,
            settings,
            memory: self.memory,
            tags: self.tags,
        };
        (change, self.expected_version)
    }
}
