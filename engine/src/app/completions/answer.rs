//! What a provider answered, in OpenAI's form: read to store it and to count it.

use serde_json::{Value, json};
use throughline_core::chat::TokenUsage;
use throughline_core::session::{NewMessage, Role};

use super::conversation::{calls_tools, text};

/// What ends a streamed answer.
pub(super) const END_MARK: &[u8] = b"[DONE]";

/// An answer, or the part of it that came.
#[derive(Debug, Default)]
pub(super) struct Answer {
    /// What the first choice says.
    said: String,
    refusal: String,
    /// Arguments of the tools that it calls.
    calls: String,
    calls_tools: bool,
    /// Why it ended; none where it was cut off.
    reason: Option<String>,
    /// Whether something could not be read.
    is_broken: bool,
    /// The tokens, where the provider reports them.
    pub(super) usage: Option<TokenUsage>,
    /// The model, where the provider names it.
    pub(super) model: Option<String>,
}

impl Answer {
    /// Reads a body, or its beginning.
    pub(super) fn of(body: &[u8], streamed: bool) -> Self {
        let mut read = Self::default();
        if !streamed {
            match serde_json::from_slice(body) {
                Ok(answer) => read.add_whole(&answer),
                Err(_) => read.is_broken = true,
            }
            return read;
        }
        read.is_broken = std::str::from_utf8(body).is_err();
        for line in String::from_utf8_lossy(body).lines() {
            let Some(data) = line.strip_prefix("data:").map(str::trim) else { continue };
            if data.as_bytes() == END_MARK {
                // Some servers give no other reason.
                read.reason.get_or_insert_with(|| "stop".to_owned());
                break;
            }
            match serde_json::from_str(data) {
                Ok(chunk) => read.add_chunk(&chunk),
                Err(_) => read.is_broken = true,
            }
        }
        read
    }

    fn add_whole(&mut self, answer: &Value) {
        self.note(answer);
        let Some(choice) = answer.get("choices").and_then(|choices| choices.get(0)) else { return };
        let reason = choice.get("finish_reason").and_then(Value::as_str);
        self.reason = Some(reason.unwrap_or("stop").to_owned());
        self.add(choice.get("message").unwrap_or(&Value::Null));
    }

    fn add_chunk(&mut self, chunk: &Value) {
        self.note(chunk);
        let choices = chunk.get("choices").and_then(Value::as_array);
        // Of several answers to one request the first is stored.
        let is_first = |choice: &&Value| choice.get("index").is_none_or(|index| index == 0);
        for choice in choices.into_iter().flatten().filter(is_first) {
            self.add(choice.get("delta").unwrap_or(&Value::Null));
            let ended = choice.get("finish_reason").and_then(Value::as_str);
            self.reason = ended.map(str::to_owned).or(self.reason.take());
        }
    }

    fn add(&mut self, message: &Value) {
        let text_of = |name: &str| message.get(name).and_then(Value::as_str).unwrap_or_default();
        self.said.push_str(text_of("content"));
        self.refusal.push_str(text_of("refusal"));
        if calls_tools(message) {
            self.calls_tools = true;
            self.calls.push_str(&message["tool_calls"].to_string());
        }
    }

    /// Notes what an answer says of itself.
    fn note(&mut self, answer: &Value) {
        let model = answer.get("model").and_then(Value::as_str).map(str::to_owned);
        self.model = model.or(self.model.take());
        let Some(usage) = answer.get("usage").filter(|usage| usage.is_object()) else { return };
        let number = |pointer: &str| usage.pointer(pointer).and_then(Value::as_u64).unwrap_or(0);
        self.usage = Some(TokenUsage {
            input: number("/prompt_tokens"),
            cached_input: number("/prompt_tokens_details/cached_tokens"),
            output: number("/completion_tokens"),
        });
    }

    /// All that the model wrote, to count it.
    pub(super) fn written(&self) -> String {
        [self.said.as_str(), &self.refusal, &self.calls].concat()
    }

    /// The answer as it is stored; `None` where it calls tools, says nothing, or was cut off. One that did not end by
    /// itself is marked.
    pub(super) fn to_store(&self) -> Option<NewMessage> {
        let reason = self.reason.as_deref().filter(|_| !self.calls_tools && !self.is_broken)?;
        let reason = match reason {
            "stop" if self.said.trim().is_empty() => Some("refusal"),
            "stop" => None,
            "length" => Some("maxTokens"),
            "content_filter" => Some("contentFilter"),
            other => Some(other),
        };
        let parts = reason.map(|reason| json!({"stop_reason": reason}).to_string());
        // The same text as the client sends back.
        let content = text(&json!({"content": self.said, "refusal": self.refusal}));
        (!content.is_empty())
            .then(|| NewMessage { parts, ..NewMessage::new(Role::Assistant, content) })
    }
}
