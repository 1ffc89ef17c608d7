//! Snapshots: listed, read, compared.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::Response;
use serde::{Deserialize, Serialize};
use throughline_core::ids::ContextId;
use throughline_core::services::documents::DocumentDiff;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::OfMemory;
use super::forms::{SnapshotInfoJson, SnapshotJson, answer};
use crate::http::caller::{Caller, Read};
use crate::http::extract::{Named, Params};
use crate::http::routes::{List, ListQuery, Paging};
use crate::http::service::Service;
use crate::wire::problem::Failure;

pub(super) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(show)).routes(routes!(compare))
}

/// List the snapshots of a document
///
/// The newest first, without their texts. The setting `document.kept` limits their number.
#[utoipa::path(
    get,
    path = "/v1/vaults/{vault}/memories/{memory}/contexts",
    operation_id = "list_snapshots",
    tag = "documents",
    params(
        ("vault" = String, Path, description = "The vault"),
        ("memory" = String, Path, description = "The memory"),
        Paging
    ),
    responses((status = 200, body = List<SnapshotInfoJson>, description = "Snapshots"))
)]
async fn list(
    State(service): State<Service>,
    caller: Caller<Read>,
    Named(of): Named<OfMemory>,
    asked: ListQuery,
) -> Result<Json<List<SnapshotInfoJson>>, Failure> {
    let (vault, memory) = of.ids()?;
    let scope = caller.scope()?;
    let found = service.app.engine.documents.history(&scope, &vault, &memory, &asked.page).await?;
    Ok(Json(asked.list(found, SnapshotInfoJson::from)))
}

/// The names of a snapshot in a path.
#[derive(Debug, Deserialize)]
struct OfSnapshot {
    vault: String,
    memory: String,
    context: String,
}

/// Show a snapshot
///
/// In the same formats as the latest document.
#[utoipa::path(
    get,
    path = "/v1/vaults/{vault}/memories/{memory}/contexts/{context}",
    operation_id = "get_snapshot",
    tag = "documents",
    params(
        ("vault" = String, Path, description = "The vault"),
        ("memory" = String, Path, description = "The memory"),
        ("context" = String, Path, description = "The snapshot")
    ),
    responses((status = 200, description = "The snapshot", content(
        (String = "text/plain"), (SnapshotJson = "application/json")
    )))
)]
async fn show(
    State(service): State<Service>,
    caller: Caller<Read>,
    Named(OfSnapshot { vault, memory, context }): Named<OfSnapshot>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let (vault, memory) = OfMemory { vault, memory }.ids()?;
    let (scope, context) = (caller.scope()?, ContextId::new(context)?);
    let found = service.app.engine.documents.snapshot(&scope, &vault, &memory, &context).await?;
    Ok(answer(&headers, found))
}

/// Which snapshots are compared.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Between {
    /// The older snapshot.
    #[param(min_length = 1, max_length = 200)]
    from: String,
    /// The newer snapshot; default the latest.
    #[param(min_length = 1, max_length = 200)]
    to: Option<String>,
}

/// The difference between two snapshots.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DiffJson {
    /// The older snapshot.
    from: SnapshotInfoJson,
    /// The newer snapshot.
    to: SnapshotInfoJson,
    /// By lines, in the unified format; empty if the texts are equal.
    diff: String,
}

/// Compare two snapshots
#[utoipa::path(
    get,
    path = "/v1/vaults/{vault}/memories/{memory}/diff",
    operation_id = "diff_snapshots",
    tag = "documents",
    params(
        ("vault" = String, Path, description = "The vault"),
        ("memory" = String, Path, description = "The memory"),
        Between
    ),
    responses((status = 200, body = DiffJson, description = "What changed"))
)]
async fn compare(
    State(service): State<Service>,
    caller: Caller<Read>,
    Named(of): Named<OfMemory>,
    Params(between): Params<Between>,
) -> Result<Json<DiffJson>, Failure> {
    let (vault, memory) = of.ids()?;
    let from = ContextId::new(between.from)?;
    let to = between.to.map(ContextId::new).transpose()?;
    let ends = (&from, to.as_ref());
    let found = service.app.engine.documents.diff(&caller.scope()?, &vault, &memory, ends).await?;
    let DocumentDiff { from, to, diff } = found;
    Ok(Json(DiffJson { from: from.into(), to: to.into(), diff }))
}
