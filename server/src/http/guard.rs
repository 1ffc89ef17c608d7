//! What surrounds every request: its id, its timeout, its place among those at work, and its line in the
//! log, which has no content, no path parameter and no header of it.

use std::time::Instant;

use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tracing::Instrument;

use throughline_core::Error;
use throughline_engine::telemetry;

use super::front::{away, made_away};
use super::routes::openai::{self, Refused};
use super::service::Service;
use super::{answers, bodies, caller};
use crate::wire::held::held;
use crate::wire::problem::Failure;
use crate::wire::request::{self, request_id};

/// The header of a request's id.
pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id that a caller may give its request.
const MAX_REQUEST_ID: usize = 128;

/// What waits for a model, within the timeouts of its provider: a place at work is for work of this service.
const WAITS_FOR_A_MODEL: [&str; 4] = [
    "/v1/sessions/{id}/chat",
    "/v1/contexts/{id}/chat",
    "/openai/v1/chat/completions",
    "/openai/v1/embeddings",
];

/// Gives the request an id, a span, a line in the log and a place in the metrics.
pub(super) async fn observe(
    State(service): State<Service>,
    mut request: Request,
    next: Next,
) -> Response {
    let given = request.headers().get(&REQUEST_ID).and_then(|id| id.to_str().ok());
    let safe = |id: &&str| {
        !id.is_empty()
            && id.len() <= MAX_REQUEST_ID
            && id.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.'))
    };
    let id = match given.filter(safe) {
        Some(id) => id.to_owned(),
        None => service.app.engine.ids.next().to_string(),
    };
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let path = path.unwrap_or_else(|| "unknown".to_owned());
    let method = method_label(request.method());
    let begun = Instant::now();
    let span = tracing::info_span!(
        "request",
        otel.kind = "server",
        otel.name = format!("{method} {path}"),
        method,
        path,
        request_id = id
    );
    telemetry::set_parent(&span, |name| {
        request.headers().get(name).and_then(|value| value.to_str().ok())
    });
    request.extensions_mut().insert(span.clone());
    let work = request::within(id.clone(), async {
        let response = next.run(request).await;
        let took = begun.elapsed();
        let status = response.status().as_u16();
        tracing::info!(status, took_ms = took.as_secs_f64() * 1e3, "answered");
        let labels =
            [("method", method.to_owned()), ("path", path), ("status", status.to_string())];
        metrics::histogram!("throughline_http_request_seconds", &labels).record(took.as_secs_f64());
        response
    });
    let mut response = work.instrument(span).await;
    if let Ok(id) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(REQUEST_ID, id);
    }
    response
}

/// The method as metrics and the log name it: a caller may invent methods, and the values of a label are a closed set.
fn method_label(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}

/// Receives the body, then works in one of the service's places, where the answer is compressed, too. What erases or
/// corrects does so to the end, with its entry in the audit log.
pub(super) async fn bound(
    State(service): State<Service>,
    mut request: Request,
    next: Next,
) -> Response {
    // A request that is refused takes no place: its handler says why.
    let Some(client) = caller::prove(&mut request, &service).await else {
        return next.run(request).await;
    };
    let Some((body, cost)) = bodies::receive(&mut request, client, &service).await else {
        return next.run(request).await;
    };
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let waits_for_a_model = WAITS_FOR_A_MODEL.contains(&path);
    let is_openai = path.starts_with(openai::PATH);
    let refused = move |error: Error| match is_openai {
        true => Refused::from(error).into_response(),
        false => Failure::from(error).into_response(),
    };
    let is_seen_through = matches!(*request.method(), Method::DELETE | Method::PATCH);
    let (admission, memory) = (service.admission.clone(), service.memory.clone());
    let asked = answers::Asked::of(&request, client);
    let work = async move {
        let at_work = memory.at_work(client, cost).await?;
        let response = next.run(request).await;
        Ok((asked.answer(response, &memory).await?, (body, at_work)))
    };
    if waits_for_a_model {
        let open = match admission.open(client) {
            Ok(open) => open,
            Err(error) => return refused(error),
        };
        let work = async move { admission.beside(client, work).await };
        return match away(&service, work).await.flatten() {
            Ok((response, memory)) => held(made_away(&service, client, response), (open, memory)),
            Err(error) => refused(error),
        };
    }
    let worked = async move {
        match is_seen_through {
            true => {
                let work = request::within(request_id(), work);
                admission.see_through(client, work).await
            }
            false => admission.work(client, work).await,
        }
    };
    let worked = away(&service, worked).await.flatten().flatten();
    worked.map_or_else(refused, |(response, _)| response)
}
