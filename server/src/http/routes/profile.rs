//! The rules and the profile card of a user.

use axum::Json;
use axum::extract::State;
use serde::{Deserialize, Serialize};
use throughline_core::scope::{Profile, ProfileChange};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::caller::{Caller, Read, Write};
use crate::http::extract::Body;
use crate::http::service::Service;
use crate::http::written::{Receipt, Written};
use crate::wire::problem::Failure;

pub(crate) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(show, change))
}

/// A user's rules and profile card, which are part of every context.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "rules": "Answer in metric units.", "card": "Lead engineer, Europe/Lisbon", "version": 1,
    "updated_at": "2026-03-02T09:14:00Z"
}))]
pub(crate) struct ProfileJson {
    /// Standing instructions, one per line.
    rules: String,
    /// Who the user is.
    card: String,
    /// Increases with every change; 0 if the profile was never set.
    version: u64,
    #[schema(format = DateTime)]
    updated_at: String,
    /// What the change states although the user rejected it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
}

impl From<Profile> for ProfileJson {
    fn from(profile: Profile) -> Self {
        Self {
            rules: profile.rules,
            card: profile.card,
            version: profile.version,
            updated_at: profile.updated_at.to_rfc3339(),
            warnings: Vec::new(),
        }
    }
}

impl From<ProfileJson> for Receipt {
    fn from(profile: ProfileJson) -> Self {
        let ProfileJson { version, warnings, .. } = profile;
        Self { version: Some(version), warnings, ..Self::default() }
    }
}

/// What to change; fields that are not given stay, an empty text clears a field.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({
    "rules": "Answer in metric units.", "card": "Lead engineer, Europe/Lisbon"
}))]
pub(crate) struct ProfileChangeJson {
    /// Standing instructions, at most 350 tokens.
    #[serde(default)]
    rules: Option<String>,
    /// Who the user is, at most 100 tokens.
    #[serde(default)]
    card: Option<String>,
}

/// Show rules and profile card
///
/// The values in force: if a workspace leaves a field empty, the user's value is used.
#[utoipa::path(
    get,
    path = "/v1/profile",
    operation_id = "get_profile",
    tag = "profile",
    responses((status = 200, body = ProfileJson, description = "The profile"))
)]
async fn show(
    State(service): State<Service>,
    caller: Caller<Read>,
) -> Result<Json<ProfileJson>, Failure> {
    Ok(Json(service.app.engine.profiles.get(&caller.scope()?).await?.into()))
}

/// Change rules and profile card
#[utoipa::path(
    put,
    path = "/v1/profile",
    operation_id = "change_profile",
    tag = "profile",
    request_body = ProfileChangeJson,
    responses((status = 200, body = Written<ProfileJson>, description = "The profile"))
)]
async fn change(
    State(service): State<Service>,
    caller: Caller<Write>,
    body: Body<ProfileChangeJson>,
) -> Result<Json<Written<ProfileJson>>, Failure> {
    let change = ProfileChange { rules: body.value.rules, card: body.value.card };
    let (profile, warnings) = service.app.change_profile(&caller, change).await?;
    Ok(Json(Written::of(&caller, ProfileJson { warnings, ..profile.into() })))
}
