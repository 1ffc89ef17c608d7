//! What every API comes to: an answer, or why there is none.

use throughline_core::Result;
use throughline_core::chat::{ChatAnswer, TokenUsage, ToolCall};

use crate::errors::Origin;

/// The model ended by itself.
pub const END_TURN: &str = "endTurn";
/// The answer has as many tokens as it may have.
pub const MAX_TOKENS: &str = "maxTokens";
/// The model waits for results of tools.
pub const TOOL_USE: &str = "toolUse";
/// The provider's content filter ended the answer.
pub const CONTENT_FILTER: &str = "contentFilter";
/// The model called a tool in a form that the provider could not read.
pub const MALFORMED_CALL: &str = "malformedToolCall";

/// An answer while it is read.
#[derive(Debug, Default)]
pub struct Draft {
    /// The text so far.
    pub text: String,
    /// The calls of tools so far.
    pub calls: Vec<ToolCall>,
    /// What the model says instead of an answer.
    pub refusal: String,
    /// Why it ended, in the words of [`ChatAnswer::stop_reason`].
    pub stop: Option<String>,
    /// What it took.
    pub usage: Option<TokenUsage>,
    /// The thread that the provider keeps of it.
    pub thread: Option<String>,
}

impl Draft {
    /// # Errors
    /// `Declined` where there is neither text nor a call, with the reason.
    pub(crate) fn finish(mut self, origin: &Origin) -> Result<ChatAnswer> {
        if self.calls.is_empty() && self.text.trim().is_empty() {
            return Err(origin.declined(self.reason()));
        }
        if !self.calls.is_empty() && self.stop.as_deref().is_none_or(|stop| stop == END_TURN) {
            self.stop = Some(TOOL_USE.to_owned());
        }
        name_calls(&mut self.calls);
        Ok(ChatAnswer {
            text: self.text,
            tool_calls: self.calls,
            stop_reason: self.stop,
            usage: self.usage,
            thread: self.thread,
        })
    }

    fn reason(&self) -> &'static str {
        match self.stop.as_deref() {
            _ if !self.refusal.trim().is_empty() => "it refused",
            Some(CONTENT_FILTER) => "the content filter of the provider stopped it",
            Some(MALFORMED_CALL) => "its call of a tool was malformed; try again",
            Some(MAX_TOKENS) => {
                "it used up its tokens before it wrote any text; allow it more (`max_tokens`)"
            }
            _ => "it was empty",
        }
    }
}

/// Gives calls without an id, or with that of another, an id of their own.
fn name_calls(calls: &mut [ToolCall]) {
    for at in 0..calls.len() {
        let (before, rest) = calls.split_at_mut(at);
        let call = &mut rest[0];
        let is_taken = |id: &str| before.iter().any(|other| other.id == id);
        if call.id.is_empty() || is_taken(&call.id) {
            let numbers = at..;
            let free = numbers.map(|at| format!("call_{at}")).find(|id| !is_taken(id));
            call.id = free.unwrap_or_default();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gives_every_call_a_unique_id() {
        let call = |id: &str| ToolCall {
            id: id.to_owned(),
            name: "look".to_owned(),
            arguments: String::new(),
        };
        let mut calls = ["", "a", "a", "call_4", ""].map(call);
        name_calls(&mut calls);
        assert_eq!(calls.map(|call| call.id), ["call_0", "a", "call_2", "call_4", "call_5"]);
    }
}
