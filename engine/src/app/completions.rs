//! Chat completions as OpenAI's clients ask for them: the conversation that a client sends is kept, what is sent on in its
//! place is assembled within a budget, and the answer comes back as the provider gave it. What this does not know of a
//! request is passed on as it is.

use std::sync::Arc;

use async_stream::stream;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use serde_json::{Map, Value, json};
use throughline_core::chat::{ContextMessage, RESULT_MARK_TOKENS};
use throughline_core::ids::ExternalId;
use throughline_core::session::{NewMessage, Role};
use throughline_core::{Error, Result};

use super::messages::{AnsweredTurn, ErasureMark};
use super::{App, Thread, Turn};
use crate::compose::CompatibleApi;
use crate::identity::{Identity, hex};
use crate::parts::{text_of_calls, text_of_parts};

/// Where the provider answers chat completions.
const PATH: &str = "/chat/completions";
/// Most messages of a conversation that are kept by one call: the newest ones.
const MOST_KEPT: usize = 1_000;
/// Most bytes of an answer that are read to keep it; a longer one is passed on and not kept.
const MOST_READ: usize = 8 * 1024 * 1024;
/// What ends a streamed answer.
const END_MARK: &[u8] = b"[DONE]";

/// A request of a client.
#[derive(Debug)]
pub struct Completion {
    /// The session; derived from how the conversation begins if not given.
    pub session: Option<String>,
    /// Tokens of what is assembled; the tenant's if not given.
    pub token_budget: Option<u32>,
    /// The body, in OpenAI's form.
    pub body: Map<String, Value>,
}

/// The answer of the provider, with what was sent to it.
pub struct Completed {
    /// The session.
    pub session: String,
    /// What was assembled; of a request that has no text to answer nothing is.
    pub sent: Option<Sent>,
    /// The status of HTTP.
    pub status: u16,
    /// Headers that a client may go by.
    pub headers: Vec<(String, String)>,
    /// The body as it comes.
    pub body: BoxStream<'static, Result<Vec<u8>>>,
}

/// What was sent in the place of a conversation.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    /// Tokens of what was assembled, the turn included.
    pub tokens: u32,
    /// Tokens of the history that were not sent.
    pub saved: u64,
}

/// Whose turn, the session, the messages before the answer, and what was erased before the context was assembled.
type Kept = (Identity, String, Vec<NewMessage>, ErasureMark);

/// A conversation, taken apart.
struct Conversation {
    /// Instructions of the client, which are sent as they are.
    instructions: Vec<Value>,
    /// What was said before the turn.
    earlier: Vec<NewMessage>,
    /// The turn, and what followed it, which are sent as they are.
    tail: Vec<Value>,
    /// The text of the turn.
    turn: String,
    /// The same as `tail`, to keep.
    latest: Vec<NewMessage>,
    /// What the session is derived from.
    beginning: String,
}

impl App {
    /// Answers a request in OpenAI's form.
    ///
    /// # Errors
    /// `InvalidInput` for a body without messages, and where no such provider is configured; those of appending, of
    /// assembling, and of reaching the provider. What the provider answers is no error here.
    pub async fn complete(&self, caller: Identity, asked: Completion) -> Result<Completed> {
        let mut body = asked.body;
        let api = self.compatible(&caller, &mut body).await?;
        let is_kept = body.get("store") != Some(&Value::Bool(false));
        let conversation = Conversation::of(body.get("messages"))?;
        let session = asked.session.unwrap_or_else(|| derived(&conversation.beginning));
        let thread = Thread::to_append(&self.engine, &caller, &session).await?;
        if conversation.turn.trim().is_empty() {
            let answer = forward(&*api, PATH, &body).await?;
            return Ok(Completed { session, sent: None, ..answer });
        }
        let Conversation { instructions, earlier, tail, turn, latest, .. } = conversation;
        let (earlier, latest) = identified(&session, earlier, latest);
        if is_kept && !earlier.is_empty() {
            self.append(&caller, &session, earlier, None).await?;
        }
        let turn = Turn {
            user_turn: turn,
            token_budget: asked.token_budget,
            tool_mark: RESULT_MARK_TOKENS,
            ..Turn::default()
        };
        let mark = self.erasure_mark(&caller, &thread).await?;
        let context = self.assemble(&caller, &session, turn).await?;
        let sent = Sent {
            tokens: context.budget.used,
            saved: context.baseline_tokens.saturating_sub(context.budget.used.into()),
        };
        // The turn is sent as the client wrote it: parts that are no text are in it.
        let assembled = context.header.iter().chain(&context.working_set);
        let before = assembled.take(context.header.len() + context.working_set.len() - 1);
        let messages = instructions.into_iter().chain(before.enumerate().map(as_sent)).chain(tail);
        body.insert("messages".to_owned(), messages.collect());
        let answer = forward(&*api, PATH, &body).await?;
        let is_kept = is_kept && answer.status == 200;
        let streamed = body.get("stream") == Some(&Value::Bool(true));
        let body = match is_kept {
            true => self.keeping((caller, session.clone(), latest, mark), streamed, answer.body),
            false => answer.body,
        };
        Ok(Completed { session, sent: Some(sent), body, ..answer })
    }

