//! Reading of JSON that may lack what it should have, or have it in another form.

use serde_json::Value;

/// A text; empty where there is none.
#[must_use]
pub fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// The text of a message: a string, nothing, or parts of which some are text.
#[must_use]
pub fn content(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().map(|part| text(&part["text"])).collect(),
        _ => String::new(),
    }
}

/// A value that should be a text that holds JSON, and that some servers send as JSON itself.
#[must_use]
pub fn raw(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A count; 0 where there is none. Some servers write whole numbers as `12.0`.
#[must_use]
pub fn count(value: &Value) -> u64 {
    let whole = || value.as_f64().filter(|count| *count >= 0.0).map(|count| count as u64);
    value.as_u64().or_else(whole).unwrap_or(0)
}

/// The items of a list; none where it is no list.
#[must_use]
pub fn items(value: &Value) -> &[Value] {
    value.as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn reads_what_is_there() {
        for (value, expected) in [
            (json!("Hi."), "Hi."),
            (json!(null), ""),
            (json!(7), ""),
            (json!([{"type": "text", "text": "a"}, {"type": "image_url"}, {"text": "b"}]), "ab"),
        ] {
            assert_eq!(content(&value), expected, "{value}");
        }
        assert_eq!(raw(&json!("{\"a\": tru")), "{\"a\": tru");
        assert_eq!(raw(&json!({"a": true})), "{\"a\":true}");
        let counts = [json!(12), json!(12.0), json!(-1), json!("12"), json!(null)];
        assert_eq!(counts.map(|value| count(&value)), [12, 12, 0, 0, 0]);
    }
}
