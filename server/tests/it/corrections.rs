//! A correction marks what it corrects and keeps the rest of the sentence (`eval/corrections.jsonl`).

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use throughline_core::ports::Clock;
use throughline_core::time::Timestamp;
use throughline_engine::compose::Engine;
use throughline_engine::config::{Config, EmbedderKind};
use throughline_testkit::FakeClock;

use crate::http::service::Service;
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

/// With a clock of its own, in this process.
#[tokio::test]
async fn later_statements_hold_where_the_clock_went_back_or_a_time_is_of_the_future() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config {
        data_dir: folder.path().to_owned(),
        listen: "127.0.0.1:0".to_owned(),
        embedder: EmbedderKind::None,
        ..Config::default()
    };
    let clock = Arc::new(FakeClock::default());
    let right = clock.now();
    let engine = Engine::open_by(&config, clock.clone()).await.unwrap();
    let service = Service::within(engine, &config).await;
    let say = async |text: &str, at: Option<&str>| {
        let message = json!({"role": "user", "content": text, "created_at": at});
        service.post("/v1/sessions/s/messages", &json!({"messages": [message]})).await.ok();
        let facts = service.get("/v1/facts").await.ok();
        let holds = facts["items"].as_array().unwrap().iter().filter(|fact| fact["holds"] == true);
        holds.map(|fact| fact["value"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    clock.set(right.plus(Duration::from_secs(30 * 86_400)));
    say("I live in Oslo.", None).await;
    clock.set(right);
    assert_eq!(say("I live in Bergen.", None).await, ["Bergen"]);
    assert_eq!(say("I live in Turku.", Some("2999-01-01T00:00:00Z")).await, ["Turku"]);
    clock.advance(Duration::from_secs(3_600));
    assert_eq!(say("I live in Espoo.", None).await, ["Espoo"]);
    assert_eq!(say("Actually it's Vantaa, not Espoo.", None).await, ["Vantaa"]);
    // What was said before stays so, whenever it arrives.
    assert_eq!(say("I live in Malmo.", Some("2020-01-01T00:00:00Z")).await, ["Vantaa"]);
}

#[tokio::test]
async fn a_message_with_a_time_of_the_future_does_not_outlive_its_correction() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config {
        data_dir: folder.path().to_owned(),
        listen: "127.0.0.1:0".to_owned(),
        embedder: EmbedderKind::None,
        ..Config::default()
    };
    let clock = Arc::new(FakeClock::default());
    let engine = Engine::open_by(&config, clock.clone()).await.unwrap();
    let service = Service::within(engine, &config).await;
    let say = async |session: &str, text: &str, at: Option<Timestamp>| {
        let at = at.map(Timestamp::to_rfc3339);
        let message = json!({"role": "user", "content": text, "created_at": at});
        let path = format!("/v1/sessions/{session}/messages");
        service.post(&path, &json!({"messages": [message]})).await.ok();
    };
    let ahead = |minutes: u64| clock.now().plus(Duration::from_secs(60 * minutes));
    let of_no_clock = Timestamp::parse("2999-01-01").unwrap();
    // The correction comes with a time of its own, or without.
    for (session, said_at, has_time) in [
        ("a", of_no_clock, false),
        ("b", ahead(34), true),
        ("c", ahead(34), false),
        ("d", ahead(4), false),
    ] {
        let today = clock.now().day_in_words();
        let what = format!("The cutover of {session}{session}{session} is at");
        say(session, &format!("{what} 7:40."), Some(said_at)).await;
        clock.advance(Duration::from_secs(60));
        let at = has_time.then(|| clock.now());
        say(session, "Actually the cutover is at 8:15, not 7:40.", at).await;
        let turn =
            json!({"user_turn": format!("When is the cutover of {session}{session}{session}?")});
        let context = service.post("/v1/sessions/new/assemble", &turn).await.ok();
        let text = payload(&context);
        let line =
            text.lines().find(|line| line.contains(&what)).unwrap_or_else(|| panic!("{text}"));
        assert!(line.contains("7:40 (") && line.contains(": 8:15)"), "{session}: {text}");
        assert!(
            text.contains(&format!("[{today}]")) && !text.contains("2999"),
            "{session}: {text}"
        );
    }
}
