//! The client's own model as the one that answers: by a request of ours within a session, or by the client calling
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
use throughline_core::ids::PersonaId;
use throughline_core::persona::{ChatReceipt, ChatTokens, ChatTurn};
use throughline_core::ports::{ChatAnswer, ChatModel, ChatModelRequest};
use throughline_core::session::Role;
use throughline_core::time::Timestamp;
use throughline_core::{Error, ErrorKind, Result, Scope};
use uuid::Uuid;

use super::ask::{Asked, ask, can_answer};
use super::tool::Call;

/// The name of the question within a call.
const ANSWER: &str = "answer";
/// Both ways out, for a client that cannot be asked.
const NO_MODEL: &str = "nobody can answer: this client does not offer `sampling`, and no chat provider is \
    configured; call from a client that declares `sampling`, or configure a provider for chat";

/// The model of the client that calls.
struct ClientModel<'c> {
    call: &'c Call,
    /// What the client has to answer first, where it does so by calling again.
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
        let given = self.call.answers.as_ref();
        let patience = self.call.server.patience;
        match ask(&self.call.context, questions, given, patience).await.map_err(declined)? {
            Asked::Answered(answers) => {
                let answer = answers.get(ANSWER).cloned().unwrap_or_default();
                let unread =
                    |_| Error::new(ErrorKind::Declined, "the client's answer is no message");
                Ok(told(serde_json::from_value(answer).map_err(unread)?))
            }
            Asked::Open(open) => {
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
    let params = CreateMessageRequestParams::new(messages.collect(), request.max_tokens)
        .with_system_prompt(&request.system)
        .with_temperature(request.temperature as f32);
    InputRequest::CreateMessage(CreateMessageRequest::new(params))
}

/// What the client's model said.
fn told(result: CreateMessageResult) -> ChatAnswer {
    let texts = result.message.content.into_vec().into_iter().filter_map(|block| match block {
        SamplingMessageContentBlock::Text(text) => Some(text.text),
        _ => None,
    });
    ChatAnswer { text: texts.collect::<Vec<_>>().join("\n"), stop_reason: result.stop_reason }
}

fn no_model(question: &InputRequest) -> Error {
    let mut error = super::ask::missing(question);
    error.message = NO_MODEL.into();
    Error::new(ErrorKind::Unavailable, NO_MODEL).with_source(error)
}

/// A client that says no, or nothing.
fn declined(error: ErrorData) -> Error {
    match error.code {
        ErrorCode::INTERNAL_ERROR => Error::new(
            ErrorKind::Unavailable,
            format!("the client's model did not answer ({}): nothing was kept", error.message),
        ),
        ErrorCode::INVALID_REQUEST | ErrorCode::MISSING_REQUIRED_CLIENT_CAPABILITY => {
            Error::new(ErrorKind::Unavailable, error.message.to_string()).with_source(error)
        }
        _ => Error::new(
            ErrorKind::Declined,
            format!("the client declined to answer ({}): nothing was kept", error.message),
        ),
    }
}

/// What came of asking for an answer.
pub(super) enum Sampled {
    /// There is one.
    Answered {
        /// Of the turn that was asked.
        receipt: Box<ChatReceipt>,
        /// The answer.
        answer: ChatAnswer,
    },
    /// The call ends, and the client calls again with it.
    Asks(Box<InputRequiredResult>),
}

/// Asks the client's model to answer a turn. A client that calls again brings the receipt of the turn that it
/// answers, signed.
///
/// # Errors
/// `Unavailable` where it cannot be asked or is too late; `Declined` where it says no; `InvalidInput` for a
/// state that is not of this call.
pub(super) async fn sample(call: &Call, scope: &Scope, turn: &ChatTurn) -> Result<Sampled> {
    let model = ClientModel { call, open: Mutex::new(None) };
    let purpose = purpose(scope, turn);
    match model.complete(&turn.request()).await {
        Ok(answer) if answer.text.trim().is_empty() => {
            Err(Error::new(ErrorKind::Declined, "the model answered nothing: nothing was kept"))
        }
        Ok(answer) => {
            let receipt = match &call.state {
                Some(state) => {
                    let foreign = |_| {
                        Error::invalid("requestState is not of this call, or too old: call anew")
                    };
                    call.server.sealed.open::<Receipt>(&purpose, state).map_err(foreign)?.into()
                }
                None => turn.receipt.clone(),
            };
            Ok(Sampled::Answered { receipt: Box::new(receipt), answer })
        }
        Err(error) => {
            let open = model.open.lock().unwrap_or_else(PoisonError::into_inner).take();
            let Some(open) = open else { return Err(error) };
            let unsealed = |error| Error::internal("a state was not sealed").with_source(error);
            let receipt = Receipt::from(&turn.receipt);
            let state = call.server.sealed.seal(&purpose, &receipt).map_err(unsealed)?;
            Ok(Sampled::Asks(Box::new(InputRequiredResult::new(Some(open), Some(state)))))
        }
    }
}

/// What a state is bound to: who asks whom what.
fn purpose(scope: &Scope, turn: &ChatTurn) -> String {
    let workspace = scope.workspace.as_ref().map_or("", |workspace| workspace.as_str());
    let parts = [scope.tenant.as_str(), scope.user.as_str(), workspace, &turn.receipt.message];
    let mut hasher = blake3::Hasher::new();
    for part in parts {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    format!("context-chat {} {}", turn.receipt.persona, hasher.finalize())
}

/// A receipt in the client's hands, signed.
#[derive(Serialize, Deserialize)]
struct Receipt {
    turn: u128,
    persona: u128,
    message: String,
    prepared_at: i64,
    /// Limit, used, prompt, history, recalled, message.
    tokens: [u32; 6],
    history_truncated: bool,
}

impl From<&ChatReceipt> for Receipt {
    fn from(receipt: &ChatReceipt) -> Self {
        let tokens = receipt.tokens;
        Self {
            turn: receipt.turn.as_u128(),
            persona: receipt.persona.as_uuid().as_u128(),
            message: receipt.message.clone(),
            prepared_at: receipt.prepared_at.as_micros(),
            tokens: [
                tokens.limit, tokens.used, tokens.prompt, tokens.history, tokens.recalled,
                tokens.message,
            ],
            history_truncated: receipt.history_truncated,
        }
    }
}

impl From<Receipt> for ChatReceipt {
    fn from(receipt: Receipt) -> Self {
        let [limit, used, prompt, history, recalled, message] = receipt.tokens;
        Self {
            turn: Uuid::from_u128(receipt.turn),
            persona: PersonaId::from_uuid(Uuid::from_u128(receipt.persona)),
            message: receipt.message,
            prepared_at: Timestamp::from_micros(receipt.prepared_at),
            tokens: ChatTokens { limit, used, prompt, history, recalled, message },
            history_truncated: receipt.history_truncated,
        }
    }
}
