//! The context of a turn.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use throughline_core::chat::ContextMessage;
use throughline_core::context::{AssembledContext, Item};
use throughline_core::session::Role;
use throughline_core::time::Timestamp;
use utoipa::ToSchema;

use super::IntentJson;

/// The context of one turn, with its account.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AssembledContextJson {
    /// The stable part, which comes first: rules, profile card, standing instructions, tools.
    header: Vec<ContextMessageJson>,
    /// Summary, history, recalled text, and the turn.
    working_set: Vec<ContextMessageJson>,
    /// The whole payload to send to a model, in the requested format: header and working set.
    messages: Vec<ContextMessageJson>,
    /// The header, which Anthropic takes separately from the messages; only in the format `anthropic`.
    #[serde(skip_serializing_if = "Option::is_none")]
    system: Option<String>,
    /// The intent of the turn, given or detected.
    intent: IntentJson,
    /// Hash of the header; while it stays the same, prompt caching works.
    header_hash: String,
    budget: BudgetJson,
    /// Tokens of the whole history.
    baseline_tokens: u64,
    /// Tokens of the whole history that are not sent.
    tokens_saved: u64,
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
    /// When it was said, last stated or put.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<String>,
    tokens: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    score: Option<f32>,
    /// `included`, `compressed` or `dropped`.
    outcome: &'static str,
    reason: &'static str,
}

/// The format of the messages of a payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PayloadFormat {
    /// Messages with the roles `system`, `user` and `assistant`; results of tools are messages of the user that begin with
    /// `Tool result:`, which counts in the budget.
    #[default]
    Openai,
    /// The header as `system`, and messages in which `user` and `assistant` take turns.
    Anthropic,
}

impl AssembledContextJson {
    /// A context with its payload in a form.
    pub(crate) fn of(context: AssembledContext, format: PayloadFormat) -> Self {
        let (system, messages) = match format {
            PayloadFormat::Openai => (None, context.payload().map(openai).collect()),
            PayloadFormat::Anthropic => {
                let (system, messages) = in_turns(&context);
                (Some(system), messages)
            }
        };
        Self { system, messages, ..Self::from(context) }
    }
}

/// A message as the chat completions of OpenAI take it. They refuse the role `tool` without the call before it, which a
/// context need not quote.
fn openai(message: &ContextMessage) -> ContextMessageJson {
    let (role, content) = message.in_chat();
    ContextMessageJson { role: role.as_str(), content: content.into_owned() }
}

/// System messages as one text, and the others with neighbours of one role joined, a user's first: what the Messages API
/// of Anthropic takes.
fn in_turns(context: &AssembledContext) -> (String, Vec<ContextMessageJson>) {
    let mut system = Vec::new();
    let mut turns: Vec<ContextMessageJson> = Vec::new();
    for message in context.payload() {
        let (role, content) = message.in_chat();
        if role == Role::System {
            system.push(message.content.as_str());
            continue;
        }
        match turns.last_mut().filter(|last| last.role == role.as_str()) {
            Some(last) => {
                last.content.push_str("\n\n");
                last.content.push_str(&content);
            }
            None => {
                if turns.is_empty() && role == Role::Assistant {
                    let before = "(earlier conversation)".to_owned();
                    turns.push(ContextMessageJson { role: Role::User.as_str(), content: before });
                }
                turns.push(ContextMessageJson {
                    role: role.as_str(),
                    content: content.into_owned(),
                });
            }
        }
    }
    (system.join("\n\n"), turns)
}

impl From<AssembledContext> for AssembledContextJson {
    fn from(context: AssembledContext) -> Self {
        let payload = context.payload().map(openai).collect();
        let budget = context.budget;
        let messages = |messages: Vec<ContextMessage>| {
            messages.into_iter().map(ContextMessageJson::from).collect()
        };
        let by_section = budget.by_section.iter();
        Self {
            header: messages(context.header),
            working_set: messages(context.working_set),
            messages: payload,
            system: None,
            intent: context.intent.into(),
            tokens_saved: context.baseline_tokens.saturating_sub(budget.used.into()),
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
            at: item.at.map(Timestamp::to_rfc3339),
            tokens: item.tokens,
            score: item.score,
            outcome: item.outcome.as_str(),
            reason: item.reason.as_str(),
        }
    }
}
