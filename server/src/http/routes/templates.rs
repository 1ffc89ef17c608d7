//! Templates: starting points for contexts and presets.

use std::collections::BTreeMap;

use axum::Json;
use serde::Serialize;
use throughline_core::persona::{FilledTemplate, Overrides, TEMPLATES, Template, TemplateField};
use throughline_core::{Error, Result};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::List;
use crate::http::caller::{Caller, Read};
use crate::http::service::Service;

pub(crate) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(list))
}

/// A starting point for contexts and presets.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "template-language-tutor", "name": "Language Tutor",
    "description": "Talks with a learner in the language that they learn, and corrects them",
    "fields": [{"name": "language", "description": "The language to learn", "default": null}],
    "system_prompt": "You are a tutor of {language}.", "personality": "Patient", "temperature": 0.7
}))]
pub(crate) struct TemplateJson {
    id: &'static str,
    name: &'static str,
    /// Its use.
    description: &'static str,
    fields: Vec<TemplateFieldJson>,
    /// The prompt, with `{field}` where a field goes.
    system_prompt: &'static str,
    personality: &'static str,
    /// Diversity of answers, 0.0 to 1.0.
    temperature: f64,
}

/// A part that the user fills in.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct TemplateFieldJson {
    name: &'static str,
    /// What to fill in.
    description: &'static str,
    /// Used if nothing is filled in; null if the field is required.
    default: Option<&'static str>,
}

impl From<TemplateField> for TemplateFieldJson {
    fn from(field: TemplateField) -> Self {
        let TemplateField { name, description, default } = field;
        Self { name, description, default }
    }
}

impl From<Template> for TemplateJson {
    fn from(template: Template) -> Self {
        Self {
            id: template.id,
            name: template.name,
            description: template.description,
            fields: template.fields.iter().copied().map(TemplateFieldJson::from).collect(),
            system_prompt: template.system_prompt,
            personality: template.personality,
            temperature: template.temperature,
        }
    }
}

/// The template that a body names, with its fields filled in; `None` where it names none.
pub(super) fn filled(
    id: Option<&str>,
    fields: &BTreeMap<String, String>,
    said: Overrides,
) -> Result<Option<FilledTemplate>> {
    match id {
        Some(id) => Template::of(id)?.filled(fields, said).map(Some),
        None if fields.is_empty() => Ok(None),
        None => Err(Error::invalid("`fields` needs `template_id`")),
    }
}

/// List the templates
///
/// A template is a starting point for a common use. Create a context or a preset with `template_id` and `fields`.
#[utoipa::path(
    get,
    path = "/v1/templates",
    operation_id = "list_templates",
    tag = "contexts",
    responses((status = 200, body = List<TemplateJson>, description = "Templates"))
)]
async fn list(_: Caller<Read>) -> Json<List<TemplateJson>> {
    Json(List::whole(TEMPLATES.to_vec(), TemplateJson::from))
}
