//! A turn that a model answers: its context is assembled, a model of a configured provider answers it, and question and
//! answer are stored together. Nothing is stored of a turn that fails, is cut off or is given up, so that no session has a
//! question without its answer.

use std::sync::Arc;

use async_stream::try_stream;
use futures_util::{StreamExt as _, pin_mut};
use serde_json::json;
use throughline_core::chat::{
    ChatAnswer, ChatEvent, ChatMessage, ChatModelRequest, ModelInfo, ToolCall, ToolSpec,
};
use throughline_core::context::AssembledContext;
use throughline_core::ids::MessageId;
use throughline_core::ports::{ChatModel, ChatProvider, Idempotency};
use throughline_core::session::{NewMessage, Role};
use throughline_core::turn::Tier;
use throughline_core::{Error, ErrorKind, Result};

use super::{App, Thread, Turn};
use crate::identity::Identity;
use crate::parts::text_of_calls;

/// Most messages that may follow a turn before its answer: as many as twenty rounds of calls and results.
const MAX_STEPS: usize = 40;
/// Tokens that a provider adds to each message.
const PER_MESSAGE: u32 = 4;

/// A turn to answer.
#[derive(Debug, Clone, Default)]
pub struct ChatTurn {
    /// What to assemble the context of.
    pub turn: Turn,
    /// The model, as `provider:id` or as the id alone; the configured one if not given.
    pub model: Option<String>,
    /// Tools of the caller that the model may call.
    pub tools: Vec<ToolSpec>,
    /// What followed the turn so far: calls of these tools and their results.
    pub steps: Vec<ChatMessage>,
    /// Diversity, 0.0 to 2.0.
    pub temperature: Option<f64>,
    /// Most tokens of the answer.
    pub max_tokens: Option<u32>,
    /// Makes a repeat harmless.
    pub idempotency: Option<Idempotency>,
}

/// A piece of what comes of a turn.
#[derive(Debug)]
pub enum ChatPiece {
    /// The context that the model is sent; first.
    Context(Box<AssembledContext>),
    /// The next piece of the text.
    Text(String),
    /// The whole answer; last.
    Done(Box<ChatReply>),
}

/// The answer to a turn.
#[derive(Debug, Clone)]
pub struct ChatReply {
    /// The model that answered, as `provider:id`.
    pub model: String,
    /// What it said, what it calls, and what it took.
    pub answer: ChatAnswer,
    /// US dollars, where price and tokens are known.
    pub cost: Option<f64>,
    /// The messages that were stored: of a turn that waits for results of tools none.
    pub stored: Vec<MessageId>,
}

/// A model of a provider.
#[derive(Clone)]
pub struct ChosenModel {
    /// Its provider's name.
    pub provider: &'static str,
    /// What is known of it.
    pub info: ModelInfo,
    model: Arc<dyn ChatModel>,
}

impl ChosenModel {
    /// Asks it once.
    ///
    /// # Errors
    /// Those of [`ChatModel::complete`].
    pub async fn complete(&self, request: &ChatModelRequest) -> Result<ChatAnswer> {
        self.model.complete(request).await
    }
}

impl App {
    /// The model of a name, or the configured one.
    ///
    /// # Errors
    /// `InvalidInput` where no provider is configured, and for an unknown name, with those that exist.
    pub fn chat_model(&self, name: Option<&str>) -> Result<ChosenModel> {
        let models = &self.engine.models;
        let Some(name) = name.or(models.default.as_deref()) else {
            return Err(Error::invalid(match models.providers.is_empty() {
                true => NO_PROVIDER.to_owned(),
                false => format!("name a model, or set `chat.model`: {}", self.model_names()),
            }));
        };
        let (provider, id) = match name.split_once(':') {
            Some((provider, id)) if models.provider(provider).is_some() => (Some(provider), id),
            _ => (None, name),
        };
        let of_provider =
            |held: &&Arc<dyn ChatProvider>| provider.is_none_or(|provider| held.name() == provider);
        for held in models.providers.iter().filter(of_provider) {
            let info = held.models().iter().find(|model| model.id == id);
            if let (Some(info), Some(model)) = (info, held.model(id)) {
                return Ok(ChosenModel { provider: held.name(), info: info.clone(), model });
            }
        }
        Err(Error::invalid(match models.providers.is_empty() {
            true => NO_PROVIDER.to_owned(),
            false => format!(
                "there is no model `{name}`: use one of {}, or add it to `models` of its provider",
                self.model_names()
            ),
        }))
    }

