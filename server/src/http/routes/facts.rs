//! The facts ledger.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use throughline_core::fact::{Fact, FactKind, FactStatus};
use throughline_core::ids::SessionId;
use throughline_core::services::facts::{Correction, Remember};
use throughline_engine::app::{FactSearch, Place};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::{List, ListQuery, Paging};
use crate::http::caller::{Caller, Read, Write};
use crate::http::extract::{Body, Named, Repeat};
use crate::http::service::Service;
use crate::http::written::{Receipt, Written};
use crate::wire::problem::Failure;
use crate::wire::{ActorJson, FactKindJson};

/// Facts of a search that names no number.
const DEFAULT_FOUND: usize = 12;

pub(crate) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .routes(routes!(remember, list))
        .routes(routes!(search))
        .routes(routes!(show, correct, retract))
}

/// A fact to remember.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "text": "The Alfred cutover is on 21 May.", "kind": "decision",
    "subject": "Alfred cutover", "attribute": "date", "value": "21 May",
    "tags": ["project:alfred"]
}))]
pub(crate) struct RememberJson {
    /// The fact, in up to 500 characters.
    #[schema(min_length = 1, max_length = 500)]
    text: String,
    /// Its kind; default `fact`.
    #[serde(default)]
    kind: Option<FactKindJson>,
    /// The person or thing it is about; with `attribute`, a later fact with the same subject and attribute replaces it.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 200)]
    subject: Option<String>,
    /// The property of the subject.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 200)]
    attribute: Option<String>,
    /// The property's value.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 500)]
    value: Option<String>,
    /// Topics, such as `project:alfred`.
    #[serde(default)]
    #[schema(max_items = 16)]
    tags: Vec<String>,
    /// Whether it holds in all workspaces of the user; default only in the workspace of the request. It is stored as
    /// the tag `everywhere`, which callers cannot set.
    #[serde(default)]
    everywhere: bool,
}

/// The correct fact.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"text": "The Alfred cutover is on 22 May.", "value": "22 May"}))]
pub(crate) struct CorrectJson {
    /// The fact, in up to 500 characters.
    #[schema(min_length = 1, max_length = 500)]
    text: String,
    /// The property's value, if the fact has subject and attribute.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 500)]
    value: Option<String>,
}

/// A search among the valid facts.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"query": "When is the cutover?", "tags": ["project:alfred"], "k": 5}))]
pub(crate) struct SearchFactsJson {
    /// A question or keywords.
    #[schema(min_length = 1, max_length = 10_000)]
    query: String,
    /// Only facts that were first stated in this session.
    #[serde(default)]
    session: Option<String>,
    /// Facts with more of these topics rank higher.
    #[serde(default)]
    #[schema(max_items = 16)]
    tags: Vec<String>,
    /// Maximum number of facts, 1 to 24; default 12.
    #[serde(default, alias = "limit")]
    #[schema(minimum = 1, maximum = 24)]
    k: Option<usize>,
}

/// A fact of the ledger.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "id": "0193d2f0-5a3c-7b1e-9c55-0b1f6a1f0c15", "kind": "decision",
    "text": "The Alfred cutover is on 21 May.", "subject": "Alfred cutover", "attribute": "date",
    "value": "21 May", "tags": ["project:alfred"], "session": "support-17",
    "sources": ["msg:0193d2f0-5a3c-7b1e-9c55-0b1f6a1f0c11"], "weight": 1.0, "holds": true,
    "superseded_by": null, "observed_at": "2026-03-02T09:14:00Z", "extracted_by": "forms/1",
    "actor": "user", "rejected": false
}))]
pub(crate) struct FactJson {
    id: String,
    kind: FactKindJson,
    text: String,
    subject: Option<String>,
    attribute: Option<String>,
    value: Option<String>,
    tags: Vec<String>,
    /// The session in which it was first stated; null if it was added directly.
    session: Option<String>,
    /// The latest messages that state it.
    sources: Vec<String>,
    /// 1 when stated once; each restatement adds 1.
    weight: f32,
    /// Whether it is valid now.
    holds: bool,
    /// The fact that replaced it.
    superseded_by: Option<String>,
    #[schema(format = DateTime)]
    observed_at: String,
    /// Name and version of the extractor that found it; null if it was added directly.
    extracted_by: Option<String>,
    actor: ActorJson,
    /// Whether its value was corrected or retracted directly, so that it does not come back until it is remembered again.
    rejected: bool,
}

impl FactJson {
    fn of(fact: Fact) -> Self {
        let holds = fact.holds();
        Self {
            id: fact.id.to_string(),
            kind: fact.kind.into(),
            text: fact.text,
            subject: fact.subject,
            attribute: fact.attribute,
            value: fact.value,
            tags: fact.tags,
            session: fact.session.map(|id| id.to_string()),
            sources: fact.sources.iter().map(|id| format!("msg:{id}")).collect(),
            weight: fact.weight,
            holds,
            superseded_by: match fact.status {
                FactStatus::Active => None,
                FactStatus::Superseded(by) => Some(by.to_string()),
            },
            observed_at: fact.observed_at.to_rfc3339(),
            extracted_by: fact.extracted_by,
            actor: fact.actor.into(),
            rejected: fact.rejected,
        }
    }
}

impl From<FactJson> for Receipt {
    fn from(fact: FactJson) -> Self {
        Self::of_id(fact.id)
    }
}

