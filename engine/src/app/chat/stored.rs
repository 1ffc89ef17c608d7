//! How a turn is stored, and found again by whoever repeats it.

use serde::{Deserialize, Serialize};
use serde_json::json;
use throughline_core::chat::{ChatAnswer, ChatMessage, ToolCall};
use throughline_core::ids::{ExternalId, MessageId};
use throughline_core::ports::Idempotency;
use throughline_core::session::{NewMessage, Role};
use throughline_core::{Error, Result};

use super::{ChatReply, ChatTurn, SpecialistView, Work};
use crate::app::{App, Thread};
use crate::identity::{Identity, hex};
use crate::parts::text_of_calls;

/// What is stored beside the text of an answer.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct AnswerParts {
    /// The model, as `provider:id`.
    model: Option<String>,
    /// Why the answer ended, where it did not end by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<String>,
    /// What specialists were shown for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    specialists: Vec<serde_json::Value>,
}

/// The ids of question and answer. The answer's depends on all of the request, so that a key which comes with another
/// request is noticed.
struct Ids {
    question: ExternalId,
    answer: ExternalId,
}

impl Ids {
    fn of(repeat: &Idempotency) -> Result<Self> {
        let (key, fingerprint) = (hex(&repeat.key), hex(&repeat.fingerprint));
        let id = |id: String| {
            ExternalId::new(id)
                .map_err(|error| Error::internal("no id of a turn").with_source(error))
        };
        Ok(Self {
            question: id(format!("chat-{key}"))?,
            answer: id(format!("chat-{key}-{fingerprint}"))?,
        })
    }
}

impl App {
    /// The answer of a turn that was stored under this idempotency key: no model is asked again.
    ///
    /// # Errors
    /// `Conflict` for a key that stands for another turn; those of the store.
    pub(super) async fn answered_before(
        &self,
        thread: &Thread,
        asked: &ChatTurn,
    ) -> Result<Option<ChatReply>> {
        let Some(repeat) = &asked.idempotency else { return Ok(None) };
        let Ids { question, answer } = Ids::of(repeat)?;
        let ids = [question, answer];
        let store = &self.engine.store;
        let held = store.messages_by_external_id(&thread.scope, &thread.session, &ids).await?;
        let of = |id| held.iter().find(|message| message.external_id.as_ref() == Some(id));
        match ids.each_ref().map(of) {
            [Some(question), Some(answer)] => {
                let parts =
                    answer.parts.as_deref().and_then(|parts| serde_json::from_str(parts).ok());
                let AnswerParts { model, stop_reason, .. } = parts.unwrap_or_default();
                let text = answer.content.clone();
                Ok(Some(ChatReply {
                    model: model.unwrap_or_default(),
                    answer: ChatAnswer { text, stop_reason, ..ChatAnswer::default() },
                    cost: None,
                    stored: vec![question.id, answer.id],
                    steps: Vec::new(),
                    views: Vec::new(),
                }))
            }
            [Some(_), None] => Err(Error::conflict(
                "this idempotency key was used for a different request: give each request its own",
            )),
            [None, _] => Ok(None),
        }
    }

    /// Stores a turn and its answer. It is seen through where the caller goes meanwhile.
    pub(super) async fn store_turn(
        &self,
        caller: Identity,
        session: String,
        work: &Work,
        answer: &ChatAnswer,
    ) -> Result<Vec<MessageId>> {
        let messages = messages(work, answer)?;
        let repeat = work.asked.idempotency;
        let app = self.clone();
        let storing =
            tokio::spawn(async move { app.append(&caller, &session, messages, repeat).await });
        let appended = storing.await.map_err(|error| {
            Error::internal("storing the answer did not end").with_source(error)
        })??;
        Ok(appended.iter().map(|message| message.id).collect())
    }
}

/// What is stored of a turn: the question, calls and results, and the answer.
fn messages(work: &Work, answer: &ChatAnswer) -> Result<Vec<NewMessage>> {
    let mut question = NewMessage::new(Role::User, work.asked.turn.user_turn.clone());
    let parts = AnswerParts {
        model: Some(work.chosen.name()),
        stop_reason: stopped(answer).map(str::to_owned),
        specialists: work.views.iter().map(SpecialistView::json).collect(),
    };
    let mut answer = NewMessage {
        name: work.asked.specialist.clone(),
        parts: Some(json!(parts).to_string()),
        ..NewMessage::new(Role::Assistant, answer.text.clone())
    };
    if let Some(repeat) = &work.asked.idempotency {
        let ids = Ids::of(repeat)?;
        (question.external_id, answer.external_id) = (Some(ids.question), Some(ids.answer));
    }
    let steps = work.asked.steps.iter().map(step);
    Ok(std::iter::once(question).chain(steps).chain([answer]).collect())
}

/// Why an answer ended, where it did not end by itself.
pub(in crate::app) fn stopped(answer: &ChatAnswer) -> Option<&str> {
    answer.stop_reason.as_deref().filter(|reason| *reason != "endTurn")
}

fn step(step: &ChatMessage) -> NewMessage {
    let calls: Vec<_> = step.tool_calls.iter().map(call_json).collect();
    let said = !step.content.trim().is_empty();
    let content = if said { step.content.clone() } else { text_of_calls(&calls) };
    let parts = match &step.tool_call_id {
        Some(id) => json!({"tool_call_id": id}),
        None => json!({"tool_calls": calls}),
    };
    let content = if content.trim().is_empty() { "(empty)".to_owned() } else { content };
    NewMessage { parts: Some(parts.to_string()), ..NewMessage::new(step.role, content) }
}

/// A call in OpenAI's form, as appended messages have it.
fn call_json(call: &ToolCall) -> serde_json::Value {
    let function = json!({"name": call.name, "arguments": call.arguments});
    json!({"id": call.id, "type": "function", "function": function})
}
