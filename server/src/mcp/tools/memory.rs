//! Tools for facts, recall, and the contexts of turns.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::chat::ContextMessage;
use throughline_core::context::{AssembledContext, Outcome as Became, Section};
use throughline_core::document::Expected;
use throughline_core::fact::FactKind;
use throughline_core::ids::{FactId, MemoryId, VaultId};
use throughline_core::services::facts::Remember;
use throughline_core::turn::{Intent, Tier};
use throughline_core::{Error, Result};
use throughline_engine::app::{Thread, Turn, WhichMessages};
use throughline_engine::config::ToolSet;

use crate::mcp::tool::{Call, Effect, Outcome, Tool};
use crate::wire::{FactKindJson, IntentJson, TierJson};

/// Tokens of a recall without a limit.
const RECALL_TOKENS: u32 = 1_500;

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

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RememberArgs {
    /// One self-contained sentence.
    #[schemars(length(min = 1, max = 500))]
    text: String,
    kind: Option<FactKindJson>,
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
    let fact = call.server.app.remember(&call.who, new, None).await?;
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
    let max_tokens = asked.max_tokens.unwrap_or(RECALL_TOKENS);
    let app = &call.server.app;
    let context = app.recall(&call.who, asked.session.as_deref(), asked.query, max_tokens).await?;
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
            source: item.source.to_string(),
            text: text.trim().to_owned(),
            score: item.score,
        })
        .collect()
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct AssembleArgs {
    session: String,
    /// The user's message.
    #[schemars(length(min = 1))]
    user_turn: String,
    intent: Option<IntentJson>,
    tier: Option<TierJson>,
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
    let turn = Turn {
        user_turn: asked.user_turn,
        intent: asked.intent.map(Intent::from),
        tier: asked.tier.map(Tier::from),
        token_budget: asked.token_budget,
        topic_tags: asked.topic_tags,
        force_refresh: false,
    };
    let context = call.server.app.assemble(&call.who, &asked.session, turn).await?;
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
    let app = &call.server.app;
    let ForgetArgs { fact, session, message_ids, vault, memory } = asked;
    // All are looked at: one that is named beside may be what is meant.
    match (fact, session, message_ids, vault, memory) {
        (Some(fact), None, None, None, None) => {
            let id: FactId = fact.strip_prefix("fact:").unwrap_or(&fact).parse()?;
            app.retract(&call.who, id).await?;
            let forgotten = Forgotten { facts: 1, ..Forgotten::default() };
            Outcome::done("The fact is retracted; its value stays rejected.", &forgotten)
        }
        (None, Some(session), ids, None, None) => {
            call.progress(0, 1, "erasing").await;
            let erased = match ids {
                Some(ids) => {
                    let ids = ids.iter().map(|id| id.strip_prefix("msg:").unwrap_or(id).parse());
                    let which = WhichMessages::Ids(ids.collect::<Result<_>>()?);
                    app.erase_messages(&call.who, &session, which).await?
                }
                None => {
                    let (scope, id) = Thread::own(&call.who, &session)?;
                    app.engine.sessions.get(&scope, &id).await?;
                    app.erase_session(&call.who, &session).await?
                }
            };
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
            let (vault, memory) = (VaultId::new(vault)?, MemoryId::new(memory)?);
            app.erase_document(&call.who, &vault, &memory, &Expected::Anything).await?;
            let forgotten = Forgotten { documents: 1, ..Forgotten::default() };
            Outcome::done("Erased the document, with its history.", &forgotten)
        }
        _ => Err(Error::invalid(
            "name a `fact`, or a `session` with or without `message_ids`, or `vault` and `memory`",
        )),
    }
}
