//! Models that answer, a tool for each: with what is remembered, and with files that stay where they are in the prompt.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt as _;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::access::Permission;
use throughline_core::{Error, Result};
use throughline_engine::app::{
    ChatPiece, ChatReply, ChatTurn, FilesOfCall, Turn, TurnFiles, failure,
};
use throughline_engine::compose::ChatModels;
use throughline_engine::config::{McpConfig, ToolSet};
use throughline_engine::identity::Identity;
use uuid::Uuid;

use crate::mcp::Server;
use crate::mcp::tool::{Call, Effect, Outcome, Tool};
use crate::wire::FilePlanJson;

/// Longest that a poll waits, in seconds.
const MAX_WAIT: u64 = 60;
/// How long it waits where its caller does not say, in seconds.
const WAIT: u64 = 20;
/// Most files of an answer's account, those first that the call moved.
const MOST_FILES: usize = 100;

/// A tool for each model, and those for calls that run on.
///
/// # Errors
/// `InvalidInput` for a configured model that does not exist.
pub(super) fn tools(models: &ChatModels, config: &McpConfig) -> Result<Vec<Tool>> {
    let set = ToolSet::Chat;
    if models.providers.is_empty() || !config.tool_sets.contains(&set) {
        return Ok(Vec::new());
    }
    let offered = offered(models, config)?;
    let mut tools: Vec<Tool> = offered
        .into_iter()
        .map(|(name, model)| {
            let what = format!(
                "Ask {model}, which sees what this session said and remembers. Files and folders are sent once, and again \
                 only where they changed."
            );
            let run = move |call: Call, asked: ChatArgs| {
                let model = model.clone();
                async move { answered(call, model, asked).await }
            };
            let tool = Tool::new::<ChatArgs, Answer, _>(set, name, what, Effect::Adds, run);
            tool.needs(Permission::Chat).asks()
        })
        .collect();
    tools.push(
        Tool::new::<StartArgs, Started, _>(
            set,
            "start_chat",
            "Begin a call of a model that takes long; `poll_chat` gets its answer.",
            Effect::Adds,
            start,
        )
        .needs(Permission::Chat)
        .asks(),
    );
    tools.push(
        Tool::new::<PollArgs, Polled, _>(
            set,
            "poll_chat",
            "The answer of a call that was begun, or that it still runs.",
            Effect::Reads,
            poll,
        )
        .needs(Permission::Chat)
        .asks(),
    );
    tools.push(
        Tool::new::<CancelArgs, Polled, _>(
            set,
            "cancel_chat",
            "Give up a call that was begun. Nothing of it is stored.",
            Effect::Removes,
            cancel,
        )
        .needs(Permission::Chat)
        .asks(),
    );
    Ok(tools)
}

/// The names of tools, with the models that they ask.
fn offered(models: &ChatModels, config: &McpConfig) -> Result<Vec<(String, String)>> {
    let mut setting = "mcp.chat_models";
    let chosen: Vec<String> = match (config.chat_models.as_slice(), &models.default) {
        ([], Some(model)) => {
            setting = "chat.model";
            vec![model.clone()]
        }
        ([], None) => {
            let all = models.providers.iter().flat_map(|provider| {
                provider.models().iter().map(|model| format!("{}:{}", provider.name(), model.id))
            });
            all.collect()
        }
        (chosen, _) => chosen.to_vec(),
    };
    let mut taken = BTreeSet::new();
    let named = |name: String| {
        let found = models.find(&name).map_err(|error| {
            Error::new(error.kind(), format!("configuration key `{setting}`: {}", error.message()))
        })?;
        let tool = tool_name(&found.info.id);
        let tool = if taken.contains(&tool) { tool_name(&found.name()) } else { tool };
        taken.insert(tool.clone());
        Ok((tool, found.name()))
    };
    chosen.into_iter().map(named).collect()
}

