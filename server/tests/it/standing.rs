//! Instructions of a user, over sessions, and the two evaluations of them.

use serde_json::Value;

use crate::support::{Throughline, payload};

fn header(context: &Value) -> &str {
    context["header"][0]["content"].as_str().unwrap()
}

fn import(throughline: &Throughline, session: &str, text: &str) {
    let line = serde_json::json!({"role": "user", "session": session, "content": text});
    throughline.file("said.jsonl", line.to_string());
    throughline.json(&["import", "said.jsonl"]);
}

#[test]
fn an_instruction_reaches_the_next_session_and_a_changed_one_replaces_it() {
    let throughline = Throughline::new();
    import(&throughline, "monday", "Hi! From now on, please answer in French.");
    let ask = ["assemble", "How do vaccines work?", "--session", "tuesday"];
    let first = throughline.json(&ask);
    assert!(header(&first).contains("please answer in French"), "{}", header(&first));
    let items = first["items"].as_array().unwrap();
    let told = items.iter().find(|item| item["kind"] == "fact" && item["section"] == "header");
    assert_eq!(told.unwrap()["reason"], "standing");

    import(&throughline, "tuesday", "What a day. The train was late again.");
    assert_eq!(throughline.json(&ask)["header_hash"], first["header_hash"]);

    import(&throughline, "wednesday", "Actually, switch to Italian for your answers from here on.");
    let second = throughline.json(&ask);
    assert!(header(&second).contains("Italian") && !header(&second).contains("French"));
    assert!(!payload(&second).contains("French"), "{}", payload(&second));

    import(&throughline, "thursday", "You don't need to answer in Italian anymore.");
    let third = throughline.json(&ask);
    assert!(!header(&third).contains("Standing instructions"), "{}", header(&third));
}

#[test]
fn the_evaluations_of_facts_and_instructions_report() {
    let throughline = Throughline::new();
    let labelled = concat!(
        r#"{"id":"1","text":"Always use tabs.","facts":[{"kind":"instruction","value":"use tabs"}]}"#,
        "\n",
        r#"{"id":"2","text":"Nice.","facts":[{"kind":"fact","value":"nice"}]}"#,
    );
    throughline.file("facts.jsonl", labelled);
    let report = throughline.json(&["eval", "facts", "--data", "facts.jsonl"]);
    assert_eq!((&report["precision"], &report["recall"]), (&1.0.into(), &0.5.into()));
    assert_eq!(report["by_kind"]["instruction"]["matched"], 1);
    assert_eq!(report["missed"][0]["id"], "2");
    throughline.file(
        "cases.jsonl",
        r#"{"id":"c","case":"set","messages":[{"role":"user","content":"Always use tabs."},{"filler":2}],"new_session":true,"ask":"Write a loop","holds":["use tabs","use braces"],"stale":["sunny"]}"#,
    );
    let said = r#"{"role":"user","content":"Is it sunny?"}"#;
    throughline.file("filler.jsonl", format!("{said}\n{said}\n"));
    let args = ["eval", "instructions", "--data", "cases.jsonl", "--filler", "filler.jsonl"];
    let report = throughline.json(&args);
    assert_eq!((&report["cases"], &report["holds"]), (&1.into(), &0.0.into()));
    assert_eq!(report["failures"][0]["text"], "use braces");
    assert_eq!(report["by_case"]["set"]["with_stale"], 1);
    throughline.fails(&["eval", "facts", "--data", "nowhere.jsonl"], 4);
    throughline.fails(&["eval", "facts", "--data", "cases.jsonl"], 3);
}
