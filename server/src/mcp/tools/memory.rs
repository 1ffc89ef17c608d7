//! Tools for facts, recall, and the contexts of turns.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::chat::ContextMessage;
use throughline_core::context::{AssembledContext, Outcome as Became, Section};
use throughline_core::fact::FactKind;
use throughline_core::ids::{FactId, MemoryId, MessageId, SessionId, VaultId};
use throughline_core::ports::Erased;
use throughline_core::services::contexts::AssembleRequest;
use throughline_core::services::facts::Remember;
use throughline_core::turn::{Intent, Tier};
use throughline_core::{Error, Result};

use crate::identity::thread::Thread;
use crate::identity::{hex, pseudonym};
use crate::mcp::sets::ToolSet;
use crate::mcp::tool::{Call, Effect, Outcome, Tool};
use crate::wire::MAX_ERASED_IDS;

/// Tokens of a recall without a limit.
const RECALL_TOKENS: u32 = 1_500;
/// The session of a question that names none.
const NO_SESSION: &str = "-";

pub(super) fn tools() -> Vec<Tool> {
    let set = ToolSet::Memory;
    vec![
        Tool::new::<RememberArgs, Remembered, _>(
            set,
            "remember",
            "Store one durable fact, decision or preference about the user or the work. Facts in \
             messages are found automatically.",
            Effect::Adds,
            remember,
        ),
        Tool::new::<RecallArgs, Recalled, _>(
            set,
            "recall",
            "Find what earlier sessions said or decided: the passages and facts that answer a question, \
             with their sources.",
            Effect::Reads,
            recall,
        ),
        Tool::new::<AssembleArgs, Assembled, _>(
            set,
            "assemble_context",
            "The whole context to send a model for a turn, within a token budget: rules, summary, history, \
             recalled passages, the turn.",
            Effect::Reads,
            assemble,
        ),
        Tool::new::<ForgetArgs, Forgotten, _>(
            set,
            "forget",
            "Retract a fact, or erase messages or a session with everything derived from them. It \
             cannot be undone.",
            Effect::Removes,
            forget,
        ),
    ]
}

/// The kind of fact.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Kind {
    Decision,
    Entity,
    Task,
    Metric,
    Link,
    Fact,
    Instruction,
    Preference,
}

