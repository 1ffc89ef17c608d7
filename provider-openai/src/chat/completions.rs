//! The Chat Completions API: its requests, answers and streams.

use async_openai::types::chat::{
    ChatCompletionMessageToolCall, ChatCompletionMessageToolCalls,
    ChatCompletionRequestAssistantMessage, ChatCompletionRequestAssistantMessageContent,
    ChatCompletionRequestMessage, ChatCompletionRequestSystemMessage,
    ChatCompletionRequestSystemMessageContent, ChatCompletionRequestToolMessage,
    ChatCompletionRequestToolMessageContent, ChatCompletionRequestUserMessage,
    ChatCompletionRequestUserMessageContent, ChatCompletionStreamOptions, ChatCompletionTool,
    ChatCompletionTools, CreateChatCompletionRequest, FunctionCall, FunctionObject,
};
use serde_json::Value;
use throughline_core::chat::{
    ChatMessage, ChatModelRequest, ModelInfo, TokenUsage, ToolCall, ToolSpec,
};
use throughline_core::session::Role;
use throughline_core::{Error, Result};
use throughline_provider_http::json::{content, count, items, text};
use throughline_provider_http::{
    CONTENT_FILTER, Draft, END_TURN, MAX_TOKENS, Step, StreamReader, TOOL_USE, answered_call,
    max_tokens, parameters, temperature,
};

use super::tool_calls::ToolCalls;

/// The body of a request.
///
/// # Errors
/// `InvalidInput` for a thread, the result of no call, or parameters that are no JSON.
pub(super) fn body(
    info: &ModelInfo,
    request: &ChatModelRequest,
    openai: bool,
    streams: bool,
) -> Result<CreateChatCompletionRequest> {
    if request.thread.is_some() {
        return Err(Error::invalid(
            "threads need the Responses API: set `providers.openai.api` to \"responses\"",
        ));
    }
    let system = Some(request.system.clone()).filter(|system| !system.is_empty());
    let messages =
        system.map(system_message).into_iter().map(Ok).chain(request.messages.iter().map(message));
    let tools: Vec<_> = request.tools.iter().map(tool).collect::<Result<_>>()?;
    let mut body = CreateChatCompletionRequest {
        model: info.id.clone(),
        messages: messages.collect::<Result<_>>()?,
        temperature: temperature(info, request).map(|temperature| temperature as f32),
        tools: Some(tools).filter(|tools| !tools.is_empty()),
        ..CreateChatCompletionRequest::default()
    };
    limit(&mut body, max_tokens(info, request), openai || !info.temperature);
    if streams {
        body.stream = Some(true);
        body.stream_options = Some(ChatCompletionStreamOptions {
            include_usage: Some(true),
            include_obfuscation: None,
        });
    }
    Ok(body)
}

/// OpenAI's reasoning models take the newer name only, and older servers of others the older one.
#[expect(deprecated, reason = "`max_tokens` is what servers other than OpenAI's know")]
fn limit(body: &mut CreateChatCompletionRequest, limit: Option<u32>, newer: bool) {
    if newer {
        body.max_completion_tokens = limit;
    } else {
        body.max_tokens = limit;
    }
}

fn tool(tool: &ToolSpec) -> Result<ChatCompletionTools> {
    let function = FunctionObject {
        name: tool.name.clone(),
        description: Some(tool.description.clone()).filter(|text| !text.is_empty()),
        parameters: Some(parameters(tool)?),
        strict: None,
    };
    Ok(ChatCompletionTools::Function(ChatCompletionTool { function }))
}

fn system_message(text: String) -> ChatCompletionRequestMessage {
    ChatCompletionRequestMessage::System(ChatCompletionRequestSystemMessage {
        content: ChatCompletionRequestSystemMessageContent::Text(text),
        name: None,
    })
}

