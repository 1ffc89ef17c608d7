//! API keys and the audit log of a tenant.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use throughline_core::access::{
    ApiKey, AuditEntry, KeyReach, KeyUser, NewKey, Permission, Permissions, Rate,
};
use throughline_core::ids::{KeyId, UserId, WorkspaceId};
use throughline_core::services::access::CreatedKey;
use throughline_core::time::Timestamp;
use throughline_core::{Error, Result};
use throughline_engine::identity::Identity;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{List, ListQuery, Paging};
use crate::http::caller::{Admin, Caller, Known};
use crate::http::extract::{Body, Named, Repeat};
use crate::http::service::Service;
use crate::wire::ActorJson;
use crate::wire::problem::Failure;

pub(crate) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(rotate))
        .routes(routes!(revoke))
        .routes(routes!(whoami))
        .routes(routes!(audit))
}

/// A permission of a key.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PermissionJson {
    /// Reading what is held, and assembling contexts.
    Read,
    /// Appending, correcting, erasing one's own.
    Write,
    /// Having a model answer.
    Chat,
    /// Keys, settings, the audit log and erasure of users, of the whole tenant.
    Admin,
}

impl From<PermissionJson> for Permission {
    fn from(permission: PermissionJson) -> Self {
        match permission {
            PermissionJson::Read => Self::Read,
            PermissionJson::Write => Self::Write,
            PermissionJson::Chat => Self::Chat,
            PermissionJson::Admin => Self::Admin,
        }
    }
}

impl From<Permission> for PermissionJson {
    fn from(permission: Permission) -> Self {
        match permission {
            Permission::Read => Self::Read,
            Permission::Write => Self::Write,
            Permission::Chat => Self::Chat,
            Permission::Admin => Self::Admin,
        }
    }
}

/// A key to create.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "name": "support backend", "any_user": true, "permissions": ["read", "write"]
}))]
pub(crate) struct NewKeyJson {
    /// A display name.
    #[serde(default)]
    #[schema(max_length = 200)]
    name: String,
    /// The user that it is bound to; if the caller's own key is bound to a user, the same.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 200)]
    user: Option<String>,
    /// Instead of `user`: the key acts for any user; each call names the user in the header
    /// `Throughline-User`.
    #[serde(default)]
    any_user: bool,
    /// The workspace that it is bound to; without it, each call may name one.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 200)]
    workspace: Option<String>,
    /// Its permissions; at most those of the caller's own key.
    #[schema(min_items = 1)]
    permissions: Vec<PermissionJson>,
    /// When it expires.
    #[serde(default)]
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    /// Calls allowed per minute; the server's setting if not given.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 100_000)]
    requests_per_minute: Option<u32>,
}

impl NewKeyJson {
    fn key(self) -> Result<NewKey> {
        let user = match (self.user, self.any_user) {
            (Some(user), false) => KeyUser::Is(UserId::new(user)?),
            (None, true) => KeyUser::Any,
            _ => {
                return Err(Error::invalid("give exactly one of `user` and `any_user`"));
            }
        };
        Ok(NewKey {
            user,
            workspace: self.workspace.map(WorkspaceId::new).transpose()?,
            permissions: self.permissions.into_iter().map(Permission::from).collect(),
            name: self.name,
            rate: self.requests_per_minute.map(|most| Rate { most, per: Duration::from_secs(60) }),
            expires_at: self.expires_at.as_deref().map(Timestamp::parse).transpose()?,
        })
    }
}

/// How to rotate.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"grace_seconds": 3600}))]
pub(crate) struct RotateJson {
    /// How long the old secret also stays valid, up to one week; if not given, it becomes invalid at once.
    #[serde(default)]
    #[schema(maximum = 604_800)]
    grace_seconds: u64,
}

/// A key, without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "4f3a9c01d2e8b765", "name": "support backend", "user": null, "any_user": true,
    "workspace": null, "permissions": ["read", "write"], "created_at": "2026-03-02T09:14:00Z",
    "expires_at": null, "revoked_at": null, "last_used_at": "2026-03-02T09:20:00Z"
}))]
pub(crate) struct KeyJson {
    id: String,
    name: String,
    /// The user that it is bound to.
    user: Option<String>,
    /// Whether it acts for any user of the tenant.
    any_user: bool,
    /// The workspace that it is bound to.
    workspace: Option<String>,
    permissions: Vec<PermissionJson>,
    #[schema(format = DateTime)]
    created_at: String,
    #[schema(format = DateTime)]
    expires_at: Option<String>,
    #[schema(format = DateTime)]
    revoked_at: Option<String>,
    /// Accurate to about a minute.
    #[schema(format = DateTime)]
    last_used_at: Option<String>,
}

