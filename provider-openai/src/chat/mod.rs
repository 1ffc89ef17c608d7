//! Chat models: one trait over two APIs.

mod completions;
mod responses;
mod tool_calls;

use std::sync::Arc;

use async_trait::async_trait;
use serde_json::Value;
use throughline_core::Result;
use throughline_core::chat::{ChatAnswer, ChatModelRequest, ModelInfo};
use throughline_core::ports::{ChatModel, ChatStream};
use throughline_provider_http::{
    Call, Draft, JSON, Origin, RequestedModel, STREAM, StreamReader, Transport, stream_answer,
    whole_answer,
};

/// The API that a model is asked through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// `/chat/completions`; OpenAI's own server takes a newer name of the limit of tokens.
    Completions { openai: bool },
    /// `/responses`, and whether the server keeps the conversation.
    Responses { keep: bool },
}

/// A model of a server.
pub(crate) struct OpenAiModel {
    pub(crate) info: ModelInfo,
    pub(crate) dialect: Dialect,
    pub(crate) transport: Arc<Transport>,
    pub(crate) requested: Arc<RequestedModel>,
}

impl OpenAiModel {
    fn origin(&self) -> Origin {
        self.transport.origin("chat", Some(Arc::clone(&self.requested)))
    }

    fn call(&self, request: &ChatModelRequest, streams: bool) -> Result<Call> {
        let call = match self.dialect {
            Dialect::Completions { openai } => {
                let body = completions::body(&self.info, request, openai, streams)?;
                Call::post("/chat/completions", &body, self.origin())?
            }
            Dialect::Responses { keep } => {
                let body = responses::body(&self.info, request, keep, streams)?;
                Call::post("/responses", &body, self.origin())?
            }
        };
        Ok(Call {
            accept: if streams { STREAM } else { JSON },
            // Reasoning models send nothing while they think.
            may_pause: self.info.thinks,
            ..call
        })
    }

    fn read(&self, value: &Value) -> Result<Draft> {
        match self.dialect {
            Dialect::Completions { .. } => Ok(completions::answer(value)),
            Dialect::Responses { keep } => responses::answer(value, keep, &self.origin()),
        }
    }

    fn reader(&self) -> Box<dyn StreamReader> {
        match self.dialect {
            Dialect::Completions { .. } => Box::new(completions::CompletionReader::default()),
            Dialect::Responses { keep } => {
                Box::new(responses::ResponseReader::new(self.origin(), keep))
            }
        }
    }
}

#[async_trait]
impl ChatModel for OpenAiModel {
    async fn complete(&self, request: &ChatModelRequest) -> Result<ChatAnswer> {
        let call = self.call(request, false)?;
        whole_answer(&self.transport, &call, |value| self.read(value)).await
    }

    async fn stream(&self, request: &ChatModelRequest) -> Result<ChatStream> {
        let call = self.call(request, true)?;
        stream_answer(&self.transport, &call, |value| self.read(value), self.reader()).await
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use throughline_provider_http::{ConnectionSettings, Step, read_event};

    use super::*;
    use crate::settings::OPENAI;

    /// Events of both APIs, whole and broken.
    const EVENTS: &[&str] = &[
        "[DONE]",
        r#"{"choices": [{"delta": {"content": "é"}}]}"#,
        r#"{"choices": [{"delta": {"tool_calls": [{"index": 9}]}, "finish_reason": "stop"}]}"#,
        r#"{"choices": {"a": 1}, "usage": []}"#,
        r#"{"type": "response.output_text.delta", "delta": "é"}"#,
        r#"{"type": "response.completed", "response": {"output": [{}]}}"#,
        r#"{"error": 7}"#,
        "[[",
        "7",
    ];

    proptest! {
        #[test]
        fn any_events_are_read_into_their_texts(
            events in prop::collection::vec(prop::sample::select(EVENTS), 0..12),
            through_responses in any::<bool>(),
        ) {
            let settings = ConnectionSettings::new("http://127.0.0.1/v1");
            let origin = Transport::new(&settings, &OPENAI).unwrap().origin("chat", None);
            let mut reader: Box<dyn StreamReader> = if through_responses {
                Box::new(responses::ResponseReader::new(origin.clone(), true))
            } else {
                Box::new(completions::CompletionReader::default())
            };
            let mut texts = String::new();
            for event in events {
                match read_event(&mut *reader, &origin, "message", event) {
                    Ok(Step::Text(text)) => texts.push_str(&text),
                    Ok(Step::End) | Err(_) => break,
                }
            }
            let draft = reader.finish();
            prop_assert!(draft.is_ok() || through_responses);
            if let Ok(draft) = draft {
                prop_assert_eq!(draft.text, texts);
            }
        }
    }
}