/// An id of a fact in a path.
#[derive(IntoParams)]
#[into_params(parameter_in = Path)]
#[expect(dead_code, reason = "documents the parameter that `App::fact_by_id` reads")]
struct FactIdPath {
    /// The fact: its id, or the last 8 digits of it, as MCP and the command line show them; with or without `fact:`.
    #[param(
        pattern = "^(fact:)?([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}|[0-9a-f]{8})$",
        example = "0193d2f0-5a3c-7b1e-9c55-0b1f6a1f0c15"
    )]
    id: String,
}

/// A fact found by a search.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FoundFactJson {
    fact: FactJson,
    /// Relevance; comparable only within one response.
    score: f32,
}

/// Remember a fact
///
/// Adds a fact directly, not from a message. A value that was rejected before is allowed again.
#[utoipa::path(
    post,
    path = "/v1/facts",
    operation_id = "remember_fact",
    tag = "facts",
    request_body = RememberJson,
    responses((status = 201, body = Written<FactJson>, description = "The fact"))
)]
async fn remember(
    State(service): State<Service>,
    caller: Caller<Write>,
    repeat: Repeat,
    body: Body<RememberJson>,
) -> Result<(StatusCode, Json<Written<FactJson>>), Failure> {
    let idempotency = repeat.of(&body);
    let new = body.value;
    let remember = Remember {
        kind: new.kind.map_or(FactKind::Fact, FactKind::from),
        text: new.text,
        subject: new.subject,
        attribute: new.attribute,
        value: new.value,
        tags: new.tags,
    };
    let place = if new.everywhere { Place::AllWorkspaces } else { Place::Workspace };
    let fact = service.app.remember(&caller, remember, place, idempotency).await?;
    Ok((StatusCode::CREATED, Json(Written::of(&caller, FactJson::of(fact)))))
}

/// List facts
///
/// All facts in the order in which they were stated, including those that are no longer valid. In a workspace, those that
/// hold in all workspaces of the user come last.
#[utoipa::path(
    get,
    path = "/v1/facts",
    operation_id = "list_facts",
    tag = "facts",
    params(Paging),
    responses((status = 200, body = List<FactJson>, description = "Facts"))
)]
async fn list(
    State(service): State<Service>,
    caller: Caller<Read>,
    asked: ListQuery,
) -> Result<Json<List<FactJson>>, Failure> {
    let page = service.app.list_facts(&caller, &asked.page).await?;
    Ok(Json(asked.list(page, FactJson::of)))
}

/// Search facts
///
/// Keyword and semantic search among the valid facts, ordered by relevance, shared topics and age: half of the score
/// decays with the half-life `facts.half_life_days`. If scores differ by less than a twentieth of the best one, the
/// newer fact comes first.
#[utoipa::path(
    post,
    path = "/v1/facts/search",
    operation_id = "search_facts",
    tag = "facts",
    request_body = SearchFactsJson,
    responses((status = 200, body = List<FoundFactJson>, description = "Facts, ordered by relevance"))
)]
async fn search(
    State(service): State<Service>,
    caller: Caller<Read>,
    body: Body<SearchFactsJson>,
) -> Result<Json<List<FoundFactJson>>, Failure> {
    let asked = body.value;
    let search = FactSearch {
        query: asked.query,
        session: asked.session.map(SessionId::new).transpose()?,
        tags: asked.tags,
        k: asked.k.unwrap_or(DEFAULT_FOUND),
    };
    let found = service.app.search_facts(&caller, &search).await?;
    let items = found
        .into_iter()
        .map(|found| FoundFactJson { fact: FactJson::of(found.fact), score: found.score });
    Ok(Json(List { items: items.collect(), next_cursor: None }))
}

/// Show a fact
#[utoipa::path(
    get,
    path = "/v1/facts/{id}",
    operation_id = "get_fact",
    tag = "facts",
    params(FactIdPath),
    responses((status = 200, body = FactJson, description = "The fact"))
)]
async fn show(
    State(service): State<Service>,
    caller: Caller<Read>,
    Named(id): Named<String>,
) -> Result<Json<FactJson>, Failure> {
    let (_, fact) = service.app.fact_by_id(&caller, &id).await?;
    Ok(Json(FactJson::of(fact)))
}

/// Correct a fact
///
/// Replaces the value. The old value stays rejected, even if its source is imported again.
#[utoipa::path(
    patch,
    path = "/v1/facts/{id}",
    operation_id = "correct_fact",
    tag = "facts",
    params(FactIdPath),
    request_body = CorrectJson,
    responses((status = 200, body = Written<FactJson>, description = "The fact that is valid now"))
)]
async fn correct(
    State(service): State<Service>,
    caller: Caller<Write>,
    Named(id): Named<String>,
    body: Body<CorrectJson>,
) -> Result<Json<Written<FactJson>>, Failure> {
    let (_, old) = service.app.fact_by_id(&caller, &id).await?;
    let correction = Correction { text: body.value.text, value: body.value.value };
    let fact = service.app.correct(&caller, old.id, correction).await?;
    Ok(Json(Written::of(&caller, FactJson::of(fact))))
}

/// Retract a fact
///
/// The fact is no longer valid, and its value stays rejected, even if its source is imported again. The messages that
/// state it stay; erase them to remove the text.
#[utoipa::path(
    delete,
    path = "/v1/facts/{id}",
    operation_id = "retract_fact",
    tag = "facts",
    params(FactIdPath),
    responses((status = 200, body = Written<FactJson>, description = "The fact, which is no longer valid"))
)]
async fn retract(
    State(service): State<Service>,
    caller: Caller<Write>,
    Named(id): Named<String>,
) -> Result<Json<Written<FactJson>>, Failure> {
    let (_, old) = service.app.fact_by_id(&caller, &id).await?;
    let fact = service.app.retract(&caller, old.id).await?;
    Ok(Json(Written::of(&caller, FactJson::of(fact))))
}
