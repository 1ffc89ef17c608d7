//! Contexts that several users of a tenant share.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use throughline_core::ids::SessionId;
use throughline_core::{Result, Scope};
use throughline_engine::app::{PersonaThread, personas};
use throughline_engine::identity::Identity;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::caller::{Caller, Read, Write};
use crate::http::extract::{Body, Named};
use crate::http::routes::shares::{ShareJson, ShareWith, grant, grant_of};
use crate::http::service::Service;
use crate::http::written::Written;
use crate::wire::problem::Failure;

pub(super) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(show, share, unshare))
}

/// The session of a context of the caller.
async fn session_of(service: &Service, caller: &Identity, id: &str) -> Result<(Scope, SessionId)> {
    let engine = &service.app.engine;
    let PersonaThread { scope, id, .. } = PersonaThread::own(engine, caller, id).await?;
    let session = personas(engine, caller).get(&scope, id).await?.session;
    Ok((scope, session))
}

/// Show the grant of a shared context
#[utoipa::path(
    get,
    path = "/v1/contexts/{id}/share",
    operation_id = "get_context_share",
    tag = "sharing",
    params(("id" = String, Path, format = "uuid", description = "The context")),
    responses((status = 200, body = ShareJson, description = "The grant"))
)]
async fn show(
    State(service): State<Service>,
    caller: Caller<Read>,
    Named(id): Named<String>,
) -> Result<Json<ShareJson>, Failure> {
    let (scope, session) = session_of(&service, &caller, &id).await?;
    Ok(Json(grant_of(&service, &scope, &session).await?))
}

/// Share a context
///
/// Share it with exactly these users of the tenant; they use the id that is returned. They read its conversation and, if
/// it is writable, chat with it and rate answers. They see neither its prompt nor anything else of the owner's memory,
/// except what the context itself answered from it. What they say bears their name, and does not become facts of the
/// owner.
#[utoipa::path(
    put,
    path = "/v1/contexts/{id}/share",
    operation_id = "share_context",
    tag = "sharing",
    params(("id" = String, Path, format = "uuid", description = "The context")),
    request_body = ShareWith,
    responses((status = 200, body = Written<ShareJson>, description = "The grant"))
)]
async fn share(
    State(service): State<Service>,
    caller: Caller<Write>,
    Named(id): Named<String>,
    body: Body<ShareWith>,
) -> Result<Json<Written<ShareJson>>, Failure> {
    let (scope, session) = session_of(&service, &caller, &id).await?;
    Ok(Json(grant(&service, &caller, (&scope, &session), body.value).await?))
}

/// Stop sharing a context
#[utoipa::path(
    delete,
    path = "/v1/contexts/{id}/share",
    operation_id = "unshare_context",
    tag = "sharing",
    params(("id" = String, Path, format = "uuid", description = "The context")),
    responses((status = 204, description = "The context is no longer shared"))
)]
async fn unshare(
    State(service): State<Service>,
    caller: Caller<Write>,
    Named(id): Named<String>,
) -> Result<StatusCode, Failure> {
    let (scope, session) = session_of(&service, &caller, &id).await?;
    service.app.engine.shares.unshare(caller.by(), &scope, &session).await?;
    Ok(StatusCode::NO_CONTENT)
}
