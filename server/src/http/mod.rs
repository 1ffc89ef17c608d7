//! The HTTP interface.
//!
//! `connections` takes connections in, on the threads of `front`. A request passes `guard` (id, log, metrics, timeout,
//! places), where `caller` proves who calls and `bodies` receives its body, then its handler: `caller` refuses, `extract`
//! reads what is asked, core answers, `problem` tells what went wrong. `answers` compresses the answer and counts its
//! memory.

mod answers;
mod bodies;
mod caller;
mod connections;
mod extract;
mod front;
mod guard;
mod mcp;
mod openapi;
mod routes;
mod serve;
mod service;
mod written;

use axum::Router;
use axum::body::Bytes;
use axum::extract::DefaultBodyLimit;
use axum::http::{StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use serde_json::Value;
use throughline_core::{Error, ErrorKind, Result};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::timeout::RequestBodyTimeoutLayer;
use utoipa_axum::router::OpenApiRouter;
use utoipa_swagger_ui::{Config, SwaggerUi};

use crate::wire::problem::Failure;
use service::Service;

pub use serve::{Served, Shown, serve, show};

/// A failure as the answer of a layer.
pub(crate) fn failed(error: Error) -> Response {
    Failure::from(error).into_response()
}

/// Operations that answer whatever the load is, and those that take a place.
fn routers() -> (OpenApiRouter<Service>, OpenApiRouter<Service>) {
    let working = OpenApiRouter::new()
        .merge(routes::sessions::router())
        .merge(routes::messages::router())
        .merge(routes::assemble::router())
        .merge(routes::chat::router())
        .merge(routes::models::router())
        .merge(routes::entities::router())
        .merge(routes::summaries::router())
        .merge(routes::files::router())
        .merge(routes::shares::router())
        .merge(routes::facts::router())
        .merge(routes::search::router())
        .merge(routes::documents::router())
        .merge(routes::profile::router())
        .merge(routes::settings::router())
        .merge(routes::contexts::router())
        .merge(routes::presets::router())
        .merge(routes::templates::router())
        .merge(routes::keys::router())
        .merge(routes::users::router());
    (routes::operations::router(), working)
}

/// The OpenAPI document of this version.
///
/// # Errors
/// `Internal` where it has no JSON form.
pub fn document() -> Result<Value> {
    let (always, working) = routers();
    let all = OpenApiRouter::<Service>::with_openapi(openapi::base()).merge(always).merge(working);
    let mut document = all.into_openapi();
    openapi::complete(&mut document);
    let broken = |error| Error::internal("the document has no JSON form").with_source(error);
    // Forms are told from domain types by their names here, which no reader of the document needs.
    let text = serde_json::to_string(&document).map_err(broken)?.replace("Json\"", "\"");
    serde_json::from_str(&text).map_err(broken)
}

/// The document as its file has it.
///
/// # Errors
/// As [`document`].
pub fn document_text() -> Result<String> {
    Ok(format!("{:#}\n", document()?))
}

/// The service as one router.
fn router(service: &Service) -> Result<Router> {
    // What is served without a key, on the threads of connections, is made once and not compressed.
    let document = Bytes::from(document()?.to_string());
    let document = move || async { ([(header::CONTENT_TYPE, "application/json")], document) };
    let (always, working) = routers();
    let working = Router::from(working).merge(routes::openai::router());
    let working = working.layer(from_fn_with_state(service.clone(), guard::bound));
    let router = Router::from(always)
        .merge(working)
        .merge(mcp::router(service)?)
        .route("/", get(async || Redirect::temporary("/docs")))
        .route("/openapi.json", get(document))
        .merge(SwaggerUi::new("/docs").config(Config::new(["/openapi.json"])))
        .fallback(async || {
            Failure::from(Error::not_found(
                "there is no operation with this path: /docs lists all of them",
            ))
        })
        .method_not_allowed_fallback(async || {
            let error =
                Error::invalid("this path does not support the method: /docs lists the operations");
            Failure::of_status(StatusCode::METHOD_NOT_ALLOWED, error)
        });
    Ok(surrounded(router, service))
}

/// The router of a worker: health and metrics.
fn operations(service: &Service) -> Router {
    surrounded(Router::from(routers().0), service)
}

/// Operations with what surrounds every request.
fn surrounded(router: Router<Service>, service: &Service) -> Router {
    router
        .layer(DefaultBodyLimit::max(service.config.max_body_bytes()))
        .layer(RequestBodyTimeoutLayer::new(service.config.read_timeout()))
        .layer(CatchPanicLayer::custom(|_| {
            failed(Error::new(ErrorKind::Internal, "a request panicked"))
        }))
        .layer(from_fn_with_state(service.clone(), guard::observe))
        .with_state(service.clone())
}
