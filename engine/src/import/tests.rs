//! Files as people have them, and what is said about broken ones.

use super::*;

fn read(text: &str) -> std::result::Result<ImportFile, Problem> {
    read_as(text.as_bytes(), &Reading::default())
}

fn read_as(bytes: &[u8], reading: &Reading) -> std::result::Result<ImportFile, Problem> {
    parse(Cursor::new(bytes), reading, &SessionId::new("file").unwrap())
}

#[test]
fn three_forms_are_told_apart() {
    let lines = "{\"role\":\"user\",\"content\":\"a\",\"session\":\"s\",\"id\":\"1\"}\n\n\
                 {\"role\":\"assistant\",\"content\":\"b\",\"created_at\":\"2026-03-02\"}\n";
    let file = read(lines).unwrap();
    let ids: Vec<&str> = file.sessions.iter().map(|session| session.id.as_str()).collect();
    assert_eq!(ids, ["s", "file"]);
    let array = r#"[{"role":"system","content":"x"},
        {"role":"user","content":[{"type":"text","text":"see"},{"type":"image_url","image_url":{}}]},
        {"role":"assistant","content":null,"tool_calls":[{"function":{"name":"f","arguments":"{}"}}]},
        {"role":"tool","content":"done","tool_call_id":"c"}]"#;
    let file = read(array).unwrap();
    let contents: Vec<&str> =
        file.sessions[0].messages.iter().map(|message| message.content.as_str()).collect();
    assert_eq!(contents, ["x", "see\n[image]", "called f({})", "done"]);
    assert!(file.sessions[0].messages[1].parts.as_ref().unwrap().contains("image_url"));
    let samples = r#"[{"sample_id":"c","sessions":[{"started_at":"1:56 pm on 8 May, 2023",
        "messages":[{"id":"D1:1","role":"user","name":"Ana","content":"hi"}]}],
        "qa":[{"question":"?","answer":3,"evidence":["D1:1"],"category":"single_hop"}]}]"#;
    let file = read(samples).unwrap();
    assert_eq!(file.samples[0].questions[0].answer.as_deref(), Some("3"));
    assert_eq!(file.sessions[0].id.as_str(), "c/1");
}

#[test]
fn an_id_that_is_made_follows_from_no_secret() {
    let ids = |passwords: [&str; 2]| {
        let line = |password: &str| {
            let parts = serde_json::json!([{ "password": password }]);
            let content = format!("My password is {password}.");
            serde_json::json!({ "role": "user", "content": content, "parts": parts }).to_string()
        };
        let file = read(&passwords.map(line).join("\n")).unwrap();
        let ids = file.sessions[0].messages.iter().map(|message| message.external_id.clone());
        ids.collect::<Vec<_>>()
    };
    let made = ids(["hunter2", "swordfish"]);
    assert!(made[0].is_some() && made[0] != made[1], "{made:?}");
    assert_eq!(ids(["tr0ub4dor", "hunter2"]), made);
}

#[test]
fn an_import_without_ids_is_the_same_messages_each_time() {
    let text = "{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"user\",\"content\":\"a\"}";
    assert_eq!(read(text).unwrap(), read(text).unwrap());
    let messages = read(text).unwrap().sessions.remove(0).messages;
    assert_ne!(messages[0].external_id, messages[1].external_id);
}

