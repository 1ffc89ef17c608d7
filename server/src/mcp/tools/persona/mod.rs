//! Personas, which these tools call *contexts*: `context-manage`, `personality-preset-manage`, `context-chat` and
//! `conversation-manage`.

mod chat;
mod contexts;
mod conversations;
mod forms;
mod presets;

use throughline_core::persona::Slice;
use throughline_core::{Error, Result};

use crate::mcp::tool::Tool;

pub(in crate::mcp) use forms::{ContextForm, ConversationForm, PresetForm};

pub(super) fn tools() -> Vec<Tool> {
    vec![contexts::tool(), presets::tool(), chat::tool(), conversations::tool()]
}

/// An argument that an action requires.
fn needed<T>(argument: Option<T>, name: &str, action: &str) -> Result<T> {
    argument.ok_or_else(|| Error::invalid(format!("{name}: required for `{action}`")))
}

/// A page by number.
fn page(page: Option<usize>, size: Option<usize>, usual: usize) -> Result<Slice> {
    Slice::page(page.unwrap_or(1), size.unwrap_or(usual)).map_err(in_camel_case)
}

/// An error of core with the argument names of the tools.
fn in_camel_case(error: Error) -> Error {
    const NAMES: [(&str, &str); 9] = [
        ("system_prompt", "systemPrompt"),
        ("default_personality", "defaultPersonality"),
        ("max_history_tokens", "maxHistoryTokens"),
        ("max_tokens", "maxTokens"),
        ("expiry_days", "expiryDays"),
        ("page_size", "pageSize"),
        ("token_budget", "tokenBudget"),
        ("older_than", "olderThan"),
        ("ids:", "conversationIds:"),
    ];
    let renamed = NAMES.iter().fold(error.message().to_owned(), |message, (field, argument)| {
        message.replace(field, argument)
    });
    match renamed == error.message() {
        true => error,
        false => Error::new(error.kind(), renamed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_name_arguments_in_camel_case() {
        let error = in_camel_case(Error::invalid("max_history_tokens: must be 100 to 1000000"));
        assert_eq!(error.message(), "maxHistoryTokens: must be 100 to 1000000");
        let error = in_camel_case(Error::conflict("max_tokens: too few"));
        assert_eq!(error.message(), "maxTokens: too few");
    }
}
