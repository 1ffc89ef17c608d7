//! Summaries of a session.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use throughline_core::summary::{Summary, SummaryWriter};
use throughline_engine::app::Thread;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::List;
use crate::http::caller::{Caller, Read};
use crate::http::extract::Named;
use crate::http::service::Service;
use crate::wire::problem::Failure;

pub(crate) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(summaries))
}

/// A version of a session's summary.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "0193d2f0-5a3c-7b1e-9c55-0b1f6a1f0c13", "version": 1, "message_count": 20,
    "from": "2026-03-02T09:14:00Z", "to": "2026-03-02T10:02:00Z", "token_count": 96,
    "text": "user: The Alfred cutover moved to 21 May."
}))]
pub(crate) struct SummaryJson {
    id: String,
    /// 1 for the first; each version is built on the one before.
    version: u64,
    /// Messages covered, from the session's first one.
    message_count: u64,
    #[schema(format = DateTime)]
    from: String,
    #[schema(format = DateTime)]
    to: String,
    token_count: u32,
    text: String,
    /// The model that wrote the text, and the version of how it is asked; absent for sentences as they were said.
    #[serde(skip_serializing_if = "Option::is_none")]
    written_by: Option<String>,
}

impl SummaryJson {
    pub(super) fn of(summary: &Summary) -> Self {
        Self {
            id: summary.id.to_string(),
            version: summary.version,
            message_count: summary.covered,
            from: summary.from_at.to_rfc3339(),
            to: summary.to_at.to_rfc3339(),
            token_count: summary.tokens,
            text: summary.text(),
            written_by: match &summary.writer {
                SummaryWriter::Model(name) => Some(name.clone()),
                SummaryWriter::Extract | SummaryWriter::AwaitsModel => None,
            },
        }
    }
}

/// List the summaries of a session
///
/// All versions, the oldest first.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/summaries",
    operation_id = "list_summaries",
    tag = "sessions",
    params(("id" = String, Path, description = "The session")),
    responses((status = 200, body = List<SummaryJson>, description = "Summaries"))
)]
async fn summaries(
    State(service): State<Service>,
    caller: Caller<Read>,
    Named(id): Named<String>,
) -> Result<Json<List<SummaryJson>>, Failure> {
    let thread = Thread::to_read(&service.app.engine, &caller, &id).await?;
    let found = service.app.engine.sessions.summaries(&thread.scope, &thread.session).await?;
    Ok(Json(List { items: found.iter().map(SummaryJson::of).collect(), next_cursor: None }))
}