impl KeyJson {
    fn of(key: ApiKey) -> Self {
        let text = |at: Option<Timestamp>| at.map(Timestamp::to_rfc3339);
        let (user, any_user) = match key.user {
            KeyUser::Is(user) => (Some(user.to_string()), false),
            KeyUser::Any => (None, true),
        };
        Self {
            id: key.id.to_string(),
            name: key.name,
            user,
            any_user,
            workspace: key.workspace.map(|name| name.to_string()),
            permissions: names(key.permissions),
            created_at: key.created_at.to_rfc3339(),
            expires_at: text(key.expires_at),
            revoked_at: text(key.revoked_at),
            last_used_at: text(key.last_used_at),
        }
    }
}

fn names(permissions: Permissions) -> Vec<PermissionJson> {
    permissions.iter().map(PermissionJson::from).collect()
}

/// A key with its secret, which is shown only once.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct CreatedKeyJson {
    /// The secret to send as `Authorization: Bearer …`.
    key: String,
    #[serde(flatten)]
    record: KeyJson,
}

impl From<CreatedKey> for CreatedKeyJson {
    fn from(created: CreatedKey) -> Self {
        Self { key: created.key, record: KeyJson::of(created.record) }
    }
}

/// Who the caller is.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "tenant": "acme", "user": "ana", "workspace": null, "permissions": ["read", "write"],
    "key": {"id": "4f3a9c01d2e8b765", "name": "support backend", "expires_at": null}
}))]
pub(crate) struct WhoAmI {
    tenant: String,
    /// The user that it acts for; null if the key acts for users and the call names none.
    user: Option<String>,
    workspace: Option<String>,
    permissions: Vec<PermissionJson>,
    /// The key; null for the local user.
    key: Option<WhichKey>,
}

/// A key that a caller uses.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct WhichKey {
    id: String,
    name: String,
    #[schema(format = DateTime)]
    expires_at: Option<String>,
}

/// One entry of the audit log.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "at": "2026-03-02T09:14:00Z", "key": "4f3a9c01d2e8b765", "action": "key.create",
    "target": "9a0b1c2d3e4f5061", "outcome": "done", "actor": "api"
}))]
pub(crate) struct AuditJson {
    #[schema(format = DateTime)]
    at: String,
    /// The key that was used; null for the operator.
    key: Option<String>,
    action: String,
    /// An opaque id.
    target: Option<String>,
    /// `done`, or the code of the error.
    outcome: String,
    actor: ActorJson,
}

impl AuditJson {
    fn of(entry: AuditEntry) -> Self {
        Self {
            at: entry.at.to_rfc3339(),
            key: entry.key.map(|id| id.to_string()),
            action: entry.action,
            target: entry.target,
            outcome: entry.outcome,
            actor: entry.actor.into(),
        }
    }
}

/// Refuses a key that reaches further than the caller's own. The local user's reaches everything.
async fn check_reach(
    service: &Service,
    caller: &Identity,
    action: &str,
    asked: KeyReach<'_>,
) -> Result<()> {
    let Some(own) = &caller.key else { return Ok(()) };
    let within = own.check_reach(asked);
    caller.refused(&service.app.engine, action, within).await
}

/// Create a key
///
/// The secret is shown only once; the store keeps only a hash. The key reaches no further than the caller's own: a key
/// that is bound to a user or a workspace creates and rotates only keys with the same, and one that expires none that last
/// longer.
#[utoipa::path(
    post,
    path = "/v1/keys",
    operation_id = "create_key",
    tag = "keys",
    request_body = NewKeyJson,
    responses((status = 201, body = CreatedKeyJson, description = "The key"))
)]
async fn create(
    State(service): State<Service>,
    caller: Caller<Admin>,
    repeat: Repeat,
    body: Body<NewKeyJson>,
) -> Result<(StatusCode, Json<CreatedKeyJson>), Failure> {
    let principal = &caller.principal;
    let new = body.value.key()?;
    check_reach(&service, &caller, "key.create", new.reach()).await?;
    // Equal keys of two tenants, or of two callers, are two.
    let repeat = repeat.hash().map(|hash| {
        let mut hasher = blake3::Hasher::new();
        hasher.update(principal.tenant.as_str().as_bytes()).update(&[0]);
        hasher.update(&principal.key.map_or(0, KeyId::to_bits).to_le_bytes()).update(&hash);
        let mut own = [0; 16];
        own.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        own
    });
    let access = &service.app.engine.access;
    let created = access.create(caller.by(), &principal.tenant, new, repeat).await?;
    Ok((StatusCode::CREATED, Json(created.into())))
}

