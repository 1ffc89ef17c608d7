//! JSON forms of domain values. The domain carries no serde; what leaves the program does here.

use std::collections::BTreeMap;

use serde::Serialize;
use throughline_core::context::{AssembledContext, ContextMessage, Item};
use throughline_core::ids::ExternalId;

/// An assembled context (seed 002, 4.1).
#[derive(Debug, Serialize)]
pub struct AssembledContextJson<'c> {
    header: Vec<MessageJson<'c>>,
    working_set: Vec<MessageJson<'c>>,
    header_hash: &'c str,
    budget: BudgetJson<'c>,
    baseline_tokens: u64,
    lazy_tools: &'c [String],
    cache_key: &'c str,
    context_signature: &'c str,
    items: Vec<ItemJson<'c>>,
}

#[derive(Debug, Serialize)]
struct MessageJson<'c> {
    role: &'static str,
    content: &'c str,
}

#[derive(Debug, Serialize)]
struct BudgetJson<'c> {
    limit: u32,
    used: u32,
    tokenizer: &'c str,
    by_section: BTreeMap<&'static str, u32>,
    warnings: &'c [String],
}

#[derive(Debug, Serialize)]
struct ItemJson<'c> {
    section: &'static str,
    kind: &'static str,
    source: &'c str,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<&'c str>,
    tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f32>,
    outcome: &'static str,
    reason: &'static str,
}

impl<'c> From<&'c AssembledContext> for AssembledContextJson<'c> {
    fn from(context: &'c AssembledContext) -> Self {
        let budget = &context.budget;
        Self {
            header: context.header.iter().map(MessageJson::from).collect(),
            working_set: context.working_set.iter().map(MessageJson::from).collect(),
            header_hash: &context.header_hash,
            budget: BudgetJson {
                limit: budget.limit,
                used: budget.used,
                tokenizer: &budget.tokenizer,
                by_section: budget
                    .by_section
                    .iter()
                    .map(|(section, tokens)| (section.as_str(), *tokens))
                    .collect(),
                warnings: &budget.warnings,
            },
            baseline_tokens: context.baseline_tokens,
            lazy_tools: &context.lazy_tools,
            cache_key: &context.cache_key,
            context_signature: &context.context_signature,
            items: context.items.iter().map(ItemJson::from).collect(),
        }
    }
}

impl<'c> From<&'c ContextMessage> for MessageJson<'c> {
    fn from(message: &'c ContextMessage) -> Self {
        Self { role: message.role.as_str(), content: &message.content }
    }
}

impl<'c> From<&'c Item> for ItemJson<'c> {
    fn from(item: &'c Item) -> Self {
        Self {
            section: item.section.as_str(),
            kind: item.kind.as_str(),
            source: &item.source,
            external_id: item.external_id.as_ref().map(ExternalId::as_str),
            tokens: item.tokens,
            score: item.score,
            outcome: item.outcome.as_str(),
            reason: item.reason.as_str(),
        }
    }
}
