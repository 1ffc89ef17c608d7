//! How a turn is stored, and found again by whoever repeats it.

use serde::{Deserialize, Serialize};
use serde_json::json;
use throughline_core::chat::{ChatAnswer, ChatMessage, ToolCall};
use throughline_core::ids::UserId;
use throughline_core::services::repeats::TurnIds;
use throughline_core::session::{Message, NewMessage, Role};
use throughline_core::{Error, Result};

use super::{ChatReply, ChatTurn, SpecialistView, Work};
use crate::app::messages::AnsweredTurn;
use crate::app::{App, Thread};
use crate::identity::Identity;
use crate::parts::text_of_calls;

/// The reason of an answer that ended by itself; it is not stored.
const ENDED: &str = "endTurn";

/// In the place of what a search of files found.
const SEARCHED: &str = "(passages of the files)";

/// What is stored beside the text of an answer.
#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(default)]
struct AnswerParts {
    /// The model, as `provider:id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    /// Why the answer ended, where it did not end by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<String>,
    /// What specialists were shown for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    specialists: Vec<serde_json::Value>,
}

/// What is stored beside an answer: its model, and why it ended.
pub(in crate::app) fn answer_parts(model: Option<String>, answer: &ChatAnswer) -> Option<String> {
    let stop_reason = stopped(answer).map(str::to_owned);
    let is_known = model.is_some() || stop_reason.is_some();
    let parts = AnswerParts { model, stop_reason, specialists: Vec::new() };
    is_known.then(|| json!(parts).to_string())
}

/// The model of a stored answer, and the answer.
pub(in crate::app) fn read_back(answer: &Message) -> (String, ChatAnswer) {
    let parts = answer.parts.as_deref().and_then(|parts| serde_json::from_str(parts).ok());
    let AnswerParts { model, stop_reason, .. } = parts.unwrap_or_default();
    let (text, stop_reason) = (answer.content.clone(), stop_reason.or(Some(ENDED.to_owned())));
    (model.unwrap_or_default(), ChatAnswer { text, stop_reason, ..ChatAnswer::default() })
}

impl App {
    /// The answer of a turn that was stored under this idempotency key.
    ///
    /// # Errors
    /// `Conflict` for a key that stands for another turn; those of the store.
    pub(super) async fn answered_before(
        &self,
        caller: &Identity,
        thread: &Thread,
        asked: &ChatTurn,
    ) -> Result<Option<ChatReply>> {
        let Some(repeat) = &asked.idempotency else { return Ok(None) };
        let store = &*self.engine.store;
        let guest = thread.guest(caller)?;
        let guest = guest.as_ref().map(UserId::as_str);
        let held = TurnIds::of(repeat)?.find(store, &thread.scope, &thread.session, guest).await?;
        Ok(held.map(|[question, answer]| {
            let stored = vec![question.id, answer.id];
            let (model, answer) = read_back(&answer);
            let (steps, views) = (Vec::new(), Vec::new());
            ChatReply { model, answer, cost: None, stored, steps, views, files: None }
        }))
    }

    /// Stores a turn and its answer, even if the caller leaves meanwhile. If the same turn was stored in the meantime,
    /// the reply is what is stored.
    pub(super) async fn store_turn(
        &self,
        caller: Identity,
        session: String,
        work: Work,
        answer: ChatAnswer,
    ) -> Result<ChatReply> {
        let turn = AnsweredTurn {
            messages: messages(&work, &answer)?,
            idempotency: work.asked.idempotency,
            mark: work.mark.clone(),
            files: work.files.as_ref().and_then(|files| files.planned.kept.clone()),
        };
        let app = self.clone();
        let storing = tokio::spawn({
            let (caller, session) = (caller.clone(), session.clone());
            async move { app.append_answered(&caller, &session, turn).await }
        });
        let appended = storing.await.map_err(|error| {
            Error::internal("storing the answer did not end").with_source(error)
        })??;
        if !appended.iter().any(|message| message.replayed) {
            let stored = appended.iter().map(|message| message.id).collect();
            return Ok(work.reply(answer, stored));
        }
        let thread = Thread::to_read(&self.engine, &caller, &session).await?;
        let held = self.answered_before(&caller, &thread, &work.asked).await?;
        let held = held
            .ok_or_else(|| Error::not_found("this turn was stored and has since been deleted"))?;
        let paid = work.reply(answer, Vec::new());
        let answer = ChatAnswer { usage: paid.answer.usage, ..held.answer };
        Ok(ChatReply { answer, cost: paid.cost, ..held })
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
        let ids = TurnIds::of(repeat)?;
        (question.external_id, answer.external_id) = (Some(ids.question), Some(ids.answer));
    }
    // What a search found is in the files.
    let searches = work.searches();
    let steps = work.asked.steps.iter().map(|said| {
        let is_search = said.tool_call_id.as_deref().is_some_and(|id| searches.contains(&id));
        match is_search {
            true => step(&ChatMessage { content: SEARCHED.to_owned(), ..said.clone() }),
            false => step(said),
        }
    });
    Ok(std::iter::once(question).chain(steps).chain([answer]).collect())
}

/// Why an answer ended, where it did not end by itself.
pub(in crate::app) fn stopped(answer: &ChatAnswer) -> Option<&str> {
    answer.stop_reason.as_deref().filter(|reason| *reason != ENDED)
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
