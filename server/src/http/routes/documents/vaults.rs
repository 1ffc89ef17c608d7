//! Vaults and their memories: listed and searched.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use throughline_core::Error;
use throughline_core::context::DocumentCandidate;
use throughline_core::document::{Memory, Vault};
use throughline_core::ids::VaultId;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::forms::SnapshotInfoJson;
use crate::http::caller::{Caller, Read};
use crate::http::extract::{Named, Params};
use crate::http::routes::{List, ListQuery, Paging};
use crate::http::service::Service;
use crate::wire::problem::Failure;

/// Passages of a search that names no limit.
const DEFAULT_FOUND: usize = 10;
/// Most passages of a search.
const MOST_FOUND: usize = 50;
/// Most characters of a search.
const MOST_ASKED: usize = 10_000;

pub(super) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(memories)).routes(routes!(search))
}

/// A collection of memories.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "vault_id": "work", "memory_count": 3, "updated_at": "2026-03-02T09:14:00Z"
}))]
pub(super) struct VaultJson {
    /// The caller's id.
    vault_id: String,
    /// Number of its memories.
    memory_count: u64,
    /// When one of its documents last changed.
    #[schema(format = DateTime)]
    updated_at: String,
}

impl From<Vault> for VaultJson {
    fn from(vault: Vault) -> Self {
        Self {
            vault_id: vault.id.to_string(),
            memory_count: vault.memories,
            updated_at: vault.updated_at.to_rfc3339(),
        }
    }
}

/// A memory.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct MemoryJson {
    /// Its id.
    memory_id: String,
    /// Number of stored snapshots.
    snapshot_count: u64,
    /// Its latest snapshot.
    latest: SnapshotInfoJson,
}

impl From<Memory> for MemoryJson {
    fn from(memory: Memory) -> Self {
        Self {
            memory_id: memory.latest.memory.to_string(),
            snapshot_count: memory.snapshots,
            latest: memory.latest.into(),
        }
    }
}

/// List vaults
///
/// In the order in which they got their first document.
#[utoipa::path(
    get,
    path = "/v1/vaults",
    operation_id = "list_vaults",
    tag = "documents",
    params(Paging),
    responses((status = 200, body = List<VaultJson>, description = "Vaults"))
)]
async fn list(
    State(service): State<Service>,
    caller: Caller<Read>,
    asked: ListQuery,
) -> Result<Json<List<VaultJson>>, Failure> {
    let found = service.app.engine.documents.vaults(&caller.scope()?, &asked.page).await?;
    Ok(Json(asked.list(found, VaultJson::from)))
}

/// List the memories of a vault
///
/// In the order in which they got their first document.
#[utoipa::path(
    get,
    path = "/v1/vaults/{vault}/memories",
    operation_id = "list_memories",
    tag = "documents",
    params(("vault" = String, Path, description = "The vault"), Paging),
    responses((status = 200, body = List<MemoryJson>, description = "Memories"))
)]
async fn memories(
    State(service): State<Service>,
    caller: Caller<Read>,
    Named(vault): Named<String>,
    asked: ListQuery,
) -> Result<Json<List<MemoryJson>>, Failure> {
    let vault = VaultId::new(vault)?;
    let found =
        service.app.engine.documents.memories(&caller.scope()?, &vault, &asked.page).await?;
    Ok(Json(asked.list(found, MemoryJson::from)))
}

/// The parameters of a search.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Asking {
    /// Keywords or a question.
    #[param(min_length = 1, max_length = 10_000)]
    q: String,
    /// Maximum number of passages, 1 to 50; default 10.
    #[param(minimum = 1, maximum = 50)]
    limit: Option<usize>,
}

/// A passage found by a search.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DocumentHitJson {
    /// The memory of the document.
    memory_id: String,
    /// Its latest snapshot.
    context_id: String,
    /// The section that contains it.
    section: String,
    /// The heading of the section.
    title: String,
    /// Byte offset in the document.
    offset: usize,
    /// The passage, as stored.
    text: String,
    /// Relevance; comparable only within one response.
    score: f32,
    /// Its name in a context.
    source: String,
}

impl From<DocumentCandidate> for DocumentHitJson {
    fn from(found: DocumentCandidate) -> Self {
        Self {
            text: found.text().into_owned(),
            source: found.source().to_string(),
            memory_id: found.snapshot.info.memory.to_string(),
            context_id: found.snapshot.info.context.to_string(),
            section: found.passage.slug.to_string(),
            title: found.passage.title.to_string(),
            offset: found.passage.range.start,
            score: found.score,
        }
    }
}

/// The result of a search.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DocumentHitsJson {
    /// Ordered by relevance.
    items: Vec<DocumentHitJson>,
}

/// Search the documents of a vault
///
/// Keyword and semantic search in the latest snapshot of each memory.
#[utoipa::path(
    get,
    path = "/v1/vaults/{vault}/search",
    operation_id = "search_vault",
    tag = "documents",
    params(("vault" = String, Path, description = "The vault"), Asking),
    responses((status = 200, body = DocumentHitsJson, description = "Passages"))
)]
async fn search(
    State(service): State<Service>,
    caller: Caller<Read>,
    Named(vault): Named<String>,
    Params(asking): Params<Asking>,
) -> Result<Json<DocumentHitsJson>, Failure> {
    let vault = VaultId::new(vault)?;
    let limit = asking.limit.unwrap_or(DEFAULT_FOUND);
    if !(1..=MOST_FOUND).contains(&limit) {
        return Err(Error::invalid(format!("limit must be 1 to {MOST_FOUND}")).into());
    }
    if asking.q.chars().count() > MOST_ASKED {
        return Err(Error::invalid(format!("q: at most {MOST_ASKED} characters")).into());
    }
    let scope = caller.scope()?;
    let found = service.app.engine.documents.search(&scope, Some(&vault), &asking.q, limit).await?;
    Ok(Json(DocumentHitsJson { items: found.into_iter().map(DocumentHitJson::from).collect() }))
}
