//! The API of OpenAI's clients: chat completions with a memory and a budget, embeddings, and the models. Requests and
//! answers have the provider's own form, so these operations are not in the OpenAPI document.

use axum::Json;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get, post};
use futures_util::StreamExt as _;
use serde_json::{Map, Value, json};
use throughline_core::{Error, Result};
use throughline_engine::app::{Completed, Completion};

use crate::http::bodies::received;
use crate::http::caller::{Caller, Chat, Read, named};
use crate::http::service::Service;
use crate::wire::problem::Failure;

/// What the paths of all operations here begin with.
pub(crate) const PATH: &str = "/openai/";
/// Header that names the session.
const SESSION: &str = "throughline-session";
/// Header with the tokens that may be assembled.
const BUDGET: &str = "throughline-budget";
/// Header with the tokens that were assembled, the turn included.
const SENT: &str = "throughline-context-tokens";
/// Header with the tokens of the client's conversation that were not sent.
const SAVED: &str = "throughline-tokens-saved";

pub(crate) fn router() -> Router<Service> {
    Router::new()
        .route("/openai/v1/chat/completions", post(completions).fallback(wrong_method))
        .route("/openai/v1/embeddings", post(embeddings).fallback(wrong_method))
        .route("/openai/v1/models", get(models).fallback(wrong_method))
        .route("/openai/v1/models/{id}", get(model).fallback(wrong_method))
        .route("/openai/v1", any(unknown))
        .route("/openai/v1/", any(unknown))
        .route("/openai/v1/{*path}", any(unknown))
}

async fn unknown() -> Refused {
    Refused(
        Error::not_found(
            "there is no operation with this path: /openai/v1 has /chat/completions, /embeddings, /models and \
             /models/{id}",
        )
        .into(),
    )
}

async fn wrong_method() -> Refused {
    let error = Error::invalid(
        "this path does not support the method: POST to /openai/v1/chat/completions and /openai/v1/embeddings, GET \
         /openai/v1/models",
    );
    Refused(Failure::of_status(StatusCode::METHOD_NOT_ALLOWED, error))
}

/// A failure in the form that OpenAI's clients show.
pub(crate) struct Refused(Failure);

impl From<Error> for Refused {
    fn from(error: Error) -> Self {
        Self(error.into())
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Self(failure)
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        self.0.answer(|status, error, message| {
            let kind = match status.as_u16() {
                401 => "authentication_error",
                403 => "permission_error",
                429 => "rate_limit_error",
                400..500 => "invalid_request_error",
                _ => "server_error",
            };
            let code = error.kind().code();
            let error = json!({"message": message, "type": kind, "param": null, "code": code});
            ("application/json", json!({"error": error}).to_string())
        })
    }
}

async fn completions(
    State(service): State<Service>,
    caller: Result<Caller<Chat>, Failure>,
    request: Request,
) -> Result<Response, Refused> {
    let caller = caller?;
    let session = named(request.headers(), SESSION)?.map(str::to_owned);
    let token_budget = named(request.headers(), BUDGET)?
        .map(|budget| {
            let wrong = |_| Error::invalid("Throughline-Budget: a whole number of tokens");
            budget.trim().parse::<u32>().map_err(wrong)
        })
        .transpose()?;
    let body = object(&request)?;
    let asked = Completion { session, token_budget, body };
    Ok(answer(service.app.complete(caller.identity(), asked).await?))
}

async fn embeddings(
    State(service): State<Service>,
    caller: Result<Caller<Chat>, Failure>,
    request: Request,
) -> Result<Response, Refused> {
    let caller = caller?;
    let body = object(&request)?;
    Ok(answer(service.app.pass_on(&caller, "/embeddings", body).await?))
}

async fn models(
    State(service): State<Service>,
    caller: Result<Caller<Read>, Failure>,
) -> Result<Json<Value>, Refused> {
    caller?;
    let providers = service.app.engine.models.providers.iter();
    let models = providers.flat_map(|provider| {
        provider.models().iter().map(|model| entry(provider.name(), &model.id))
    });
    Ok(Json(json!({"object": "list", "data": models.collect::<Vec<_>>()})))
}

async fn model(
    State(service): State<Service>,
    caller: Result<Caller<Read>, Failure>,
    Path(id): Path<String>,
) -> Result<Json<Value>, Refused> {
    caller?;
    let unknown = |error: Error| Error::not_found(error.message().to_owned());
    let chosen = service.app.engine.models.find(&id).map_err(unknown)?;
    Ok(Json(entry(chosen.provider, &chosen.info.id)))
}

/// A model, as OpenAI's clients know it.
fn entry(provider: &str, id: &str) -> Value {
    json!({"id": id, "object": "model", "created": 0, "owned_by": provider})
}

fn object(request: &Request) -> Result<Map<String, Value>, Failure> {
    let bytes = received(request)?;
    let wrong = |error| Error::invalid(format!("the body must be a JSON object: {error}"));
    Ok(serde_json::from_slice(&bytes).map_err(wrong)?)
}

/// The provider's answer as it comes, with what was sent to it.
fn answer(answer: Completed) -> Response {
    let Completed { session, sent, status, headers, body } = answer;
    // Compression asks for more after the end.
    let mut response = Response::new(Body::from_stream(body.fuse()));
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    let shown = response.headers_mut();
    for (name, value) in headers {
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
            shown.insert(name, value);
        }
    }
    if let Ok(session) = HeaderValue::try_from(session)
        && !session.is_empty()
    {
        shown.insert(SESSION, session);
    }
    if let Some(sent) = sent {
        shown.insert(SENT, sent.tokens.into());
        shown.insert(SAVED, sent.saved.into());
    }
    if !shown.contains_key(header::CONTENT_TYPE) {
        shown.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    }
    response
}