#[test]
fn problems_name_line_and_field() {
    let good = r#"{"role":"user","content":"a"}"#;
    let long = format!(r#"{{"role":"user","content":"{}"}}"#, "x".repeat((1 << 20) + 1));
    let table: &[(&str, Option<usize>, &str, &str)] = &[
        ("", None, "", "empty"),
        (
            &format!("{good}\n{{\"role\":\"bot\",\"content\":\"a\"}}"),
            Some(2),
            "role",
            "one of system",
        ),
        (
            &format!("{good}\n\n{{\"role\":\"user\",\"content\":\" \"}}"),
            Some(3),
            "content",
            "empty",
        ),
        (&format!("{good}\n{{\"role\":\"user\""), Some(2), "", "EOF"),
        (r#"{"content":"a"}"#, Some(1), "", "role"),
        (&long, Some(1), "content", "1 MiB"),
        (r#"{"role":"user","content":"a","id":"a\u0007"}"#, Some(1), "id", "control"),
        (r#"{"role":"user","content":"a","created_at":"soon"}"#, Some(1), "created_at", "RFC 3339"),
        (r#"{"role":"user","content":7}"#, Some(1), "content", "text"),
        (
            "[{\"role\":\"user\",\n\"content\":\"a\"},\n{\"role\":\"x\",\"content\":\"\"}]",
            Some(3),
            "[1].role",
            "one of",
        ),
        (
            "[{\"sample_id\":\"c\",\"sessions\":[{\"started_at\":\"never\",\"messages\":[]}]}]",
            Some(1),
            "[0].sessions[0].started_at",
            "RFC 3339",
        ),
        (
            "{\"role\":\"user\",\"content\":\"a\",\"id\":\"1\"}\n{\"role\":\"user\",\"content\":\"b\",\"id\":\"1\"}",
            Some(2),
            "external_id",
            "two messages",
        ),
        (&format!("{good} x"), Some(1), "", "extra data"),
    ];
    for (text, line, field, message) in table {
        let problem = read(text).unwrap_err();
        let shown: String = text.chars().take(80).collect();
        assert_eq!(problem.line, *line, "{shown}: {problem:?}");
        assert_eq!(problem.field, *field, "{shown}: {problem:?}");
        assert!(problem.message.contains(message), "{shown}: {problem:?}");
    }
    let latin = b"{\"role\":\"user\",\"content\":\"a\"}\n{\"role\":\"\xe9\"}";
    let latin = read_as(latin, &Reading::default()).unwrap_err();
    assert_eq!(latin.line, Some(2));
    assert!(latin.message.contains("UTF-8"));
}

#[test]
fn no_more_than_a_piece_is_read_at_once() {
    const MIB: usize = 1 << 20;
    let conversation = |id: usize, bytes: usize| {
        format!(r#"{{"id":"c{id}","mapping":{{}},"title":"{}"}}"#, "x".repeat(bytes))
    };
    let export = |sizes: &[usize]| {
        let all: Vec<String> =
            sizes.iter().enumerate().map(|(id, size)| conversation(id, *size)).collect();
        read(&format!("[{}]", all.join(",")))
    };
    let many = export(&[12 * MIB; 4]).unwrap();
    assert_eq!(many.skipped.get("empty conversation"), Some(&4));
    let long = export(&[10, 33 * MIB]).unwrap_err();
    assert!(long.message.contains("a conversation of more than 32 MiB"), "{long:?}");

    let line = format!("{{\"role\":\"user\",\"content\":\"a\"}}\n{{\"{}", "x".repeat(33 * MIB));
    let long = read(&line).unwrap_err();
    assert_eq!(long.line, Some(2));
    assert!(long.message.contains("a line of more than 32 MiB"), "{}", long.message);

    let array = format!("[{{\"role\":\"user\",\"content\":\"a\"}},\"{}\"]", "x".repeat(65 * MIB));
    let long = read(&array).unwrap_err();
    assert!(long.message.contains("64 MiB"), "{}", long.message);
}

#[test]
fn values_of_a_piece_are_limited_before_they_are_built() {
    let values = |count: usize| format!("[{}0]", r#"{"a":0},"#.repeat(count));
    let forms = [
        (
            "a message",
            r#"{"role":"user","content":"a"}
{"role":"user","content":VALUES}"#,
            2,
        ),
        ("its calls", r#"{"role":"assistant","content":"a","tool_calls":VALUES}"#, 1),
        ("an array", r#"[{"role":"user","content":VALUES}]"#, 1),
        (
            "an export of ChatGPT",
            r#"[{"id":"c","current_node":"n","mapping":{"n":{"id":"n","message":{"author":{"role":"user"},"content":{"content_type":"text","parts":VALUES}}}}}]"#,
            1,
        ),
        (
            "a log of Claude Code",
            r#"{"type":"assistant","uuid":"u","sessionId":"s","message":{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"x","input":VALUES}]}}"#,
            1,
        ),
        ("samples", r#"[{"sample_id":"a","qa":[{"question":"q","answer":VALUES}]}]"#, 1),
    ];
    for (name, form, line) in forms {
        let refused = read(&form.replace("VALUES", &values(400_000))).unwrap_err();
        assert!(refused.message.contains("too many values"), "{name}: {refused:?}");
        assert_eq!(refused.line, Some(line), "{name}");
        let fits = read(&form.replace("VALUES", &values(40)));
        assert!(!fits.is_err_and(|other| other.message.contains("too many")), "{name}");
    }
}

#[test]
fn parts_of_a_message_are_as_deep_as_over_http() {
    let line = |depth: usize| {
        let deep = format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        format!("{{\"role\":\"user\",\"content\":\"a\",\"parts\":{deep}}}")
    };
    assert!(read(&line(60)).is_ok());
    let refused = read(&line(61)).unwrap_err();
    assert_eq!((refused.line, refused.field.as_str()), (Some(1), "parts"));
    assert!(refused.message.contains("nested 61 levels deep: at most 60"), "{}", refused.message);
    // As a body is.
    let refused = read(&line(200)).unwrap_err();
    assert_eq!(refused.line, Some(1));
    assert!(refused.message.contains("nested deeper than 64 levels"), "{}", refused.message);
}

#[cfg(unix)]
#[test]
fn a_device_is_not_read() {
    let error = read_file(Path::new("/dev/zero"), &Reading::default()).unwrap_err();
    assert!(error.message().contains("neither a file nor a pipe"), "{error}");
}
