//! Turns of contexts that a configured model answers.

use std::convert::Infallible;

use axum::Json;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt as _, future, stream};
use serde::{Deserialize, Serialize};
use serde_json::json;
use throughline_core::persona::ChatRequest;
use throughline_core::{Error, Result};
use throughline_engine::app::{PersonaPiece, PersonaReply, PersonaTurn};
use utoipa::ToSchema;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::caller::{Caller, Chat};
use crate::http::extract::{Body, Named, Repeat};
use crate::http::routes::chat::{UsageJson, failed};
use crate::http::service::Service;
use crate::wire::problem::Failure;
use crate::wire::request::request_id;

pub(super) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(chat))
}

/// A message to a context.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"message": "How do I prepare for the talk?", "model": "openai:gpt-4.1"}))]
pub(crate) struct ContextChatRequest {
    /// The user's message.
    #[schema(min_length = 1)]
    message: String,
    /// The model, as `provider:model` or as its name alone; the setting `chat.model` if not given.
    #[serde(default)]
    model: Option<String>,
    /// Whether to send the instruction to keep the personality; default true.
    #[serde(default)]
    maintain_personality: Option<bool>,
    /// Token budget of what is sent; the context's `max_history_tokens` if not given.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1_000_000)]
    token_budget: Option<u32>,
    /// Send the answer piece by piece, as server-sent events: `delta` for each piece of the text, then `done`, or
    /// `error` with a problem.
    #[serde(default)]
    stream: bool,
}

/// The answer of a context.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ContextChatJson {
    /// The model that answered.
    model: String,
    /// The answer as it is stored.
    text: String,
    /// Why the answer ended, such as `endTurn` or `maxTokens`.
    stop_reason: Option<String>,
    usage: Option<UsageJson>,
    /// The ids of the stored messages: the question and the answer.
    messages: Vec<String>,
    /// Tokens of what was sent and of the answer, as Throughline counts; null for a repeat.
    tokens_used: Option<u64>,
    /// Tokens of the history that was sent; null for a repeat.
    history_tokens: Option<u32>,
    /// Whether some of the history was not sent; null for a repeat.
    history_truncated: Option<bool>,
    /// When the context expires.
    #[schema(format = DateTime)]
    expires_at: String,
    /// Warnings about the turn: a long history, an expiry that is near, masked secrets.
    warnings: Vec<String>,
}

impl From<PersonaReply> for ContextChatJson {
    fn from(reply: PersonaReply) -> Self {
        let PersonaReply { kept, model, answer, cost, warnings } = reply;
        let is_new = !kept.repeated;
        Self {
            model,
            usage: UsageJson::of(&answer, cost),
            stop_reason: answer.stop_reason,
            messages: [&kept.question, &kept.answer].map(|one| one.message.id.to_string()).into(),
            text: kept.answer.message.content,
            tokens_used: is_new.then_some(kept.tokens_used),
            history_tokens: is_new.then_some(kept.history_tokens),
            history_truncated: is_new.then_some(kept.history_truncated),
            expires_at: kept.persona.expires_at.to_rfc3339(),
            warnings,
        }
    }
}

/// Chat with a context
///
/// Sends its prompt, its history and the message to a model, and stores the message and the answer. Nothing is stored if
/// the model fails, is cut off, or the client disconnects before the end, or if data is erased while the model answers. A context that somebody shares as writable has
/// the id `share:<id>`.
#[utoipa::path(
    post,
    path = "/v1/contexts/{id}/chat",
    operation_id = "chat_with_context",
    tag = "contexts",
    params(("id" = String, Path, description = "The context, or the id under which it is shared")),
    request_body = ContextChatRequest,
    responses(
        (status = 200, description = "The answer", content(
            (ContextChatJson = "application/json"), (String = "text/event-stream")
        ))
    )
)]
async fn chat(
    State(service): State<Service>,
    caller: Caller<Chat>,
    Named(id): Named<String>,
    repeat: Repeat,
    body: Body<ContextChatRequest>,
) -> Result<Response, Failure> {
    let idempotency = repeat.of(&body);
    let ContextChatRequest { message, model, maintain_personality, token_budget, stream: streamed } =
        body.value;
    let maintain_personality = maintain_personality.unwrap_or(true);
    let request = ChatRequest { maintain_personality, token_budget, ..ChatRequest::new(message) };
    let turn = PersonaTurn { request, model, idempotency };
    let mut pieces = Box::pin(service.app.chat_with_persona(caller.identity(), id, turn));
    if streamed {
        // Errors that come before the model is asked are answered with a status.
        let first = pieces.next().await.transpose()?;
        let events = events(stream::iter(first.map(Ok)).chain(pieces), request_id());
        return Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response());
    }
    while let Some(piece) = pieces.next().await {
        if let PersonaPiece::Done(reply) = piece? {
            return Ok(Json(ContextChatJson::from(*reply)).into_response());
        }
    }
    Err(Error::internal("the chat ended without an answer").into())
}

/// The pieces as server-sent events.
fn events(
    pieces: impl Stream<Item = Result<PersonaPiece>> + Send + 'static,
    request: String,
) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
    pieces.filter_map(move |piece| {
        let (name, data) = match piece {
            Ok(PersonaPiece::Prepared) => return future::ready(None),
            Ok(PersonaPiece::Text(text)) => ("delta", json!({"text": text})),
            Ok(PersonaPiece::Done(reply)) => ("done", json!(ContextChatJson::from(*reply))),
            Err(error) => failed(&error, &request),
        };
        future::ready(Some(Ok(Event::default().event(name).data(data.to_string()))))
    })
}