    /// Passes a request in OpenAI's form on, and its answer back.
    ///
    /// # Errors
    /// As [`Self::complete`].
    pub async fn pass_on(
        &self,
        caller: &Identity,
        path: &str,
        mut body: Map<String, Value>,
    ) -> Result<Completed> {
        let api = self.compatible(caller, &mut body).await?;
        forward(&*api, path, &body).await
    }

    /// The provider of the model that a request names, whose name is put in as its provider calls it. A model that is
    /// not in the catalogue is OpenAI's.
    async fn compatible(
        &self,
        caller: &Identity,
        body: &mut Map<String, Value>,
    ) -> Result<Arc<dyn CompatibleApi>> {
        let chosen = match body.get("model").and_then(Value::as_str) {
            Some(name) => self.engine.models.find(name).ok(),
            None => self.model_for(caller, None).await.ok(),
        };
        if let Some(chosen) = &chosen {
            body.insert("model".to_owned(), json!(chosen.info.id));
        }
        let compatible = &self.engine.models.compatible;
        let of = |provider| compatible.iter().find(|(name, _)| *name == provider);
        let api = chosen.and_then(|chosen| of(chosen.provider)).or_else(|| compatible.first());
        api.map(|(_, api)| Arc::clone(api)).ok_or_else(|| {
            Error::invalid(
                "no provider with OpenAI's API is configured: set OPENAI_API_KEY or GEMINI_API_KEY, or \
                 `providers.openai.base_url` for a server that needs no key",
            )
        })
    }

    /// Passes an answer on, and keeps it with its turn when all of it came. One that calls tools is not over yet.
    fn keeping(
        &self,
        turn: Kept,
        streamed: bool,
        mut body: BoxStream<'static, Result<Vec<u8>>>,
    ) -> BoxStream<'static, Result<Vec<u8>>> {
        let app = self.clone();
        let mut turn = Some(turn);
        let pieces = stream! {
            let mut read = Some(Vec::new());
            while let Some(piece) = body.next().await {
                read = match (&piece, read) {
                    (Ok(piece), Some(mut read)) if read.len() + piece.len() <= MOST_READ => {
                        read.extend_from_slice(piece);
                        Some(read)
                    }
                    _ => None,
                };
                // Clients close the connection once they have the mark of the end.
                let has_ended = |read: &Vec<u8>| read.trim_ascii_end().ends_with(END_MARK);
                if streamed && read.as_ref().is_some_and(has_ended) {
                    app.keep_turn(turn.take(), read.take(), streamed).await;
                }
                yield piece;
            }
            app.keep_turn(turn, read, streamed).await;
        };
        pieces.boxed()
    }

    /// Keeps a turn whose answer is whole, also where its caller goes meanwhile.
    async fn keep_turn(&self, turn: Option<Kept>, read: Option<Vec<u8>>, streamed: bool) {
        let answer = read.and_then(|read| answered(&read, streamed));
        let (Some((caller, session, latest, mark)), Some(answer)) = (turn, answer) else { return };
        let app = self.clone();
        let keeping =
            tokio::spawn(async move { app.keep(&caller, &session, latest, answer, mark).await });
        // The client has its answer; it would bring what was not kept with its next turn.
        if let Ok(Err(error)) = keeping.await {
            let code = error.kind().code();
            tracing::warn!(code, "an answer was not kept: {}", error.message());
        }
    }

    async fn keep(
        &self,
        caller: &Identity,
        session: &str,
        mut latest: Vec<NewMessage>,
        mut answer: NewMessage,
        mark: ErasureMark,
    ) -> Result<()> {
        let before = latest.last().and_then(|message| message.external_id.as_ref());
        let before = before.map_or("", ExternalId::as_str).to_owned();
        answer.external_id = Some(link(&before, &answer)?);
        latest.push(answer);
        let turn = AnsweredTurn { messages: latest, idempotency: None, mark };
        self.append_answered(caller, session, turn).await.map(drop)
    }
}

