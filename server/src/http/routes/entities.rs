//! Entities of a session.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use throughline_core::entity::Entity;
use throughline_engine::app::Thread;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{Limit, List};
use crate::http::caller::{Caller, Read};
use crate::http::extract::{Named, Params};
use crate::http::service::Service;
use crate::wire::problem::Failure;

pub(crate) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(entities))
}

/// A typed value found in a session.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "0193d2f0-5a3c-7b1e-9c55-0b1f6a1f0c12", "type": "date", "value": "21 May",
    "sources": ["msg:0193d2f0-5a3c-7b1e-9c55-0b1f6a1f0c11"], "last_at": "2026-03-02T09:14:00Z"
}))]
pub(crate) struct EntityJson {
    id: String,
    /// `address`, `name`, `date`, `project`, `email`, `url`, `id`, `money` or `phone`.
    r#type: &'static str,
    value: String,
    /// The latest messages that contain it.
    sources: Vec<String>,
    #[schema(format = DateTime)]
    last_at: String,
}

impl EntityJson {
    pub(super) fn of(entity: Entity) -> Self {
        Self {
            id: entity.id.to_string(),
            r#type: entity.kind.as_str(),
            value: entity.value,
            sources: entity.sources.iter().map(|id| format!("msg:{id}")).collect(),
            last_at: entity.last_at.to_rfc3339(),
        }
    }
}

/// List the entities of a session
///
/// The most recently seen first.
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/entities",
    operation_id = "list_entities",
    tag = "sessions",
    params(("id" = String, Path, description = "The session"), Limit),
    responses((status = 200, body = List<EntityJson>, description = "Entities"))
)]
async fn entities(
    State(service): State<Service>,
    caller: Caller<Read>,
    Named(id): Named<String>,
    Params(limit): Params<Limit>,
) -> Result<Json<List<EntityJson>>, Failure> {
    let thread = Thread::to_read(&service.app.engine, &caller, &id).await?;
    let sessions = &service.app.engine.sessions;
    let found = sessions.entities(&thread.scope, &thread.session, limit.get()?).await?;
    Ok(Json(List { items: found.into_iter().map(EntityJson::of).collect(), next_cursor: None }))
}
