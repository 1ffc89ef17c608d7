//! The Responses API: its requests, answers and streams.

use async_openai::types::responses::{
    CreateResponse, EasyInputContent, EasyInputMessage, FunctionCallOutput,
    FunctionCallOutputItemParam, FunctionTool, FunctionToolCall, InputItem, InputParam, Item,
    MessageType, Role as WireRole, Tool,
};
use serde_json::Value;
use throughline_core::Result;
use throughline_core::chat::{
    ChatMessage, ChatModelRequest, ModelInfo, TokenUsage, ToolCall, ToolSpec,
};
use throughline_core::session::Role;
use throughline_provider_http::json::{count, items, raw, text};
use throughline_provider_http::{
    CONTENT_FILTER, Draft, END_TURN, MAX_TOKENS, Origin, Step, StreamReader, answered_call,
    max_tokens, parameters, temperature,
};

/// A lower limit is refused.
const MIN_OUTPUT_TOKENS: u32 = 16;

/// The body of a request.
///
/// # Errors
/// `InvalidInput` for the result of no call, or parameters that are no JSON.
pub(super) fn body(
    info: &ModelInfo,
    request: &ChatModelRequest,
    keep: bool,
    streams: bool,
) -> Result<CreateResponse> {
    let mut input = Vec::new();
    for message in &request.messages {
        push_message(&mut input, message)?;
    }
    let tools: Vec<_> = request.tools.iter().map(tool).collect::<Result<_>>()?;
    Ok(CreateResponse {
        model: Some(info.id.clone()),
        instructions: Some(request.system.clone()).filter(|system| !system.is_empty()),
        input: InputParam::Items(input),
        previous_response_id: request.thread.clone(),
        store: Some(keep),
        temperature: temperature(info, request).map(|temperature| temperature as f32),
        max_output_tokens: max_tokens(info, request).map(|limit| limit.max(MIN_OUTPUT_TOKENS)),
        tools: Some(tools).filter(|tools| !tools.is_empty()),
        stream: streams.then_some(true),
        ..CreateResponse::default()
    })
}

fn tool(tool: &ToolSpec) -> Result<Tool> {
    Ok(Tool::Function(FunctionTool {
        name: tool.name.clone(),
        parameters: Some(parameters(tool)?),
        // The default is strict, which takes few schemas.
        strict: Some(false),
        description: Some(tool.description.clone()).filter(|text| !text.is_empty()),
        ..FunctionTool::default()
    }))
}

fn push_message(input: &mut Vec<InputItem>, message: &ChatMessage) -> Result<()> {
    if message.role == Role::Tool {
        let output = FunctionCallOutputItemParam {
            call_id: Some(answered_call(message)?.to_owned()),
            output: FunctionCallOutput::Text(message.content.clone()),
            id: None,
            status: None,
            name: None,
            namespace: None,
            caller: None,
        };
        input.push(InputItem::Item(Item::FunctionCallOutput(output)));
        return Ok(());
    }
    if !message.content.is_empty() || message.tool_calls.is_empty() {
        input.push(InputItem::EasyMessage(EasyInputMessage {
            r#type: MessageType::Message,
            role: match message.role {
                Role::System => WireRole::System,
                Role::Assistant => WireRole::Assistant,
                Role::User | Role::Tool => WireRole::User,
            },
            content: EasyInputContent::Text(message.content.clone()),
            phase: None,
        }));
    }
    input.extend(message.tool_calls.iter().map(|call| {
        InputItem::Item(Item::FunctionCall(FunctionToolCall {
            call_id: call.id.clone(),
            name: call.name.clone(),
            arguments: call.arguments.clone(),
            ..FunctionToolCall::default()
        }))
    }));
    Ok(())
}

/// Reads a whole answer.
pub(super) fn answer(response: &Value, keep: bool, origin: &Origin) -> Result<Draft> {
    if response["status"] == "failed" {
        return Err(origin.reported(None, &response["error"]));
    }
    let mut draft = Draft {
        stop: stop_reason(response),
        usage: usage(&response["usage"]),
        thread: response["id"].as_str().filter(|_| keep).map(str::to_owned),
        ..Draft::default()
    };
    for item in items(&response["output"]) {
        match text(&item["type"]) {
            "function_call" => draft.calls.push(call(item)),
            "message" => {
                for part in items(&item["content"]) {
                    draft.text.push_str(text(&part["text"]));
                    draft.refusal.push_str(text(&part["refusal"]));
                }
            }
            // Reasoning, and whatever else there will be.
            _ => {}
        }
    }
    Ok(draft)
}

fn call(item: &Value) -> ToolCall {
    ToolCall {
        id: text(&item["call_id"]).to_owned(),
        name: text(&item["name"]).to_owned(),
        arguments: raw(&item["arguments"]),
    }
}

fn stop_reason(response: &Value) -> Option<String> {
    let reason = match response["status"].as_str()? {
        "completed" => END_TURN,
        "incomplete" => match response["incomplete_details"]["reason"].as_str()? {
            "max_output_tokens" => MAX_TOKENS,
            "content_filter" => CONTENT_FILTER,
            other => other,
        },
        other => other,
    };
    Some(reason.to_owned())
}

fn usage(usage: &Value) -> Option<TokenUsage> {
    usage.is_object().then(|| TokenUsage {
        input: count(&usage["input_tokens"]),
        cached_input: count(&usage["input_tokens_details"]["cached_tokens"]),
        output: count(&usage["output_tokens"]),
    })
}

/// Reads a stream of events. The last one has the whole answer; servers that leave its output out have sent
/// it before.
pub(super) struct ResponseReader {
    text: String,
    refusal: String,
    calls: Vec<ToolCall>,
    last: Option<Draft>,
    keep: bool,
    origin: Origin,
}

impl ResponseReader {
    pub(super) fn new(origin: Origin, keep: bool) -> Self {
        let (text, refusal) = (String::new(), String::new());
        Self { text, refusal, calls: Vec::new(), last: None, keep, origin }
    }
}

impl StreamReader for ResponseReader {
    fn event(&mut self, name: &str, event: &Value) -> Result<Step> {
        let kind = event["type"].as_str().unwrap_or(name);
        match kind {
            "response.output_text.delta" => {
                let piece = text(&event["delta"]);
                self.text.push_str(piece);
                return Ok(Step::Text(piece.to_owned()));
            }
            "response.refusal.delta" => self.refusal.push_str(text(&event["delta"])),
            "response.output_item.done" if event["item"]["type"] == "function_call" => {
                self.calls.push(call(&event["item"]));
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                self.last = Some(answer(&event["response"], self.keep, &self.origin)?);
                return Ok(Step::End);
            }
            // Its message and code stand beside its type.
            "error" => return Err(self.origin.reported(None, event)),
            _ => {}
        }
        Ok(Step::Text(String::new()))
    }

    fn is_complete(&self) -> bool {
        self.last.is_some()
    }

    fn finish(&mut self) -> Result<Draft> {
        let mut draft = self.last.take().ok_or_else(|| self.origin.cut_off())?;
        if !self.text.is_empty() {
            draft.text = std::mem::take(&mut self.text);
        }
        if draft.calls.is_empty() {
            draft.calls = std::mem::take(&mut self.calls);
        }
        draft.refusal.push_str(&self.refusal);
        Ok(draft)
    }
}
