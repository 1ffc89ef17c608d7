//! What a chat model is sent, and what it answers. No provider's wire format: adapters translate.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::fmt;

use crate::error::{Error, Result};
use crate::session::Role;

/// Before the result of a tool that is sent without its call.
const RESULT_MARK: &str = "Tool result: ";
/// Its tokens, at most.
pub const RESULT_MARK_TOKENS: u32 = 4;

/// A message of the payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextMessage {
    /// Who speaks.
    pub role: Role,
    /// The text.
    pub content: String,
}

impl ContextMessage {
    /// The role and the text in the form of chat completions: a result of a tool, whose call need not be quoted, is the
    /// user's, and marked.
    #[must_use]
    pub fn in_chat(&self) -> (Role, Cow<'_, str>) {
        match self.role {
            Role::Tool => (Role::User, format!("{RESULT_MARK}{}", self.content).into()),
            role => (role, Cow::Borrowed(&self.content)),
        }
    }
}

/// A message of a request to a chat model: text, calls of tools, or the result of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatMessage {
    /// Who speaks; `Tool` for the result of a call.
    pub role: Role,
    /// The text; may be empty where there are `tool_calls`.
    pub content: String,
    /// The calls that an assistant's message makes.
    pub tool_calls: Vec<ToolCall>,
    /// The call that a tool's message answers.
    pub tool_call_id: Option<String>,
}

impl ChatMessage {
    /// A message of text alone.
    pub fn text(role: Role, content: impl Into<String>) -> Self {
        Self { role, content: content.into(), tool_calls: Vec::new(), tool_call_id: None }
    }

    /// A message of the history: a result of a tool is marked, and no stored message speaks as the system.
    #[must_use]
    pub fn of_history(message: &ContextMessage) -> Self {
        let (role, content) = message.in_chat();
        let role = if role == Role::System { Role::User } else { role };
        Self::text(role, content)
    }

    /// The result of a call.
    pub fn result_of(call: &ToolCall, content: impl Into<String>) -> Self {
        let tool_call_id = Some(call.id.clone());
        Self { role: Role::Tool, content: content.into(), tool_calls: Vec::new(), tool_call_id }
    }
}

impl From<ContextMessage> for ChatMessage {
    fn from(message: ContextMessage) -> Self {
        Self::text(message.role, message.content)
    }
}

/// A function that a model may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSpec {
    /// Its name: letters, digits, `_` and `-`, at most 64.
    pub name: String,
    /// When to call it, for the model.
    pub description: String,
    /// Its parameters, as the text of a JSON schema of type `object`.
    pub parameters: String,
}

/// Most tools of a turn.
const MAX_TOOLS: usize = 128;
/// Longest name of a tool, in bytes.
const MAX_TOOL_NAME: usize = 64;

impl ToolSpec {
    /// Checks the tools of a turn: how many there are, and their names.
    ///
    /// # Errors
    /// `InvalidInput` that says what is allowed.
    pub fn check_all(tools: &[Self]) -> Result<()> {
        if tools.len() > MAX_TOOLS {
            return Err(Error::invalid(format!(
                "tools: at most {MAX_TOOLS} are allowed, but there are {}",
                tools.len()
            )));
        }
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let is_name =
            |name: &str| (1..=MAX_TOOL_NAME).contains(&name.len()) && name.bytes().all(allowed);
        match tools.iter().position(|tool| !is_name(&tool.name)) {
            Some(at) => Err(Error::invalid(format!(
                "tools[{at}].function.name: `{}` is not 1 to {MAX_TOOL_NAME} letters, digits, `_` and `-`",
                tools[at].name
            ))),
            None => Ok(()),
        }
    }
}

/// A call of a tool that a model asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The provider's id of the call; unique within an answer.
    pub id: String,
    /// The tool.
    pub name: String,
    /// Its arguments as the model wrote them, which is meant to be JSON and need not be.
    pub arguments: String,
}

/// What a chat model is asked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ChatModelRequest {
    /// The system prompt.
    pub system: String,
    /// What was said, the last message being what to answer.
    pub messages: Vec<ChatMessage>,
    /// The tools that it may call.
    pub tools: Vec<ToolSpec>,
    /// Diversity, 0.0 to 2.0; the model's own where it is not given. Models that take none are not sent it.
    pub temperature: Option<f64>,
    /// Most tokens of the answer; the model's own limit where it is not given.
    pub max_tokens: Option<u32>,
    /// The provider's thread to go on in ([`ChatAnswer::thread`]), where it keeps one: then `messages` has only what
    /// is new in it.
    pub thread: Option<String>,
}

