//! Contexts that leave and come back: exports, imports and backups.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use throughline_core::ids::BackupId;
use throughline_core::persona::{BackupHead, ExportFormat};
use throughline_core::{Error, Result};
use throughline_engine::app::personas;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::forms::ContextJson;
use crate::http::caller::{Caller, Read, Write};
use crate::http::extract::{Body, Named, Params, Repeat};
use crate::http::routes::{List, raw};
use crate::http::service::Service;
use crate::http::written::Written;
use crate::wire::problem::Failure;

pub(super) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(routes!(export))
        .routes(routes!(import))
        .routes(routes!(backups))
        .routes(routes!(restore_backup))
}

/// The format of an export.
#[derive(Debug, Clone, Copy, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FormJson {
    /// For programs.
    #[default]
    Json,
    /// For people.
    Markdown,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Which {
    /// The format; default `json`.
    #[serde(default)]
    #[param(inline)]
    format: FormJson,
}

/// An export to import: give one of the two.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"export": {
    "format": "throughline.context", "version": 1,
    "context": {"name": "Counselor", "system_prompt": "You are a calm counselor."},
    "conversations": [{"role": "user", "content": "Good morning.", "created_at": "2026-03-02T09:14:00Z"}]
}}))]
pub(crate) struct ImportJson {
    /// An export in JSON.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    export: Option<Value>,
    /// An export as JSON in a text.
    #[serde(default)]
    #[schema(min_length = 1)]
    text: Option<String>,
}

/// A backup of a context, without its content.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BackupJson {
    id: String,
    #[schema(format = DateTime)]
    taken_at: String,
    /// `daily`, `deletion` or `expiry`.
    reason: String,
    /// Its size.
    bytes: u64,
}

impl From<BackupHead> for BackupJson {
    fn from(head: BackupHead) -> Self {
        Self {
            id: head.id.to_string(),
            taken_at: head.taken_at.to_rfc3339(),
            reason: head.reason.to_string(),
            bytes: head.bytes,
        }
    }
}

/// Export a context
///
/// Exports it with its conversation: as JSON, which can be imported, or as Markdown, which is for reading.
#[utoipa::path(
    get,
    path = "/v1/contexts/{id}/export",
    operation_id = "export_context",
    tag = "contexts",
    params(("id" = String, Path, format = "uuid", description = "The context"), Which),
    responses((status = 200, description = "The export", content(
        (Value = "application/json"),
        (String = "text/markdown")
    )))
)]
async fn export(
    State(service): State<Service>,
    caller: Caller<Read>,
    Named(id): Named<String>,
    Params(which): Params<Which>,
) -> Result<Response, Failure> {
    let (scope, personas) = (caller.scope()?, personas(&service.app.engine, &caller));
    let id = personas.id_of(&scope, &id).await?;
    let (format, kind) = match which.format {
        FormJson::Json => (ExportFormat::Json, "application/json"),
        FormJson::Markdown => (ExportFormat::Markdown, "text/markdown; charset=utf-8"),
    };
    let text = personas.export(&scope, id, format).await?;
    Ok(([(header::CONTENT_TYPE, kind)], text).into_response())
}

/// Import a context
///
/// Imports it with its conversation, completely or not at all, but without messages that were erased since it was
/// exported. It becomes a new context, which starts now.
#[utoipa::path(
    post,
    path = "/v1/contexts/import",
    operation_id = "import_context",
    tag = "contexts",
    request_body = ImportJson,
    responses((status = 201, body = Written<ContextJson>, description = "The context"))
)]
async fn import(
    State(service): State<Service>,
    caller: Caller<Write>,
    repeat: Repeat,
    body: Body<ImportJson>,
) -> Result<(StatusCode, Json<Written<ContextJson>>), Failure> {
    let idempotency = repeat.of(&body);
    let text = match (body.value.export, body.value.text) {
        (Some(export), None) => raw(&export)?,
        (None, Some(text)) => text,
        _ => {
            return Err(Error::invalid("give exactly one of `export` and `text`").into());
        }
    };
    let taken = service.app.engine.personas.import(&caller.scope()?, &text, idempotency).await?;
    let taken = ContextJson::taken_in(&service, taken);
    Ok((StatusCode::CREATED, Json(Written::of(&caller, taken))))
}

/// List the backups of a context
///
/// The newest first. A backup is made each day if something has changed, and before each deletion.
#[utoipa::path(
    get,
    path = "/v1/contexts/{id}/backups",
    operation_id = "list_context_backups",
    tag = "contexts",
    params(("id" = String, Path, format = "uuid", description = "The context")),
    responses((status = 200, body = List<BackupJson>, description = "Backups"))
)]
async fn backups(
    State(service): State<Service>,
    caller: Caller<Read>,
    Named(id): Named<String>,
) -> Result<Json<List<BackupJson>>, Failure> {
    let (scope, personas) = (caller.scope()?, personas(&service.app.engine, &caller));
    let id = personas.id_of(&scope, &id).await?;
    let items = personas.backups(&scope, id).await?.into_iter().map(BackupJson::from).collect();
    Ok(Json(List { items, next_cursor: None }))
}

/// Restore a backup of a context
///
/// Restores it as a new context, which starts now.
#[utoipa::path(
    post,
    path = "/v1/contexts/{id}/backups/{backup}/restore",
    operation_id = "restore_context_backup",
    tag = "contexts",
    params(
        ("id" = String, Path, format = "uuid", description = "The context"),
        ("backup" = String, Path, format = "uuid", description = "The backup")
    ),
    responses((status = 201, body = Written<ContextJson>, description = "The context"))
)]
async fn restore_backup(
    State(service): State<Service>,
    caller: Caller<Write>,
    Named((id, backup)): Named<(String, String)>,
) -> Result<(StatusCode, Json<Written<ContextJson>>), Failure> {
    let (scope, personas) = (caller.scope()?, personas(&service.app.engine, &caller));
    let id = personas.id_of(&scope, &id).await?;
    let backup: BackupId = backup.parse()?;
    let taken = personas.restore_backup(&scope, id, backup, None).await?;
    let taken = ContextJson::taken_in(&service, taken);
    Ok((StatusCode::CREATED, Json(Written::of(&caller, taken))))
}