    fn model_names(&self) -> String {
        let names = self.engine.models.providers.iter().flat_map(|provider| {
            provider.models().iter().map(|model| format!("{}:{}", provider.name(), model.id))
        });
        names.collect::<Vec<_>>().join(", ")
    }

    /// Answers a turn, piece by piece. Dropping the stream ends the model's answer, and stores nothing.
    pub fn chat(
        &self,
        caller: Identity,
        session: String,
        asked: ChatTurn,
    ) -> impl futures_util::Stream<Item = Result<ChatPiece>> + Send + 'static {
        let app = self.clone();
        try_stream! {
            // Who may not append is told before a model is paid.
            Thread::to_append(&app.engine, &caller, &session).await?;
            let chosen = app.chat_model(asked.model.as_deref())?;
            let ChatTurn { mut turn, tools, steps, temperature, max_tokens, .. } = asked;
            check_steps(&steps)?;
            let user_turn = turn.user_turn.clone();
            let beside = app.tokens_beside(&tools, &steps);
            turn.token_budget = turn
                .token_budget
                .map(|budget| budget.saturating_sub(beside))
                .or_else(|| fitting(&chosen.info, &turn, max_tokens, beside));
            let context = app.assemble(&caller, &session, turn).await?;
            let request = request(&context, tools, &steps, temperature, max_tokens);
            yield ChatPiece::Context(Box::new(context));
            let pieces = chosen.model.stream(&request).await?;
            pin_mut!(pieces);
            let mut done = None;
            while let Some(piece) = pieces.next().await {
                match piece? {
                    ChatEvent::Text(text) => yield ChatPiece::Text(text),
                    ChatEvent::Done(answer) => done = Some(answer),
                }
            }
            let answer = done.ok_or_else(cut_off)?;
            let cost = answer
                .usage
                .and_then(|used| Some(chosen.info.price?.of(used)));
            let model = format!("{}:{}", chosen.provider, chosen.info.id);
            let mut stored = Vec::new();
            if answer.tool_calls.is_empty() {
                let messages = messages(user_turn, &steps, &answer);
                let repeat = asked.idempotency;
                let app = app.clone();
                // What was answered is stored also where the caller goes while it is written.
                let storing = tokio::spawn(async move {
                    app.append(&caller, &session, messages, repeat).await
                });
                let appended = storing.await.map_err(|error| {
                    Error::internal("storing the answer did not end").with_source(error)
                })??;
                stored = appended.iter().map(|message| message.id).collect();
            }
            yield ChatPiece::Done(Box::new(ChatReply { model, answer, cost, stored }));
        }
    }

    /// Tokens of what is sent beside the assembled context.
    fn tokens_beside(&self, tools: &[ToolSpec], steps: &[ChatMessage]) -> u32 {
        let count = |text: &str| self.engine.tokenizer.count(text);
        let tools = tools.iter().map(|tool| {
            count(&tool.name) + count(&tool.description) + count(&tool.parameters) + PER_MESSAGE
        });
        let steps = steps.iter().map(|step| {
            let calls = step.tool_calls.iter();
            let calls = calls.map(|call| count(&call.name) + count(&call.arguments) + PER_MESSAGE);
            count(&step.content) + calls.sum::<u32>() + PER_MESSAGE
        });
        tools.chain(steps).sum()
    }
}

const NO_PROVIDER: &str = "no chat provider is configured: set `providers.openai.api_key` or OPENAI_API_KEY, or \
     `providers.openai.base_url` for a server that needs no key";

fn cut_off() -> Error {
    Error::new(
        ErrorKind::Unavailable,
        "the provider's answer was cut off: nothing was stored, try again",
    )
}

