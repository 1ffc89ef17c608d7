//! Requests: contents, tools and the configuration of the answer.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::value::{RawValue, to_raw_value};
use serde_json::{Value, json};
use throughline_core::chat::{ChatMessage, ChatModelRequest, ModelInfo, ToolCall, ToolSpec};
use throughline_core::session::Role;
use throughline_core::{Error, Result};
use throughline_provider_http::{answered_call, max_tokens, parameters, temperature};

use super::call_id;
use crate::catalogue::requires_signatures;
use crate::provider::resource;
use crate::schema;

/// What Google documents for calls that another model made, and that therefore have no signature.
const UNSIGNED: &str = "skip_thought_signature_validator";

/// The body of a request.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct GenerateContent {
    /// Where the path does not name the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    system_instruction: Option<Content>,
    contents: Vec<Content>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Tools>,
    #[serde(skip_serializing_if = "GenerationConfig::is_empty")]
    generation_config: GenerationConfig,
}

#[derive(Debug, Serialize)]
struct Content {
    #[serde(skip_serializing_if = "Option::is_none")]
    role: Option<&'static str>,
    parts: Vec<Part>,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Part {
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_call: Option<FunctionCall>,
    #[serde(skip_serializing_if = "Option::is_none")]
    function_response: Option<FunctionResponse>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thought_signature: Option<String>,
}

#[derive(Debug, Serialize)]
struct FunctionCall {
    id: String,
    name: String,
    args: Box<RawValue>,
}

#[derive(Debug, Serialize)]
struct FunctionResponse {
    id: String,
    name: String,
    response: Box<RawValue>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Tools {
    function_declarations: Vec<FunctionDeclaration>,
}

#[derive(Debug, Serialize)]
struct FunctionDeclaration {
    name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    description: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Value>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerationConfig {
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_output_tokens: Option<u32>,
}

impl GenerationConfig {
    fn is_empty(&self) -> bool {
        self.temperature.is_none() && self.max_output_tokens.is_none()
    }
}

impl GenerateContent {
    /// # Errors
    /// `InvalidInput` for a thread, the result of no call, or parameters that are no JSON.
    pub(super) fn of(info: &ModelInfo, request: &ChatModelRequest) -> Result<Self> {
        if request.thread.is_some() {
            return Err(Error::invalid("Gemini keeps no threads: send the whole conversation"));
        }
        let system = Some(&request.system).filter(|system| !system.is_empty());
        let functions: Vec<_> = request.tools.iter().map(declaration).collect::<Result<_>>()?;
        let tools = Some(functions).filter(|functions| !functions.is_empty());
        Ok(Self {
            model: None,
            system_instruction: system
                .map(|system| Content { role: None, parts: vec![Part::text(system)] }),
            contents: contents(info, &request.messages)?,
            tools: tools
                .map(|function_declarations| Tools { function_declarations })
                .into_iter()
                .collect(),
            generation_config: GenerationConfig {
                temperature: temperature(info, request),
                max_output_tokens: max_tokens(info, request),
            },
        })
    }

    /// The same, with its model.
    pub(super) fn named(self, info: &ModelInfo) -> Self {
        Self { model: Some(resource(&info.id)), ..self }
    }
}

impl Part {
    fn text(text: &str) -> Self {
        Self { text: Some(text.to_owned()), ..Self::default() }
    }
}

fn declaration(tool: &ToolSpec) -> Result<FunctionDeclaration> {
    Ok(FunctionDeclaration {
        name: tool.name.clone(),
        description: tool.description.clone(),
        parameters: schema::parameters(&parameters(tool)?),
    })
}

fn contents(info: &ModelInfo, messages: &[ChatMessage]) -> Result<Vec<Content>> {
    let mut contents: Vec<Content> = Vec::new();
    // Results name the function again.
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    for message in messages {
        if message.role == Role::Tool {
            let id = answered_call(message)?;
            let name = names.get(id).ok_or_else(|| {
                Error::invalid("a message of a tool answers a call that no message before it makes")
            })?;
            let part = result(id, name, &message.content)?;
            // The results of the calls of one message have to be one content.
            match contents.last_mut() {
                Some(last) if last.parts.iter().all(|part| part.function_response.is_some()) => {
                    last.parts.push(part);
                }
                _ => contents.push(Content { role: Some("user"), parts: vec![part] }),
            }
            continue;
        }
        let mut parts = Vec::new();
        // Empty texts are refused.
        if !message.content.is_empty() {
            parts.push(Part::text(&message.content));
        }
        for (at, made) in message.tool_calls.iter().enumerate() {
            names.insert(&made.id, &made.name);
            parts.push(call(made, at == 0 && requires_signatures(&info.id))?);
        }
        // Instructions in the middle of a conversation are no role of their own.
        let role = if message.role == Role::Assistant { "model" } else { "user" };
        if !parts.is_empty() {
            contents.push(Content { role: Some(role), parts });
        }
    }
    Ok(contents)
}

/// A call of the model. Of several at once, the first has to be signed.
fn call(call: &ToolCall, signed: bool) -> Result<Part> {
    let (id, signature) = call_id::parts(&call.id);
    let args = match call.arguments.trim() {
        "" => raw(&json!({}))?,
        text => object(text).map_or_else(|| raw(&json!({"arguments": text})), Ok)?,
    };
    Ok(Part {
        function_call: Some(FunctionCall { id: id.to_owned(), name: call.name.clone(), args }),
        thought_signature: signature.or(signed.then_some(UNSIGNED)).map(str::to_owned),
        ..Part::default()
    })
}

fn result(id: &str, name: &str, content: &str) -> Result<Part> {
    let (id, _) = call_id::parts(id);
    let response = object(content).map_or_else(|| raw(&json!({"result": content})), Ok)?;
    let (id, name) = (id.to_owned(), name.to_owned());
    let function_response = Some(FunctionResponse { id, name, response });
    Ok(Part { function_response, ..Part::default() })
}

/// A text that is a JSON object, byte by byte.
fn object(text: &str) -> Option<Box<RawValue>> {
    let value = RawValue::from_string(text.to_owned()).ok()?;
    value.get().starts_with('{').then_some(value)
}

fn raw(value: &Value) -> Result<Box<RawValue>> {
    to_raw_value(value)
        .map_err(|error| Error::internal("a request cannot be written").with_source(error))
}

#[cfg(test)]
mod tests {
    use throughline_provider_http::catalogue;

