//! Instructions of a user, over sessions.

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