/// List keys
///
/// In the order of creation, including revoked and expired keys.
#[utoipa::path(
    get,
    path = "/v1/keys",
    operation_id = "list_keys",
    tag = "keys",
    params(Paging),
    responses((status = 200, body = List<KeyJson>, description = "Keys"))
)]
async fn list(
    State(service): State<Service>,
    caller: Caller<Admin>,
    asked: ListQuery,
) -> Result<Json<List<KeyJson>>, Failure> {
    let page = service.app.engine.access.list(&caller.principal.tenant, &asked.page).await?;
    Ok(Json(asked.list(page, KeyJson::of)))
}

/// Rotate a key
///
/// The key gets a new secret, which is shown only once. It must reach no further than the caller's own.
#[utoipa::path(
    post,
    path = "/v1/keys/{id}/rotate",
    operation_id = "rotate_key",
    tag = "keys",
    params(("id" = String, Path, description = "The key's id, 16 hexadecimal digits")),
    request_body = RotateJson,
    responses((status = 200, body = CreatedKeyJson, description = "The key"))
)]
async fn rotate(
    State(service): State<Service>,
    caller: Caller<Admin>,
    Named(id): Named<String>,
    body: Body<RotateJson>,
) -> Result<Json<CreatedKeyJson>, Failure> {
    let id: KeyId = id.parse()?;
    let grace = Duration::from_secs(body.value.grace_seconds);
    let principal = &caller.principal;
    let access = &service.app.engine.access;
    let held = access.get(&principal.tenant, id).await?;
    check_reach(&service, &caller, "key.rotate", held.reach()).await?;
    Ok(Json(access.rotate(caller.by(), &principal.tenant, id, grace).await?.into()))
}

/// Revoke a key
///
/// Every server refuses the key from now on.
#[utoipa::path(
    delete,
    path = "/v1/keys/{id}",
    operation_id = "revoke_key",
    tag = "keys",
    params(("id" = String, Path, description = "The key's id, 16 hexadecimal digits")),
    responses((status = 200, body = KeyJson, description = "The key"))
)]
async fn revoke(
    State(service): State<Service>,
    caller: Caller<Admin>,
    Named(id): Named<String>,
) -> Result<Json<KeyJson>, Failure> {
    let id: KeyId = id.parse()?;
    let principal = &caller.principal;
    let revoked = service.app.engine.access.revoke(caller.by(), &principal.tenant, id).await?;
    Ok(Json(KeyJson::of(revoked)))
}

/// Show who the caller is
#[utoipa::path(
    get,
    path = "/v1/whoami",
    operation_id = "whoami",
    tag = "keys",
    responses((status = 200, body = WhoAmI, description = "The caller"))
)]
async fn whoami(caller: Caller<Known>) -> Json<WhoAmI> {
    let Identity { principal, key, .. } = Identity::clone(&caller);
    Json(WhoAmI {
        tenant: principal.tenant.to_string(),
        user: principal.user.map(|user| user.to_string()),
        workspace: principal.workspace.map(|workspace| workspace.to_string()),
        permissions: names(principal.permissions),
        key: key.map(|key| WhichKey {
            id: key.id.to_string(),
            name: key.name,
            expires_at: key.expires_at.map(Timestamp::to_rfc3339),
        }),
    })
}

/// List the audit log
///
/// Changes and refusals, the oldest first. The log contains no content.
#[utoipa::path(
    get,
    path = "/v1/audit",
    operation_id = "list_audit",
    tag = "tenant",
    params(Paging),
    responses((status = 200, body = List<AuditJson>, description = "Entries"))
)]
async fn audit(
    State(service): State<Service>,
    caller: Caller<Admin>,
    asked: ListQuery,
) -> Result<Json<List<AuditJson>>, Failure> {
    let page = service.app.engine.store.audit(&caller.principal.tenant, &asked.page).await?;
    Ok(Json(asked.list(page, AuditJson::of)))
}
