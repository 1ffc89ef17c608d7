//! A correction marks what it corrects and keeps the rest of the sentence (`eval/corrections.jsonl`).

use serde_json::{Value, json};

use crate::support::{Throughline, payload};

const CASES: &str = include_str!("../../../eval/corrections.jsonl");

/// The context of a case's question, asked from a new session.
fn context(case: &Value) -> String {
    let throughline = Throughline::new();
    let said = case["said"].as_array().unwrap().iter().map(|said| {
        json!({
            "role": "user",
            "session": said["session"],
            "content": said["text"],
            "created_at": said["at"],
        })
        .to_string()
    });
    throughline.file("said.jsonl", said.collect::<Vec<_>>().join("\n"));
    throughline.json(&["import", "said.jsonl"]);
    payload(&throughline.json(&["assemble", case["ask"].as_str().unwrap()]))
}

fn texts(value: &Value) -> impl Iterator<Item = &str> {
    value.as_array().unwrap().iter().map(|text| text.as_str().unwrap())
}

#[test]
fn a_corrected_sentence_keeps_the_rest_and_shows_the_value_that_holds() {
    let mut failures = Vec::new();
    let mut cases = 0;
    for line in CASES.lines() {
        let case: Value = serde_json::from_str(line).unwrap();
        cases += 1;
        let (id, new) = (case["id"].as_str().unwrap(), case["new"].as_str().unwrap());
        let context = context(&case);
        for kept in texts(&case["keeps"]).filter(|kept| !context.contains(kept)) {
            failures.push(format!("{id}: `{kept}` is lost\n{context}"));
        }
        if !context.contains(new) {
            failures.push(format!("{id}: `{new}` is not shown\n{context}"));
        }
        for old in texts(&case["old"]) {
            let bare = context.lines().find(|line| line.contains(old) && !line.contains(new));
            failures.extend(bare.map(|line| format!("{id}: `{old}` without `{new}`: {line}")));
        }
    }
    assert!(cases >= 22 && failures.is_empty(), "{}", failures.join("\n"));
}
