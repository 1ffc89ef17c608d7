//! Personas, which these tools call *contexts*: `context-manage`, `personality-preset-manage`, `context-chat` and
//! `conversation-manage`.

mod chat;
mod contexts;
mod conversations;
mod forms;
mod presets;

use std::collections::BTreeMap;

use throughline_core::persona::{FilledTemplate, Overrides, Slice, Template};
use throughline_core::{Error, Result};

use crate::mcp::tool::Tool;

pub(in crate::mcp) use forms::{ContextForm, ConversationForm, PresetForm, TemplateForm};

pub(super) fn tools() -> Vec<Tool> {
    vec![contexts::tool(), presets::tool(), chat::tool(), conversations::tool()]
}

/// An argument that an action requires.
fn needed<T>(argument: Option<T>, name: &str, action: &str) -> Result<T> {
    argument.ok_or_else(|| Error::invalid(format!("{name}: required for `{action}`")))
}

/// The character that `create` describes: name, prompt and personality as they are given, or a template with its fields.
fn character(
    (name, prompt, personality): (Option<String>, Option<String>, Option<String>),
    (template, fields): (Option<&str>, &BTreeMap<String, String>),
    said: Overrides,
) -> Result<FilledTemplate> {
    let Some(template) = template else {
        return Ok(FilledTemplate {
            name: needed(name, "name", "create")?,
            description: String::new(),
            system_prompt: needed(prompt, "systemPrompt", "create")?,
            personality: personality.unwrap_or_default(),
            settings: said,
        });
    };
    if prompt.is_some() || personality.is_some() {
        return Err(Error::invalid(
            "templateId: the template sets prompt and personality: change them afterwards",
        ));
    }
    let filled = Template::of(template)?.filled(fields, said)?;
    Ok(FilledTemplate { name: name.unwrap_or(filled.name), ..filled })
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
