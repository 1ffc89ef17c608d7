//! What clients read beside calls of tools: completions, pages, how far a call is, and what the audit log has of it.

use serde_json::{Value, json};

use super::client::{Caller, EVERYTHING, is_done, result};
use crate::http::service::{Answer, Service, key};
use crate::support::Throughline;

const SETS: [&str; 2] = ["--set", r#"mcp.tool_sets=["memory","sessions","documents","persona"]"#];

async fn complete(caller: &Caller<'_>, of: &str, name: &str, value: &str) -> Value {
    let params = json!({
        "ref": {"type": "ref/resource", "uri": format!("throughline://{of}")},
        "argument": {"name": name, "value": value}, "context": {"arguments": {"vaultId": "harbour"}},
    });
    let answer = Answer::of(caller.alone("completion/complete", params)).await;
    result(&answer)["completion"]["values"].clone()
}

#[tokio::test]
async fn ids_are_completed() {
    let data = Throughline::new();
    let service = Service::start_with(&data, &SETS);
    let caller = Caller::local(&service);
    let memory = "vault/{vaultId}/memory/{memoryId}";
    assert_eq!(complete(&caller, memory, "memoryId", "").await, json!([]));
    for memory in ["ferry", "ferries", "日本 語"] {
        let put = json!({"vault": "harbour", "memory": memory, "text": "Berth seven."});
        is_done(&caller.call("put_context", &put).await);
    }
    let new = json!({"action": "create_from_preset", "presetId": "preset-calm-counselor"});
    let made = caller.call("context-manage", &new).await;
    let context = made["structuredContent"]["context"]["id"].clone();
    let id = context.as_str().unwrap();
    for (of, name, value, expected) in [
        (memory, "vaultId", "ha", json!(["harbour"])),
        (memory, "vaultId", "x", json!([])),
        (memory, "memoryId", "ferr", json!(["ferry", "ferries"])),
        ("context/{contextId}", "contextId", &id[..8], json!([id])),
        ("preset/{presetId}", "presetId", "preset-c", json!(["preset-calm-counselor"])),
        ("preset/{presetId}", "another", "", json!([])),
    ] {
        assert_eq!(complete(&caller, of, name, value).await, expected, "{of} {name} {value}");
    }
    // As a client makes it of the template.
    let uri = "throughline://vault/harbour/memory/%E6%97%A5%E6%9C%AC%20%E8%AA%9E";
    let read = Answer::of(caller.alone("resources/read", json!({"uri": uri}))).await;
    assert_eq!(result(&read)["contents"][0]["text"], "Berth seven.");
}

#[tokio::test]
async fn resources_are_listed_page_by_page() {
    let data = Throughline::new();
    let service = Service::start_with(&data, &SETS);
    let caller = Caller::local(&service);
    for n in 0..60 {
        let new = json!({"action": "create", "name": format!("Guide {n}"),
            "systemPrompt": "You are a calm harbour guide."});
        is_done(&caller.call("context-manage", &new).await);
    }
    let (mut uris, mut params, mut pages) = (Vec::new(), json!({}), 0);
    loop {
        let page = result(&Answer::of(caller.alone("resources/list", params)).await);
        let of_page = page["resources"].as_array().unwrap().iter();
        uris.extend(of_page.map(|one| one["uri"].as_str().unwrap().to_owned()));
        pages += 1;
        match page["nextCursor"].as_str() {
            Some(cursor) => params = json!({"cursor": cursor}),
            None => break,
        }
    }
    assert_eq!((uris.len(), pages), (64, 2));
    uris.sort();
    uris.dedup();
    assert_eq!(uris.len(), 64);
    let wrong = caller.alone("resources/list", json!({"cursor": "no-such"}));
    assert_eq!(super::client::code(&Answer::of(wrong).await), -32602);
}

#[tokio::test]
async fn call_reports_progress_and_is_audited() {
    let data = Throughline::new();
    let admin = key(&data, "acme", &["--user", "ana"], EVERYTHING);
    let service = Service::start_with(&data, &SETS);
    let caller = Caller::keyed(&service, &admin);
    let said = json!({"session": "s", "messages": [{"role": "user", "content": "It rains."}]});
    is_done(&caller.call("append_messages", &said).await);
    let session = caller.begin().await;
    let forget = json!({
        "name": "forget", "arguments": {"session": "s"}, "_meta": {"progressToken": "p1"},
    });
    let answer = Answer::of(caller.within(&session, "tools/call", forget)).await;
    is_done(&result(&answer));
    let progress = answer.text.matches("notifications/progress").count();
    assert!(progress >= 2 && answer.text.contains("\"p1\""), "{answer:?}");
    let log = service.request(reqwest::Method::GET, "/v1/audit").bearer_auth(&admin);
    let log = Answer::of(log).await.ok();
    let done = |entry: &&Value| entry["action"] == "session.erase" && entry["outcome"] == "done";
    assert_eq!(log["items"].as_array().unwrap().iter().filter(done).count(), 1, "{log}");
}

/// Rates are a key's, whatever it calls.
#[tokio::test]
async fn a_caller_past_its_rate_is_told_when_to_come_again() {
    let data = Throughline::new();
    let reader = key(&data, "acme", &["--user", "ana"], "read");
    let service = Service::start_with(&data, &["--set", "http.requests_per_minute=3"]);
    let caller = Caller::keyed(&service, &reader);
    let mut last = Answer::of(caller.alone("tools/list", json!({}))).await;
    for _ in 0..3 {
        last = Answer::of(caller.alone("tools/list", json!({}))).await;
    }
    last.problem(429, "rate_limited");
    assert!(last.headers.contains_key("retry-after"), "{last:?}");
}

#[tokio::test]
async fn a_context_tells_its_intent_and_what_it_saved() {
    let data = Throughline::new();
    let service = Service::start_with(&data, &SETS);
    let caller = Caller::local(&service);
    let asked = json!({"session": "s", "user_turn": "Where is the ferry?"});
    let told = caller.call("assemble_context", &asked).await["structuredContent"].clone();
    assert_eq!((&told["intent"], &told["tokens_saved"]), (&json!("context_lookup"), &json!(0)));
}
