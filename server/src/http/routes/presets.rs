//! Presets: complete characters that contexts are created from.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use throughline_core::ids::PresetId;
use throughline_core::persona::{
    NewPreset, Overrides, PresetChange, PresetUse, PresetView, Settings,
};
use throughline_core::{Error, Result};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::contexts::forms::FindingJson;
use super::templates::filled;
use super::{List, Paging, cooked, raw};
use crate::http::caller::{Caller, Read, Write};
use crate::http::extract::{Body, Named, Params, Repeat};
use crate::http::service::Service;
use crate::http::written::{Receipt, Written};
use crate::wire::problem::Failure;

pub(crate) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(create, list)).routes(routes!(show, change, delete))
}

/// Settings of contexts.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContextSettingsJson {
    /// Diversity of answers, 0.0 to 1.0.
    temperature: f64,
    /// Maximum number of tokens of an answer.
    max_tokens: u32,
    /// Maximum number of tokens that a turn sends.
    max_history_tokens: u32,
    /// Days from the last interaction to expiry.
    expiry_days: u32,
}

impl From<Settings> for ContextSettingsJson {
    fn from(settings: Settings) -> Self {
        let Settings { temperature, max_tokens, max_history_tokens, expiry_days } = settings;
        Self { temperature, max_tokens, max_history_tokens, expiry_days }
    }
}

/// Settings to set; the others have their defaults, or stay as they are.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PresetSettingsJson {
    /// 0.0 to 1.0.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1)]
    temperature: Option<f64>,
    /// Maximum number of tokens of an answer.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 200_000)]
    max_tokens: Option<u32>,
    /// Maximum number of tokens that a turn sends.
    #[serde(default)]
    #[schema(minimum = 100, maximum = 1_000_000)]
    max_history_tokens: Option<u32>,
    /// Days from the last interaction to expiry.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 3650)]
    expiry_days: Option<u32>,
}

impl From<PresetSettingsJson> for Overrides {
    fn from(said: PresetSettingsJson) -> Self {
        let PresetSettingsJson { temperature, max_tokens, max_history_tokens, expiry_days } = said;
        Self { temperature, max_tokens, max_history_tokens, expiry_days }
    }
}

/// How often a preset was used.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PresetUseJson {
    /// Contexts created from it.
    contexts: u64,
    /// Turns that these contexts answered.
    turns: u64,
    /// Turns of these contexts that did not send the whole history.
    truncations: u64,
}

impl From<PresetUse> for PresetUseJson {
    fn from(used: PresetUse) -> Self {
        let PresetUse { contexts, turns, truncations } = used;
        Self { contexts, turns, truncations }
    }
}

/// A complete character that contexts are created from.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "preset-librarian", "name": "Librarian", "description": "Finds books",
    "system_prompt": "You are a librarian.", "default_personality": "Quiet",
    "default_settings": {
        "temperature": 0.7, "max_tokens": 1000, "max_history_tokens": 15000, "expiry_days": 7
    },
    "metadata": {}, "is_active": true, "is_built_in": false, "created_at": "2026-03-02T09:14:00Z",
    "updated_at": "2026-03-02T09:14:00Z", "version": 1,
    "usage": {"contexts": 0, "turns": 0, "truncations": 0}, "findings": []
}))]
pub(crate) struct PresetJson {
    id: String,
    name: String,
    description: String,
    system_prompt: String,
    default_personality: String,
    default_settings: ContextSettingsJson,
    /// Stored, not interpreted.
    #[schema(value_type = Object)]
    metadata: Value,
    /// Whether contexts can be created from it.
    is_active: bool,
    /// Whether it is built in; built-in presets cannot be changed.
    is_built_in: bool,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    updated_at: String,
    /// Increases with every change.
    version: u64,
    usage: PresetUseJson,
    /// Problems found in its prompt.
    findings: Vec<FindingJson>,
}

impl From<PresetView> for PresetJson {
    fn from(view: PresetView) -> Self {
        let PresetView { preset, is_built_in, usage, findings } = view;
        Self {
            id: preset.id.to_string(),
            name: preset.name,
            description: preset.description,
            system_prompt: preset.system_prompt,
            default_personality: preset.default_personality,
            default_settings: preset.settings.into(),
            metadata: preset
                .metadata
                .map_or_else(|| Value::Object(Map::new()), |json| cooked(&json)),
            is_active: preset.is_active,
            is_built_in,
            created_at: preset.created_at.to_rfc3339(),
            updated_at: preset.updated_at.to_rfc3339(),
            version: preset.version,
            usage: usage.into(),
            findings: findings.iter().map(FindingJson::from).collect(),
        }
    }
}