impl Conversation {
    fn of(messages: Option<&Value>) -> Result<Self> {
        let messages = messages.and_then(Value::as_array).filter(|messages| !messages.is_empty());
        let messages =
            messages.ok_or_else(|| Error::invalid("messages: give at least one message"))?;
        let role = |message: &Value| {
            message.get("role").and_then(Value::as_str).unwrap_or_default().to_owned()
        };
        let is_instruction =
            |message: &&Value| matches!(role(message).as_str(), "system" | "developer");
        let instructions = messages.iter().filter(is_instruction).cloned().collect();
        let said: Vec<&Value> =
            messages.iter().filter(|message| !is_instruction(message)).collect();
        let turn = said.iter().rposition(|message| role(message) == "user");
        let (earlier, tail) = said.split_at(turn.unwrap_or(0));
        let first = said.iter().find(|message| role(message) == "user");
        let beginning = first.map(|message| text(message)).unwrap_or_default();
        let text = tail.first().filter(|_| turn.is_some()).map(|message| text(message));
        Ok(Self {
            instructions,
            earlier: earlier.iter().filter_map(|message| stored(message)).collect(),
            tail: tail.iter().map(|message| (*message).clone()).collect(),
            turn: text.unwrap_or_default(),
            latest: tail.iter().filter_map(|message| stored(message)).collect(),
            beginning,
        })
    }
}

/// The session of a conversation that names none.
fn derived(beginning: &str) -> String {
    format!("openai-{}", hex(&blake3::hash(beginning.as_bytes()).as_bytes()[..12]))
}

/// The messages with ids that follow from all that was said before them, so that a conversation which is sent again is
/// kept once, and one that branches off is kept beside the other.
fn identified(
    session: &str,
    earlier: Vec<NewMessage>,
    latest: Vec<NewMessage>,
) -> (Vec<NewMessage>, Vec<NewMessage>) {
    let kept_from = earlier.len().saturating_sub(MOST_KEPT);
    let turn = earlier.len();
    let mut before = session.to_owned();
    let mut all = Vec::new();
    for mut message in earlier.into_iter().chain(latest) {
        let id = link(&before, &message).ok();
        if let Some(id) = &id {
            before = id.as_str().to_owned();
        }
        message.external_id = id;
        all.push(message);
    }
    let latest = all.split_off(turn);
    (all.split_off(kept_from), latest)
}

/// The id of a message that follows another one.
fn link(before: &str, message: &NewMessage) -> Result<ExternalId> {
    let mut hasher = blake3::Hasher::new();
    for part in [before, message.role.as_str(), &message.content] {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part.as_bytes());
    }
    ExternalId::new(format!("openai-{}", hex(&hasher.finalize().as_bytes()[..16])))
}

/// The text of a message in OpenAI's form.
fn text(message: &Value) -> String {
    let text = match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => text_of_parts(parts),
        _ => String::new(),
    };
    let calls = message.get("tool_calls").and_then(Value::as_array);
    match calls {
        Some(calls) if text.trim().is_empty() => text_of_calls(calls),
        _ => text,
    }
}

