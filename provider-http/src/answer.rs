//! What every API's answer is read into, and why there may be none.

use throughline_core::Result;
use throughline_core::chat::{ChatAnswer, TokenUsage, ToolCall, Unanswered};

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
    /// `Declined` where there is neither text nor a call, with the reason, and the usage as its source.
    pub(crate) fn finish(mut self, origin: &Origin) -> Result<ChatAnswer> {
        if self.calls.is_empty() && self.text.trim().is_empty() {
            let declined = origin.declined(self.reason());
            return Err(match self.usage {
                Some(usage) => declined.with_source(Unanswered { usage }),
                None => declined,
            });
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
    use throughline_core::ErrorKind;
    use throughline_core::chat::usage_of;

    use super::*;
    use crate::errors::origin;

    #[test]
    fn an_error_has_the_usage_of_its_answer() {
        let usage = Some(TokenUsage { input: 9, cached_input: 0, output: 99 });
        let stop = Some(MAX_TOKENS.to_owned());
        let thought = Draft { stop, usage, ..Draft::default() };
        let error = thought.finish(&origin(None)).unwrap_err();
        assert_eq!((error.kind(), usage_of(&error)), (ErrorKind::Declined, usage));
        let error = Draft::default().finish(&origin(None)).unwrap_err();
        assert_eq!((error.kind(), usage_of(&error)), (ErrorKind::Declined, None));
    }

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
