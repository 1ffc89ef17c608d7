//! The forms of turns that a model answers.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use throughline_core::chat::{ChatAnswer, ChatMessage, ToolCall, ToolSpec};
use throughline_core::ports::Idempotency;
use throughline_core::session::Role;
use throughline_core::turn::{Intent, Tier};
use throughline_core::{Error, Result};
use throughline_engine::adapters::SentFiles;
use throughline_engine::app::{ChatReply, ChatTurn, FilesOfCall, SpecialistView, Turn, TurnFiles};
use utoipa::ToSchema;

use crate::http::extract::objects;
use crate::wire::{AssembledContextJson, FilePlanJson, IntentJson, TierJson};

/// A turn to answer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(example = json!({"user_turn": "When is the Alfred cutover?", "model": "openai:gpt-4.1"}))]
pub(crate) struct ChatRequest {
    /// The user's message.
    #[schema(min_length = 1)]
    user_turn: String,
    /// The model, as `provider:model` or as its name alone; the setting `chat.model` if not given.
    #[serde(default)]
    model: Option<String>,
    /// The specialist that answers instead, from the window of this session and with its own prompt.
    #[serde(default)]
    specialist: Option<String>,
    /// Let the model ask the specialists that are configured.
    #[serde(default)]
    delegate: bool,
    /// The intent of the turn; detected if not given.
    #[serde(default)]
    intent: Option<IntentJson>,
    /// The size of the context; the tenant's setting if not given.
    #[serde(default)]
    tier: Option<TierJson>,
    /// Token budget of the payload, including tools and steps; the tier's if not given.
    #[serde(default)]
    #[schema(minimum = 1, maximum = 1_000_000)]
    token_budget: Option<u32>,
    /// Functions that the model may call, in OpenAI's format. If it calls some, the answer has `tool_calls`, and nothing
    /// is stored: send the same turn again with `steps`. If they take more than a fifth of the budget, the model is told
    /// their names and loads those that it needs.
    #[serde(default, deserialize_with = "objects")]
    #[schema(max_items = 128)]
    tools: Vec<ToolJson>,
    /// What followed the turn so far, in OpenAI's format: the `steps` of the answer before, and a message of the role `tool`
    /// for each of its `tool_calls`.
    #[serde(default, deserialize_with = "objects")]
    #[schema(max_items = 40)]
    steps: Vec<StepJson>,
    /// Files of the conversation, all of them with each turn. They stand before the conversation in the prompt, where they
    /// stay: only what changed is added to it. What does not fit is searched by the model.
    #[serde(default)]
    files: Option<FilesJson>,
    /// Diversity of the answer; the model's default if not given.
    #[serde(default)]
    #[schema(minimum = 0.0, maximum = 2.0)]
    temperature: Option<f64>,
    /// Maximum number of tokens of the answer; the model's limit if not given.
    #[serde(default)]
    #[schema(minimum = 1)]
    max_tokens: Option<u32>,
    /// Send the answer piece by piece, as server-sent events: `context` (or `window`, of a specialist), `delta` for each piece
    /// of the text, `tool_call` for each call of `tools`, then `usage` and `done`, or `error` with a problem. A key without the
    /// permission `read` gets no `context`.
    #[serde(default)]
    stream: bool,
}

/// Files of a conversation.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct FilesJson {
    /// Files of the conversation.
    #[serde(default)]
    #[schema(max_items = 20_000)]
    context: Vec<FileJson>,
    /// Files of the conversation that are in the prompt in any case.
    #[serde(default)]
    #[schema(max_items = 20_000)]
    priority_context: Vec<FileJson>,
    /// Files that are searched in this turn only.
    #[serde(default)]
    #[schema(max_items = 20_000)]
    attachments: Vec<FileJson>,
    /// Maximum number of tokens of the files in the prompt; three quarters of what the model's window has for them, and
    /// 100,000, if not given. The list of a session keeps to the first one.
    #[serde(default)]
    #[schema(minimum = 1)]
    budget: Option<u64>,
}

