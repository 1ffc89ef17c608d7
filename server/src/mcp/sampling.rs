//! The client's own model answers: by a request of the server within a session, or by the client calling
//! again with the answer.

#![expect(
    deprecated,
    reason = "sampling is deprecated by SEP-2577, and still part of both revisions"
)]

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use rmcp::ErrorData;
use rmcp::model::{
    CreateMessageRequest, CreateMessageRequestParams, CreateMessageResult, ErrorCode, InputRequest,
    InputRequests, InputRequiredResult, SamplingMessage, SamplingMessageContentBlock,
};
use serde::{Deserialize, Serialize};
use throughline_core::chat::{ChatAnswer, ChatModelRequest};
use throughline_core::ids::PersonaId;
use throughline_core::persona::{ChatReceipt, ChatTokens, ChatTurn};
use throughline_core::ports::ChatModel;
use throughline_core::session::Role;
use throughline_core::time::Timestamp;
use throughline_core::{Error, ErrorKind, Result, Scope};
use throughline_engine::compose::ChosenModel;
use uuid::Uuid;

use super::elicitation::{self, ask, can_answer};
use super::tool::Call;

/// The name of the question within a call.
const ANSWER: &str = "answer";
/// Most tokens of an answer where a request has no limit: sampling needs one.
const DEFAULT_MAX_TOKENS: u32 = 4_096;
/// Both ways out, for a client that cannot be asked.
const NO_MODEL: &str = "no model can answer: this client does not declare the capability `sampling`, and no chat \
     model is configured; use a client that supports sampling, or set `chat.model` and its provider";

/// The model of the client that calls.
struct ClientModel<'c> {
    call: &'c Call,
    /// The question that the client must answer by calling again.
    open: Mutex<Option<InputRequests>>,
}

#[async_trait]
impl ChatModel for ClientModel<'_> {
    async fn complete(&self, request: &ChatModelRequest) -> Result<ChatAnswer> {
        let question = question(request);
        if !can_answer(&self.call.context, &question) {
            return Err(no_model(&question));
        }
        let questions = InputRequests::from([(ANSWER.to_owned(), question)]);
        let server = &self.call.server;
        let asked = tokio::select! {
            asked = ask(&self.call.context, questions, None, server.patience) => asked,
            () = server.leaving.cancelled() => {
                return Err(Error::new(ErrorKind::Unavailable, "the call ended before the client \
                     answered: nothing was stored"));
            }
        };
        match asked.map_err(declined)? {
            elicitation::Elicited::Answered(answers) => {
                let answer = answers.get(ANSWER).cloned().unwrap_or_default();
                let unread =
                    |_| Error::new(ErrorKind::Declined, "the client's answer is not a message");
                told(serde_json::from_value(answer).map_err(unread)?)
            }
            elicitation::Elicited::Open(open) => {
                *self.open.lock().unwrap_or_else(PoisonError::into_inner) = Some(open);
                Err(Error::new(ErrorKind::Unavailable, "the client has not answered yet"))
            }
        }
    }
}

/// The turn as a request to sample.
fn question(request: &ChatModelRequest) -> InputRequest {
    let messages = request.messages.iter().map(|message| match message.role {
        Role::Assistant => SamplingMessage::assistant_text(&message.content),
        Role::User | Role::System | Role::Tool => SamplingMessage::user_text(&message.content),
    });
    let most = request.max_tokens.unwrap_or(DEFAULT_MAX_TOKENS);
    let mut params = CreateMessageRequestParams::new(messages.collect(), most)
        .with_system_prompt(&request.system);
    if let Some(temperature) = request.temperature {
        params = params.with_temperature(temperature as f32);
    }
    InputRequest::CreateMessage(CreateMessageRequest::new(params))
}

/// The answer of the client's model.
///
/// # Errors
/// `Declined` where that is nothing.
fn told(result: CreateMessageResult) -> Result<ChatAnswer> {
    let texts = result.message.content.into_vec().into_iter().filter_map(|block| match block {
        SamplingMessageContentBlock::Text(text) => Some(text.text),
        _ => None,
    });
    let text = texts.collect::<Vec<_>>().join("\n");
    if text.trim().is_empty() {
        return Err(Error::new(
            ErrorKind::Declined,
            "the model returned an empty answer: nothing was stored",
        ));
    }
    Ok(ChatAnswer { text, stop_reason: result.stop_reason, ..ChatAnswer::default() })
}

fn no_model(question: &InputRequest) -> Error {
    let mut error = elicitation::missing(question);
    error.message = NO_MODEL.into();
    Error::new(ErrorKind::Unavailable, NO_MODEL).with_source(error)
}

/// A client that says no, or nothing.
fn declined(error: ErrorData) -> Error {
    match error.code {
        ErrorCode::INTERNAL_ERROR => Error::new(
            ErrorKind::Unavailable,
            format!("the client's model did not answer ({}): nothing was stored", error.message),
        ),
        ErrorCode::INVALID_REQUEST | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY => {
            Error::new(ErrorKind::Unavailable, error.message.to_string()).with_source(error)
        }
        _ => Error::new(
            ErrorKind::Declined,
            format!("the client declined to answer ({}): nothing was stored", error.message),
        ),
    }
}

/// The outcome of asking for an answer.
pub(super) enum Sampled {
    /// There is one.
    Answered(Box<Answered>),
    /// The call ends, and the client calls again with it.
    Asks(Box<InputRequiredResult>),
}

