//! The models that can answer.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use throughline_engine::config::SpecialistConfig;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::caller::{Caller, Read};
use crate::http::service::Service;
use crate::wire::ModelJson;

pub(crate) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(models))
}

/// The models that can answer.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ModelsJson {
    /// The model that answers if neither a request nor the tenant's settings name one.
    default: Option<String>,
    items: Vec<ModelJson>,
    /// The specialists that are configured.
    specialists: Vec<SpecialistJson>,
}

/// A role that answers turns with a prompt of its own.
#[derive(Debug, Serialize, ToSchema)]
struct SpecialistJson {
    name: String,
    /// What to ask it for.
    description: String,
    /// Its model; null for that of the turn.
    model: Option<String>,
}

/// List the models
///
/// Lists the models of all configured providers.
#[utoipa::path(
    get,
    path = "/v1/models",
    operation_id = "list_models",
    tag = "contexts",
    responses((status = 200, body = ModelsJson, description = "The models"))
)]
async fn models(State(service): State<Service>, _: Caller<Read>) -> Json<ModelsJson> {
    let models = &service.app.engine.models;
    let items = models.providers.iter().flat_map(|provider| ModelJson::all_of(&**provider));
    let specialist = |role: &SpecialistConfig| SpecialistJson {
        name: role.name.clone(),
        description: role.description.clone(),
        model: Some(role.model.clone()).filter(|model| !model.is_empty()),
    };
    Json(ModelsJson {
        default: models.default.clone(),
        items: items.collect(),
        specialists: models.specialists.iter().map(specialist).collect(),
    })
}
