//! Sections of the latest document, by their headings.

use axum::Json;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use throughline_core::document::Section;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::OfMemory;
use super::conditions::wants_json;
use super::forms::{SnapshotInfoJson, plain, told};
use crate::http::caller::{Caller, Read};
use crate::http::extract::Named;
use crate::http::service::Service;
use crate::wire::problem::Failure;

pub(super) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(show))
}

/// The place of a section.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "section": "progress", "title": "Progress", "level": 1, "line": 7, "offset": 120, "bytes": 88
}))]
pub(super) struct SectionJson {
    /// Its name within the document, made from its heading.
    section: String,
    /// Its heading; empty for text before the first heading.
    title: String,
    /// The heading level, 1 to 6; 0 for text before the first heading.
    level: u8,
    /// Line of its heading, from 1.
    line: usize,
    /// Byte offset in the document.
    offset: usize,
    /// Its length in bytes, including subsections.
    bytes: usize,
}

impl From<Section> for SectionJson {
    fn from(section: Section) -> Self {
        Self {
            section: section.slug,
            title: section.title,
            level: section.level,
            line: section.line,
            offset: section.range.start,
            bytes: section.range.len(),
        }
    }
}

/// The sections of a document.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SectionsJson {
    /// Their snapshot.
    snapshot: SnapshotInfoJson,
    /// In document order.
    items: Vec<SectionJson>,
}

/// A section with its text.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SectionTextJson {
    #[serde(flatten)]
    section: SectionJson,
    /// Its snapshot.
    snapshot: SnapshotInfoJson,
    /// The section with its heading and subsections, as stored.
    text: String,
}

/// List the sections of the latest document
///
/// Splits it at Markdown headings (`#`, or underlined) outside fenced code. The text is not changed.
#[utoipa::path(
    get,
    path = "/v1/vaults/{vault}/memories/{memory}/context/sections",
    operation_id = "list_sections",
    tag = "documents",
    params(
        ("vault" = String, Path, description = "The vault"),
        ("memory" = String, Path, description = "The memory")
    ),
    responses((status = 200, body = SectionsJson, description = "Sections"))
)]
async fn list(
    State(service): State<Service>,
    caller: Caller<Read>,
    Named(of): Named<OfMemory>,
) -> Result<Response, Failure> {
    let (vault, memory) = of.ids()?;
    let scope = caller.scope()?;
    let (latest, sections) = service.app.engine.documents.sections(&scope, &vault, &memory).await?;
    let told = told(&latest.info);
    let items = sections.into_iter().map(SectionJson::from).collect();
    Ok((told, Json(SectionsJson { snapshot: latest.info.into(), items })).into_response())
}

/// The names of a section in a path.
#[derive(Debug, Deserialize)]
struct OfSection {
    vault: String,
    memory: String,
    section: String,
}

/// Show one section of the latest document
///
/// Finds it by its name or heading; returns it with its subsections, as plain text, or as JSON if requested.
#[utoipa::path(
    get,
    path = "/v1/vaults/{vault}/memories/{memory}/context/sections/{section}",
    operation_id = "get_section",
    tag = "documents",
    params(
        ("vault" = String, Path, description = "The vault"),
        ("memory" = String, Path, description = "The memory"),
        ("section" = String, Path, description = "The section, such as `progress`")
    ),
    responses((status = 200, description = "The section", content(
        (String = "text/plain"), (SectionTextJson = "application/json")
    )))
)]
async fn show(
    State(service): State<Service>,
    caller: Caller<Read>,
    Named(OfSection { vault, memory, section }): Named<OfSection>,
    headers: HeaderMap,
) -> Result<Response, Failure> {
    let (vault, memory) = OfMemory { vault, memory }.ids()?;
    let scope = caller.scope()?;
    let found = service.app.engine.documents.section(&scope, &vault, &memory, &section).await?;
    let told = told(&found.info);
    if !wants_json(&headers) {
        return Ok((told, plain(found.text)).into_response());
    }
    let (section, snapshot, text) = (found.section.into(), found.info.into(), found.text);
    Ok((told, Json(SectionTextJson { section, snapshot, text })).into_response())
}
