//! Calls of tools that come in pieces.

use serde_json::Value;
use throughline_core::chat::ToolCall;
use throughline_provider_http::json::{items, raw, text};

/// Joins pieces of calls. A piece belongs to the call of its `index`; a piece of another id begins another call,
/// because some servers give every call the index 0, or none.
#[derive(Debug, Default)]
pub(crate) struct ToolCalls {
    calls: Vec<Joined>,
}

#[derive(Debug)]
struct Joined {
    index: u64,
    call: ToolCall,
}

impl ToolCalls {
    /// Takes the `tool_calls` of a delta, or of a whole message.
    pub(crate) fn push(&mut self, pieces: &Value) {
        for (at, piece) in items(pieces).iter().enumerate() {
            let index = piece["index"].as_u64().unwrap_or(at as u64);
            let (id, function) = (text(&piece["id"]), &piece["function"]);
            let same = |joined: &&mut Joined| joined.index == index;
            let begun = self.calls.iter_mut().rev().find(same);
            let begun = begun.filter(|begun| id.is_empty() || begun.call.id == id);
            let call = match begun {
                Some(begun) => &mut begun.call,
                None => {
                    let call = ToolCall {
                        id: id.to_owned(),
                        name: String::new(),
                        arguments: String::new(),
                    };
                    self.calls.push(Joined { index, call });
                    let Some(begun) = self.calls.last_mut() else { continue };
                    &mut begun.call
                }
            };
            let name = text(&function["name"]);
            // Some servers repeat the whole name with each piece.
            if call.name != name {
                call.name.push_str(name);
            }
            call.arguments.push_str(&raw(&function["arguments"]));
        }
    }

    /// The calls, in the order in which they began.
    pub(crate) fn take(&mut self) -> Vec<ToolCall> {
        std::mem::take(&mut self.calls).into_iter().map(|joined| joined.call).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn joined(deltas: &[Value]) -> Vec<(String, String, String)> {
        let mut calls = ToolCalls::default();
        for delta in deltas {
            calls.push(delta);
        }
        calls.take().into_iter().map(|call| (call.id, call.name, call.arguments)).collect()
    }

    fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
        (id.to_owned(), name.to_owned(), arguments.to_owned())
    }

    #[test]
    fn joins_pieces_by_index() {
        let deltas = [
            json!([{"index": 0, "id": "a", "type": "function", "function": {"name": "look", "arguments": ""}}]),
            json!([{"index": 0, "function": {"arguments": "{\"at\""}}]),
            json!([{"index": 1, "id": "b", "function": {"name": "wait", "arguments": "{"}}]),
            json!([{"index": 0, "function": {"arguments": ": 1}"}},
                   {"index": 1, "id": "b", "function": {"arguments": "}"}}]),
            json!(null),
        ];
        assert_eq!(joined(&deltas), [call("a", "look", "{\"at\": 1}"), call("b", "wait", "{}")]);
    }

    #[test]
    fn separates_calls_of_one_index_by_id() {
        let whole = |id: &str, name: &str| json!([{"index": 0, "id": id, "function": {"name": name, "arguments": {"at": 1}}}]);
        let expected = [call("a", "look", "{\"at\":1}"), call("b", "wait", "{\"at\":1}")];
        assert_eq!(joined(&[whole("a", "look"), whole("b", "wait")]), expected);
    }

    #[test]
    fn takes_whole_calls_without_an_index() {
        let calls = json!([
            {"id": "a", "function": {"name": "look", "arguments": "{broken"}},
            {"function": {"name": "wait"}},
        ]);
        assert_eq!(joined(&[calls]), [call("a", "look", "{broken"), call("", "wait", "")]);
    }
}