impl From<PresetJson> for Receipt {
    fn from(preset: PresetJson) -> Self {
        Self { id: Some(preset.id), version: Some(preset.version), ..Self::default() }
    }
}

/// A preset to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "id": "preset-librarian", "name": "Librarian", "system_prompt": "You are a librarian.",
    "default_settings": {"temperature": 0.3}
}))]
pub(crate) struct NewPresetJson {
    /// Lower-case letters, digits and hyphens; generated if not given.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 80, pattern = "^[a-z0-9-]+$")]
    id: Option<String>,
    /// Required without `template_id`; otherwise the template's if not given.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 200)]
    name: Option<String>,
    #[serde(default)]
    #[schema(max_length = 2000)]
    description: Option<String>,
    /// Required without `template_id`.
    #[serde(default)]
    #[schema(min_length = 1)]
    system_prompt: Option<String>,
    /// The template to fill in.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 80, pattern = "^[a-z0-9-]+$")]
    template_id: Option<String>,
    /// Values of the template's fields, by name.
    #[serde(default)]
    fields: BTreeMap<String, String>,
    #[serde(default)]
    default_personality: Option<String>,
    #[serde(default)]
    default_settings: PresetSettingsJson,
    /// Stored, not interpreted; at most 16 KiB.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
}

/// What to change; fields that are not given stay as they are.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"default_settings": {"max_tokens": 800}}))]
pub(crate) struct PresetChangeJson {
    #[serde(default)]
    #[schema(min_length = 1, max_length = 200)]
    name: Option<String>,
    #[serde(default)]
    #[schema(max_length = 2000)]
    description: Option<String>,
    #[serde(default)]
    #[schema(min_length = 1)]
    system_prompt: Option<String>,
    #[serde(default)]
    default_personality: Option<String>,
    #[serde(default)]
    default_settings: PresetSettingsJson,
    /// Whether contexts can be created from it.
    #[serde(default)]
    is_active: Option<bool>,
    /// Replaces the current value.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    metadata: Option<Map<String, Value>>,
    /// The version that you read; if it has changed, the call is a conflict.
    #[serde(default)]
    #[schema(minimum = 1)]
    expected_version: Option<u64>,
}

/// Which presets.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Which {
    /// Maximum number of items, 1 to 500; default 50.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// The `next_cursor` of the previous page.
    #[param(min_length = 1, max_length = 16, pattern = "^[0-9a-fA-F]+$")]
    cursor: Option<String>,
    /// Whether to include inactive presets.
    #[serde(default)]
    include_inactive: bool,
}

/// Which version of a preset is to be deleted.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Version {
    /// The version that you read; if it has changed, the call is a conflict.
    #[param(minimum = 1)]
    version: Option<u64>,
}

/// The result of a deletion.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"id": "preset-librarian", "removed": false}))]
pub(crate) struct DeletedPresetJson {
    id: String,
    /// True if it was removed; otherwise it was only deactivated, and deleting it again removes it.
    removed: bool,
}

fn metadata(own: Option<Map<String, Value>>) -> Result<Option<String>> {
    own.map(|own| raw(&Value::Object(own))).transpose()
}

impl NewPresetJson {
    fn preset(self) -> Result<NewPreset> {
        let settings = Overrides::from(self.default_settings);
        let id = self.id.map(PresetId::new).transpose()?;
        let metadata = metadata(self.metadata)?;
        if let Some(template) = filled(self.template_id.as_deref(), &self.fields, settings)? {
            if self.system_prompt.is_some() || self.default_personality.is_some() {
                return Err(Error::invalid(
                    "template_id: the template sets system_prompt and default_personality: leave them out here and \
                     change them afterwards",
                ));
            }
            return Ok(NewPreset {
                id,
                name: self.name.unwrap_or(template.name),
                description: self.description.unwrap_or(template.description),
                system_prompt: template.system_prompt,
                default_personality: template.personality,
                settings: template.settings,
                metadata,
            });
        }
        let lacking =
            |field: &str| Error::invalid(format!("{field}: is required without template_id"));
        Ok(NewPreset {
            id,
            name: self.name.ok_or_else(|| lacking("name"))?,
            description: self.description.unwrap_or_default(),
            system_prompt: self.system_prompt.ok_or_else(|| lacking("system_prompt"))?,
            default_personality: self.default_personality.unwrap_or_default(),
            settings,
            metadata,
        })
    }
}