/// Clients take letters, digits, `_` and `-`, and at most 64 of them.
fn tool_name(model: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    format!("chat_with_{model}").chars().map(plain).take(64).collect()
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ChatArgs {
    /// What to do or answer.
    instructions: String,
    /// The conversation; calls with the same id go on with it.
    session_id: String,
    /// Files and folders that the model needs throughout: name the same ones in each call.
    #[serde(default)]
    context: Vec<String>,
    /// Files and folders that are in the prompt in any case.
    #[serde(default)]
    priority_context: Vec<String>,
    /// Files and folders that the model only searches, in this call.
    #[serde(default)]
    attachments: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Answer {
    text: String,
    /// The model, as `provider:id`.
    model: String,
    session_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    stop_reason: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input_tokens: Option<u64>,
    /// Part of them that the provider had in its prompt cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    cached_input_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_tokens: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost_usd: Option<f64>,
    /// What became of the files.
    #[serde(skip_serializing_if = "Option::is_none")]
    files: Option<FilePlanJson>,
}

async fn answered(call: Call, model: String, asked: ChatArgs) -> Result<Outcome> {
    call.progress(0, 1, "the model is asked").await;
    let session = asked.session_id.clone();
    let reply = ask(&call.server, &call.who, model, asked).await?;
    call.progress(1, 1, "done").await;
    let text = told(&reply);
    Outcome::done(text, &Answer::of(reply, session))
}

/// Lets a model answer. Dropping it ends the answer, and stores nothing.
async fn ask(server: &Server, who: &Identity, model: String, asked: ChatArgs) -> Result<ChatReply> {
    let names_files = [&asked.context, &asked.priority_context, &asked.attachments]
        .iter()
        .any(|paths| !paths.is_empty());
    let files = match (&server.files, names_files) {
        (_, false) => None,
        (Some(source), true) => Some(TurnFiles {
            source: Arc::clone(source),
            call: FilesOfCall {
                context: asked.context,
                priority: asked.priority_context,
                attachments: asked.attachments,
                budget: None,
                room: None,
            },
        }),
        (None, true) => {
            return Err(Error::invalid(
                "this server does not read files of your machine: run `throughline mcp` there, or send their texts to \
                 POST /v1/sessions/{id}/chat",
            ));
        }
    };
    let turn = ChatTurn {
        turn: Turn { user_turn: asked.instructions, ..Turn::default() },
        model: Some(model),
        files,
        ..ChatTurn::default()
    };
    let mut pieces = pin!(server.app.chat(who.clone(), asked.session_id, turn));
    let mut done = None;
    while let Some(piece) = pieces.next().await {
        if let ChatPiece::Done(reply) = piece? {
            done = Some(*reply);
        }
    }
    // Those who listen are told, and due work is done.
    server.written((who.client(), who.scope().ok()), async { Ok(()) }).await?;
    done.ok_or_else(|| Error::internal("the chat ended without an answer"))
}

/// The text of an answer, with what its reader should know beside it.
fn told(reply: &ChatReply) -> String {
    let remarks = reply.remarks();
    let remarks = remarks.iter().map(|remark| format!("\n\n({remark})"));
    [reply.answer.text.clone()].into_iter().chain(remarks).collect()
}

impl Answer {
    fn of(reply: ChatReply, session_id: String) -> Self {
        let usage = reply.answer.usage;
        Self {
            text: reply.answer.text,
            model: reply.model,
            session_id,
            stop_reason: reply.answer.stop_reason,
            input_tokens: usage.map(|used| used.input),
            cached_input_tokens: usage.map(|used| used.cached_input),
            output_tokens: usage.map(|used| used.output),
            cost_usd: reply.cost,
            files: reply.files.map(|plan| FilePlanJson::shortened(plan, MOST_FILES)),
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct StartArgs {
    /// The model, as `provider:model` or as its name alone.
    model: String,
    /// What to do or answer.
    instructions: String,
    /// The conversation; calls with the same id go on with it.
    session_id: String,
    /// Files and folders that the model needs throughout: name the same ones in each call.
    #[serde(default)]
    context: Vec<String>,
    /// Files and folders that are in the prompt in any case.
    #[serde(default)]
    priority_context: Vec<String>,
    /// Files and folders that the model only searches, in this call.
    #[serde(default)]
    attachments: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Started {
    /// For `poll_chat` and `cancel_chat`.
    call: String,
}

async fn start(call: Call, asked: StartArgs) -> Result<Outcome> {
    let StartArgs { model, instructions, session_id, context, priority_context, attachments } =
        asked;
    // `flatten` would let unknown fields pass.
    let asked = ChatArgs { instructions, session_id, context, priority_context, attachments };
    // A name that is wrong is refused at once.
    let model = call.server.app.engine.models.find(&model)?.name();
    let (server, who, session) = (call.server.clone(), call.who.clone(), asked.session_id.clone());
    let work = async move {
        let ended = ask(&server, &who, model, asked).await;
        let failed = |error: Error| format!("{}: {}", error.kind().code(), failure::tell(&error));
        let reply = ended.map_err(failed)?;
        let text = told(&reply);
        let answer = Answer::of(reply, session);
        let data = serde_json::to_value(&answer).map_err(|error| format!("internal: {error}"))?;
        Ok((text, data))
    };
    let id = call.server.app.engine.ids.next();
    let caller = (call.who.client(), call.scope()?);
    let id = call.server.calls.start(id, caller, work)?.to_string();
    Outcome::done(format!("Begun as {id}."), &Started { call: id })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PollArgs {
    call: String,
    /// How long to wait for its end.
    #[schemars(range(max = 60))]
    wait_seconds: Option<u64>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CancelArgs {
    call: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Polled {
    /// running, done, failed or cancelled.
    state: &'static str,
    /// The answer, as the tool of the model gives it.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

async fn poll(call: Call, asked: PollArgs) -> Result<Outcome> {
    let wait = asked.wait_seconds.unwrap_or(WAIT);
    if wait > MAX_WAIT {
        return Err(Error::invalid(format!("wait_seconds must be at most {MAX_WAIT}")));
    }
    let (scope, id) = (call.scope()?, id(&asked.call)?);
    let ended = call.server.calls.poll(&scope, id, Duration::from_secs(wait)).await?;
    let polled = |state, answer, error| Polled { state, answer, error };
    match ended {
        None => Outcome::done("It still runs.", &polled("running", None, None)),
        Some(Ok((text, answer))) => Outcome::done(text, &polled("done", Some(answer), None)),
        Some(Err(error)) => Outcome::done(error.clone(), &polled("failed", None, Some(error))),
    }
}

async fn cancel(call: Call, asked: CancelArgs) -> Result<Outcome> {
    call.server.calls.cancel(&call.scope()?, id(&asked.call)?)?;
    Outcome::done("Cancelled.", &Polled { state: "cancelled", answer: None, error: None })
}

fn id(text: &str) -> Result<Uuid> {
    text.parse().map_err(|_| Error::invalid("call: not an id that `start_chat` gave"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_clients_take() {
        assert_eq!(tool_name("gpt-4.1"), "chat_with_gpt-4_1");
        assert_eq!(tool_name("openai:models/ä b"), "chat_with_openai_models___b");
        assert_eq!(tool_name(&"x".repeat(100)).len(), 64);
    }
}
