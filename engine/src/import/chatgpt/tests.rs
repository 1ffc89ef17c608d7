//! Exports as ChatGPT makes them, odd ones among them.

use std::io::{Cursor, Write};

use serde_json::{Value, json};
use throughline_core::session::Role;

use crate::import::{ImportFile, Problem, Reading, parse};

use super::*;

fn read(bytes: &[u8]) -> Result<ImportFile, Problem> {
    let default = SessionId::new("file").unwrap();
    parse(Cursor::new(bytes), &Reading::default(), &default)
}

fn text(role: &str, parts: &[&str]) -> Value {
    json!({ "author": { "role": role, "name": null, "metadata": {} }, "weight": 1.0,
            "content": { "content_type": "text", "parts": parts } })
}

/// A node whose message has its own id and the time `at`.
fn node(id: &str, parent: &str, at: f64, mut message: Value) -> (String, Value) {
    message["id"] = format!("m-{id}").into();
    message["create_time"] = if at > 0.0 { at.into() } else { Value::Null };
    (id.to_owned(), json!({ "id": id, "message": message, "parent": parent, "children": [] }))
}

fn conversation(id: &str, current: Value, nodes: Vec<(String, Value)>) -> Value {
    let mapping: serde_json::Map<String, Value> = nodes.into_iter().collect();
    json!({ "title": "t", "create_time": 100.5, "update_time": 200.0, "moderation_results": [],
            "mapping": mapping, "current_node": current, "conversation_id": id })
}

fn contents(file: &ImportFile) -> Vec<(Role, &str)> {
    let messages = file.sessions.iter().flat_map(|session| &session.messages);
    messages.map(|message| (message.role, message.content.as_str())).collect()
}

fn branches() -> Value {
    conversation(
        "c1",
        "e".into(),
        vec![
            (
                "root".into(),
                json!({ "id": "root", "message": null, "parent": null, "children": ["a"] }),
            ),
            node("a", "root", 0.0, text("system", &[""])),
            node("b", "a", 1_700_000_000.25, text("user", &["Where is the depot?", "In town?"])),
            node("c", "b", 1_700_000_001.0, text("assistant", &["In Porto."])),
            node("d", "b", 0.0, text("assistant", &["In Braga."])),
            node("e", "d", 1_700_000_009.0, text("user", &["Thanks."])),
        ],
    )
}

#[test]
fn the_branch_that_was_kept_is_read() {
    let file = read(json!([branches()]).to_string().as_bytes()).unwrap();
    assert_eq!(file.sessions[0].id.as_str(), "chatgpt:c1");
    let expected = [
        (Role::User, "Where is the depot?\nIn town?"),
        (Role::Assistant, "In Braga."),
        (Role::User, "Thanks."),
    ];
    assert_eq!(contents(&file), expected);
    let messages = &file.sessions[0].messages;
    let at = |index: usize| messages[index].created_at.unwrap().to_rfc3339();
    assert_eq!(at(0), "2023-11-14T22:13:20.25Z");
    assert_eq!(at(1), at(0), "a missing time is that of the message before");
    assert_eq!(messages[1].external_id.as_ref().unwrap().as_str(), "m-d");
    assert_eq!(file.skipped["message on another branch"], 1);
    // One conversation alone, after a byte order mark.
    let alone = [b"\xef\xbb\xbf ".as_slice(), branches().to_string().as_bytes()].concat();
    assert_eq!(read(&alone).unwrap(), file);
}

