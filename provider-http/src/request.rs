//! Parts of a request that every API takes.

use serde_json::Value;
use throughline_core::chat::{ChatMessage, ChatModelRequest, ModelInfo, ToolSpec};
use throughline_core::{Error, Result};

/// The temperature to send: none to models that take none.
#[must_use]
pub fn temperature(info: &ModelInfo, request: &ChatModelRequest) -> Option<f64> {
    request.temperature.filter(|_| info.temperature)
}

/// The limit of the answer to send: some servers refuse more than the model can write.
#[must_use]
pub fn max_tokens(info: &ModelInfo, request: &ChatModelRequest) -> Option<u32> {
    request.max_tokens.map(|limit| limit.min(info.max_output))
}

/// The JSON schema of a tool's parameters.
///
/// # Errors
/// `InvalidInput` where they are not JSON.
pub fn parameters(tool: &ToolSpec) -> Result<Value> {
    serde_json::from_str(&tool.parameters).map_err(|error| {
        let sentence = format!("the parameters of the tool `{}` are not JSON", tool.name);
        Error::invalid(sentence).with_source(error)
    })
}

/// The call that a tool's message is the result of.
///
/// # Errors
/// `InvalidInput` where it names none.
pub fn answered_call(message: &ChatMessage) -> Result<&str> {
    message
        .tool_call_id
        .as_deref()
        .ok_or_else(|| Error::invalid("a message of a tool must name the call that it answers"))
}