/// A budget that leaves room in the model's window for tools and answer, where the usual one does not.
fn fitting(model: &ModelInfo, turn: &Turn, max_tokens: Option<u32>, beside: u32) -> Option<u32> {
    let answer = max_tokens.unwrap_or(model.max_output).min(model.window / 2);
    let room = model.window.saturating_sub(answer).saturating_sub(beside);
    (room < turn.tier.unwrap_or(Tier::Full).budget()).then_some(room)
}

/// Calls and their results have to match, or a provider refuses all of it.
fn check_steps(steps: &[ChatMessage]) -> Result<()> {
    if steps.len() > MAX_STEPS {
        return Err(Error::invalid(format!(
            "steps: {} messages follow the turn, and at most {MAX_STEPS} may: the model may be calling tools in a loop",
            steps.len()
        )));
    }
    let mut open: Vec<&str> = Vec::new();
    for (index, step) in steps.iter().enumerate() {
        match (step.role, step.tool_call_id.as_deref()) {
            (Role::Assistant, None) if !step.tool_calls.is_empty() && open.is_empty() => {
                open = step.tool_calls.iter().map(|call| call.id.as_str()).collect();
            }
            (Role::Tool, Some(id)) if open.contains(&id) => open.retain(|call| *call != id),
            _ => {
                return Err(Error::invalid(format!(
                    "steps[{index}]: expected an assistant's message with tool_calls, or the result of a call \
                     that was made before and has none yet"
                )));
            }
        }
    }
    match open.first() {
        Some(call) => Err(Error::invalid(format!("steps: the call `{call}` has no result"))),
        None => Ok(()),
    }
}

fn request(
    context: &AssembledContext,
    tools: Vec<ToolSpec>,
    steps: &[ChatMessage],
    temperature: Option<f64>,
    max_tokens: Option<u32>,
) -> ChatModelRequest {
    let system: Vec<&str> = context.header.iter().map(|message| message.content.as_str()).collect();
    let said = context.working_set.iter().cloned().map(ChatMessage::from);
    let messages = said.map(as_sent).chain(steps.iter().cloned()).collect();
    let system = system.join("\n\n");
    ChatModelRequest { system, messages, tools, temperature, max_tokens, thread: None }
}

/// A stored message as a provider takes it: a result without its call is refused, so it is a user's message that says so,
/// and no stored message speaks as the system.
fn as_sent(message: ChatMessage) -> ChatMessage {
    match message.role {
        Role::Tool => ChatMessage::text(Role::User, format!("Tool result: {}", message.content)),
        Role::System => ChatMessage::text(Role::User, message.content),
        Role::User | Role::Assistant => message,
    }
}

/// What is stored of a turn: the question, calls and results, and the answer.
fn messages(user_turn: String, steps: &[ChatMessage], answer: &ChatAnswer) -> Vec<NewMessage> {
    let step = |step: &ChatMessage| {
        let calls: Vec<_> = step.tool_calls.iter().map(call_json).collect();
        let said = !step.content.trim().is_empty();
        let content = if said { step.content.clone() } else { text_of_calls(&calls) };
        let parts = match &step.tool_call_id {
            Some(id) => json!({"tool_call_id": id}),
            None => json!({"tool_calls": calls}),
        };
        let content = if content.trim().is_empty() { "(empty)".to_owned() } else { content };
        NewMessage { parts: Some(parts.to_string()), ..NewMessage::new(step.role, content) }
    };
    let question = NewMessage::new(Role::User, user_turn);
    // An answer that did not end by itself is marked.
    let stopped = answer.stop_reason.as_ref().filter(|reason| *reason != "endTurn");
    let parts = stopped.map(|reason| json!({"stop_reason": reason}).to_string());
    let answer = NewMessage { parts, ..NewMessage::new(Role::Assistant, answer.text.clone()) };
    std::iter::once(question).chain(steps.iter().map(step)).chain([answer]).collect()
}

/// A call in OpenAI's form, as appended messages have it.
fn call_json(call: &ToolCall) -> serde_json::Value {
    let function = json!({"name": call.name, "arguments": call.arguments});
    json!({"id": call.id, "type": "function", "function": function})
}
