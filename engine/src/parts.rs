//! The text of messages that OpenAI and Anthropic write in parts and calls of tools.

use serde_json::Value;

/// The text of a content in parts, as OpenAI and Anthropic write it. What has no text, such as a picture, is named by its
/// type.
#[must_use]
pub fn text_of_parts(parts: &[Value]) -> String {
    let text = |part: &Value| {
        let part = match part {
            Value::String(text) => return text.clone(),
            part => part,
        };
        match (part.get("text").and_then(Value::as_str), part.get("type").and_then(Value::as_str)) {
            (Some(text), _) => text.to_owned(),
            (None, Some(kind)) => {
                format!("[{}]", kind.trim_start_matches("input_").trim_end_matches("_url"))
            }
            (None, None) => String::new(),
        }
    };
    let texts: Vec<String> = parts.iter().map(text).filter(|text| !text.is_empty()).collect();
    texts.join("\n")
}

/// The calls of tools as lines such as `called lookup({"id":7})`.
#[must_use]
pub fn text_of_calls(calls: &[Value]) -> String {
    let line = |call: &Value| {
        let function = call.get("function")?;
        let name = function.get("name")?.as_str()?;
        let arguments = function.get("arguments").and_then(Value::as_str).unwrap_or_default();
        Some(format!("called {name}({arguments})"))
    };
    calls.iter().filter_map(line).collect::<Vec<_>>().join("\n")
}
