//! Conversations from elsewhere, and what leaves for elsewhere.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Throughline, conversation, payload, stderr};

const AT: &str = "2026-03-02T09:00:00.000Z";

fn record(uuid: &str, kind: &str, content: Value) -> String {
    json!({ "type": kind, "uuid": uuid, "sessionId": "s1", "timestamp": AT,
            "message": { "role": kind, "id": uuid, "content": content } })
    .to_string()
}

/// An export of ChatGPT with one conversation of two messages and a picture.
fn chatgpt() -> String {
    let message = |id: &str, role: &str, parts: Value| {
        json!({ "id": id, "author": { "role": role }, "create_time": 1_700_000_000.5,
                "content": { "content_type": "multimodal_text", "parts": parts } })
    };
    let picture = json!({ "content_type": "image_asset_pointer" });
    json!([{ "title": "Depot", "conversation_id": "c1", "current_node": "b", "mapping": {
        "root": { "message": null, "parent": null, "children": ["a"] },
        "a": { "message": message("m1", "user", json!([picture, "My depot is in Braga."])), "parent": "root" },
        "b": { "message": message("m2", "assistant", json!(["Noted: Braga."])), "parent": "a" },
    } }])
    .to_string()
}

#[test]
fn conversations_from_elsewhere_are_recalled() {
    let throughline = Throughline::new();
    throughline.file("conversations.json", chatgpt());
    let report = throughline.json(&["import", "conversations.json"]);
    assert_eq!((&report[0]["messages"], &report[0]["skipped"]["image"]), (&2.into(), &1.into()));
    let context = throughline.json(&["assemble", "Where is my depot?"]);
    assert!(payload(&context).contains("Braga"), "{context}");

    let project = throughline.folder().join("projects").join("one");
    std::fs::create_dir_all(&project).unwrap();
    let first = [
        record("u1", "user", "Which port does the staging server use?".into()),
        record("a1", "assistant", json!([{ "type": "text", "text": "Staging uses port 7443." }])),
    ];
    let log = project.join("s1.jsonl");
    std::fs::write(&log, first.join("\n") + "\n{\"type\":\"us").unwrap();
    std::fs::write(project.join("s2.jsonl"), "").unwrap();
    let report = throughline.json(&["import", "projects"]);
    assert_eq!(report.as_array().unwrap().len(), 1, "an empty log is none: {report}");
    assert_eq!(report[0]["skipped"]["incomplete last line"], 1);
    std::fs::write(&log, first.join("\n") + "\n" + &record("u2", "user", "Thanks.".into()) + "\n")
        .unwrap();
    let grown = throughline.json(&["import", "projects"]);
    assert_eq!((&grown[0]["messages"], &grown[0]["replayed"]), (&1.into(), &2.into()));
    let context = throughline.json(&["assemble", "Which port is for staging?"]);
    assert!(payload(&context).contains("7443"), "{context}");
    let line = throughline.run(&["import", "conversations.json"]);
    let said = String::from_utf8_lossy(&line.stdout).into_owned();
    assert!(said.contains("2 already existed; left out: 1 image"), "{said}");

    // One broken file of a folder, and nothing is imported.
    std::fs::write(project.join("s3.jsonl"), record("u9", "user", "x".into()) + "\n{\n{}\n")
        .unwrap();
    let said = throughline.fails(&["import", "projects"], 3);
    assert!(said.contains("s3.jsonl:2: "), "{said}");
    std::fs::create_dir(throughline.folder().join("empty")).unwrap();
    throughline.fails(&["import", "empty"], 4);
    let said = throughline.fails(&["import", "conversations.json", "--format", "messages"], 3);
    assert!(said.contains("role"), "{said}");
}

