//! References of a session to files.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use throughline_core::ids::MessageId;
use throughline_core::session::{FileKind, FileRef, NewFileRef};
use throughline_engine::app::Thread;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Limit, List, cooked, raw};
use crate::http::caller::{Caller, Read, Write};
use crate::http::extract::{Body, Named, Params, Repeat};
use crate::http::service::Service;
use crate::http::written::{Receipt, Written};
use crate::wire::problem::Failure;

pub(crate) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(refer, files))
}

/// The location of a file.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum FileKindJson {
    /// Uploaded by the user.
    Uploaded,
    /// A document of the tenant's knowledge base.
    KnowledgeBase,
    /// Made in a conversation.
    Artifact,
}

impl From<FileKindJson> for FileKind {
    fn from(kind: FileKindJson) -> Self {
        match kind {
            FileKindJson::Uploaded => Self::Uploaded,
            FileKindJson::KnowledgeBase => Self::KnowledgeBase,
            FileKindJson::Artifact => Self::Artifact,
        }
    }
}

impl From<FileKind> for FileKindJson {
    fn from(kind: FileKind) -> Self {
        match kind {
            FileKind::Uploaded => Self::Uploaded,
            FileKind::KnowledgeBase => Self::KnowledgeBase,
            FileKind::Artifact => Self::Artifact,
        }
    }
}

/// A file that a session refers to.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "type": "uploaded", "title": "runbook.pdf", "metadata": {"pages": 12}
}))]
pub(crate) struct NewFileJson {
    r#type: FileKindJson,
    /// A display name.
    #[schema(min_length = 1, max_length = 200)]
    title: String,
    /// The message that refers to it.
    #[serde(default)]
    #[schema(format = "uuid")]
    message_id: Option<String>,
    /// Its id in the file store, or its URL.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 2000)]
    reference: Option<String>,
    /// A JSON object about the upload; stored, not interpreted.
    #[serde(default)]
    metadata: Option<serde_json::Map<String, Value>>,
}

/// A reference of a session to a file.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "0193d2f0-5a3c-7b1e-9c55-0b1f6a1f0c14", "type": "uploaded", "title": "runbook.pdf",
    "message_id": null, "reference": null, "metadata": {"pages": 12},
    "created_at": "2026-03-02T09:14:00Z"
}))]
pub(crate) struct FileJson {
    id: String,
    r#type: FileKindJson,
    title: String,
    message_id: Option<String>,
    reference: Option<String>,
    #[schema(value_type = Option<Object>)]
    metadata: Option<Value>,
    #[schema(format = DateTime)]
    created_at: String,
}

impl FileJson {
    pub(super) fn of(file: FileRef) -> Self {
        Self {
            id: file.id.to_string(),
            r#type: file.kind.into(),
            title: file.title,
            message_id: file.message.map(|id| id.to_string()),
            reference: file.reference,
            metadata: file.metadata.as_deref().map(cooked),
            created_at: file.created_at.to_rfc3339(),
        }
    }
}

impl From<FileJson> for Receipt {
    fn from(file: FileJson) -> Self {
        Self::of_id(file.id)
    }
}

/// Refer to a file
///
/// The file itself is stored elsewhere.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/files",
    operation_id = "refer_to_file",
    tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    request_body = NewFileJson,
    responses((status = 201, body = Written<FileJson>, description = "The reference"))
)]
async fn refer(
    State(service): State<Service>,
    caller: Caller<Write>,
    Named(id): Named<String>,
    repeat: Repeat,
    body: Body<NewFileJson>,
) -> Result<(StatusCode, Json<Written<FileJson>>), Failure> {
    let (scope, session) = Thread::own(&caller, &id)?;
    let idempotency = repeat.of(&body);
    let file = body.value;
    let metadata = file.metadata.map(Value::Object);
    let new = NewFileRef {
        kind: file.r#type.into(),
        title: file.title,
        message: file.message_id.as_deref().map(str::parse::<MessageId>).transpose()?,
        reference: file.reference,
        metadata: metadata.as_ref().map(raw).transpose()?,
    };
    let file = service.app.engine.sessions.put_file(&scope, &session, new, idempotency).await?;
    Ok((StatusCode::CREATED, Json(Written::of(&caller, FileJson::of(file)))))
}

/// List the files that a session refers to
///
/// The newest first.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/files",
    operation_id = "list_files",
    tag = "sessions",
    params(("id" = String, Path, description = "The session"), Limit),
    responses((status = 200, body = List<FileJson>, description = "References"))
)]
async fn files(
    State(service): State<Service>,
    caller: Caller<Read>,
    Named(id): Named<String>,
    Params(limit): Params<Limit>,
) -> Result<Json<List<FileJson>>, Failure> {
    let thread = Thread::to_read(&service.app.engine, &caller, &id).await?;
    let sessions = &service.app.engine.sessions;
    let found = sessions.files(&thread.scope, &thread.session, limit.get()?).await?;
    Ok(Json(List { items: found.into_iter().map(FileJson::of).collect(), next_cursor: None }))
}
