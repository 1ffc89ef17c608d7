//! The wire types of documents.

use axum::Json;
use axum::extract::{FromRequest, Request};
use axum::http::header::{CONTENT_TYPE, VARY};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use throughline_core::document::{Facet, Snapshot, SnapshotInfo, text_of_bytes};
use throughline_core::services::documents::PutOutcome;
use throughline_core::{Error, Result};
use utoipa::ToSchema;

use super::conditions::{etag, wants_json};
use super::facets;
use crate::http::bodies::received;
use crate::http::service::Service;
use crate::http::written::Receipt;
use crate::wire::problem::Failure;

/// Header of the id of the snapshot that is answered.
const CONTEXT_ID: HeaderName = HeaderName::from_static("throughline-context-id");
/// Header of who wrote it.
pub(super) const ACTOR_ID: HeaderName = HeaderName::from_static("throughline-actor-id");

/// A snapshot without its text.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "vault_id": "work", "memory_id": "alfred", "context_id": "0193d2f0-5a3c-7b1e-9c55-0b1f6a1f0c11",
    "actor_id": "planner", "etag": "7f1c2d3e4a5b6c7d8e9f0a1b2c3d4e5f", "bytes": 412,
    "created_at": "2026-03-02T09:14:00Z"
}))]
pub(super) struct SnapshotInfoJson {
    /// The vault of its memory.
    vault_id: String,
    /// Its memory.
    memory_id: String,
    /// Its id within the memory.
    context_id: String,
    /// Who wrote it.
    actor_id: String,
    /// Identifies its text; the header `ETag` without the quotes.
    etag: String,
    /// Bytes of its text.
    bytes: u64,
    /// When it was stored.
    #[schema(format = DateTime)]
    created_at: String,
}

impl From<SnapshotInfo> for SnapshotInfoJson {
    fn from(info: SnapshotInfo) -> Self {
        Self {
            vault_id: info.vault.to_string(),
            memory_id: info.memory.to_string(),
            context_id: info.context.to_string(),
            actor_id: info.actor.to_string(),
            etag: info.etag.to_string(),
            bytes: info.bytes,
            created_at: info.created_at.to_rfc3339(),
        }
    }
}

/// A snapshot with its text.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SnapshotJson {
    #[serde(flatten)]
    info: SnapshotInfoJson,
    /// The whole document, as stored.
    context: String,
}

/// The result of a put.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PutJson {
    #[serde(flatten)]
    info: SnapshotInfoJson,
    /// What happened.
    outcome: OutcomeJson,
    /// What it states although the user rejected it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

/// The result of a put.
#[derive(Debug, Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum OutcomeJson {
    /// The memory has its first snapshot.
    Created,
    /// The memory has a new snapshot.
    Added,
    /// The latest snapshot has this text already: nothing was written.
    Unchanged,
    /// The context id stands for this text already: nothing was written.
    Repeated,
}

impl PutJson {
    pub(super) fn of(info: SnapshotInfo, outcome: PutOutcome, warnings: Vec<String>) -> Self {
        let outcome = match outcome {
            PutOutcome::Created => OutcomeJson::Created,
            PutOutcome::Added => OutcomeJson::Added,
            PutOutcome::Unchanged => OutcomeJson::Unchanged,
            PutOutcome::Repeated => OutcomeJson::Repeated,
        };
        Self { info: info.into(), outcome, warnings }
    }
}

impl From<PutJson> for Receipt {
    fn from(put: PutJson) -> Self {
        let PutJson { info, warnings, .. } = put;
        Self { id: Some(info.context_id), etag: Some(info.etag), warnings, ..Self::default() }
    }
}

/// The headers that identify a snapshot in every response about it.
pub(super) fn told(info: &SnapshotInfo) -> HeaderMap {
    let mut headers = HeaderMap::new();
    headers.insert(header::ETAG, etag(&info.etag));
    headers.insert(VARY, HeaderValue::from_static("accept"));
    let text = |text: &str| HeaderValue::from_bytes(text.as_bytes());
    let names = [(CONTEXT_ID, text(info.context.as_str())), (ACTOR_ID, text(info.actor.as_str()))];
    for (name, value) in names {
        if let Ok(value) = value {
            headers.insert(name, value);
        }
    }
    headers
}

/// A snapshot as the caller likes it: its text, or JSON with what is known of it.
pub(super) fn answer(headers: &HeaderMap, snapshot: Snapshot) -> Response {
    let told = told(&snapshot.info);
    if wants_json(headers) {
        let context = snapshot.text;
        return (told, Json(SnapshotJson { info: snapshot.info.into(), context })).into_response();
    }
    (told, plain(snapshot.text)).into_response()
}

/// A text as it is.
pub(super) fn plain(text: String) -> Response {
    ([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}

/// A body that is a document.
pub(super) enum DocumentBody {
    /// The text itself.
    Text(String),
    /// An old document: an object of facets.
    Facets(Vec<(String, Facet)>),
}

impl FromRequest<Service> for DocumentBody {
    type Rejection = Failure;

    async fn from_request(request: Request, _: &Service) -> Result<Self, Failure> {
        let kind = request.headers().get(CONTENT_TYPE);
        let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
        let mut parts = kind.split(';').map(|part| part.trim().to_ascii_lowercase());
        let kind = parts.next().unwrap_or_default();
        let charset = parts.find_map(|part| {
            part.strip_prefix("charset=").map(|charset| charset.trim_matches('"').to_owned())
        });
        let is_text = kind == "text/plain";
        let of_utf8 =
            charset.is_none_or(|charset| matches!(&*charset, "utf-8" | "utf8" | "us-ascii"));
        if !(is_text || kind == "application/json") || !of_utf8 {
            return Err(Failure::of_status(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                Error::invalid(
                    "a document is text: send `Content-Type: text/plain; charset=utf-8`, or a JSON \
                     string as `application/json`",
                ),
            ));
        }
        let bytes = received(&request)?;
        if is_text {
            return Ok(Self::Text(text_of_bytes(bytes.into())?));
        }
        match facets::parse(&bytes)? {
            Facet::Text(text) => Ok(Self::Text(text)),
            Facet::Object(fields) => Ok(Self::Facets(fields)),
            _ => Err(Error::invalid("the body must be a JSON string: the whole document").into()),
        }
    }
}