/// A message, what it becomes, and why it (or a part of it) becomes nothing.
type Case = (Value, Option<(Role, &'static str)>, &'static str);

#[test]
fn what_is_no_message_is_counted() {
    let hidden = |message: Value| {
        let mut message = message;
        message["metadata"] = json!({ "is_visually_hidden_from_conversation": true });
        message
    };
    let content = |role: &str, content: Value| json!({ "author": { "role": role, "name": "python" }, "content": content });
    let picture = json!({ "content_type": "image_asset_pointer", "asset_pointer": "file://x" });
    let speech = json!({ "content_type": "audio_transcription", "text": "Say it aloud." });
    let sound = json!({ "content_type": "audio_asset_pointer" });
    let table: Vec<Case> = vec![
        (hidden(text("user", &["about me"])), None, "hidden"),
        (
            json!({ "author": null, "content": { "content_type": "text", "parts": ["x"] } }),
            None,
            "message without an author",
        ),
        (json!({ "content": null }), None, "message without an author"),
        (text("critic", &["x"]), None, "message of an unknown role"),
        (text("assistant", &[]), None, "message without text"),
        (
            content(
                "tool",
                json!({ "content_type": "tether_browsing_display", "result": "", "summary": null }),
            ),
            None,
            "message without text",
        ),
        (
            content("assistant", json!({ "content_type": "thoughts", "thoughts": [] })),
            None,
            "reasoning",
        ),
        (
            content(
                "user",
                json!({ "content_type": "multimodal_text", "parts": [picture, "What is this?"] }),
            ),
            Some((Role::User, "What is this?")),
            "image",
        ),
        (
            content("user", json!({ "content_type": "multimodal_text", "parts": [speech, sound] })),
            Some((Role::User, "Say it aloud.")),
            "audio, video or file",
        ),
        (
            content(
                "assistant",
                json!({ "content_type": "code", "language": "python", "text": "1 + 1" }),
            ),
            Some((Role::Assistant, "```python\n1 + 1\n```")),
            "",
        ),
        (
            content("tool", json!({ "content_type": "execution_output", "text": "2\0" })),
            Some((Role::Tool, "2\u{fffd}")),
            "",
        ),
        (text("user", &[&"x".repeat((1 << 20) + 1)]), None, "message over 1 MiB"),
        (
            json!({ "author": { "role": "tool" }, "weight": 0, "content": { "content_type": "text", "parts": ["x"] } }),
            None,
            "hidden",
        ),
    ];
    for (message, expected, reason) in table {
        let shown: String = message.to_string().chars().take(120).collect();
        let one = conversation("c", "a".into(), vec![node("a", "root", 0.0, message)]);
        let file = read(json!([null, one]).to_string().as_bytes()).unwrap();
        assert_eq!(contents(&file), Vec::from_iter(expected), "{shown}");
        let counted: Vec<&str> =
            file.skipped.keys().copied().filter(|key| !key.is_empty()).collect();
        assert!(reason.is_empty() || counted.contains(&reason), "{shown}: {counted:?}");
        let name = file.sessions.first().and_then(|session| session.messages[0].name.as_deref());
        assert_eq!(
            name,
            expected.filter(|(role, _)| *role == Role::Tool).map(|_| "python"),
            "{shown}"
        );
    }
}

#[test]
fn malformed_trees_terminate() {
    let pair = |parent: &str| {
        vec![
            node("a", parent, 1.0, text("user", &["first"])),
            node("b", "a", 2.0, text("assistant", &["second"])),
        ]
    };
    let table = [
        (json!("b"), pair("b"), 2, "a cycle"),
        (json!("nowhere"), pair("root"), 2, "a current node that is gone"),
        (Value::Null, pair("gone"), 2, "no current node"),
        (Value::Null, Vec::new(), 0, "an empty conversation"),
    ];
    for (current, nodes, expected, name) in table {
        let file = read(json!([conversation("c", current, nodes)]).to_string().as_bytes()).unwrap();
        assert_eq!(contents(&file).len(), expected, "{name}");
        assert_eq!(file.skipped.contains_key("empty conversation"), expected == 0, "{name}");
    }
    let linked = json!({ "a": { "children": ["b"], "parent": null, "message": null }, "b": null });
    let odd = json!([{ "id": "c", "mapping": linked }, { "id": "d", "mapping": null }]);
    assert_eq!(read(odd.to_string().as_bytes()).unwrap().skipped["empty conversation"], 2);
}

#[test]
fn broken_exports_name_line_and_field() {
    let good = branches().to_string();
    let table: [(Vec<u8>, &str, &str); 5] = [
        (
            format!("[{good},\n{{\"id\":\"x\",\"mapping\":{{\"a\":{{\"parent\":7}}}}}}]")
                .into_bytes(),
            "[1].mapping.a.parent",
            "string",
        ),
        (format!("[{good},\n{{\"mapping\":{{}}}}]").into_bytes(), "", "conversation_id"),
        (format!("[{good},\n{{\"id\":\"x\"").into_bytes(), "[1]", "EOF"),
        ([good.as_bytes(), b"\n{"].concat(), "", "trailing"),
        ([b"[".as_slice(), good.as_bytes(), b",\n\"\xe9\"]"].concat(), "[1]", ""),
    ];
    for (bytes, field, message) in table {
        let problem = read(&bytes).unwrap_err();
        assert_eq!(problem.line, Some(2), "{problem:?}");
        assert!(problem.field.starts_with(field), "{problem:?}");
        assert!(problem.message.contains(message), "{problem:?}");
    }
}

#[test]
fn a_zip_file_is_read_as_it_came() {
    let zipped = |files: &[(&str, String)]| {
        let mut writer = zip::ZipWriter::new(Cursor::new(Vec::new()));
        for (name, content) in files {
            writer.start_file(*name, zip::write::SimpleFileOptions::default()).unwrap();
            writer.write_all(content.as_bytes()).unwrap();
        }
        writer.finish().unwrap().into_inner()
    };
    let second = conversation("c2", "a".into(), vec![node("a", "", 1.0, text("user", &["later"]))]);
    let files = [
        ("export/conversations-001.json", json!([second, branches()]).to_string()),
        ("chat.html", "<html>".to_owned()),
        ("export/conversations-000.json", json!([branches()]).to_string()),
        ("shared_conversations.json", "no json".to_owned()),
    ];
    let file = read(&zipped(&files)).unwrap();
    let ids: Vec<&str> = file.sessions.iter().map(|session| session.id.as_str()).collect();
    assert_eq!(ids, ["chatgpt:c1", "chatgpt:c2"]);
    assert_eq!(file.skipped["repeated message"], 3, "a conversation in two files is one");
    let none = read(&zipped(&files[1..2])).unwrap_err();
    assert!(none.message.contains("Export data"), "{none:?}");
    let whole = zipped(&files);
    assert!(read(&whole[..whole.len() / 2]).unwrap_err().message.contains("zip"), "cut off");
    let broken = read(&zipped(&[("conversations.json", "[{]".to_owned())])).unwrap_err();
    assert!(broken.field.starts_with("conversations.json"), "{broken:?}");
}