/// What a chat model answers.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChatAnswer {
    /// The text; it is not empty, nor white space alone, unless there are `tool_calls`.
    pub text: String,
    /// The calls that it asks for before it goes on.
    pub tool_calls: Vec<ToolCall>,
    /// Why it ended, where it says so, such as `endTurn` or `maxTokens`.
    pub stop_reason: Option<String>,
    /// What it took, where the provider says so.
    pub usage: Option<TokenUsage>,
    /// The thread that the provider keeps of it, if it keeps one.
    pub thread: Option<String>,
}

/// Tokens as a provider counts and bills them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TokenUsage {
    /// Of the request, cached ones included.
    pub input: u64,
    /// Of the request, read from the provider's prompt cache.
    pub cached_input: u64,
    /// Of the answer, reasoning included.
    pub output: u64,
}

/// A piece of an answer that comes while the model writes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChatEvent {
    /// The next piece of the text; pieces are not empty.
    Text(String),
    /// The whole answer, once, at the end. A stream that ends without it was cut off.
    Done(ChatAnswer),
}

/// The source of a `Declined` error: the model gave no answer, and these tokens are billed all the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Unanswered {
    /// Tokens of the request, and of what the model thought or wrote.
    pub usage: TokenUsage,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TokenUsage { input, output, .. } = self.usage;
        write!(f, "no answer after {input} tokens of input and {output} of output")
    }
}

impl StdError for Unanswered {}

/// The tokens that a call without an answer took, where the provider reported them.
#[must_use]
pub fn usage_of(error: &Error) -> Option<TokenUsage> {
    let mut source = error.source();
    while let Some(cause) = source {
        if let Some(Unanswered { usage }) = cause.downcast_ref() {
            return Some(*usage);
        }
        source = cause.source();
    }
    None
}

/// What is known of a model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelInfo {
    /// Its name at its provider, such as `gpt-4.1`.
    pub id: String,
    /// Tokens that request and answer may have together.
    pub window: u32,
    /// Most tokens of an answer.
    pub max_output: u32,
    /// Whether it may be given tools.
    pub tools: bool,
    /// Whether it takes a temperature; some models refuse one.
    pub temperature: bool,
    /// Whether it thinks before it writes: then it sends nothing for a while, and its thoughts count as tokens of the
    /// answer.
    pub thinks: bool,
    /// What it costs, where that is known.
    pub price: Option<ModelPrice>,
}

/// US dollars for a million tokens.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ModelPrice {
    /// Of requests.
    pub input: f64,
    /// Of requests, read from the provider's prompt cache.
    pub cached_input: f64,
    /// Of answers.
    pub output: f64,
}

impl ModelPrice {
    /// The cost of a use in US dollars.
    #[must_use]
    pub fn of(&self, used: TokenUsage) -> f64 {
        let cached = used.cached_input.min(used.input);
        let fresh = (used.input - cached) as f64;
        (fresh * self.input + cached as f64 * self.cached_input + used.output as f64 * self.output)
            / 1_000_000.0
    }

    /// The cost of a use in millionths of a US dollar.
    #[must_use]
    pub fn micro_usd(&self, used: TokenUsage) -> u64 {
        (self.of(used) * 1_000_000.0).round() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_usage_in_the_sources_of_an_error() {
        let usage = TokenUsage { input: 9, cached_input: 4, output: 2 };
        let declined = || Error::invalid("no answer");
        let told = declined().with_source(Unanswered { usage });
        assert_eq!(usage_of(&told), Some(usage));
        assert_eq!(usage_of(&declined().with_source(told)), Some(usage));
        assert_eq!(usage_of(&declined()), None);
    }

    #[test]
    fn prices_cached_tokens_apart() {
        let price = ModelPrice { input: 2.0, cached_input: 0.5, output: 8.0 };
        let used = TokenUsage { input: 1_000_000, cached_input: 500_000, output: 250_000 };
        assert!((price.of(used) - 3.25).abs() < 1e-9);
        assert_eq!(price.micro_usd(used), 3_250_000);
        let odd = TokenUsage { input: 10, cached_input: 20, output: 0 };
        assert!(
            price.of(odd) <= price.input,
            "more cached tokens than tokens cost no less than none"
        );
    }
}
