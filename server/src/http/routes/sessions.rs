//! Threads.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use throughline_core::Error;
use throughline_core::ids::SessionId;
use throughline_core::ports::Erased;
use throughline_core::session::{Session, Share};
use throughline_engine::app::{Thread, is_reserved};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{List, ListQuery, Paging};
use crate::http::caller::{Caller, Read, Write};
use crate::http::extract::{Body, Named, Repeat};
use crate::http::service::Service;
use crate::http::written::{Receipt, Written};
use crate::wire::problem::Failure;

pub(crate) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(open, list)).routes(routes!(show, erase))
}

/// A conversation thread.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "support-17",
    "created_at": "2026-03-02T09:14:00Z",
    "last_at": "2026-03-02T09:20:00Z",
    "message_count": 6,
    "token_count": 412,
    "summarized_count": 0
}))]
pub(crate) struct SessionJson {
    /// The id for this caller.
    id: String,
    /// When it started.
    #[schema(format = DateTime)]
    created_at: String,
    /// When its latest message was written.
    #[schema(format = DateTime)]
    last_at: String,
    /// Number of messages.
    message_count: u64,
    /// Tokens of their contents.
    token_count: u64,
    /// Messages that its summary covers.
    summarized_count: u64,
    /// The owner and the caller's rights, if somebody else shares it.
    #[serde(skip_serializing_if = "Option::is_none")]
    shared: Option<SharedJson>,
}

/// How another user shares a session.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SharedJson {
    /// The owner of the session.
    owner: String,
    /// Whether the caller may append.
    writable: bool,
}

impl SessionJson {
    pub(super) fn of(session: &Session, share: Option<&Share>) -> Self {
        Self {
            id: share.map_or_else(|| session.id.to_string(), |share| format!("share:{}", share.id)),
            created_at: session.created_at.to_rfc3339(),
            last_at: session.last_at.to_rfc3339(),
            message_count: session.messages,
            token_count: session.tokens,
            summarized_count: session.summarized,
            shared: share.map(|share| SharedJson {
                owner: share.owner.user.to_string(),
                writable: share.writable,
            }),
        }
    }
}

impl From<SessionJson> for Receipt {
    fn from(session: SessionJson) -> Self {
        Self::of_id(session.id)
    }
}

/// A session to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"id": "support-17"}))]
pub(crate) struct OpenSession {
    /// The caller's id, 1 to 200 bytes; generated if not given.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 200)]
    id: Option<String>,
}

/// The result of an erasure.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "sessions": 1, "messages": 6, "tokens": 412, "facts": 2, "entities": 3, "files": 0, "summaries": 0,
    "documents": 0
}))]
pub(crate) struct ErasedJson {
    sessions: u64,
    messages: u64,
    /// Tokens of the messages' contents.
    tokens: u64,
    /// Facts that no remaining message states.
    facts: u64,
    /// Typed values that no remaining message contains.
    entities: u64,
    /// References to files.
    files: u64,
    /// Versions of summaries; they are built again from the remaining messages.
    summaries: u64,
    /// Documents of memories, each with its history.
    documents: u64,
}

impl From<&Erased> for ErasedJson {
    fn from(erased: &Erased) -> Self {
        Self {
            sessions: erased.sessions,
            messages: erased.messages,
            tokens: erased.tokens,
            facts: erased.facts,
            entities: erased.entities,
            files: erased.files,
            summaries: erased.summaries,
            documents: erased.documents,
        }
    }
}

/// Create a session
///
/// Appending the first message creates a session too. An existing session is not changed.
#[utoipa::path(
    post,
    path = "/v1/sessions",
    operation_id = "open_session",
    tag = "sessions",
    request_body = OpenSession,
    responses((status = 201, body = Written<SessionJson>, description = "The session"))
)]
async fn open(
    State(service): State<Service>,
    caller: Caller<Write>,
    repeat: Repeat,
    body: Body<OpenSession>,
) -> Result<(StatusCode, Json<Written<SessionJson>>), Failure> {
    let idempotency = repeat.of(&body);
    let id = match (body.value.id, &idempotency) {
        (Some(id), _) if is_reserved(&id) => {
            return Err(Error::invalid(
                "id: `share:` followed by a UUID is reserved for shared sessions: choose another",
            )
            .into());
        }
        (Some(id), _) => SessionId::new(id)?,
        // A repeated call opens the same session.
        (None, Some(repeat)) => {
            SessionId::new(uuid::Builder::from_custom_bytes(repeat.key).into_uuid().to_string())?
        }
        (None, None) => SessionId::new(service.app.engine.ids.next().to_string())?,
    };
    let session = service.app.engine.sessions.open(&caller.scope()?, &id, idempotency).await?;
    let session = SessionJson::of(&session, None);
    Ok((StatusCode::CREATED, Json(Written::of(&caller, session))))
}

/// List sessions
///
/// In the order of creation. Sessions that others share are under `/v1/shared`.
#[utoipa::path(
    get,
    path = "/v1/sessions",
    operation_id = "list_sessions",
    tag = "sessions",
    params(Paging),
    responses((status = 200, body = List<SessionJson>, description = "Sessions"))
)]
async fn list(
    State(service): State<Service>,
    caller: Caller<Read>,
    asked: ListQuery,
) -> Result<Json<List<SessionJson>>, Failure> {
    let page = service.app.engine.sessions.list(&caller.scope()?, &asked.page).await?;
    Ok(Json(asked.list(page, |session| SessionJson::of(&session, None))))
}

/// Show a session
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}",
    operation_id = "get_session",
    tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    responses((status = 200, body = SessionJson, description = "The session"))
)]
async fn show(
    State(service): State<Service>,
    caller: Caller<Read>,
    Named(id): Named<String>,
) -> Result<Json<SessionJson>, Failure> {
    let thread = Thread::to_read(&service.app.engine, &caller, &id).await?;
    let session = service.app.engine.sessions.get(&thread.scope, &thread.session).await?;
    Ok(Json(SessionJson::of(&session, thread.share.as_ref())))
}

/// Erase a session
///
/// Erases it with everything derived from it: messages, facts that nothing else states, entities, summaries, index
/// entries, vectors, cached copies. It cannot be undone, and restoring a backup does not bring it back.
#[utoipa::path(
    delete,
    path = "/v1/sessions/{id}",
    operation_id = "erase_session",
    tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    responses((status = 200, body = ErasedJson, description = "What was removed"))
)]
async fn erase(
    State(service): State<Service>,
    caller: Caller<Write>,
    Named(id): Named<String>,
) -> Result<Json<ErasedJson>, Failure> {
    let erased = service.app.erase_session(&caller, &id).await?;
    Ok(Json(ErasedJson::from(&erased)))
}
