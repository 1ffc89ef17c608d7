//! Turns that a model answers.

mod forms;

use std::convert::Infallible;

use axum::Json;
use axum::extract::State;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::{Stream, StreamExt as _, stream};
use serde_json::{Value, json};
use throughline_core::{Error, Result};
use throughline_engine::app::ChatPiece;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::http::caller::{self, Caller};
use crate::http::extract::{Body, Named, Repeat};
use crate::http::service::Service;
use crate::wire::problem::{Failure, Problem};
use crate::wire::request::request_id;
use crate::wire::{AssembledContextJson, PayloadFormat};
use forms::{ChatJson, ChatRequest, SpecialistViewJson, ToolCallJson};

pub(super) use forms::UsageJson;

pub(crate) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new().routes(routes!(chat))
}

/// Answer a turn
///
/// Assembles the context of the turn, lets a model answer it, and stores the turn and the answer. Nothing is stored if the
/// model fails, is cut off, or the client disconnects before the end, or if data is erased while the model answers.
#[utoipa::path(
    post,
    path = "/v1/sessions/{id}/chat",
    operation_id = "chat",
    tag = "contexts",
    params(("id" = String, Path, description = "The session; it need not exist yet")),
    request_body = ChatRequest,
    responses(
        (status = 200, description = "The answer", content(
            (ChatJson = "application/json"), (String = "text/event-stream")
        ))
    )
)]
async fn chat(
    State(service): State<Service>,
    caller: Caller<caller::Chat>,
    Named(id): Named<String>,
    repeat: Repeat,
    body: Body<ChatRequest>,
) -> Result<Response, Failure> {
    let repeat = repeat.of(&body);
    let (turn, streamed) = body.value.turn(repeat)?;
    let reads = caller.may_read();
    let mut pieces = Box::pin(service.app.chat(caller.identity(), id, turn));
    if streamed {
        // Errors that come before the model is asked are answered with a status.
        let first = pieces.next().await.transpose()?;
        let all = stream::iter(first.map(Ok)).chain(pieces);
        let events = events(all, reads, request_id());
        return Ok(Sse::new(events).keep_alive(KeepAlive::default()).into_response());
    }
    let mut context = None;
    while let Some(piece) = pieces.next().await {
        match piece? {
            ChatPiece::Context(assembled) => context = Some(assembled).filter(|_| reads),
            ChatPiece::Window(_) | ChatPiece::Text(_) | ChatPiece::ToolCall(_) => {}
            ChatPiece::Done(reply) => {
                let context = context
                    .map(|context| AssembledContextJson::of(*context, PayloadFormat::Openai));
                return Ok(Json(ChatJson::of(*reply, context)?).into_response());
            }
        }
    }
    Err(Error::internal("the chat ended without an answer").into())
}

/// The pieces as server-sent events. Who may not read is not shown the context.
fn events(
    pieces: impl Stream<Item = Result<ChatPiece>> + Send + 'static,
    reads: bool,
    request: String,
) -> impl Stream<Item = Result<Event, Infallible>> + Send + 'static {
    pieces.flat_map(move |piece| {
        let events = match piece.and_then(|piece| named_events(piece, reads)) {
            Ok(events) => events,
            Err(error) => vec![failed(&error, &request)],
        };
        let event =
            |(name, data): (&str, Value)| Ok(Event::default().event(name).data(data.to_string()));
        stream::iter(events.into_iter().map(event).collect::<Vec<_>>())
    })
}

/// The events of a piece, by name.
fn named_events(piece: ChatPiece, reads: bool) -> Result<Vec<(&'static str, Value)>> {
    Ok(match piece {
        ChatPiece::Context(_) if !reads => Vec::new(),
        ChatPiece::Context(context) => {
            let context = AssembledContextJson::of(*context, PayloadFormat::Openai);
            vec![("context", json!(context))]
        }
        ChatPiece::Window(view) => vec![("window", json!(SpecialistViewJson::of(&view)?))],
        ChatPiece::Text(text) => vec![("delta", json!({"text": text}))],
        ChatPiece::ToolCall(call) => vec![("tool_call", json!(ToolCallJson::of(call)))],
        ChatPiece::Done(reply) => {
            let done = ChatJson::of(*reply, None)?;
            let usage = done.usage.as_ref().map(|used| ("usage", json!(used)));
            usage.into_iter().chain([("done", json!(done))]).collect()
        }
    })
}

/// The event of a failure.
pub(super) fn failed(error: &Error, request: &str) -> (&'static str, Value) {
    ("error", json!(Problem::in_stream(error, request.to_owned())))
}
