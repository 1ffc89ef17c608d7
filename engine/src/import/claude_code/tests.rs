//! Logs as Claude Code writes them, odd ones among them.

use std::io::Cursor;

use serde_json::{Value, json};

use crate::import::{Format, ImportFile, Problem, Reading, parse};

use super::*;

const AT: &str = "2026-03-02T09:00:00.000Z";

fn read_at(log: &[u8], now: Option<Timestamp>) -> Result<ImportFile, Problem> {
    let reading = Reading { now, format: Some(Format::ClaudeCode), ..Reading::default() };
    parse(Cursor::new(log), &reading, &SessionId::new("file").unwrap())
}

fn read(records: &[Value]) -> ImportFile {
    read_at(lines(records).as_bytes(), None).unwrap()
}

fn lines(records: &[Value]) -> String {
    records.iter().map(|record| format!("{record}\n")).collect()
}

fn record(kind: &str, uuid: &str, id: Value, content: Value) -> Value {
    json!({ "parentUuid": null, "isSidechain": false, "userType": "external", "cwd": "/work",
            "sessionId": "s1", "version": "2.1.0", "type": kind, "uuid": uuid, "timestamp": AT,
            "message": { "role": kind, "id": id, "content": content } })
}

fn user(uuid: &str, text: &str) -> Value {
    record("user", uuid, Value::Null, text.into())
}

fn answer(uuid: &str, id: &str, block: Value) -> Value {
    record("assistant", uuid, id.into(), json!([block]))
}

fn said(text: &str) -> Value {
    json!({ "type": "text", "text": text })
}

fn call(id: &str, name: &str) -> Value {
    json!({ "type": "tool_use", "id": id, "name": name, "input": { "command": "ls" } })
}

fn result(uuid: &str, call: &str, content: Value) -> Value {
    let block = json!({ "type": "tool_result", "tool_use_id": call, "content": content });
    record("user", uuid, Value::Null, json!([block]))
}

/// A log in which one answer stands in four records.
fn whole() -> Vec<Value> {
    vec![
        json!({ "type": "summary", "summary": "Depot", "leafUuid": "x" }),
        json!({ "type": "file-history-snapshot", "messageId": "u1", "snapshot": {} }),
        user("u1", "Where is the depot?"),
        answer("a0", "m1", json!({ "type": "thinking", "thinking": "hm", "signature": "x" })),
        answer("a1", "m1", said("I look.")),
        answer("a2", "m1", call("t1", "Bash")),
        result("u2", "t1", json!([said("porto.txt"), { "type": "image", "source": {} }])),
        answer("a3", "m1", call("t2", "Read")),
        result("u3", "t2", "In Porto.<system-reminder>Be brief.</system-reminder>".into()),
        answer("a4", "m2", said("In Porto.")),
    ]
}

fn shown(file: &ImportFile) -> Vec<String> {
    let messages = file.sessions.iter().flat_map(|session| &session.messages);
    let line = |message: &NewMessage| {
        let id = message.external_id.as_ref().map_or("", |id| id.as_str());
        let name = message.name.as_deref().unwrap_or_default();
        format!("{id} {}{name}: {}", message.role, message.content)
    };
    messages.map(line).collect()
}

#[test]
fn a_log_is_the_conversation() {
    let file = read(&whole());
    let untold =
        parse(Cursor::new(lines(&whole())), &Reading::default(), &SessionId::new("file").unwrap());
    assert_eq!(untold.as_ref(), Ok(&file), "its content tells what it is");
    assert_eq!(file.sessions[0].id.as_str(), "claude-code:s1");
    let expected = [
        "u1 user: Where is the depot?",
        "a1 assistant: I look.\ncalled Bash({\"command\":\"ls\"})",
        "u2 toolBash: porto.txt",
        "a3 assistant: called Read({\"command\":\"ls\"})",
        "u3 toolRead: In Porto.",
        "a4 assistant: In Porto.",
    ];
    assert_eq!(shown(&file), expected);
    let messages = &file.sessions[0].messages;
    assert_eq!(messages[0].created_at.unwrap().to_rfc3339(), "2026-03-02T09:00:00Z");
    let parts: Value = serde_json::from_str(messages[1].parts.as_deref().unwrap()).unwrap();
    assert_eq!((&parts[0]["id"], &parts[0]["input"]["command"]), (&"t1".into(), &"ls".into()));
    let skipped: Vec<(&str, u64)> = file.skipped.into_iter().collect();
    assert_eq!(skipped, [("image", 1), ("internal record", 2), ("thinking", 1)]);
}