impl From<Kind> for FactKind {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::Decision => Self::Decision,
            Kind::Entity => Self::Entity,
            Kind::Task => Self::Task,
            Kind::Metric => Self::Metric,
            Kind::Link => Self::Link,
            Kind::Fact => Self::Fact,
            Kind::Instruction => Self::Instruction,
            Kind::Preference => Self::Preference,
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RememberArgs {
    /// One self-contained sentence.
    #[schemars(length(min = 1, max = 500))]
    text: String,
    kind: Option<Kind>,
    /// With attribute: a later value replaces this one.
    subject: Option<String>,
    attribute: Option<String>,
    value: Option<String>,
    /// Such as project:alfred.
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Remembered {
    id: String,
}

async fn remember(call: Call, asked: RememberArgs) -> Result<Outcome> {
    let new = Remember {
        kind: asked.kind.map_or(FactKind::Fact, FactKind::from),
        text: asked.text,
        subject: asked.subject,
        attribute: asked.attribute,
        value: asked.value,
        tags: asked.tags,
    };
    let fact = call.server.engine.facts.remember(&call.scope()?, new, None).await?;
    let id = fact.id.to_string();
    Outcome::done(format!("Remembered as {id}."), &Remembered { id })
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RecallArgs {
    /// A question or words.
    #[schemars(length(min = 1, max = 10_000))]
    query: String,
    /// The session to prefer.
    session: Option<String>,
    /// Default 1500.
    max_tokens: Option<u32>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Recalled {
    items: Vec<RecalledItem>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct RecalledItem {
    source: String,
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f32>,
}

async fn recall(call: Call, asked: RecallArgs) -> Result<Outcome> {
    let session = asked.session.as_deref().unwrap_or(NO_SESSION);
    let thread = Thread::to_read(&call.server.engine, &call.who, session).await?;
    let settings = call.server.engine.settings.get(&call.who.principal.tenant).await?;
    let request = AssembleRequest {
        intent: Some(Intent::ContextLookup),
        token_budget: Some(asked.max_tokens.unwrap_or(RECALL_TOKENS)),
        recall: settings.recall(),
        guest: thread.share.is_some().then(|| call.scope()).transpose()?,
        ..AssembleRequest::new(thread.session, asked.query)
    };
    let context = call.server.engine.contexts.assemble(&thread.scope, &request).await?;
    call.server.usage.count(call.scope()?, &context);
    let items = shown(&context);
    let text = match items.is_empty() {
        true => "No message or fact answers this.".to_owned(),
        false => items.iter().fold(String::new(), |mut text, item| {
            // Writing to a `String` does not fail.
            let _ = writeln!(text, "[{}] {}", item.source, item.text);
            text
        }),
    };
    Outcome::done(text, &Recalled { items })
}

/// The items that recall put into a context, in their order.
fn shown(context: &AssembledContext) -> Vec<RecalledItem> {
    let recalled = context.items.iter().filter(|item| {
        item.outcome != Became::Dropped
            && matches!(item.section, Section::Recall | Section::History | Section::Summaries)
    });
    let mut found: Vec<_> = recalled
        .filter_map(|item| Some((item.span.as_ref()?, context.rendered(item)?, item)))
        .collect();
    found.sort_by_key(|(span, ..)| (span.message, span.range.start));
    found
        .into_iter()
        .map(|(_, text, item)| RecalledItem {
            source: item.source.clone(),
            text: text.trim().to_owned(),
            score: item.score,
        })
        .collect()
}

/// The intent of a turn.
#[derive(Debug, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Wanted {
    QuickCapture,
    ContextLookup,
    DeepAnalysis,
    Planning,
}

impl From<Wanted> for Intent {
    fn from(wanted: Wanted) -> Self {
        match wanted {
            Wanted::QuickCapture => Self::QuickCapture,
            Wanted::ContextLookup => Self::ContextLookup,
            Wanted::DeepAnalysis => Self::DeepAnalysis,
            Wanted::Planning => Self::Planning,
        }
    }
}

/// The size of a context: `light`, `standard` or `full`.
#[derive(Debug, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(super) enum Size {
    Light,
    Standard,
    Full,
}

impl From<Size> for Tier {
    fn from(size: Size) -> Self {
        match size {
            Size::Light => Self::Light,
            Size::Standard => Self::Standard,
            Size::Full => Self::Full,
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AssembleArgs {
    session: String,
    /// The user's message.
    #[schemars(length(min = 1))]
    user_turn: String,
    intent: Option<Wanted>,
    tier: Option<Size>,
    /// Default 3000, including the turn.
    token_budget: Option<u32>,
    #[serde(default)]
    topic_tags: Vec<String>,
}

#[derive(Debug, Serialize, JsonSchema)]
struct Assembled {
    messages: Vec<Line>,
    tokens: u32,
    token_budget: u32,
    /// Tokens of the whole history.
    baseline_tokens: u64,
    header_hash: String,
    warnings: Vec<String>,
}

/// A message of a context.
#[derive(Debug, Serialize, JsonSchema)]
struct Line {
    role: &'static str,
    content: String,
}

async fn assemble(call: Call, asked: AssembleArgs) -> Result<Outcome> {
    let thread = Thread::to_read(&call.server.engine, &call.who, &asked.session).await?;
    let settings = call.server.engine.settings.get(&call.who.principal.tenant).await?;
    let tier = asked.tier.map(Tier::from);
    let request = AssembleRequest {
        intent: asked.intent.map(Intent::from),
        tier: tier.or(settings.tier),
        // A tier that is asked for brings its own budget.
        token_budget: asked.token_budget.or(settings.token_budget.filter(|_| tier.is_none())),
        topic_tags: asked.topic_tags,
        recall: settings.recall(),
        guest: thread.share.is_some().then(|| call.scope()).transpose()?,
        ..AssembleRequest::new(thread.session, asked.user_turn)
    };
    let context = call.server.engine.contexts.assemble(&thread.scope, &request).await?;
    call.server.usage.count(call.scope()?, &context);
    let text = context.payload().fold(String::new(), |mut text, message| {
        // Writing to a `String` does not fail.
        let _ = writeln!(text, "<{}>\n{}", message.role.as_str(), message.content);
        text
    });
    let line = |message: &ContextMessage| Line {
        role: message.role.as_str(),
        content: message.content.clone(),
    };
    let assembled = Assembled {
        messages: context.payload().map(line).collect(),
        tokens: context.budget.used,
        token_budget: context.budget.limit,
        baseline_tokens: context.baseline_tokens,
        header_hash: context.header_hash,
        warnings: context.budget.warnings,
    };
    Outcome::done(text, &assembled)
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ForgetArgs {
    /// Id or source of a fact to retract.
    fact: Option<String>,
    /// The session to erase, or to erase messages from.
    session: Option<String>,
    /// Only these messages of it, by id or source.
    message_ids: Option<Vec<String>>,
    /// With memory: the context document to erase.
    vault: Option<String>,
    memory: Option<String>,
}

#[derive(Debug, Default, Serialize, JsonSchema)]
struct Forgotten {
    sessions: u64,
    messages: u64,
    facts: u64,
    documents: u64,
}

async fn forget(call: Call, asked: ForgetArgs) -> Result<Outcome> {
    let engine = &call.server.engine;
    let ForgetArgs { fact, session, message_ids, vault, memory } = asked;
    // All are looked at: one that is named beside may be what is meant.
    match (fact, session, message_ids, vault, memory) {
        (Some(fact), None, None, None, None) => {
            let id: FactId = fact.strip_prefix("fact:").unwrap_or(&fact).parse()?;
            engine.facts.retract(&call.scope()?, id).await?;
            call.who.audit(engine, "fact.retract", id.to_string()).await;
            let forgotten = Forgotten { facts: 1, ..Forgotten::default() };
            Outcome::done("The fact is retracted; its value stays rejected.", &forgotten)
        }
        (None, Some(session), ids, None, None) => {
            let (scope, session) = Thread::own(&call.who, &session)?;
            engine.sessions.get(&scope, &session).await?;
            call.progress(0, 1, "erasing").await;
            let erased = erase(&call, &scope, &session, ids).await?;
            call.progress(1, 1, "erased").await;
            let forgotten = Forgotten {
                sessions: erased.sessions,
                messages: erased.messages,
                facts: erased.facts,
                documents: 0,
            };
            let text = format!(
                "Erased {} messages, and {} facts that only they stated.",
                erased.messages, erased.facts
            );
            Outcome::done(text, &forgotten)
        }
        (None, None, None, Some(vault), Some(memory)) => {
            let (scope, vault, memory) =
                (call.scope()?, VaultId::new(vault)?, MemoryId::new(memory)?);
            engine.erase.document(&scope, &vault, &memory).await?;
            let what = hex(&engine.names.document(&scope, &vault, &memory));
            call.who.audit(engine, "document.erase", what).await;
            let forgotten = Forgotten { documents: 1, ..Forgotten::default() };
            Outcome::done("Erased the document, with its history.", &forgotten)
        }
        _ => Err(Error::invalid(
            "name a `fact`, or a `session` with or without `message_ids`, or `vault` and `memory`",
        )),
    }
}

async fn erase(
    call: &Call,
    scope: &throughline_core::Scope,
    session: &SessionId,
    ids: Option<Vec<String>>,
) -> Result<Erased> {
    let engine = &call.server.engine;
    let (action, erased) = match ids {
        Some(ids) => {
            if ids.len() > MAX_ERASED_IDS {
                let most = format!("message_ids: at most {MAX_ERASED_IDS} at once");
                return Err(Error::invalid(most));
            }
            let ids = ids.iter().map(|id| id.strip_prefix("msg:").unwrap_or(id).parse());
            let ids = ids.collect::<Result<Vec<MessageId>>>()?;
            ("messages.erase", engine.erase.messages(scope, session, &ids).await?)
        }
        None => ("session.erase", engine.erase.session(scope, session).await?),
    };
    call.who.audit(engine, action, pseudonym(engine, scope, session)).await;
    Ok(erased)
}