/// The answer to a turn.
pub(super) struct Answered {
    /// Of the turn that was asked.
    pub receipt: ChatReceipt,
    /// The answer.
    pub answer: ChatAnswer,
    /// The configured model that gave it; none if it is the client's.
    pub model: Option<String>,
    /// Warnings about the turn.
    pub warnings: Vec<String>,
}

/// The configured model, where the client has none.
///
/// # Errors
/// As [`throughline_engine::app::App::configured_model`].
pub(super) async fn configured(call: &Call) -> Result<Option<ChosenModel>> {
    let declared = call.context.client_capabilities();
    match declared.is_some_and(|declared| declared.sampling.is_some()) {
        true => Ok(None),
        false => call.server.app.configured_model(&call.who).await,
    }
}

/// Asks a model to answer a turn: the configured one where it is given, else the client's.
///
/// # Errors
/// `Unavailable` where it cannot be asked or is too late; `Declined` where it says no.
pub(super) async fn sample(
    call: &Call,
    turn: ChatTurn,
    configured: Option<ChosenModel>,
) -> Result<Sampled> {
    let request = turn.request();
    if let Some(configured) = configured {
        let answer = configured.complete(&request).await?;
        call.server.app.count_chat(&call.who, &configured, answer.usage).await;
        let (receipt, warnings, model) = (turn.receipt, turn.warnings, Some(configured.name()));
        return Ok(Sampled::Answered(Box::new(Answered { receipt, answer, model, warnings })));
    }
    let model = ClientModel { call, open: Mutex::new(None) };
    match model.complete(&request).await {
        Ok(answer) => {
            let (receipt, warnings) = (turn.receipt, turn.warnings);
            Ok(Sampled::Answered(Box::new(Answered { receipt, answer, model: None, warnings })))
        }
        Err(error) => {
            let open = model.open.lock().unwrap_or_else(PoisonError::into_inner).take();
            let Some(open) = open else { return Err(error) };
            let unsealed = |error| Error::internal("a state was not sealed").with_source(error);
            let purpose = purpose(&call.scope()?, turn.receipt.persona, &turn.receipt.message);
            let state = Asked::of(&turn);
            let state = call.server.sealed.seal(&purpose, &state).map_err(unsealed)?;
            Ok(Sampled::Asks(Box::new(InputRequiredResult::new(Some(open), Some(state)))))
        }
    }
}

/// The answer that a client brings when it calls again, to the turn that it was asked: whether the persona
/// expired meanwhile is no matter. `None` for a first call, and for an answer that is none.
///
/// # Errors
/// `InvalidInput` for a state that is not of this call.
pub(super) fn brought(call: &Call, persona: PersonaId, message: &str) -> Result<Option<Answered>> {
    let given = call.answers.as_ref().and_then(|answers| answers.get(ANSWER));
    let (Some(given), Some(state)) = (given, &call.state) else { return Ok(None) };
    let foreign = |_| {
        Error::invalid(
            "requestState does not belong to this call, or has expired: call again without it",
        )
    };
    let purpose = purpose(&call.scope()?, persona, message);
    let asked: Asked = call.server.sealed.open(&purpose, state).map_err(foreign)?;
    let Ok(answer) = serde_json::from_value(given.clone()) else { return Ok(None) };
    let receipt = asked.receipt(persona, message);
    Ok(Some(Answered { receipt, answer: told(answer)?, model: None, warnings: asked.warnings }))
}

/// The binding of a state: caller, persona and message.
fn purpose(scope: &Scope, persona: PersonaId, message: &str) -> String {
    let workspace = scope.workspace.as_ref().map_or("", |workspace| workspace.as_str());
    let parts = [scope.tenant.as_str(), scope.user.as_str(), workspace, message];
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    format!("context-chat {persona} {}", hasher.finalize())
}

/// A turn in the client's hands, signed: what its persona and message, which the signature is bound to, do not tell.
#[derive(Serialize, Deserialize)]
struct Asked {
    turn: u128,
    prepared_at: i64,
    /// Limit, used, prompt, history, recalled, message.
    tokens: [u32; 6],
    history_truncated: bool,
    #[serde(default)]
    erasures: Option<u64>,
    warnings: Vec<String>,
}

impl Asked {
    fn of(turn: &ChatTurn) -> Self {
        let (receipt, tokens) = (&turn.receipt, turn.receipt.tokens);
        Self {
            turn: receipt.turn.as_u128(),
            prepared_at: receipt.prepared_at.as_micros(),
            tokens: [
                tokens.limit, tokens.used, tokens.prompt, tokens.history, tokens.recalled,
                tokens.message,
            ],
            history_truncated: receipt.history_truncated,
            erasures: receipt.erasures,
            warnings: turn.warnings.clone(),
        }
    }

    fn receipt(&self, persona: PersonaId, message: &str) -> ChatReceipt {
        let [limit, used, prompt, history, recalled, of_message] = self.tokens;
        ChatReceipt {
            turn: Uuid::from_u128(self.turn),
            persona,
            message: message.to_owned(),
            prepared_at: Timestamp::from_micros(self.prepared_at),
            tokens: ChatTokens { limit, used, prompt, history, recalled, message: of_message },
            history_truncated: self.history_truncated,
            erasures: self.erasures,
        }
    }
}