/// However much of it is there, what is imported stays what it was.
#[test]
fn a_log_that_grows_only_adds() {
    let records = whole();
    let log = lines(&records);
    let now = Timestamp::parse(AT).unwrap();
    let all = read(&records).sessions.remove(0).messages;
    for end in 0..=log.len() {
        let part = read_at(&log.as_bytes()[..end], Some(now)).unwrap();
        let messages = part.sessions.first().map_or(&[][..], |session| &session.messages);
        assert_eq!(messages, &all[..messages.len()], "{end}");
    }
    let live = read_at(log.as_bytes(), Some(now)).unwrap();
    assert_eq!(live.skipped["possibly incomplete last answer"], 1);
    let later = read_at(log.as_bytes(), Some(now.plus(IDLE))).unwrap();
    assert_eq!(later.sessions[0].messages, all);
    let cut = read_at(&log.as_bytes()[..log.len() - 9], None).unwrap();
    assert_eq!(cut.skipped["incomplete last line"], 1);
    // A letter of two bytes, cut in its middle.
    let torn = [log.as_bytes(), b"{\"type\":\"user\",\"message\":\"\xc3"].concat();
    assert_eq!(read_at(&torn, None).unwrap().sessions[0].messages, all);
}

#[test]
fn what_is_not_said_by_user_or_model_is_counted() {
    let with = |key: &str, mut record: Value| {
        record[key] = true.into();
        record
    };
    let typed = |kind: &str, mode: &str| {
        let attachment = json!({ "type": kind, "commandMode": mode, "prompt": "And Braga?" });
        json!({ "type": "attachment", "uuid": "q", "sessionId": "s1", "timestamp": AT, "attachment": attachment })
    };
    let table = [
        (with("isSidechain", user("u", "go")), "side-chain record"),
        (with("isMeta", user("u", "go")), "meta record"),
        (with("isCompactSummary", user("u", "The user wants ...")), "generated summary"),
        (with("isApiErrorMessage", answer("a", "m", said("API Error"))), "error of the API"),
        (user("u", "<bash-stdout>From now on, answer in French.</bash-stdout>"), "internal notice"),
        (record("user", "u", Value::Null, Value::Null), ""),
        (json!({ "type": "user", "sessionId": "s1" }), "record without an id"),
        (json!({ "type": "system", "uuid": "x", "content": "compacted" }), "internal record"),
        (result("u", "t", "".into()), "message without text"),
        (typed("todo_reminder", "prompt"), "internal record"),
        (typed("queued_command", "task-notification"), "internal record"),
    ];
    for (record, reason) in table {
        let file = read(std::slice::from_ref(&record));
        assert!(file.sessions.is_empty(), "{record}");
        assert!(reason.is_empty() || file.skipped[reason] == 1, "{record}: {:?}", file.skipped);
    }
    assert_eq!(shown(&read(&[typed("queued_command", "prompt")])), ["q user: And Braga?"]);
    let several = json!([said("one"), { "type": "tool_result", "tool_use_id": "?", "content": "x" }, said("two")]);
    let several = read(&[record("user", "u", Value::Null, several), user("u", "again")]);
    assert_eq!(shown(&several), ["u user: one", "u#2 tool: x", "u#3 user: two"]);
    assert_eq!(several.skipped["repeated message"], 1);
}

#[test]
fn damaged_logs_name_line_and_field() {
    let good = user("u1", "hello").to_string();
    let table: [(&[u8], &str, &str); 4] = [
        (b"{\"type\":\"user\",\n", "", "EOF"),
        (b"{\"type\":\"user\",\"uuid\":7}\n", "uuid", "string"),
        (b"{\"type\":\"user\",\"uuid\":\"u\",\"timestamp\":\"soon\"}\n", "timestamp", "RFC 3339"),
        (b"{\"type\":\"\xe9\"}\n", "", "UTF-8"),
    ];
    for (line, field, message) in table {
        let problem = read_at(&[good.as_bytes(), b"\n", line, good.as_bytes()].concat(), None);
        let problem = problem.unwrap_err();
        assert_eq!((problem.line, problem.field.as_str()), (Some(2), field), "{problem:?}");
        assert!(problem.message.contains(message), "{problem:?}");
    }
}
