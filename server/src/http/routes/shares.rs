//! Sessions and contexts that several users of a tenant share.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use throughline_core::ids::{SessionId, UserId};
use throughline_core::page::Page;
use throughline_core::persona::Persona;
use throughline_core::session::Share;
use throughline_core::{Error, Result, Scope};
use throughline_engine::app::Thread;
use throughline_engine::identity::Identity;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{List, ListQuery, Paging};
use crate::http::caller::{Caller, Read, Write};
use crate::http::extract::{Body, Named};
use crate::http::service::Service;
use crate::http::written::{Receipt, Written};
use crate::wire::problem::Failure;

pub(crate) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(show, share, unshare)).routes(routes!(shared))
}

/// The grant of a shared session or context.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "session": "share:0193d2f0-5a3c-7b1e-9c55-0b1f6a1f0c16", "context": null, "owner": "ana",
    "members": ["bo"], "writable": true, "created_at": "2026-03-02T09:14:00Z"
}))]
pub(crate) struct ShareJson {
    /// The id of the session for its members; of a context, also its id as a context.
    session: String,
    /// The name of the context, if it is one.
    context: Option<String>,
    /// The owner.
    owner: String,
    /// The users that it is shared with; if somebody else shares it, only the caller is named.
    members: Vec<String>,
    /// Whether they may append, or chat with the context.
    writable: bool,
    #[schema(format = DateTime)]
    created_at: String,
}

impl ShareJson {
    async fn of(service: &Service, share: Share) -> Result<Self> {
        let context = match Persona::of_session(&share.session) {
            Some(id) => service.app.engine.store.persona(&share.owner, id).await?,
            None => None,
        };
        Ok(Self {
            session: format!("share:{}", share.id),
            context: context.map(|context| context.name),
            owner: share.owner.user.to_string(),
            members: share.members.iter().map(ToString::to_string).collect(),
            writable: share.writable,
            created_at: share.created_at.to_rfc3339(),
        })
    }
}

impl From<ShareJson> for Receipt {
    fn from(share: ShareJson) -> Self {
        Self { session: Some(share.session), ..Self::default() }
    }
}

/// The users to share with.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"members": ["bo"], "writable": true}))]
pub(crate) struct ShareWith {
    /// 1 to 100 users of the tenant; replaces earlier ones.
    #[schema(min_items = 1, max_items = 100)]
    members: Vec<String>,
    /// Whether they may also append, or chat with the context.
    #[serde(default)]
    writable: bool,
}

/// Show the grant of a shared session
#[utoipa::path(
    get,
    path = "/v1/sessions/{id}/share",
    operation_id = "get_share",
    tag = "sharing",
    params(("id" = String, Path, description = "The session")),
    responses((status = 200, body = ShareJson, description = "The grant"))
)]
async fn show(
    State(service): State<Service>,
    caller: Caller<Read>,
    Named(id): Named<String>,
) -> Result<Json<ShareJson>, Failure> {
    let (scope, session) = Thread::own(&caller, &id)?;
    Ok(Json(grant_of(&service, &scope, &session).await?))
}

/// The grant of what the caller shares.
pub(super) async fn grant_of(
    service: &Service,
    owner: &Scope,
    session: &SessionId,
) -> Result<ShareJson> {
    let share = service.app.engine.shares.of(owner, session).await?;
    let share = share.ok_or_else(|| Error::not_found("not shared: share it with PUT"))?;
    ShareJson::of(service, share).await
}

/// Shares what is the caller's.
pub(super) async fn grant(
    service: &Service,
    caller: &Identity,
    (owner, session): (&Scope, &SessionId),
    with: ShareWith,
) -> Result<Written<ShareJson>> {
    let members = with.members.into_iter().map(UserId::new);
    let members = members.collect::<Result<BTreeSet<UserId>>>()?;
    let shares = &service.app.engine.shares;
    let share = shares.share(caller.by(), owner, session, members, with.writable).await?;
    Ok(Written::of(caller, ShareJson::of(service, share).await?))
}

/// Share a session
///
/// Share it with exactly these users of the tenant; they use the id that is returned. They see nothing else of the
/// owner's memory, and their messages do not become facts of the owner.
#[utoipa::path(
    put,
    path = "/v1/sessions/{id}/share",
    operation_id = "share_session",
    tag = "sharing",
    params(("id" = String, Path, description = "The session")),
    request_body = ShareWith,
    responses((status = 200, body = Written<ShareJson>, description = "The grant"))
)]
async fn share(
    State(service): State<Service>,
    caller: Caller<Write>,
    Named(id): Named<String>,
    body: Body<ShareWith>,
) -> Result<Json<Written<ShareJson>>, Failure> {
    let (scope, session) = Thread::own(&caller, &id)?;
    Ok(Json(grant(&service, &caller, (&scope, &session), body.value).await?))
}

/// Stop sharing a session
#[utoipa::path(
    delete,
    path = "/v1/sessions/{id}/share",
    operation_id = "unshare_session",
    tag = "sharing",
    params(("id" = String, Path, description = "The session")),
    responses((status = 204, description = "The session is no longer shared"))
)]
async fn unshare(
    State(service): State<Service>,
    caller: Caller<Write>,
    Named(id): Named<String>,
) -> Result<StatusCode, Failure> {
    let (scope, session) = Thread::own(&caller, &id)?;
    service.app.engine.shares.unshare(caller.by(), &scope, &session).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// List what others share with the caller
#[utoipa::path(
    get,
    path = "/v1/shared",
    operation_id = "list_shared",
    tag = "sharing",
    params(Paging),
    responses((status = 200, body = List<ShareJson>, description = "Grants"))
)]
async fn shared(
    State(service): State<Service>,
    caller: Caller<Read>,
    asked: ListQuery,
) -> Result<Json<List<ShareJson>>, Failure> {
    let scope = caller.scope()?;
    let page = service.app.engine.shares.with_user(&scope.tenant, &scope.user, &asked.page).await?;
    let mut grants = Vec::with_capacity(page.items.len());
    for mut share in page.items {
        share.members.retain(|member| *member == scope.user);
        grants.push(ShareJson::of(&service, share).await?);
    }
    let page = Page { items: grants, next_cursor: page.next_cursor };
    Ok(Json(asked.list(page, |grant| grant)))
}
