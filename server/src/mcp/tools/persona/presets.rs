//! `personality-preset-manage`: the complete characters that personas are made from.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use throughline_core::Result;
use throughline_core::access::Permission;
use throughline_core::ids::PresetId;
use throughline_core::persona::{NewPreset, PresetChange};
use throughline_core::secret::SecretPolicy;
use throughline_engine::config::ToolSet;

use super::forms::{EffectivenessForm, GivenSettings, PresetForm};
use super::{character, in_camel_case, needed, page};
use crate::mcp::tool::{Call, Effect, Outcome, Tool};

/// Default number of presets per page.
const PAGE_SIZE: usize = 10;

pub(super) fn tool() -> Tool {
    Tool::new::<Args, Answer, _>(
        ToolSet::Persona,
        "personality-preset-manage",
        "Create, list, show, change and delete presets for contexts, and tell how helpful their answers were \
         rated. Six are built in and cannot be changed.",
        Effect::Removes,
        manage,
    )
    .needs(Permission::Read)
}

#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Action {
    Create,
    List,
    Get,
    Update,
    Delete,
    Effectiveness,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Args {
    action: Action,
    preset_id: Option<String>,
    name: Option<String>,
    description: Option<String>,
    system_prompt: Option<String>,
    /// With create: a template to fill in; the resource context-templates lists them.
    template_id: Option<String>,
    /// Values of the template's fields.
    #[serde(default)]
    fields: BTreeMap<String, String>,
    default_personality: Option<String>,
    /// Defaults: temperature 0.7, maxTokens 1000, maxHistoryTokens 15000, expiryDays 7.
    #[serde(default)]
    default_settings: GivenSettings,
    metadata: Option<Map<String, Value>>,
    /// With update: whether it is active.
    is_active: Option<bool>,
    /// With update and delete: only this version.
    version: Option<u64>,
    /// Default 1.
    page: Option<usize>,
    /// Default 10.
    page_size: Option<usize>,
    #[serde(default)]
    include_inactive: bool,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Answer {
    success: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    preset: Option<PresetForm>,
    #[serde(skip_serializing_if = "Option::is_none")]
    presets: Option<Vec<PresetForm>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total_count: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    effectiveness: Option<Vec<EffectivenessForm>>,
    message: String,
}

async fn manage(call: Call, asked: Args) -> Result<Outcome> {
    if !matches!(asked.action, Action::List | Action::Get | Action::Effectiveness) {
        call.may_write().await?;
    }
    Outcome::data(&act(&call, asked).await.map_err(in_camel_case)?)
}

async fn act(call: &Call, asked: Args) -> Result<Answer> {
    let (scope, presets) = (call.scope()?, call.server.app.engine.personas.presets());
    let secrets = call.server.app.engine.masking;
    let form = |view| PresetForm::of(view, secrets);
    let metadata = asked.metadata.map(|object| Value::Object(object).to_string());
    let id = asked.preset_id.as_deref().map(str::parse::<PresetId>).transpose()?;
    let (id, message) = match asked.action {
        Action::List => {
            let slice = page(asked.page, asked.page_size, PAGE_SIZE)?;
            let found = presets.list(&scope, asked.include_inactive, slice).await?;
            return Ok(Answer {
                success: true,
                message: format!("{} of {} presets", found.items.len(), found.total),
                total_count: Some(found.total),
                presets: Some(found.items.into_iter().map(form).collect()),
                ..Answer::default()
            });
        }
        Action::Create => {
            let given = (asked.name, asked.system_prompt, asked.default_personality);
            let template = (asked.template_id.as_deref(), &asked.fields);
            let filled = character(given, template, asked.default_settings.into())?;
            let new = NewPreset {
                id,
                name: filled.name,
                description: asked.description.unwrap_or(filled.description),
                system_prompt: filled.system_prompt,
                default_personality: filled.personality,
                settings: filled.settings,
                metadata,
            };
            (presets.create(&scope, &new, None).await?.value.id, "Created")
        }
        Action::Effectiveness => {
            let personas = &call.server.app.engine.personas;
            let found = personas.effectiveness(&scope, id.as_ref(), None, None).await?;
            return Ok(Answer {
                success: true,
                message: format!("{} presets and versions", found.len()),
                effectiveness: Some(found.into_iter().map(EffectivenessForm::from).collect()),
                ..Answer::default()
            });
        }
        Action::Get => (needed(id, "presetId", "get")?, "Found"),
        Action::Update => {
            let id = needed(id, "presetId", "update")?;
            let change = PresetChange {
                name: asked.name,
                description: asked.description,
                system_prompt: asked.system_prompt,
                default_personality: asked.default_personality,
                settings: asked.default_settings.into(),
                is_active: asked.is_active,
                metadata,
            };
            let change = match secrets {
                SecretPolicy::Keep => change,
                _ => change.by_model(&presets.get(&scope, &id).await?.preset),
            };
            presets.update(&scope, &id, &change, asked.version).await?;
            (id, "Changed")
        }
        Action::Delete => {
            let id = needed(id, "presetId", "delete")?;
            let is_there = call.server.app.delete_preset(&call.who, &id, asked.version).await?;
            let message = match is_there {
                true => format!(
                    "Deleted: {id}; contexts made from it stay. Delete it again to remove it for \
                     good, or restore it with `update` and isActive"
                ),
                false => format!("Removed for good: {id}; contexts made from it stay"),
            };
            return Ok(Answer { success: true, message, ..Answer::default() });
        }
    };
    let view = presets.get(&scope, &id).await?;
    let message = format!("{message}: {} ({id})", view.preset.name);
    Ok(Answer { success: true, preset: Some(form(view)), message, ..Answer::default() })
}