/// A message as it is kept; `None` for one without any text.
fn stored(message: &Value) -> Option<NewMessage> {
    let role = match message.get("role")?.as_str()? {
        "user" => Role::User,
        "assistant" => Role::Assistant,
        "tool" | "function" => Role::Tool,
        _ => return None,
    };
    let content = text(message);
    let calls = message.get("tool_calls").map(|calls| json!({"tool_calls": calls}));
    let call = || Some(json!({"tool_call_id": message.get("tool_call_id")?}));
    let parts = calls.or_else(call).map(|parts| parts.to_string());
    let message = NewMessage { parts, ..NewMessage::new(role, content) };
    message.problem().is_none().then_some(message)
}

/// A stored message as the provider takes it: a result without its call is refused, and no stored message speaks as the
/// system.
fn as_sent((index, message): (usize, &ContextMessage)) -> Value {
    let (role, content) = message.in_chat();
    match role {
        Role::System if index > 0 => json!({"role": "user", "content": content}),
        role => json!({"role": role.as_str(), "content": content}),
    }
}

async fn forward(
    api: &dyn CompatibleApi,
    path: &str,
    body: &Map<String, Value>,
) -> Result<Completed> {
    let body = serde_json::to_vec(body)
        .map_err(|error| Error::internal("a request cannot be written").with_source(error))?;
    let answer = api.forward(path, body).await?;
    let (session, sent) = (String::new(), None);
    Ok(Completed {
        session,
        sent,
        status: answer.status,
        headers: answer.headers,
        body: answer.body,
    })
}

/// A whole answer as it is kept; `None` where it calls tools, says nothing, or was cut off.
fn answered(body: &[u8], streamed: bool) -> Option<NewMessage> {
    if !streamed {
        let answer: Value = serde_json::from_slice(body).ok()?;
        let choice = answer.get("choices")?.get(0)?;
        let message = choice.get("message").filter(|message| !calls_tools(message))?;
        let reason = choice.get("finish_reason").and_then(Value::as_str);
        return said(message.get("content")?.as_str()?.to_owned(), reason.unwrap_or("stop"));
    }
    let mut text = String::new();
    let mut reason = None;
    for line in std::str::from_utf8(body).ok()?.lines() {
        let Some(data) = line.strip_prefix("data:").map(str::trim) else { continue };
        if data.as_bytes() == END_MARK {
            break;
        }
        let chunk: Value = serde_json::from_str(data).ok()?;
        let choices = chunk.get("choices").and_then(Value::as_array);
        for choice in choices.into_iter().flatten().filter(|choice| is_first(choice)) {
            let delta = choice.get("delta").unwrap_or(&Value::Null);
            if calls_tools(delta) {
                return None;
            }
            text.push_str(delta.get("content").and_then(Value::as_str).unwrap_or_default());
            let ended = choice.get("finish_reason").and_then(Value::as_str);
            reason = ended.map(str::to_owned).or(reason);
        }
    }
    said(text, &reason?)
}

/// An answer that did not end by itself is marked.
fn said(text: String, reason: &str) -> Option<NewMessage> {
    let reason = match reason {
        "stop" => None,
        "length" => Some("maxTokens"),
        "content_filter" => Some("contentFilter"),
        other => Some(other),
    };
    let parts = reason.map(|reason| json!({"stop_reason": reason}).to_string());
    let is_empty = text.trim().is_empty();
    (!is_empty).then(|| NewMessage { parts, ..NewMessage::new(Role::Assistant, text) })
}

/// Whether it is the first of several answers to one request.
fn is_first(choice: &Value) -> bool {
    choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0
}

