//! A conversation in OpenAI's form, taken apart, and the ids under which its messages are stored.

use serde_json::{Value, json};
use throughline_core::ids::ExternalId;
use throughline_core::session::{NewMessage, Role};
use throughline_core::{Error, Result};

use crate::identity::hex;
use crate::parts::{text_of_calls, text_of_parts};

/// Most messages of a conversation that are stored by one call: the newest ones.
const MOST_STORED: usize = 1_000;

/// A conversation, taken apart.
pub(super) struct Conversation<'m> {
    /// Instructions of the client, which are sent as they are.
    pub(super) instructions: Vec<&'m Value>,
    /// What was said before the turn.
    pub(super) earlier: Vec<ClientMessage<'m>>,
    /// The turn, with the questions before it that have no answer, and what followed: sent as they are.
    pub(super) tail: Vec<&'m Value>,
    /// The text of the turn.
    pub(super) turn: String,
    /// The same as `tail`, to store.
    pub(super) latest: Vec<NewMessage>,
    /// What the session is derived from.
    pub(super) beginning: String,
}

/// A message of a client.
pub(super) struct ClientMessage<'m> {
    /// In OpenAI's form.
    pub(super) sent: &'m Value,
    /// As it is stored; none of one without any text.
    pub(super) stored: Option<NewMessage>,
}

impl ClientMessage<'_> {
    /// Whether it is the result of a tool, which has to follow its call.
    pub(super) fn is_result(&self) -> bool {
        matches!(role(self.sent), "tool" | "function")
    }
}

impl<'m> Conversation<'m> {
    /// Takes the messages of a request apart. The turn begins at the first question without an answer, so that a
    /// question is stored with its answer.
    ///
    /// # Errors
    /// `InvalidInput` where there are none.
    pub(super) fn of(messages: &'m Value) -> Result<Self> {
        let messages = messages.as_array().filter(|messages| !messages.is_empty());
        let messages =
            messages.ok_or_else(|| Error::invalid("messages: give at least one message"))?;
        let is_instruction = |message: &&Value| matches!(role(message), "system" | "developer");
        let (instructions, said): (Vec<&Value>, Vec<&Value>) =
            messages.iter().partition(is_instruction);
        let is_question = |message: &&Value| role(message) == "user";
        let turn = said.iter().rposition(is_question);
        let answered = said[..turn.unwrap_or(0)].iter().rposition(|message| is_answer(message));
        let answered = answered.map_or(0, |answer| answer + 1);
        let open = said[answered..].iter().position(is_question).unwrap_or(0);
        let (earlier, tail) = said.split_at(answered + open);
        let text_at = |at: Option<usize>| at.map(|at| text(said[at])).unwrap_or_default();
        Ok(Self {
            instructions,
            earlier: earlier
                .iter()
                .map(|&sent| ClientMessage { sent, stored: stored(sent) })
                .collect(),
            tail: tail.to_vec(),
            turn: text_at(turn),
            latest: tail.iter().filter_map(|message| stored(message)).collect(),
            beginning: text_at(said.iter().position(is_question)),
        })
    }

    /// The session of a conversation that names none.
    pub(super) fn derived_session(&self) -> String {
        let hash = blake3::hash(self.beginning.as_bytes());
        format!("openai-{}", hex(&hash.as_bytes()[..12]))
    }

    /// Gives the messages ids that follow from all that was said before them, so that a conversation which is sent again
    /// is stored once, and one that branches off is stored beside the other.
    pub(super) fn identify(&mut self, session: &str) {
        let earlier = self.earlier.iter_mut().filter_map(|said| said.stored.as_mut());
        let mut before = session.to_owned();
        for message in earlier.chain(&mut self.latest) {
            message.external_id = link(&before, message).ok();
            if let Some(id) = &message.external_id {
                before = id.as_str().to_owned();
            }
        }
    }

    /// The newest messages before the turn, as many as one call stores.
    fn newest(&self) -> impl Iterator<Item = &NewMessage> {
        let all = || self.earlier.iter().filter_map(|said| said.stored.as_ref());
        all().skip(all().count().saturating_sub(MOST_STORED))
    }

    /// Their ids.
    pub(super) fn newest_ids(&self) -> Vec<ExternalId> {
        self.newest().filter_map(|message| message.external_id.clone()).collect()
    }

    /// What to store of the messages before the turn.
    pub(super) fn to_store(&self) -> Vec<NewMessage> {
        self.newest().cloned().collect()
    }
}

/// The id of a message that follows another one.
pub(super) fn link(before: &str, message: &NewMessage) -> Result<ExternalId> {
    let mut hasher = blake3::Hasher::new();
    for part in [before, message.role.as_str(), &message.content] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    ExternalId::new(format!("openai-{}", hex(&hasher.finalize().as_bytes()[..16])))
}

fn role(message: &Value) -> &str {
    message.get("role").and_then(Value::as_str).unwrap_or_default()
}

/// Whether a message ends a turn: it says something, and does not wait for the results of tools.
fn is_answer(message: &Value) -> bool {
    role(message) == "assistant" && !calls_tools(message) && !text(message).is_empty()
}

/// Some clients and servers send an empty list with every answer.
pub(super) fn calls_tools(message: &Value) -> bool {
    let calls = message.get("tool_calls").and_then(Value::as_array);
    calls.is_some_and(|calls| !calls.is_empty())
}

/// The text of a message in OpenAI's form: what was said, else the refusal, else the calls of tools. White space around
/// it is left out, as clients do when they send an answer back, and NUL characters, which no store takes.
pub(super) fn text(message: &Value) -> String {
    let said = match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => text_of_parts(parts),
        _ => String::new(),
    };
    let refusal = || message.get("refusal").and_then(Value::as_str).map(str::to_owned);
    let calls = || message.get("tool_calls").and_then(Value::as_array);
    let texts = [Some(said), refusal(), calls().map(|calls| text_of_calls(calls))];
    let texts = texts.iter().flatten().map(|text| text.replace('\0', ""));
    let mut texts = texts.map(|text| text.trim().to_owned());
    texts.find(|text| !text.is_empty()).unwrap_or_default()
}

/// A message as it is stored; `None` for one without any text.
fn stored(message: &Value) -> Option<NewMessage> {
    let role = match role(message) {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        _ => return None,
    };
    let calls = message.get("tool_calls").filter(|_| calls_tools(message));
    let answered = message.get("tool_call_id").and_then(Value::as_str).filter(|id| !id.is_empty());
    let parts = match (calls, answered) {
        (Some(calls), _) => Some(json!({"tool_calls": calls})),
        (None, Some(id)) => Some(json!({"tool_call_id": id})),
        (None, None) => None,
    };
    let parts = parts.map(|parts| parts.to_string());
    let said = text(message);
    if said.is_empty() {
        return None;
    }
    let message = NewMessage { parts, ..NewMessage::new(role, said) };
    match message.problem() {
        None => Some(message),
        // Its place in the conversation is kept, so that no answer stands without its question.
        Some((field, what)) => Some(NewMessage::new(role, format!("(not stored: {field} {what})"))),
    }
}
