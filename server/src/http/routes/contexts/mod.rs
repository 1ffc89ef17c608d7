//! Contexts with a fixed character (in code: personas): their lives.

mod chat;
pub(super) mod conversations;
pub(super) mod forms;
mod ratings;
mod shares;
pub(super) mod transfers;

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use throughline_core::persona::NewPersona;
use throughline_core::services::personas::{FromPreset, PersonaFilter};
use throughline_core::{Error, Result};
use throughline_engine::app::{DeletedPersona, personas};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::sessions::ErasedJson;
use super::templates::filled;
use super::{List, Paging};
use crate::http::caller::{Caller, Read, Write};
use crate::http::extract::{Body, Named, Params, Repeat};
use crate::http::service::Service;
use crate::http::written::Written;
use crate::wire::problem::Failure;
use forms::{ContextChangeJson, ContextJson, NewContextJson};

pub(crate) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(show, change, delete))
        .routes(routes!(extend))
        .routes(routes!(restore))
        .merge(chat::router())
        .merge(conversations::router())
        .merge(ratings::router())
        .merge(shares::router())
        .merge(transfers::router())
}

/// Longest tag, in bytes.
const MOST_TAG_BYTES: usize = 64;

/// Which contexts.
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
    /// Only contexts with this tag.
    #[param(min_length = 1, max_length = 64)]
    tag: Option<String>,
    /// Whether to include expired contexts.
    #[serde(default)]
    include_expired: bool,
    /// Whether to include deleted contexts that can be restored.
    #[serde(default)]
    include_deleted: bool,
}

/// Which version of a context is to be deleted, and whether for good.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct How {
    /// The version that you read; if it has changed, the call is a conflict.
    #[param(minimum = 1)]
    version: Option<u64>,
    /// Whether to erase it at once, with its conversation and backups; it cannot be restored.
    #[serde(default)]
    permanent: bool,
}

/// The result of a deletion.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"context": null, "erased": null}))]
pub(crate) struct DeletedJson {
    /// The context, which can be restored until its grace period ends.
    context: Option<Written<ContextJson>>,
    /// The erased counts.
    erased: Option<ErasedJson>,
}

/// How much to extend a context.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"days": 7}))]
pub(crate) struct ExtendJson {
    /// Days; the context's own `expiry_days` if not given.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 3650)]
    days: Option<u32>,
}

/// Create a context
///
/// Give a name and a prompt, or a preset and what to override, or a template and its fields. Its conversation is a session. `findings` lists
/// problems of its prompt.
#[utoipa::path(
    post,
    path = "/v1/contexts",
    operation_id = "create_context",
    tag = "contexts",
    request_body = NewContextJson,
    responses((status = 201, body = Written<ContextJson>, description = "The context"))
)]
async fn create(
    State(service): State<Service>,
    caller: Caller<Write>,
    repeat: Repeat,
    body: Body<NewContextJson>,
) -> Result<(StatusCode, Json<Written<ContextJson>>), Failure> {
    let idempotency = repeat.of(&body);
    let (scope, personas) = (caller.scope()?, personas(&service.app.engine, &caller));
    let new = body.value;
    let settings = new.settings();
    let template = filled(new.template_id.as_deref(), &new.fields, settings)?;
    let made = match (new.preset_id, template) {
        (Some(_), Some(_)) => {
            return Err(Error::invalid("give either preset_id or template_id, not both").into());
        }
        (Some(_), None) | (None, Some(_))
            if new.system_prompt.is_some() || new.personality.is_some() =>
        {
            return Err(Error::invalid(
                "with `preset_id` or `template_id`, leave out `system_prompt` and `personality`; change them with PATCH",
            )
            .into());
        }
        (None, Some(template)) => {
            let new = NewPersona {
                name: new.name.unwrap_or(template.name),
                system_prompt: template.system_prompt,
                personality: template.personality,
                settings: template.settings,
                memory: new.memory,
                tags: new.tags,
            };
            personas.create(&scope, new, idempotency).await?
        }
        (Some(preset), None) => {
            let from = FromPreset {
                preset: preset.parse()?,
                name: new.name,
                settings,
                memory: new.memory,
                tags: new.tags,
            };
            personas.create_from_preset(&scope, from, idempotency).await?
        }
        (None, None) => {
            let lacking = |field: &str| {
                Error::invalid(format!("{field}: is required without preset_id or template_id"))
            };
            let new = NewPersona {
                name: new.name.ok_or_else(|| lacking("name"))?,
                system_prompt: new.system_prompt.ok_or_else(|| lacking("system_prompt"))?,
                personality: new.personality.unwrap_or_default(),
                settings,
                memory: new.memory,
                tags: new.tags,
            };
            personas.create(&scope, new, idempotency).await?
        }
    };
    let made = ContextJson::of(&service, made.value);
    Ok((StatusCode::CREATED, Json(Written::of(&caller, made))))
}

/// The tag that a list is asked for by.
fn checked_tag(tag: Option<String>) -> Result<Option<String>> {
    match tag {
        Some(tag) if !(1..=MOST_TAG_BYTES).contains(&tag.len()) => {
            Err(Error::invalid(format!("tag: 1 to {MOST_TAG_BYTES} bytes")))
        }
        tag => Ok(tag),
    }
}

