//! One search over everything that is remembered.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use throughline_core::ids::SessionId;
use throughline_core::time::Timestamp;
use throughline_engine::app::{Hit, HitKind, Search};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::List;
use crate::http::caller::{Caller, Read};
use crate::http::extract::Body;
use crate::http::service::Service;
use crate::wire::problem::Failure;

/// Hits of a search that names no number.
const DEFAULT_HITS: usize = 12;

pub(crate) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(search))
}

/// A search, with its filters.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"query": "When is the cutover?", "kinds": ["message", "fact"], "k": 5}))]
pub(crate) struct SearchJson {
    /// A question or keywords.
    #[schema(min_length = 1, max_length = 10_000)]
    query: String,
    /// Only these kinds; all if not given.
    #[serde(default)]
    kinds: Vec<HitKindJson>,
    /// Only messages of this session, and facts that were first stated in it; documents are in no session.
    #[serde(default)]
    session: Option<String>,
    /// Only what was said at this time or later.
    #[serde(default)]
    #[schema(format = DateTime)]
    since: Option<String>,
    /// Only what was said before this time.
    #[serde(default)]
    #[schema(format = DateTime)]
    until: Option<String>,
    /// Maximum number of hits, 1 to 100; default 12.
    #[serde(default, alias = "limit")]
    #[schema(minimum = 1, maximum = 100)]
    k: Option<usize>,
}

/// What is found.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum HitKindJson {
    Message,
    Fact,
    Document,
}

/// Something that was found.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "kind": "message", "source": "msg:0193d2f0-5a3c-7b1e-9c55-0b1f6a1f0c11", "session": "support-17",
    "at": "2026-03-02T09:14:00Z", "text": "user: The Alfred cutover moved to 21 May.", "score": 7.5
}))]
pub(crate) struct SearchHitJson {
    kind: HitKindJson,
    /// `msg:<id>`, `fact:<id>` or `doc:<vault>/<memory>/<context>#<section>`.
    source: String,
    /// The session of a message, or in which a fact was first stated.
    session: Option<String>,
    /// When it was said, last stated or put.
    #[schema(format = DateTime)]
    at: String,
    /// Its text: of a message the passage that matches best, with its speaker.
    text: String,
    /// Relevance; comparable only among hits of one kind.
    score: f32,
}

impl From<HitKindJson> for HitKind {
    fn from(kind: HitKindJson) -> Self {
        match kind {
            HitKindJson::Message => Self::Message,
            HitKindJson::Fact => Self::Fact,
            HitKindJson::Document => Self::Document,
        }
    }
}

impl From<Hit> for SearchHitJson {
    fn from(hit: Hit) -> Self {
        Self {
            kind: match hit.kind {
                HitKind::Message => HitKindJson::Message,
                HitKind::Fact => HitKindJson::Fact,
                HitKind::Document => HitKindJson::Document,
            },
            source: hit.source.to_string(),
            session: hit.session.map(|id| id.to_string()),
            at: hit.at.to_rfc3339(),
            text: hit.text,
            score: hit.score,
        }
    }
}

/// Search everything
///
/// Keyword and semantic search over messages, facts and documents of the user. Hits of one kind are ordered by score;
/// if the scores of messages or facts differ by less than a twentieth of the best one, the newer comes first. Scores
/// of different kinds cannot be compared, so the kinds alternate: the best message, the best fact, the best document,
/// the second message, and so on. Filters apply before the number of hits is limited. Superseded, rejected and secret
/// values are treated as in a context. A search is not a turn: it is not counted as usage, and the tenant's flag
/// `recall` does not turn it off.
#[utoipa::path(
    post,
    path = "/v1/search",
    operation_id = "search",
    tag = "contexts",
    request_body = SearchJson,
    responses((status = 200, body = List<SearchHitJson>, description = "What was found"))
)]
async fn search(
    State(service): State<Service>,
    caller: Caller<Read>,
    body: Body<SearchJson>,
) -> Result<Json<List<SearchHitJson>>, Failure> {
    let asked = body.value;
    let time = |at: Option<String>| at.as_deref().map(Timestamp::parse).transpose();
    let search = Search {
        query: asked.query,
        kinds: asked.kinds.into_iter().map(HitKind::from).collect(),
        session: asked.session.map(SessionId::new).transpose()?,
        since: time(asked.since)?,
        until: time(asked.until)?,
        k: asked.k.unwrap_or(DEFAULT_HITS),
    };
    let found = service.app.search(&caller, search).await?;
    Ok(Json(List {
        items: found.into_iter().map(SearchHitJson::from).collect(),
        next_cursor: None,
    }))
}