fn exported(throughline: &Throughline, args: &[&str]) -> String {
    let output = throughline.run(&[&["export"], args].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

/// Sessions of several pages, names, tools, parts, attachments and odd characters.
fn talk() -> String {
    let mut lines: Vec<String> = conversation(1_300, 650).lines().map(str::to_owned).collect();
    lines.push(
        json!({ "role": "user", "session": "odd", "name": "Ana", "content": "Good morning." })
            .to_string(),
    );
    lines.push(
        json!({ "role": "user", "session": "odd", "name": "Ana", "id": "o1", "content": "From now on, answer in metric units.\n\u{2028}\"x\"",
                "created_at": "2026-03-02T09:00:00.000001Z", "parts": [{ "a": 1.0 }], "attachments": { "b": null } })
        .to_string(),
    );
    lines.push(
        json!({ "role": "tool", "session": "odd", "name": "ls", "content": "porto.txt" })
            .to_string(),
    );
    lines.join("\n")
}

/// An export without what each installation gives: ids of messages, the time of the profile.
fn without_our_ids(export: &str) -> Vec<Value> {
    let line = |line: &str| {
        let mut line: Value = serde_json::from_str(line).unwrap();
        let own = if line["throughline"] == "profile" { "updated_at" } else { "throughline_id" };
        assert!(line.as_object_mut().unwrap().remove(own).is_some());
        line
    };
    export.lines().map(line).collect()
}

#[test]
fn an_export_is_imported_as_the_same_memory() {
    let (first, second) = (Throughline::new(), Throughline::new());
    first.file("talk.jsonl", talk());
    first.json(&["import", "talk.jsonl"]);
    first.json(&["profile", "set", "--rules", "Be brief."]);
    let report = first.json(&["export", "--to", "all.jsonl"]);
    assert_eq!((&report["lines"], &report["sessions"]), (&1_304.into(), &3.into()));
    let all = std::fs::read_to_string(first.folder().join("all.jsonl")).unwrap();
    assert_eq!(all, exported(&first, &[]));
    second.file("all.jsonl", &all);
    second.json(&["import", "all.jsonl"]);
    assert_eq!(without_our_ids(&exported(&second, &[])), without_our_ids(&all));
    let again = first.json(&["import", "all.jsonl"]);
    assert_eq!((&again[0]["messages"], &again[0]["replayed"]), (&0.into(), &1_304.into()));
    for question in ["At which gate is shipment CX-00321?", "Which files are there?"] {
        let shown = |throughline: &Throughline| {
            let context = throughline.json(&["assemble", question, "--session", "odd"]);
            (context["header"].clone(), context["working_set"].clone())
        };
        assert_eq!(shown(&first), shown(&second), "{question}");
    }
    let odd = exported(&first, &["--session", "odd"]);
    assert!(odd.contains("\"parts\":[{\"a\":1.0}],\"attachments\":{\"b\":null}"), "{odd}");
    assert_eq!(odd.lines().count(), 3);
    let facts = exported(&first, &["--what", "facts"]);
    assert!(facts.contains("\"kind\":\"instruction\""), "{facts}");
    assert!(exported(&first, &["--what", "profile"]).contains("Be brief."));
}

#[test]
fn an_export_replaces_nothing_and_is_private() {
    let throughline = Throughline::new();
    throughline.fails(&["export"], 4);
    throughline.file("talk.jsonl", conversation(600, 600));
    throughline.json(&["import", "talk.jsonl"]);
    throughline.file("there.jsonl", "mine");
    throughline.fails(&["export", "--to", "there.jsonl"], 5);
    assert_eq!(std::fs::read(throughline.folder().join("there.jsonl")).unwrap(), b"mine");
    throughline.fails(&["export", "--session", "nowhere", "--to", "no.jsonl"], 4);
    throughline.fails(&["export", "--to", "nowhere/all.jsonl"], 7);
    let files: Vec<_> = std::fs::read_dir(throughline.folder()).unwrap().flatten().collect();
    assert_eq!(files.len(), 3, "nothing is left behind: {files:?}");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        throughline.json(&["export", "--to", "all.jsonl"]);
        let file = std::fs::metadata(throughline.folder().join("all.jsonl")).unwrap();
        assert_eq!(file.permissions().mode() & 0o777, 0o600);
    }
    // A reader that has seen enough.
    let mut child = throughline.command(&["export"]).stdout(Stdio::piped()).spawn().unwrap();
    drop(child.stdout.take());
    assert!(child.wait().unwrap().success());
    assert!(stderr(&throughline.run(&["export", "--json"])).contains("--to"));
}