/// A file with its text.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct FileJson {
    /// Its name, such as a path: the same in each turn.
    #[schema(min_length = 1, max_length = 4096)]
    path: String,
    text: String,
}

/// A function that the model may call.
#[derive(Debug, Deserialize, ToSchema)]
struct ToolJson {
    /// Always `function`.
    #[serde(rename = "type", default)]
    _type: Option<String>,
    function: FunctionJson,
}

#[derive(Debug, Deserialize, ToSchema)]
struct FunctionJson {
    #[schema(min_length = 1, max_length = 64, pattern = "^[A-Za-z0-9_-]+$")]
    name: String,
    /// When to call it.
    #[serde(default)]
    description: String,
    /// A JSON schema of its arguments.
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    parameters: Option<Value>,
}

/// A message that followed the turn.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
struct StepJson {
    /// `assistant` or `tool`.
    role: StepRole,
    /// The text; may be null in a message with `tool_calls`.
    #[serde(default)]
    content: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCallJson>,
    /// The call that a message of the role `tool` answers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tool_call_id: Option<String>,
}

#[derive(Debug, Clone, Copy, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum StepRole {
    Assistant,
    Tool,
}

/// A call of a function.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(super) struct ToolCallJson {
    id: String,
    /// Always `function`.
    #[serde(rename = "type", default = "function_type")]
    r#type: String,
    function: CalledJson,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
struct CalledJson {
    name: String,
    /// The arguments as the model wrote them, which should be JSON.
    #[serde(default)]
    arguments: String,
}

fn function_type() -> String {
    "function".to_owned()
}

/// The answer to a turn.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ChatJson {
    /// The model that answered.
    model: String,
    /// The text; empty if the model only calls functions.
    text: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<ToolCallJson>,
    /// What followed the turn, if functions are to be called: send it back as `steps`, with their results behind it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    steps: Vec<StepJson>,
    /// What specialists were shown for the answer.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    specialists: Vec<SpecialistViewJson>,
    /// What became of the files of the turn. Left out for a key without the permission `read`.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<FilePlanJson>,
    /// Why the answer ended, such as `endTurn`, `maxTokens` or `toolUse`.
    stop_reason: Option<String>,
    pub(super) usage: Option<UsageJson>,
    /// The ids of the messages that were stored: the turn, its steps, and the answer; for a repeat, the turn and the answer.
    /// Empty if functions are to be called first.
    messages: Vec<String>,
    /// The context that the model was sent. Left out of the event `done`, which follows the event `context`, of the answer
    /// of a specialist, of a repeat, and for a key without the permission `read`.
    #[serde(skip_serializing_if = "Option::is_none")]
    context: Option<AssembledContextJson>,
}

/// What a specialist was shown of the session, by ids.
#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub(super) struct SpecialistViewJson {
    specialist: String,
    /// The recent messages, the oldest first.
    messages: Vec<String>,
    /// The summary.
    summary: Option<String>,
    entities: Vec<String>,
    files: Vec<String>,
    /// Tokens of all that it was sent.
    tokens: u32,
    token_budget: u32,
}

impl SpecialistViewJson {
    /// The form in which it is stored.
    pub(super) fn of(view: &SpecialistView) -> Result<Self> {
        serde_json::from_value(view.json())
            .map_err(|error| Error::internal("a view cannot be shown").with_source(error))
    }
}

/// What the answer took, as the provider counts, all its rounds together.
#[derive(Debug, Serialize, ToSchema)]
pub(in crate::http::routes) struct UsageJson {
    input_tokens: u64,
    /// Part of `input_tokens` that the provider read from its prompt cache.
    cached_input_tokens: u64,
    output_tokens: u64,
    /// US dollars, if the price of the model is known.
    cost_usd: Option<f64>,
}

