//! Ratings of answers, and what they tell of presets.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use serde::{Deserialize, Serialize};
use throughline_core::ids::PresetId;
use throughline_core::persona::{NewRating, Rating};
use throughline_core::time::Timestamp;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::caller::{Caller, Read, Write};
use crate::http::extract::{Body, Named, Params};
use crate::http::routes::List;
use crate::http::service::Service;
use crate::wire::EffectivenessJson;
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
