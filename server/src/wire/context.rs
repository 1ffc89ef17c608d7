//! The context of a turn.

use std::collections::BTreeMap;

use serde::Serialize;
use throughline_core::chat::ContextMessage;
use throughline_core::context::{AssembledContext, Item};
use utoipa::ToSchema;

/// The context of one turn, with its account.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AssembledContextJson {
    /// The stable part, which comes first: rules, profile card, standing instructions, tools.
    header: Vec<ContextMessageJson>,
    /// Summary, history, recalled text, and the turn.
    working_set: Vec<ContextMessageJson>,
    /// Hash of the header; while it stays the same, prompt caching works.
    header_hash: String,
    budget: BudgetJson,
    /// Tokens of the whole history.
    baseline_tokens: u64,
    /// Tools that the header names without their schemas.
    lazy_tools: Vec<String>,
    /// Key of the context in an answer cache.
    cache_key: String,
    /// Hash of the inputs of the context.
    context_signature: String,
    /// The outcome of every candidate, and why.
    items: Vec<ItemJson>,
}

/// A message of the payload.
#[derive(Debug, Serialize, ToSchema)]
struct ContextMessageJson {
    /// `system`, `user`, `assistant` or `tool`.
    role: &'static str,
    content: String,
}

/// How the budget was used, counted in the rendered payload.
#[derive(Debug, Serialize, ToSchema)]
struct BudgetJson {
    /// Maximum number of tokens.
    limit: u32,
    /// Tokens used.
    used: u32,
    /// The tokenizer.
    tokenizer: String,
    by_section: BTreeMap<&'static str, u32>,
    warnings: Vec<String>,
}

/// The outcome of a candidate.
#[derive(Debug, Serialize, ToSchema)]
struct ItemJson {
    section: &'static str,
    kind: &'static str,
    /// `msg:<id>`, `fact:<id>` and the like.
    source: String,
    /// The caller's id of the message.
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<String>,
    tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f32>,
    /// `included`, `compressed` or `dropped`.
    outcome: &'static str,
    reason: &'static str,
}

impl From<AssembledContext> for AssembledContextJson {
    fn from(context: AssembledContext) -> Self {
        let budget = context.budget;
        let messages = |messages: Vec<ContextMessage>| {
            messages.into_iter().map(ContextMessageJson::from).collect()
        };
        let by_section = budget.by_section.iter();
        Self {
            header: messages(context.header),
            working_set: messages(context.working_set),
            header_hash: context.header_hash,
            budget: BudgetJson {
                limit: budget.limit,
                used: budget.used,
                by_section: by_section.map(|(part, tokens)| (part.as_str(), *tokens)).collect(),
                tokenizer: budget.tokenizer,
                warnings: budget.warnings,
            },
            baseline_tokens: context.baseline_tokens,
            lazy_tools: context.lazy_tools,
            cache_key: context.cache_key,
            context_signature: context.context_signature,
            items: context.items.into_iter().map(ItemJson::from).collect(),
        }
    }
}

impl From<ContextMessage> for ContextMessageJson {
    fn from(message: ContextMessage) -> Self {
        Self { role: message.role.as_str(), content: message.content }
    }
}

impl From<Item> for ItemJson {
    fn from(item: Item) -> Self {
        Self {
            section: item.section.as_str(),
            kind: item.kind.as_str(),
            source: item.source.to_string(),
            external_id: item.external_id.map(|id| id.to_string()),
            tokens: item.tokens,
            score: item.score,
            outcome: item.outcome.as_str(),
            reason: item.reason.as_str(),
        }
    }
}
