//! Questions to the client, put so that one handler serves both eras.
//!
//! Up to 2025-11-25 a server sends `sampling/createMessage`, `elicitation/create` or `roots/list` to the
//! client while the call is open. From 2026-07-28 on it may not: the call ends with an
//! `InputRequiredResult`, and the client calls again with the answers. [`ask`] hides the difference: it
//! gives the answers, or the result to end the call with. What a handler did before it asked, it does
//! again on the next call, so it asks before it changes anything, or keeps its place in a [`Sealed`] state.

#![expect(
    deprecated,
    reason = "sampling and roots are deprecated by SEP-2577 and still part of both revisions"
)]

use std::{panic::AssertUnwindSafe, time::Duration};

use futures_util::FutureExt;
use rmcp::{
    ErrorData, RoleServer,
    model::{
        ClientCapabilities, ClientResult, CreateMessageResult, ElicitResult, InputRequest,
        InputRequests, InputResponses, ListRootsResult, RequestStateCodec, SealOptions,
        ServerRequest,
    },
    service::{PeerRequestOptions, RequestContext, ServiceError},
};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::Value;
use throughline_core::Error;

/// How long the state of an unfinished call may be brought back.
const STATE_TTL: Duration = Duration::from_secs(3_600);

/// Answers with an error where a handler panics: rmcp itself would leave the client waiting for ever. Not by a
/// task of its own, for there a question would lose the stream of its call.
///
/// # Errors
/// The handler's own, and `-32603` where it panicked.
pub(super) async fn shielded<T>(
    handler: impl Future<Output = Result<T, ErrorData>>,
) -> Result<T, ErrorData> {
    let outcome = AssertUnwindSafe(handler).catch_unwind().await;
    outcome.unwrap_or_else(|_| Err(ErrorData::internal_error("the call failed", None)))
}

/// The outcome of a question.
pub(super) enum Elicited {
    /// Each question has an answer of the right shape.
    Answered(InputResponses),
    /// These are open: the call ends with an `InputRequiredResult`.
    Open(InputRequests),
}

/// How this request's client can be asked.
enum Way {
    /// By requests of the server's own, over the session.
    Session,
    /// By an `InputRequiredResult` and another call.
    Again,
    /// Not at all: the request stands alone, in a revision that has no `InputRequiredResult`.
    None,
}

/// The way of this request. One that names its version itself belongs to no session, on any transport.
fn way(context: &RequestContext<RoleServer>) -> Way {
    match context.meta.protocol_version() {
        None => Way::Session,
        Some(version) if !version.has_initialize() => Way::Again,
        Some(_) => Way::None,
    }
}

/// Whether this request is of a revision without sessions, where a log level and questions come with the call.
#[cfg(feature = "mcp-fixtures")]
pub(super) fn stands_alone(context: &RequestContext<RoleServer>) -> bool {
    !matches!(way(context), Way::Session)
}

/// Asks what `given` does not answer yet. Answers to other questions, and of the wrong shape, are passed over.
///
/// # Errors
/// `-32021` where the client has not declared what it takes to answer, `-32600` where it cannot be asked,
/// and what the client itself answered with.
pub(super) async fn ask(
    context: &RequestContext<RoleServer>,
    questions: InputRequests,
    given: Option<&InputResponses>,
    patience: Duration,
) -> Result<Elicited, ErrorData> {
    for question in questions.values() {
        require(context, question)?;
    }
    match way(context) {
        Way::Session => ask_in_session(context, questions, patience).await,
        Way::Again => Ok(match_answers(questions, given)),
        Way::None => Err(ErrorData::invalid_request(
            "this call needs an answer from the client: use protocol version 2026-07-28 or a \
             session",
            None,
        )),
    }
}

/// The answers that were given, or the questions that are still open.
fn match_answers(questions: InputRequests, given: Option<&InputResponses>) -> Elicited {
    let mut answers = InputResponses::new();
    let mut open = InputRequests::new();
    for (key, question) in questions {
        match given.and_then(|given| given.get(&key)) {
            Some(answer) if fits(&question, answer) => {
                answers.insert(key, answer.clone());
            }
            _ => {
                open.insert(key, question);
            }
        }
    }
    if open.is_empty() { Elicited::Answered(answers) } else { Elicited::Open(open) }
}

async fn ask_in_session(
    context: &RequestContext<RoleServer>,
    questions: InputRequests,
    patience: Duration,
) -> Result<Elicited, ErrorData> {
    let mut answers = InputResponses::new();
    for (key, question) in questions {
        let answer = send(context, question.clone(), patience).await?;
        if !fits(&question, &answer) {
            return Err(ErrorData::invalid_request(
                format!("the client's answer to `{key}` does not match the requested schema"),
                None,
            ));
        }
        answers.insert(key, answer);
    }
    Ok(Elicited::Answered(answers))
}

