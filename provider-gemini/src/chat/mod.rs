//! Chat models: `generateContent`, the same as a stream, and `countTokens`.

mod answer;
mod call_id;
mod request;

use std::sync::Arc;

use async_trait::async_trait;
use serde::Serialize;
use serde_json::Value;
use throughline_core::Result;
use throughline_core::chat::{ChatAnswer, ChatModelRequest, ModelInfo};
use throughline_core::ports::{ChatModel, ChatStream};
use throughline_provider_http::json::count;
use throughline_provider_http::{
    Call, Draft, Origin, RequestedModel, STREAM, StreamReader as _, Transport, stream_answer,
    whole_answer,
};

use crate::provider::path;

use answer::AnswerReader;
use request::GenerateContent;

/// A model of a server.
pub(crate) struct GeminiModel {
    info: ModelInfo,
    transport: Arc<Transport>,
    requested: Arc<RequestedModel>,
}

/// What `countTokens` takes: a request as `generateContent` has it, which names its model.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CountTokens {
    generate_content_request: GenerateContent,
}

impl GeminiModel {
    pub(crate) fn new(info: ModelInfo, models: &[ModelInfo], transport: Arc<Transport>) -> Self {
        let requested = RequestedModel::of(&info, models);
        Self { info, transport, requested }
    }

    pub(crate) async fn count_tokens(&self, request: &ChatModelRequest) -> Result<u64> {
        let generate_content_request = GenerateContent::of(&self.info, request)?.named(&self.info);
        let body = CountTokens { generate_content_request };
        let origin = self.origin("count_tokens");
        let call = Call::post(path(&self.info.id, "countTokens")?, &body, origin)?;
        // A count of zero is left out, as every empty field.
        Ok(count(&self.transport.json(&call).await?["totalTokens"]))
    }

    fn origin(&self, operation: &'static str) -> Origin {
        self.transport.origin(operation, Some(Arc::clone(&self.requested)))
    }

    fn call(&self, request: &ChatModelRequest, method: &str) -> Result<Call> {
        let body = GenerateContent::of(&self.info, request)?;
        Call::post(path(&self.info.id, method)?, &body, self.origin("chat"))
    }
}

fn read(answer: &Value) -> Result<Draft> {
    let mut reader = AnswerReader::default();
    reader.take(answer);
    reader.finish()
}

#[async_trait]
impl ChatModel for GeminiModel {
    async fn complete(&self, request: &ChatModelRequest) -> Result<ChatAnswer> {
        let call = self.call(request, "generateContent")?;
        whole_answer(&self.transport, &call, read).await
    }

    async fn stream(&self, request: &ChatModelRequest) -> Result<ChatStream> {
        let call = self.call(request, "streamGenerateContent")?;
        let path = format!("{}?alt=sse", call.path);
        let call = Call { path, accept: STREAM, may_pause: self.info.thinks, ..call };
        let reader = Box::new(AnswerReader::default());
        stream_answer(&self.transport, &call, read, reader).await
    }
}