/// List contexts
///
/// In the order of creation.
#[utoipa::path(
    get,
    path = "/v1/contexts",
    operation_id = "list_contexts",
    tag = "contexts",
    params(Which),
    responses((status = 200, body = List<ContextJson>, description = "Contexts"))
)]
async fn list(
    State(service): State<Service>,
    caller: Caller<Read>,
    Params(which): Params<Which>,
) -> Result<Json<List<ContextJson>>, Failure> {
    let slice = Paging { limit: which.limit, cursor: which.cursor }.slice()?;
    let filter = PersonaFilter {
        tag: checked_tag(which.tag)?,
        include_expired: which.include_expired,
        include_deleted: which.include_deleted,
    };
    let found = service.app.engine.personas.list(&caller.scope()?, &filter, slice).await?;
    Ok(Json(List::of_slice(found, |persona| ContextJson::of(&service, persona))))
}

/// Show a context
#[utoipa::path(
    get,
    path = "/v1/contexts/{id}",
    operation_id = "get_context",
    tag = "contexts",
    params(("id" = String, Path, format = "uuid", description = "The context")),
    responses((status = 200, body = ContextJson, description = "The context"))
)]
async fn show(
    State(service): State<Service>,
    caller: Caller<Read>,
    Named(id): Named<String>,
) -> Result<Json<ContextJson>, Failure> {
    let (scope, personas) = (caller.scope()?, personas(&service.app.engine, &caller));
    let id = personas.id_of(&scope, &id).await?;
    Ok(Json(ContextJson::of(&service, personas.get(&scope, id).await?)))
}

/// Change a context
///
/// Fields that are not given stay. With `expected_version`, only that version is changed.
#[utoipa::path(
    patch,
    path = "/v1/contexts/{id}",
    operation_id = "change_context",
    tag = "contexts",
    params(("id" = String, Path, format = "uuid", description = "The context")),
    request_body = ContextChangeJson,
    responses((status = 200, body = Written<ContextJson>, description = "The context"))
)]
async fn change(
    State(service): State<Service>,
    caller: Caller<Write>,
    Named(id): Named<String>,
    body: Body<ContextChangeJson>,
) -> Result<Json<Written<ContextJson>>, Failure> {
    let (scope, personas) = (caller.scope()?, personas(&service.app.engine, &caller));
    let id = personas.id_of(&scope, &id).await?;
    let (change, expected) = body.value.change();
    let changed = personas.update(&scope, id, &change, expected).await?;
    Ok(Json(Written::of(&caller, ContextJson::of(&service, changed.value))))
}

/// Delete a context
///
/// The context is backed up and hidden, and can be restored until its grace period ends; then it is
/// erased with its conversation. With `permanent`, it is erased now.
#[utoipa::path(
    delete,
    path = "/v1/contexts/{id}",
    operation_id = "delete_context",
    tag = "contexts",
    params(("id" = String, Path, format = "uuid", description = "The context"), How),
    responses((status = 200, body = DeletedJson, description = "What was done"))
)]
async fn delete(
    State(service): State<Service>,
    caller: Caller<Write>,
    Named(id): Named<String>,
    Params(how): Params<How>,
) -> Result<Json<DeletedJson>, Failure> {
    let (scope, personas) = (caller.scope()?, personas(&service.app.engine, &caller));
    let id = personas.id_of(&scope, &id).await?;
    let deleted = service.app.delete_persona(&caller, id, how.version, how.permanent).await?;
    Ok(Json(match deleted {
        DeletedPersona::Erased(erased) => {
            DeletedJson { context: None, erased: Some(ErasedJson::from(&erased)) }
        }
        DeletedPersona::Hidden(persona) => DeletedJson {
            context: Some(Written::of(&caller, ContextJson::of(&service, *persona))),
            erased: None,
        },
    }))
}

/// Extend a context
///
/// Postpones its expiry by a number of days, counted from now if it has expired.
#[utoipa::path(
    post,
    path = "/v1/contexts/{id}/extend",
    operation_id = "extend_context",
    tag = "contexts",
    params(("id" = String, Path, format = "uuid", description = "The context")),
    request_body = ExtendJson,
    responses((status = 200, body = Written<ContextJson>, description = "The context"))
)]
async fn extend(
    State(service): State<Service>,
    caller: Caller<Write>,
    Named(id): Named<String>,
    repeat: Repeat,
    body: Body<ExtendJson>,
) -> Result<Json<Written<ContextJson>>, Failure> {
    let (scope, personas) = (caller.scope()?, personas(&service.app.engine, &caller));
    let id = personas.id_of(&scope, &id).await?;
    let idempotency = repeat.of(&body);
    let extended = personas.extend_once(&scope, id, body.value.days, idempotency).await?;
    Ok(Json(Written::of(&caller, ContextJson::of(&service, extended))))
}

/// Restore a context
///
/// Restores a deleted context whose grace period has not ended. Its expiry counts from now.
#[utoipa::path(
    post,
    path = "/v1/contexts/{id}/restore",
    operation_id = "restore_context",
    tag = "contexts",
    params(("id" = String, Path, format = "uuid", description = "The context")),
    responses((status = 200, body = Written<ContextJson>, description = "The context"))
)]
async fn restore(
    State(service): State<Service>,
    caller: Caller<Write>,
    Named(id): Named<String>,
) -> Result<Json<Written<ContextJson>>, Failure> {
    let (scope, personas) = (caller.scope()?, personas(&service.app.engine, &caller));
    let id = personas.id_of(&scope, &id).await?;
    let restored = ContextJson::of(&service, personas.restore(&scope, id).await?);
    Ok(Json(Written::of(&caller, restored)))
}