impl ChatRequest {
    /// The turn, and whether its answer is streamed.
    pub(super) fn turn(self, repeat: Option<Idempotency>) -> Result<(ChatTurn, bool)> {
        if let Some(temperature) = self.temperature
            && !(0.0..=2.0).contains(&temperature)
        {
            return Err(Error::invalid("temperature must be 0 to 2"));
        }
        if self.max_tokens == Some(0) {
            return Err(Error::invalid("max_tokens must be at least 1"));
        }
        let turn = Turn {
            user_turn: self.user_turn,
            intent: self.intent.map(Intent::from),
            tier: self.tier.map(Tier::from),
            token_budget: self.token_budget,
            ..Turn::default()
        };
        let turn = ChatTurn {
            turn,
            model: self.model,
            specialist: self.specialist,
            delegate: self.delegate,
            files: self.files.map(FilesJson::of_turn).transpose()?,
            tools: self.tools.into_iter().map(ToolJson::spec).collect(),
            steps: self.steps.into_iter().map(StepJson::message).collect(),
            temperature: self.temperature,
            max_tokens: self.max_tokens,
            idempotency: repeat,
        };
        Ok((turn, self.stream))
    }
}

impl FilesJson {
    fn of_turn(self) -> Result<TurnFiles> {
        let mut source = SentFiles::default();
        let mut added = |files: Vec<FileJson>| -> Result<Vec<String>> {
            let add = |file: FileJson| source.add(&file.path, file.text).map(|()| file.path);
            files.into_iter().map(add).collect()
        };
        let call = FilesOfCall {
            context: added(self.context)?,
            priority: added(self.priority_context)?,
            attachments: added(self.attachments)?,
            budget: self.budget,
            room: None,
        };
        Ok(TurnFiles { source: Arc::new(source), call })
    }
}

impl ToolJson {
    fn spec(self) -> ToolSpec {
        let parameters = self.function.parameters.unwrap_or_else(|| json!({"type": "object"}));
        let FunctionJson { name, description, .. } = self.function;
        ToolSpec { name, description, parameters: parameters.to_string() }
    }
}

impl StepJson {
    fn message(self) -> ChatMessage {
        let role = match self.role {
            StepRole::Assistant => Role::Assistant,
            StepRole::Tool => Role::Tool,
        };
        let call = |call: ToolCallJson| ToolCall {
            id: call.id,
            name: call.function.name,
            arguments: call.function.arguments,
        };
        ChatMessage {
            role,
            content: self.content.unwrap_or_default(),
            tool_calls: self.tool_calls.into_iter().map(call).collect(),
            tool_call_id: self.tool_call_id,
        }
    }

    fn of(step: ChatMessage) -> Self {
        Self {
            role: if step.role == Role::Tool { StepRole::Tool } else { StepRole::Assistant },
            content: Some(step.content),
            tool_calls: step.tool_calls.into_iter().map(ToolCallJson::of).collect(),
            tool_call_id: step.tool_call_id,
        }
    }
}

impl ToolCallJson {
    pub(super) fn of(call: ToolCall) -> Self {
        let function = CalledJson { name: call.name, arguments: call.arguments };
        Self { id: call.id, r#type: function_type(), function }
    }
}

impl UsageJson {
    /// What an answer took, where the provider says so.
    pub(in crate::http::routes) fn of(answer: &ChatAnswer, cost_usd: Option<f64>) -> Option<Self> {
        answer.usage.map(|used| Self {
            input_tokens: used.input,
            cached_input_tokens: used.cached_input,
            output_tokens: used.output,
            cost_usd,
        })
    }
}

impl ChatJson {
    pub(super) fn of(reply: ChatReply, context: Option<AssembledContextJson>) -> Result<Self> {
        let ChatReply { model, answer, cost, stored, steps, views, files } = reply;
        let usage = UsageJson::of(&answer, cost);
        let ChatAnswer { text, tool_calls, stop_reason, .. } = answer;
        Ok(Self {
            model,
            text,
            tool_calls: tool_calls.into_iter().map(ToolCallJson::of).collect(),
            steps: steps.into_iter().map(StepJson::of).collect(),
            specialists: views.iter().map(SpecialistViewJson::of).collect::<Result<_>>()?,
            files: files.as_ref().map(FilePlanJson::from),
            stop_reason,
            usage,
            messages: stored.iter().map(ToString::to_string).collect(),
            context,
        })
    }
}
