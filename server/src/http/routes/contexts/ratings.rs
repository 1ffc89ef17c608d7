//! Ratings of answers, and what they tell of presets.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use throughline_core::ids::PresetId;
use throughline_core::persona::{Effectiveness, NewRating, Rating};
use throughline_core::time::Timestamp;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::caller::{Caller, Read, Write};
use crate::http::extract::{Body, Named, Params};
use crate::http::routes::List;
use crate::http::service::Service;
use crate::wire::problem::Failure;

pub(super) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(rate, remove)).routes(routes!(effectiveness))
}

/// What the caller says of an answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"helpful": false, "note": "Too long for a summary."}))]
pub(crate) struct NewRatingJson {
    /// Whether the answer helped.
    helpful: bool,
    /// Why.
    #[serde(default)]
    #[schema(max_length = 2000)]
    note: Option<String>,
}

/// A rating of an answer.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "user": "ana", "helpful": false, "note": "Too long for a summary.", "rated_at": "2026-03-02T09:14:00Z"
}))]
pub(crate) struct RatingJson {
    /// Who rated.
    user: String,
    /// Whether the answer helped.
    helpful: bool,
    /// Why.
    note: Option<String>,
    #[schema(format = DateTime)]
    rated_at: String,
}

impl From<Rating> for RatingJson {
    fn from(rating: Rating) -> Self {
        let Rating { user, helpful, note, rated_at, .. } = rating;
        Self { user: user.to_string(), helpful, note, rated_at: rated_at.to_rfc3339() }
    }
}

/// Which ratings.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Which {
    /// Only this preset.
    #[param(min_length = 1, max_length = 80, pattern = "^[a-z0-9-]+$")]
    preset: Option<String>,
    /// Only ratings of this time or later.
    #[param(min_length = 1)]
    since: Option<String>,
    /// Only ratings before this time.
    #[param(min_length = 1)]
    until: Option<String>,
}

/// How well a version of a preset does.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "preset_id": "preset-calm-counselor", "preset_version": 1, "contexts": 3, "turns": 120, "rated": 40,
    "helpful": 36, "helpful_share": 0.9, "first_rated_at": "2026-03-02T09:14:00Z",
    "last_rated_at": "2026-03-30T18:02:00Z"
}))]
pub(crate) struct EffectivenessJson {
    /// The preset; null for contexts without one.
    preset_id: Option<String>,
    /// Its version; null for contexts whose prompt or personality was changed after their creation.
    preset_version: Option<u64>,
    /// Contexts created from it that exist.
    contexts: u64,
    /// Turns that these contexts answered, at any time.
    turns: u64,
    /// Ratings in the period.
    rated: u64,
    /// Ratings in the period that say that the answer helped.
    helpful: u64,
    /// `helpful` divided by `rated`; null without ratings.
    helpful_share: Option<f64>,
    /// The first rating in the period.
    #[schema(format = DateTime)]
    first_rated_at: Option<String>,
    /// The last rating in the period.
    #[schema(format = DateTime)]
    last_rated_at: Option<String>,
}

impl From<Effectiveness> for EffectivenessJson {
    fn from(of: Effectiveness) -> Self {
        Self {
            helpful_share: of.helpful_share(),
            preset_id: of.preset.map(|id| id.to_string()),
            preset_version: of.preset_version,
            contexts: of.contexts,
            turns: of.turns,
            rated: of.rated,
            helpful: of.helpful,
            first_rated_at: of.first_at.map(Timestamp::to_rfc3339),
            last_rated_at: of.last_at.map(Timestamp::to_rfc3339),
        }
    }
}

/// Rate an answer of a context
///
/// Replaces the caller's earlier rating of it.
#[utoipa::path(
    put,
    path = "/v1/contexts/{id}/conversations/{message}/rating",
    operation_id = "rate_answer",
    tag = "contexts",
    params(
        ("id" = String, Path, description = "The context, or the id under which it is shared"),
        ("message" = String, Path, format = "uuid", description = "The answer")
    ),
    request_body = NewRatingJson,
    responses((status = 200, body = RatingJson, description = "The rating"))
)]
async fn rate(
    State(service): State<Service>,
    caller: Caller<Write>,
    Named((id, message)): Named<(String, String)>,
    body: Body<NewRatingJson>,
) -> Result<Json<RatingJson>, Failure> {
    let NewRatingJson { helpful, note } = body.value;
    let new = NewRating { helpful, note };
    Ok(Json(service.app.rate(&caller, &id, message.parse()?, new).await?.into()))
}

/// Remove the caller's rating of an answer
#[utoipa::path(
    delete,
    path = "/v1/contexts/{id}/conversations/{message}/rating",
    operation_id = "remove_rating",
    tag = "contexts",
    params(
        ("id" = String, Path, description = "The context, or the id under which it is shared"),
        ("message" = String, Path, format = "uuid", description = "The answer")
    ),
    responses((status = 204, description = "The caller has no rating of it"))
)]
async fn remove(
    State(service): State<Service>,
    caller: Caller<Write>,
    Named((id, message)): Named<(String, String)>,
) -> Result<StatusCode, Failure> {
    service.app.remove_rating(&caller, &id, message.parse()?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Show how well presets do
///
/// Ratings of answers, counted by preset and version; first those of contexts without a preset. Ratings of erased answers
/// do not count.
#[utoipa::path(
    get,
    path = "/v1/contexts/effectiveness",
    operation_id = "get_effectiveness",
    tag = "contexts",
    params(Which),
    responses((status = 200, body = List<EffectivenessJson>, description = "Presets and their versions"))
)]
async fn effectiveness(
    State(service): State<Service>,
    caller: Caller<Read>,
    Params(which): Params<Which>,
) -> Result<Json<List<EffectivenessJson>>, Failure> {
    let preset = which.preset.as_deref().map(str::parse::<PresetId>).transpose()?;
    let time = |at: Option<String>| at.as_deref().map(Timestamp::parse).transpose();
    let (since, until) = (time(which.since)?, time(which.until)?);
    let personas = &service.app.engine.personas;
    let found = personas.effectiveness(&caller.scope()?, preset.as_ref(), since, until).await?;
    Ok(Json(List::whole(found, EffectivenessJson::from)))
}