/// Create a preset
///
/// Give a name and a prompt, or a template and its fields. `findings` lists problems of its prompt.
#[utoipa::path(
    post,
    path = "/v1/presets",
    operation_id = "create_preset",
    tag = "contexts",
    request_body = NewPresetJson,
    responses((status = 201, body = Written<PresetJson>, description = "The preset"))
)]
async fn create(
    State(service): State<Service>,
    caller: Caller<Write>,
    repeat: Repeat,
    body: Body<NewPresetJson>,
) -> Result<(StatusCode, Json<Written<PresetJson>>), Failure> {
    let idempotency = repeat.of(&body);
    let (scope, presets) = (caller.scope()?, service.app.engine.personas.presets());
    let new = body.value.preset()?;
    let made = presets.create(&scope, &new, idempotency).await?;
    let view = presets.get(&scope, &made.value.id).await?;
    Ok((StatusCode::CREATED, Json(Written::of(&caller, view.into()))))
}

/// List presets
///
/// Built-in presets first.
#[utoipa::path(
    get,
    path = "/v1/presets",
    operation_id = "list_presets",
    tag = "contexts",
    params(Which),
    responses((status = 200, body = List<PresetJson>, description = "Presets"))
)]
async fn list(
    State(service): State<Service>,
    caller: Caller<Read>,
    Params(which): Params<Which>,
) -> Result<Json<List<PresetJson>>, Failure> {
    let slice = Paging { limit: which.limit, cursor: which.cursor }.slice()?;
    let presets = service.app.engine.personas.presets();
    let found = presets.list(&caller.scope()?, which.include_inactive, slice).await?;
    Ok(Json(List::of_slice(found, PresetJson::from)))
}

/// Show a preset
#[utoipa::path(
    get,
    path = "/v1/presets/{id}",
    operation_id = "get_preset",
    tag = "contexts",
    params(("id" = String, Path, description = "The preset")),
    responses((status = 200, body = PresetJson, description = "The preset"))
)]
async fn show(
    State(service): State<Service>,
    caller: Caller<Read>,
    Named(id): Named<String>,
) -> Result<Json<PresetJson>, Failure> {
    let id: PresetId = id.parse()?;
    Ok(Json(service.app.engine.personas.presets().get(&caller.scope()?, &id).await?.into()))
}

/// Change a preset
///
/// For the user's own presets. Contexts that were created from it stay as they are.
#[utoipa::path(
    patch,
    path = "/v1/presets/{id}",
    operation_id = "change_preset",
    tag = "contexts",
    params(("id" = String, Path, description = "The preset")),
    request_body = PresetChangeJson,
    responses((status = 200, body = Written<PresetJson>, description = "The preset"))
)]
async fn change(
    State(service): State<Service>,
    caller: Caller<Write>,
    Named(id): Named<String>,
    body: Body<PresetChangeJson>,
) -> Result<Json<Written<PresetJson>>, Failure> {
    let id: PresetId = id.parse()?;
    let (scope, presets) = (caller.scope()?, service.app.engine.personas.presets());
    let change = body.value;
    let expected = change.expected_version;
    let change = PresetChange {
        name: change.name,
        description: change.description,
        system_prompt: change.system_prompt,
        default_personality: change.default_personality,
        settings: change.default_settings.into(),
        is_active: change.is_active,
        metadata: metadata(change.metadata)?,
    };
    presets.update(&scope, &id, &change, expected).await?;
    Ok(Json(Written::of(&caller, presets.get(&scope, &id).await?.into())))
}

/// Delete a preset
///
/// For the user's own presets: deactivates the preset. Deleting an inactive preset removes it.
#[utoipa::path(
    delete,
    path = "/v1/presets/{id}",
    operation_id = "delete_preset",
    tag = "contexts",
    params(("id" = String, Path, description = "The preset"), Version),
    responses((status = 200, body = DeletedPresetJson, description = "What was done"))
)]
async fn delete(
    State(service): State<Service>,
    caller: Caller<Write>,
    Named(id): Named<String>,
    Params(version): Params<Version>,
) -> Result<Json<DeletedPresetJson>, Failure> {
    let id: PresetId = id.parse()?;
    let held = service.app.delete_preset(&caller, &id, version.version).await?;
    Ok(Json(DeletedPresetJson { id: id.to_string(), removed: !held }))
}