/// Some servers send an empty list with every answer.
fn calls_tools(message: &Value) -> bool {
    let calls = message.get("tool_calls").and_then(Value::as_array);
    calls.is_some_and(|calls| !calls.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conversation(messages: Value) -> Conversation {
        Conversation::of(Some(&messages)).unwrap()
    }

    #[test]
    fn a_conversation_is_taken_apart_at_its_last_turn() {
        let call = json!([{"id": "c", "type": "function", "function": {"name": "find", "arguments": "{}"}}]);
        let taken = conversation(json!([
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "One?"},
            {"role": "assistant", "content": "One."},
            {"role": "user", "content": [{"type": "text", "text": "Two?"}, {"type": "image_url", "image_url": {"url": "data:"}}]},
            {"role": "assistant", "content": null, "tool_calls": call},
            {"role": "tool", "tool_call_id": "c", "content": "2"}
        ]));
        assert_eq!((taken.instructions.len(), taken.earlier.len(), taken.tail.len()), (1, 2, 3));
        assert_eq!((taken.turn.as_str(), taken.beginning.as_str()), ("Two?\n[image]", "One?"));
        assert_eq!(taken.tail[0]["content"][1]["type"], "image_url", "it is sent whole");
        assert_eq!(taken.latest[1].content, "called find({})");
        assert!(Conversation::of(Some(&json!([]))).is_err() && Conversation::of(None).is_err());
        assert_eq!(conversation(json!([{"role": "system", "content": "x"}])).turn, "");
    }

    #[test]
    fn what_is_sent_again_has_the_same_ids_and_a_branch_has_others() {
        let ids = |messages: Value| {
            let taken = conversation(messages);
            let (earlier, latest) = identified("s", taken.earlier, taken.latest);
            earlier
                .into_iter()
                .chain(latest)
                .map(|message| message.external_id.unwrap())
                .collect::<Vec<_>>()
        };
        let user = |text: &str| json!({"role": "user", "content": text});
        let assistant = |text: &str| json!({"role": "assistant", "content": text});
        let short = ids(json!([user("a"), assistant("b"), user("a")]));
        let long = ids(json!([user("a"), assistant("b"), user("a"), assistant("c"), user("d")]));
        assert_eq!(short[..], long[..3]);
        assert_ne!(short[0], short[2], "equal words at another place are another message");
        assert_ne!(ids(json!([user("a"), assistant("x"), user("a")]))[2], short[2]);
    }

    #[test]
    fn only_whole_answers_are_kept() {
        let chunk = |delta: &str, finish: &str| {
            format!("data: {{\"choices\":[{{\"delta\":{delta},\"finish_reason\":{finish}}}]}}\n\n")
        };
        let said = chunk(r#"{"role":"assistant","content":"Hel"}"#, "null")
            + &chunk(r#"{"content":"lo"}"#, "null");
        let whole = format!(
            "{said}{}data: {{\"choices\":[],\"usage\":{{}}}}\n\ndata: [DONE]\n\n",
            chunk("{}", "\"stop\"")
        );
        let kept = |body: &str, streamed| {
            let message = answered(body.as_bytes(), streamed)?;
            Some((message.content, message.parts))
        };
        let hello = |parts: Option<&str>| Some(("Hello".to_owned(), parts.map(str::to_owned)));
        let marked = hello(Some(r#"{"stop_reason":"maxTokens"}"#));
        assert_eq!(kept(&whole, true), hello(None));
        assert_eq!(kept(&whole.replace("data: [DONE]\n\n", ""), true), hello(None));
        assert_eq!(kept(&whole.replace("\"stop\"", "\"length\""), true), marked);
        let another = "data: {\"choices\":[{\"index\":1,\"delta\":{\"content\":\"No\"}}]}\n\n";
        assert_eq!(
            kept(&whole.replace("data: {\"choices\":[],", &format!("{another}data: {{")), true),
            hello(None)
        );
        assert_eq!(kept(&said, true), None, "it was cut off");
        let calls = chunk(r#"{"tool_calls":[{"index":0}]}"#, "\"tool_calls\"") + "data: [DONE]\n\n";
        assert_eq!(kept(&calls, true), None);
        let plain = |message: Value, reason: &str| {
            json!({"choices": [{"message": message, "finish_reason": reason}]}).to_string()
        };
        let message = json!({"content": "Hello", "tool_calls": []});
        assert_eq!(kept(&plain(message.clone(), "stop"), false), hello(None));
        assert_eq!(kept(&plain(message, "length"), false), marked);
        let calling = json!({"content": "Hello", "tool_calls": [{"id": "c"}]});
        for message in [json!({"content": null}), json!({"content": " "}), calling] {
            assert_eq!(kept(&plain(message, "stop"), false), None);
        }
        assert_eq!(kept("<html>", false), None);
    }
}
