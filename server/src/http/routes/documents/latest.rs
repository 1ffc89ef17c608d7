//! Putting a document, reading the latest one, and erasing it.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use throughline_core::Error;
use throughline_core::document::text_of_facets;
use throughline_core::ids::{ActorId, ContextId};
use throughline_core::services::documents::{PutDocument, PutOutcome};
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::OfMemory;
use super::conditions::{expected, has_already};
use super::forms::{ACTOR_ID, DocumentBody, PutJson, SnapshotJson, answer, told};
use crate::http::caller::{Caller, Read, Write};
use crate::http::extract::{Named, Params};
use crate::http::routes::sessions::ErasedJson;
use crate::http::service::Service;
use crate::http::written::Written;
use crate::wire::problem::Failure;

pub(super) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(put, show)).routes(routes!(erase))
}

/// The parameters of a put.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Putting {
    /// The caller's id of the snapshot; generated if not given. Repeating it with the same text is safe; with a
    /// different text it is a conflict.
    #[param(min_length = 1, max_length = 200)]
    context_id: Option<String>,
    /// The writer: an agent, a program or a person; the user if not given.
    #[param(min_length = 1, max_length = 200)]
    actor_id: Option<String>,
    /// Converts a JSON object, the old format, into text with a heading for each facet. Without it an object is
    /// refused.
    migrate: Option<bool>,
}

/// Put a document
///
/// Send the whole document as text. Its vault and memory are created if needed. If the latest snapshot already has this
/// text, nothing is written. To avoid undoing another writer's change, send `If-Match` with the etag that you read: if
/// it is stale, the answer is 412 and nothing is stored.
#[utoipa::path(
    put,
    path = "/v1/vaults/{vault}/memories/{memory}/context",
    operation_id = "put_document",
    tag = "documents",
    params(
        ("vault" = String, Path, description = "The vault"),
        ("memory" = String, Path, description = "The memory"),
        Putting,
        ("If-Match" = Option<String>, Header, description = "The etag that the latest snapshot must have"),
        ("If-None-Match" = Option<String>, Header, description = "`*`: no document may exist yet"),
    ),
    request_body(content(
        (String = "text/plain", example = json!("# Facts\n- CEO = Bob (2025-07-05)\n")),
        (String = "application/json", example = json!("# Facts\n- CEO = Bob (2025-07-05)\n"))
    )),
    responses(
        (status = 201, body = Written<PutJson>, description = "The memory's first snapshot"),
        (status = 200, body = Written<PutJson>, description = "A new snapshot, or the one that already has \
             the text"),
        (status = 412, body = crate::wire::problem::Problem, content_type = "application/problem+json",
            description = "The latest snapshot has changed: read it again, then repeat the put")
    )
)]
async fn put(
    State(service): State<Service>,
    caller: Caller<Write>,
    Named(of): Named<OfMemory>,
    Params(putting): Params<Putting>,
    headers: HeaderMap,
    body: DocumentBody,
) -> Result<Response, Failure> {
    let scope = caller.scope()?;
    let (vault, memory) = of.ids()?;
    let text = match body {
        DocumentBody::Text(text) => text,
        DocumentBody::Facets(facets) if putting.migrate == Some(true) => text_of_facets(&facets)?,
        DocumentBody::Facets(_) => {
            return Err(Error::invalid(
                "the body is a JSON object, but a document is text: send a JSON string, or set \
                 `migrate=true` to convert the object's facets to sections",
            )
            .into());
        }
    };
    let most = service.app.engine.documents.limits().max_bytes;
    if text.len() > most {
        return Err(Failure::of_status(
            StatusCode::PAYLOAD_TOO_LARGE,
            Error::invalid(format!(
                "the document has {} bytes: at most {most} are allowed (`document.max_bytes`): \
                 shorten it",
                text.len()
            )),
        ));
    }
    let actor = putting.actor_id.unwrap_or_else(|| scope.user.to_string());
    let put = PutDocument {
        vault,
        memory,
        context: putting.context_id.map(ContextId::new).transpose()?,
        actor: ActorId::new(actor)?,
        text,
        expected: expected(&headers)?,
    };
    let (put, warnings) = service.app.put_document(&caller, put).await?;
    let status = match put.outcome {
        PutOutcome::Created => StatusCode::CREATED,
        _ => StatusCode::OK,
    };
    let info = put.snapshot.info;
    let mut headers = told(&info);
    if !caller.may_read() {
        headers.remove(ACTOR_ID);
    }
    let put = Written::of(&caller, PutJson::of(info, put.outcome, warnings));
    Ok((status, headers, Json(put)).into_response())
}

/// Show the latest document
///
/// Returns plain text, byte for byte as stored; with `Accept: application/json`, JSON with ids, etag and time.
#[utoipa::path(
    get,
    path = "/v1/vaults/{vault}/memories/{memory}/context",
    operation_id = "get_document",
    tag = "documents",
    params(
        ("vault" = String, Path, description = "The vault"),
        ("memory" = String, Path, description = "The memory"),
        ("If-None-Match" = Option<String>, Header, description = "Etags that the caller already \
             has"),
    ),
    responses(
        (status = 200, description = "The latest snapshot", content(
            (String = "text/plain"), (SnapshotJson = "application/json")
        )),
        (status = 304, description = "The caller already has it")
    )
)]
async fn show(
    State(service): State<Service>,
    caller: Caller<Read>,
    Named(of): Named<OfMemory>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let (vault, memory) = of.ids()?;
    let latest = service.app.engine.documents.latest(&caller.scope()?, &vault, &memory).await?;
    if has_already(&headers, &latest.info.etag) {
        return Ok((StatusCode::NOT_MODIFIED, told(&latest.info)).into_response());
    }
    Ok(answer(&headers, latest))
}

/// Erase a document
///
/// Erases it with its whole history, index entries and vectors. It cannot be undone, and restoring a backup does not
/// bring it back.
#[utoipa::path(
    delete,
    path = "/v1/vaults/{vault}/memories/{memory}",
    operation_id = "erase_document",
    tag = "documents",
    params(
        ("vault" = String, Path, description = "The vault"),
        ("memory" = String, Path, description = "The memory"),
        ("If-Match" = Option<String>, Header, description = "Erase only if the latest snapshot \
             has one of these etags, so that newer snapshots stay")
    ),
    responses(
        (status = 200, body = ErasedJson, description = "What was removed"),
        (status = 412, body = crate::wire::problem::Problem, content_type = "application/problem+json",
            description = "The latest snapshot has changed: nothing was removed")
    )
)]
async fn erase(
    State(service): State<Service>,
    caller: Caller<Write>,
    Named(of): Named<OfMemory>,
    headers: HeaderMap,
) -> Result<Json<ErasedJson>, Failure> {
    let (vault, memory) = of.ids()?;
    let expected = expected(&headers)?;
    let erased = service.app.erase_document(&caller, &vault, &memory, &expected).await?;
    Ok(Json(ErasedJson::from(&erased)))
}