    use super::*;
    use crate::catalogue::BUILT_IN;

    fn sent(model: &str, messages: &[ChatMessage]) -> Value {
        let models = catalogue(Vec::new(), BUILT_IN);
        let info = models.iter().find(|info| info.id == model).unwrap();
        serde_json::to_value(contents(info, messages).unwrap()).unwrap()
    }

    fn made(id: &str, arguments: &str) -> ToolCall {
        ToolCall { id: id.to_owned(), name: "look".to_owned(), arguments: arguments.to_owned() }
    }

    fn calls(calls: &[ToolCall]) -> ChatMessage {
        ChatMessage { tool_calls: calls.to_vec(), ..ChatMessage::text(Role::Assistant, "") }
    }

    #[test]
    fn results_of_one_message_are_one_content() {
        let (a, b) = (made("a;thoughtSignature=Sig=", "{\"at\": 1.0}"), made("b", ""));
        let messages = [
            ChatMessage::text(Role::User, "Look."),
            calls(&[a.clone(), b.clone()]),
            ChatMessage::result_of(&a, "{\"id\": 123456789012345678901234}"),
            ChatMessage::result_of(&b, "nothing"),
            ChatMessage::text(Role::User, "And?"),
        ];
        let text = serde_json::to_string(&sent("gemini-4-neon", &messages)).unwrap();
        let expected = json!([
            {"role": "user", "parts": [{"text": "Look."}]},
            {"role": "model", "parts": [
                {"functionCall": {"id": "a", "name": "look", "args": {"at": 1.0}}, "thoughtSignature": "Sig="},
                {"functionCall": {"id": "b", "name": "look", "args": {}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "a", "name": "look", "response": {"id": 123456789012345678901234_f64}}},
                {"functionResponse": {"id": "b", "name": "look", "response": {"result": "nothing"}}},
            ]},
            {"role": "user", "parts": [{"text": "And?"}]},
        ]);
        assert_eq!(text, expected.to_string());
        let bytes = serde_json::to_string(&object("{\"id\": 123456789012345678901234}")).unwrap();
        assert!(bytes.contains("123456789012345678901234"), "objects are sent byte by byte");
    }

    #[test]
    fn calls_without_a_signature_are_marked_where_one_is_required() {
        let messages = [calls(&[made("a", "[1]"), made("b", "{broken")])];
        for (model, marked) in [("gemini-4-neon", json!(UNSIGNED)), ("gemini-2.5-pro", Value::Null)]
        {
            let contents = sent(model, &messages);
            let parts = &contents[0]["parts"];
            assert_eq!(parts[0]["thoughtSignature"], marked, "{model}");
            assert_eq!(parts[1]["thoughtSignature"], Value::Null, "{model}");
            assert_eq!(parts[0]["functionCall"]["args"], json!({"arguments": "[1]"}));
            assert_eq!(parts[1]["functionCall"]["args"], json!({"arguments": "{broken"}));
        }
    }

    #[test]
    fn refuses_results_without_their_calls() {
        let info = &catalogue(Vec::new(), BUILT_IN)[0];
        let orphan = ChatMessage::result_of(&made("a", ""), "nothing");
        let nameless = ChatMessage { tool_call_id: None, ..orphan.clone() };
        for (message, part) in [(orphan, "no message before it"), (nameless, "must name the call")]
        {
            let error = contents(info, &[message]).unwrap_err();
            assert!(error.message().contains(part), "{error}");
        }
    }

    #[test]
    fn empty_messages_are_left_out() {
        let messages =
            [ChatMessage::text(Role::User, ""), ChatMessage::text(Role::System, "Be brief.")];
        let expected = json!([{"role": "user", "parts": [{"text": "Be brief."}]}]);
        assert_eq!(sent("gemini-4-neon", &messages), expected);
    }
}