/// Sends one question over the session and waits: no longer than the patience, nor than the call lasts.
async fn send(
    context: &RequestContext<RoleServer>,
    question: InputRequest,
    patience: Duration,
) -> Result<Value, ErrorData> {
    let request = match question {
        InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
        InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
        InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
        _ => return Err(ErrorData::internal_error("unknown kind of question", None)),
    };
    let options = PeerRequestOptions::with_timeout(patience);
    let handle =
        context.peer.send_cancellable_request(request, options).await.map_err(unanswered)?;
    let result = tokio::select! {
        result = handle.await_response() => result.map_err(unanswered)?,
        () = context.ct.cancelled() => return Err(ErrorData::internal_error("cancelled", None)),
    };
    to_value(result)
}

fn to_value(result: ClientResult) -> Result<Value, ErrorData> {
    serde_json::to_value(result).map_err(|_| ErrorData::internal_error("unreadable answer", None))
}

fn unanswered(error: ServiceError) -> ErrorData {
    match error {
        ServiceError::McpError(error) => error,
        ServiceError::Timeout { .. } => {
            ErrorData::internal_error("the client did not answer in time", None)
        }
        _ => ErrorData::internal_error("the question could not be sent to the client", None),
    }
}

/// Whether an answer has the form of the question's result.
fn fits(question: &InputRequest, answer: &Value) -> bool {
    match question {
        InputRequest::CreateMessage(_) => is::<CreateMessageResult>(answer),
        InputRequest::Elicitation(_) => is::<ElicitResult>(answer),
        InputRequest::ListRoots(_) => is::<ListRootsResult>(answer),
        _ => false,
    }
}

fn is<T: DeserializeOwned>(value: &Value) -> bool {
    T::deserialize(value).is_ok()
}

/// Whether the client has declared that it can answer this.
pub(super) fn can_answer(context: &RequestContext<RoleServer>, question: &InputRequest) -> bool {
    let Some(declared) = context.client_capabilities() else {
        return false;
    };
    match question {
        InputRequest::CreateMessage(_) => declared.sampling.is_some(),
        InputRequest::Elicitation(_) => declared.elicitation.is_some(),
        InputRequest::ListRoots(_) => declared.roots.is_some(),
        _ => false,
    }
}

fn require(context: &RequestContext<RoleServer>, question: &InputRequest) -> Result<(), ErrorData> {
    if can_answer(context, question) {
        return Ok(());
    }
    Err(missing(question))
}

/// The capability that a client needs to answer this.
pub(super) fn missing(question: &InputRequest) -> ErrorData {
    let missing = match question {
        InputRequest::CreateMessage(_) => ClientCapabilities::builder().enable_sampling().build(),
        InputRequest::Elicitation(_) => ClientCapabilities::builder().enable_elicitation().build(),
        InputRequest::ListRoots(_) => ClientCapabilities::builder().enable_roots().build(),
        _ => ClientCapabilities::default(),
    };
    ErrorData::missing_required_client_capability(missing)
}

/// The state of a call between its rounds, in the client's hands: signed, not secret.
#[derive(Clone, Debug)]
pub(super) struct Sealed(RequestStateCodec);

impl Sealed {
    /// Signs with this key, of at least 32 bytes; the same in every process that serves the same clients.
    ///
    /// # Errors
    /// A shorter key.
    pub(super) fn new(key: &[u8]) -> Result<Self, rmcp::model::RequestStateError> {
        RequestStateCodec::try_new(key).map(Self)
    }

    /// A state that can be brought back for the same `purpose` only: the caller, the method and its arguments.
    ///
    /// # Errors
    /// A state that is no JSON.
    pub(super) fn seal<T: Serialize>(&self, purpose: &str, state: &T) -> Result<String, ErrorData> {
        let options = SealOptions::new().associated_data(purpose.as_bytes()).ttl(STATE_TTL);
        self.0
            .seal_json_with(state, &options)
            .map_err(|_| ErrorData::internal_error("the state could not be written", None))
    }

    /// The state, if this server issued it for this purpose and it has not expired.
    ///
    /// # Errors
    /// `-32602` otherwise.
    pub(super) fn open<T: DeserializeOwned>(
        &self,
        purpose: &str,
        sealed: &str,
    ) -> Result<T, ErrorData> {
        self.0
            .open_json_with(sealed, purpose.as_bytes())
            .map_err(|_| ErrorData::invalid_params("requestState is not valid for this call", None))
    }
}

/// A failure that has a form of its own in the protocol, such as a client that lacks a capability.
pub(super) fn protocol_error(error: &Error) -> Option<ErrorData> {
    std::error::Error::source(error)?.downcast_ref::<ErrorData>().cloned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn panicking_handler_returns_an_error() {
        let failed = shielded::<()>(async { panic!("as asked") }).await;
        assert_eq!(failed.map_err(|error| error.code.0), Err(-32603));
        assert_eq!(shielded(async { Ok(1) }).await, Ok(1));
    }
}