fn message(message: &ChatMessage) -> Result<ChatCompletionRequestMessage> {
    let text = message.content.clone();
    Ok(match message.role {
        Role::System => system_message(text),
        Role::User => ChatCompletionRequestMessage::User(ChatCompletionRequestUserMessage {
            content: ChatCompletionRequestUserMessageContent::Text(text),
            name: None,
        }),
        Role::Assistant => {
            let calls: Vec<_> = message.tool_calls.iter().map(call).collect();
            let text = Some(text).filter(|text| !text.is_empty() || calls.is_empty());
            ChatCompletionRequestMessage::Assistant(ChatCompletionRequestAssistantMessage {
                content: text.map(ChatCompletionRequestAssistantMessageContent::Text),
                tool_calls: Some(calls).filter(|calls| !calls.is_empty()),
                ..ChatCompletionRequestAssistantMessage::default()
            })
        }
        Role::Tool => ChatCompletionRequestMessage::Tool(ChatCompletionRequestToolMessage {
            content: ChatCompletionRequestToolMessageContent::Text(text),
            tool_call_id: answered_call(message)?.to_owned(),
        }),
    })
}

fn call(call: &ToolCall) -> ChatCompletionMessageToolCalls {
    let function = FunctionCall { name: call.name.clone(), arguments: call.arguments.clone() };
    let call = ChatCompletionMessageToolCall { id: call.id.clone(), function };
    ChatCompletionMessageToolCalls::Function(call)
}

/// Reads a whole answer.
pub(super) fn answer(value: &Value) -> Draft {
    let choice = &value["choices"][0];
    let message = &choice["message"];
    let mut calls = ToolCalls::default();
    calls.push(&message["tool_calls"]);
    Draft {
        text: content(&message["content"]),
        calls: calls.take(),
        refusal: text(&message["refusal"]).to_owned(),
        stop: stop_reason(&choice["finish_reason"]),
        usage: usage(&value["usage"]),
        thread: None,
    }
}

/// Unknown reasons are passed on as they are.
fn stop_reason(reason: &Value) -> Option<String> {
    let reason = match reason.as_str()? {
        "stop" => END_TURN,
        "length" => MAX_TOKENS,
        "tool_calls" | "function_call" => TOOL_USE,
        "content_filter" => CONTENT_FILTER,
        other => other,
    };
    Some(reason.to_owned())
}

fn usage(usage: &Value) -> Option<TokenUsage> {
    usage.is_object().then(|| TokenUsage {
        input: count(&usage["prompt_tokens"]),
        cached_input: count(&usage["prompt_tokens_details"]["cached_tokens"]),
        output: count(&usage["completion_tokens"]),
    })
}

/// Reads a stream of chunks.
#[derive(Default)]
pub(super) struct CompletionReader {
    draft: Draft,
    calls: ToolCalls,
    /// A reason to stop has come: what is still to come is the usage, and a mark that some servers leave out.
    has_stopped: bool,
}

impl StreamReader for CompletionReader {
    fn event(&mut self, _: &str, chunk: &Value) -> Result<Step> {
        self.draft.usage = usage(&chunk["usage"]).or(self.draft.usage);
        let mut piece = String::new();
        // The chunk of the usage has no choices.
        for choice in items(&chunk["choices"]).iter().take(1) {
            let delta = &choice["delta"];
            piece = content(&delta["content"]);
            self.draft.refusal.push_str(text(&delta["refusal"]));
            self.calls.push(&delta["tool_calls"]);
            if let Some(reason) = stop_reason(&choice["finish_reason"]) {
                self.draft.stop = Some(reason);
                self.has_stopped = true;
            }
        }
        self.draft.text.push_str(&piece);
        Ok(Step::Text(piece))
    }

    fn is_complete(&self) -> bool {
        self.has_stopped
    }

    fn finish(&mut self) -> Result<Draft> {
        let draft = std::mem::take(&mut self.draft);
        Ok(Draft { calls: self.calls.take(), ..draft })
    }
}
