//! A call of a provider whose answer is passed on: counted when it ends, also where the client leaves before, and stored
//! with its turn when all of it came.

use async_stream::stream;
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;
use serde_json::{Map, Value};
use throughline_core::Result;
use throughline_core::chat::TokenUsage;
use throughline_core::ids::ExternalId;
use throughline_core::session::NewMessage;
use throughline_core::tokens::{PER_PAYLOAD, Tokenizer, message_tokens};
use throughline_core::usage::ModelWork;
use tokio::task::JoinHandle;

use super::answer::{Answer, END_MARK};
use super::conversation::{link, text};
use super::routing::Route;
use crate::app::App;
use crate::app::messages::ErasureMark;
use crate::app::usage::CalledModel;
use crate::identity::Identity;

/// Most bytes of an answer that are read; a longer one is passed on and not stored.
const MOST_READ: usize = 8 * 1024 * 1024;

/// A turn that is stored with its answer.
pub(super) struct PendingTurn {
    pub(super) session: String,
    /// The messages before the answer.
    pub(super) latest: Vec<NewMessage>,
    /// What had been erased before the context was assembled.
    pub(super) mark: ErasureMark,
}

/// What was sent: its tokens are counted if the provider does not report them.
#[derive(Default)]
pub(super) struct Payload {
    messages: Value,
    tools: Value,
    input: Value,
    /// Whether the answer is a stream.
    streamed: bool,
}

impl Payload {
    /// That of a body that was sent.
    pub(super) fn of(body: &mut Map<String, Value>) -> Self {
        let streamed = body.get("stream") == Some(&Value::Bool(true));
        let mut take = |name: &str| body.get_mut(name).map(Value::take).unwrap_or_default();
        Self { messages: take("messages"), tools: take("tools"), input: take("input"), streamed }
    }

    fn tokens(&self, tokenizer: &dyn Tokenizer) -> u64 {
        let messages = list(&self.messages);
        let of_message = |message: &Value| u64::from(message_tokens(tokenizer, &text(message)));
        let said: u64 = messages.iter().map(of_message).sum();
        let primed = if messages.is_empty() { 0 } else { PER_PAYLOAD };
        let tools = match list(&self.tools).is_empty() {
            true => 0,
            false => tokenizer.count(&self.tools.to_string()),
        };
        said + u64::from(primed) + u64::from(tools) + of_input(&self.input, tokenizer)
    }
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

/// Tokens of what is embedded: texts, or tokens.
fn of_input(input: &Value, tokenizer: &dyn Tokenizer) -> u64 {
    match input {
        Value::String(text) => tokenizer.count(text).into(),
        Value::Number(_) => 1,
        Value::Array(parts) => parts.iter().map(|part| of_input(part, tokenizer)).sum(),
        _ => 0,
    }
}

/// A call whose answer is still to come.
pub(super) struct Call {
    app: App,
    caller: Identity,
    work: ModelWork,
    payload: Payload,
    /// None after it was counted.
    route: Option<Route>,
    turn: Option<PendingTurn>,
    read: Vec<u8>,
    /// Whether `read` is all that came.
    is_whole: bool,
}

impl Call {
    pub(super) fn new(
        app: App,
        caller: Identity,
        route: Route,
        work: ModelWork,
        payload: Payload,
        turn: Option<PendingTurn>,
    ) -> Self {
        let (route, read, is_whole) = (Some(route), Vec::new(), true);
        Self { app, caller, work, payload, route, turn, read, is_whole }
    }

    /// Passes the answer on.
    pub(super) fn read(
        mut self,
        mut body: BoxStream<'static, Result<Vec<u8>>>,
    ) -> BoxStream<'static, Result<Vec<u8>>> {
        let pieces = stream! {
            while let Some(piece) = body.next().await {
                self.note(&piece);
                // Clients close the connection once they have the mark of the end.
                if self.has_ended() {
                    self.end().await;
                }
                yield piece;
            }
            self.end().await;
        };
        pieces.boxed()
    }

    fn note(&mut self, piece: &Result<Vec<u8>>) {
        match piece {
            Ok(piece) if self.is_whole && self.read.len() + piece.len() <= MOST_READ => {
                self.read.extend_from_slice(piece);
            }
            _ => self.is_whole = false,
        }
    }

    fn has_ended(&self) -> bool {
        self.payload.streamed && self.is_whole && self.read.trim_ascii_end().ends_with(END_MARK)
    }

    /// Counts the call, and stores its turn.
    async fn end(&mut self) {
        let turn = self.turn.take().filter(|_| self.is_whole);
        if let Some(ending) = self.count_and_store(turn) {
            // The task goes on if the client leaves.
            let _ = ending.await;
        }
    }

    fn count_and_store(&mut self, turn: Option<PendingTurn>) -> Option<JoinHandle<()>> {
        let runtime = tokio::runtime::Handle::try_current().ok()?;
        let route = self.route.take()?;
        let (app, caller, work) = (self.app.clone(), self.caller.clone(), self.work);
        let (payload, read) = (std::mem::take(&mut self.payload), std::mem::take(&mut self.read));
        Some(runtime.spawn(async move {
            let answer = Answer::of(&read, payload.streamed);
            let tokenizer = &*app.engine.tokenizer;
            let used = answer.usage.unwrap_or_else(|| TokenUsage {
                input: payload.tokens(tokenizer),
                cached_input: 0,
                output: tokenizer.count(&answer.written()).into(),
            });
            let Route { provider, id, price, .. } = route;
            let id = id.or_else(|| answer.model.clone()).unwrap_or_else(|| "unnamed".to_owned());
            let model = CalledModel { provider, id, price };
            app.count_call(&caller, work, &model, Some(used)).await;
            let (Some(turn), Some(answer)) = (turn, answer.to_store()) else { return };
            // The client has its answer; it would bring what was not stored with its next turn.
            if let Err(error) = app.store_completion(&caller, turn, answer).await {
                let code = error.kind().code();
                tracing::warn!(code, "an answer was not stored: {}", error.message());
            }
        }))
    }
}

impl Drop for Call {
    /// The client left before the end; what the model wrote until then is billed.
    fn drop(&mut self) {
        drop(self.count_and_store(None));
    }
}

impl App {
    /// Stores a turn with its answer.
    async fn store_completion(
        &self,
        caller: &Identity,
        turn: PendingTurn,
        mut answer: NewMessage,
    ) -> Result<()> {
        let PendingTurn { session, latest: mut messages, mark } = turn;
        let before = messages.last().and_then(|message| message.external_id.as_ref());
        let before = before.map_or("", ExternalId::as_str).to_owned();
        answer.external_id = Some(link(&before, &answer)?);
        messages.push(answer);
        self.append_new(caller, &session, &messages, (None, Some(&mark))).await
    }
}
