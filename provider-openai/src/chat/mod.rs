//! Chat models: one trait over two APIs.

mod answer;
mod completions;
mod events;
mod responses;
mod tool_calls;

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;
use http::{HeaderMap, Method};
use serde::Serialize;
use throughline_core::chat::{ChatAnswer, ChatModelRequest, ModelInfo};
use throughline_core::ports::{ChatModel, ChatStream};
use throughline_core::{Error, Result};

use crate::errors::{Origin, RequestedModel};
use crate::transport::{Call, JSON, STREAM, Transport, collect, has_type, parse};

use answer::Draft;
use events::StreamReader;

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
        let (path, body) = match self.dialect {
            Dialect::Completions { openai } => {
                let body = completions::body(&self.info, request, openai, streams)?;
                ("/chat/completions", bytes(&body)?)
            }
            Dialect::Responses { keep } => {
                let body = responses::body(&self.info, request, keep, streams)?;
                ("/responses", bytes(&body)?)
            }
        };
        Ok(Call {
            method: Method::POST,
            path: path.to_owned(),
            headers: HeaderMap::new(),
            body,
            accept: if streams { STREAM } else { JSON },
            any_status: false,
            // Reasoning models send nothing while they think.
            may_pause: !self.info.temperature,
            origin: self.origin(),
        })
    }

    fn read(&self, body: &[u8]) -> Result<ChatAnswer> {
        let origin = self.origin();
        let value = parse(body, &origin)?;
        let draft = match self.dialect {
            Dialect::Completions { .. } => completions::answer(&value),
            Dialect::Responses { keep } => responses::answer(&value, keep, &origin)?,
        };
        draft.finish(&origin)
    }

    fn reader(&self) -> Box<dyn StreamReader> {
        match self.dialect {
            Dialect::Completions { .. } => {
                Box::new(completions::CompletionReader::new(self.origin()))
            }
            Dialect::Responses { keep } => {
                Box::new(responses::ResponseReader::new(self.origin(), keep))
            }
        }
    }
}

#[async_trait]
impl ChatModel for OpenAiModel {
    async fn complete(&self, request: &ChatModelRequest) -> Result<ChatAnswer> {
        let answer = self.transport.send(&self.call(request, false)?).await?;
        self.read(&collect(answer.body).await?)
    }

    async fn stream(&self, request: &ChatModelRequest) -> Result<ChatStream> {
        let answer = self.transport.send(&self.call(request, true)?).await?;
        if has_type(&answer.headers, JSON) {
            // The server does not stream: it has answered as a whole.
            let answer = self.read(&collect(answer.body).await?)?;
            return Ok(stream::iter(events::whole(answer).into_iter().map(Ok)).boxed());
        }
        let mut events = events::read(answer.body, self.reader(), self.origin());
        match events.next().await {
            Some(first) => {
                let first = first?;
                Ok(stream::once(async move { Ok(first) }).chain(events).boxed())
            }
            None => Err(self.origin().cut_off()),
        }
    }
}

fn bytes(body: &impl Serialize) -> Result<Bytes> {
    let body = serde_json::to_vec(body)
        .map_err(|error| Error::internal("a request cannot be written").with_source(error))?;
    Ok(body.into())
}
