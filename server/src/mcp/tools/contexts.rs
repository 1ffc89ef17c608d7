//! The tool that assembles the context of a turn.

use std::fmt::Write;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::Result;
use throughline_core::chat::ContextMessage;
use throughline_core::turn::{Intent, Tier};
use throughline_engine::app::Turn;
use throughline_engine::config::ToolSet;

use crate::mcp::tool::{Call, Effect, Outcome, Tool};
use crate::wire::{IntentJson, TierJson};

pub(super) fn tools() -> Vec<Tool> {
    vec![Tool::new::<AssembleArgs, Assembled, _>(
        ToolSet::Sessions,
        "assemble_context",
        "Assemble the whole context to send to a model for a turn, within a token budget: rules, \
         summary, history, recalled passages, the turn.",
        Effect::Reads,
        assemble,
    )]
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
    /// Maximum number of recalled items.
    #[schemars(range(min = 1))]
    k: Option<usize>,
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
    /// Tokens of it that are not sent.
    tokens_saved: u64,
    intent: IntentJson,
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
        max_items: asked.k,
        ..Turn::default()
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
        tokens_saved: context.baseline_tokens.saturating_sub(context.budget.used.into()),
        intent: context.intent.into(),
        header_hash: context.header_hash,
        warnings: context.budget.warnings,
    };
    Outcome::done(text, &assembled)
}
