//! Operations for operators and machines: liveness, readiness, metrics.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use throughline_core::ports::Health;
use throughline_engine::app::failure;
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::caller::{Admin, Caller};
use crate::http::service::Service;
use crate::wire::problem::Failure;

pub(crate) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(healthz)).routes(routes!(readyz)).routes(routes!(metrics))
}

/// The state of the process.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({"status": "ok", "version": "0.1.0"}))]
pub(crate) struct Liveness {
    status: &'static str,
    version: &'static str,
}

/// Whether the service is ready.
#[derive(Debug, Serialize, ToSchema)]
#[schema(example = json!({
    "ready": true, "backends": [{"backend": "SQLite 3.50.4", "schema_version": 1, "problems": []}]
}))]
pub(crate) struct Ready {
    ready: bool,
    backends: Vec<BackendJson>,
}

/// The state of a backend.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BackendJson {
    /// Name and version.
    backend: String,
    /// Migrations applied.
    schema_version: u32,
    /// The problems, in sentences.
    problems: Vec<String>,
}

impl From<Health> for BackendJson {
    fn from(health: Health) -> Self {
        let Health { backend, schema_version, problems } = health;
        Self { backend, schema_version, problems }
    }
}

/// Check that the process is alive
#[utoipa::path(
    get,
    path = "/healthz",
    operation_id = "healthz",
    tag = "operations",
    security(()),
    responses((status = 200, body = Liveness, description = "The process is alive"))
)]
async fn healthz() -> Json<Liveness> {
    Json(Liveness { status: "ok", version: env!("CARGO_PKG_VERSION") })
}

/// Check that the service is ready for requests
///
/// The service is ready while its store responds. A vector index or a cache that is unavailable is listed, but the
/// service stays ready: recall uses keyword search, and cached values are read from the store.
#[utoipa::path(
    get,
    path = "/readyz",
    operation_id = "readyz",
    tag = "operations",
    security(()),
    responses(
        (status = 200, body = Ready, description = "The service is ready"),
        (status = 503, body = Ready, description = "The service is not ready")
    )
)]
async fn readyz(State(service): State<Service>) -> Response {
    let (store_ok, backends) = match service.app.engine.health(false).await {
        Ok(found) => (
            found.first().is_some_and(|store| store.problems.is_empty()),
            found.into_iter().map(BackendJson::from).collect(),
        ),
        Err(error) => {
            let problems = vec![error.message().to_owned()];
            (false, vec![BackendJson { backend: "store".into(), schema_version: 0, problems }])
        }
    };
    let ready = store_ok && !service.is_stopping();
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    (status, Json(Ready { ready, backends })).into_response()
}

/// Show metrics
///
/// For Prometheus. On a loopback address no key is needed, because no metric names a tenant; elsewhere a key with the
/// permission `admin` is needed, unless `http.public_metrics` is set.
#[utoipa::path(
    get,
    path = "/metrics",
    operation_id = "metrics",
    tag = "operations",
    security((), ("key" = [])),
    responses((status = 200, body = String, content_type = "text/plain", description = "Metrics"))
)]
async fn metrics(
    State(service): State<Service>,
    caller: Result<Caller<Admin>, Failure>,
) -> Result<Response, Failure> {
    if !service.listen.is_loopback() && !service.config.public_metrics {
        caller?;
    }
    let store = Arc::clone(&service.app.engine.store);
    // A scrape that is given up must not lose what it took.
    let taken = tokio::spawn(async move { failure::take_over(&*store).await }).await;
    if let Ok(Err(error)) = taken {
        tracing::warn!(code = error.kind().code(), "refusals of other processes are not counted");
    }
    let text = service.metrics.render();
    Ok(([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response())
}
