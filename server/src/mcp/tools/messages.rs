//! Sessions and their messages.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::Result;
use throughline_core::ids::ExternalId;
use throughline_core::session::{Message, NewMessage, Session};
use throughline_core::turn::Tier;
use throughline_engine::app::{Cursors, Thread};
use throughline_engine::config::ToolSet;

use crate::mcp::tool::{Call, Effect, Outcome, Tool};
use crate::wire::{RoleJson, TierJson, indexed};

/// Default number of sessions per page.
const DEFAULT_LIMIT: usize = 20;
/// Most typed values in a description.
const DESCRIBED_ENTITIES: usize = 20;

pub(super) fn tools() -> Vec<Tool> {
    let set = ToolSet::Sessions;
    vec![
        Tool::new::<AppendArgs, Appended, _>(
            set,
            "append_messages",
            "Store messages of a session, in order, all or none. Repeating an external_id stores nothing \
             twice.",
            Effect::Adds,
            append,
        ),
        Tool::new::<WindowArgs, Window, _>(
            set,
            "get_context_window",
            "The recent messages of a session with its typed values, summary and files, within a \
             size.",
            Effect::Reads,
            window,
        ),
        Tool::new::<ListArgs, Sessions, _>(
            set,
            "list_sessions",
            "The user's sessions, in the order of creation.",
            Effect::Reads,
            list,
        ),
        Tool::new::<DescribeArgs, Described, _>(
            set,
            "describe_session",
            "What a session is about: counts, latest summary, typed values.",
            Effect::Reads,
            describe,
        ),
    ]
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AppendArgs {
    /// Your id of the session; its first message creates it.
    session: String,
    #[schemars(length(min = 1, max = 1000))]
    messages: Vec<New>,
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct New {
    role: RoleJson,
    #[schemars(length(min = 1))]
    content: String,
    name: Option<String>,
    external_id: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Appended {
    messages: Vec<Stored>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Stored {
    id: String,
    seq: u64,
    replayed: bool,
}

async fn append(call: Call, asked: AppendArgs) -> Result<Outcome> {
    let message = |new: New| {
        Ok(NewMessage {
            name: new.name,
            external_id: new.external_id.map(ExternalId::new).transpose()?,
            ..NewMessage::new(new.role.into(), new.content)
        })
    };
    let messages = indexed("messages", asked.messages, message)?;
    let stored = call.server.app.append(&call.who, &asked.session, messages, None).await?;
    let text = format!("Stored {} messages.", stored.len());
    let messages = stored.into_iter().map(|message| Stored {
        id: message.id.to_string(),
        seq: message.seq,
        replayed: message.replayed,
    });
    Outcome::done(text, &Appended { messages: messages.collect() })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WindowArgs {
    session: String,
    tier: Option<TierJson>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Window {
    messages: Vec<Said>,
    entities: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    files: Vec<String>,
    tokens: u32,
}

/// A message.
#[derive(Debug, Serialize, JsonSchema)]
struct Said {
    id: String,
    role: &'static str,
    /// Who spoke, if named; another user in a shared session.
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    content: String,
    created_at: String,
}

impl Said {
    fn of(message: Message) -> Self {
        Self {
            id: message.id.to_string(),
            role: message.role.as_str(),
            name: message.name,
            content: message.content,
            created_at: message.created_at.to_rfc3339(),
        }
    }
}

/// A typed value.
#[derive(Debug, Serialize, JsonSchema)]
struct Value {
    kind: &'static str,
    value: String,
}

impl Value {
    fn of(entity: throughline_core::entity::Entity) -> Self {
        Self { kind: entity.kind.as_str(), value: entity.value }
    }
}

async fn window(call: Call, asked: WindowArgs) -> Result<Outcome> {
    let tier = asked.tier.map(Tier::from);
    let window = call.server.app.window(&call.who, &asked.session, tier).await?.window;
    Outcome::data(&Window {
        messages: window.recent.into_iter().map(Said::of).collect(),
        entities: window.entities.into_iter().map(Value::of).collect(),
        summary: window.summary.map(|summary| summary.text()),
        files: window.files.into_iter().map(|file| file.title).collect(),
        tokens: window.tokens,
    })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ListArgs {
    /// Default 20.
    #[schemars(range(min = 1, max = 500))]
    limit: Option<usize>,
    /// next_cursor of the previous page.
    cursor: Option<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Sessions {
    sessions: Vec<SessionLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A session.
#[derive(Debug, Serialize, JsonSchema)]
struct SessionLine {
    id: String,
    last_at: String,
    message_count: u64,
    token_count: u64,
}

impl SessionLine {
    fn of(session: &Session) -> Self {
        Self {
            id: session.id.to_string(),
            last_at: session.last_at.to_rfc3339(),
            message_count: session.messages,
            token_count: session.tokens,
        }
    }
}

async fn list(call: Call, asked: ListArgs) -> Result<Outcome> {
    let engine = &call.server.app.engine;
    let cursors = Cursors::new(&engine.names, "list_sessions");
    let limit = asked.limit.unwrap_or(DEFAULT_LIMIT);
    let page = cursors.request(limit, asked.cursor.as_deref())?;
    let (found, next_cursor) = cursors.show(engine.sessions.list(&call.scope()?, &page).await?);
    Outcome::data(&Sessions { sessions: found.iter().map(SessionLine::of).collect(), next_cursor })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct DescribeArgs {
    session: String,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Described {
    created_at: String,
    last_at: String,
    message_count: u64,
    token_count: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    summary: Option<String>,
    entities: Vec<Value>,
}

async fn describe(call: Call, asked: DescribeArgs) -> Result<Outcome> {
    let sessions = &call.server.app.engine.sessions;
    let thread = Thread::to_read(&call.server.app.engine, &call.who, &asked.session).await?;
    let session = sessions.get(&thread.scope, &thread.session).await?;
    let entities = sessions.entities(&thread.scope, &thread.session, DESCRIBED_ENTITIES).await?;
    let summaries = sessions.summaries(&thread.scope, &thread.session).await?;
    Outcome::data(&Described {
        created_at: session.created_at.to_rfc3339(),
        last_at: session.last_at.to_rfc3339(),
        message_count: session.messages,
        token_count: session.tokens,
        summary: summaries.into_iter().last().map(|summary| summary.text()),
        entities: entities.into_iter().map(Value::of).collect(),
    })
}
