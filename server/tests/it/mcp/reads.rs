//! What clients read beside calls of tools: completions, pages, how far a call is, and what the audit log has of it.

use reqwest::Method;
use serde_json::{Value, json};

use super::client::{ALL_TOOLS, Caller, EVERYTHING, ended, hears, is_done, result, text};
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
    let log = service.request(Method::GET, "/v1/audit").bearer_auth(&admin);
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

/// Makes a context whose export is more than a connection takes that nobody reads; how to ask for it.
async fn store_large(service: &Service, key: &str) -> Value {
    // Without words there is little to index.
    let content = "-".repeat(1_000_000);
    let said = json!({"role": "user", "content": content, "created_at": "2026-03-02T09:14:00Z"});
    let export = json!({
        "format": "throughline.context", "version": 1,
        "context": {"name": "Guide", "system_prompt": "You are a guide."},
        "conversations": vec![said; 5],
    });
    let import = service.request(Method::POST, "/v1/contexts/import").bearer_auth(key);
    let made = Answer::of(import.json(&json!({"export": export}))).await.ok();
    json!({
        "name": "context-manage", "arguments": {"action": "export", "contextId": made["id"]},
    })
}

#[tokio::test]
async fn answers_that_are_not_read_are_memory_of_their_key() {
    let data = Throughline::new();
    let greedy = key(&data, "acme", &["--user", "ana"], EVERYTHING);
    let service = Service::start(&data);
    let export = store_large(&service, &greedy).await;
    drop(service);
    let small = ["--set", "http.max_body_mb=1", "--set", "http.max_bodies_mb=72"];
    let service = Service::start_with(&data, &[&small[..], &ALL_TOOLS].concat());
    let greedy = Caller::keyed(&service, &greedy);
    let ask = || greedy.alone("tools/call", export.clone());
    let mut unread = ask().send().await.unwrap();
    hears(&mut unread, &["-----"]).await;
    let refused = result(&Answer::of(ask()).await);
    assert!(text(&refused).starts_with("rate_limited: "), "{refused}");
    assert!(text(&refused).contains("not read yet"), "{refused}");
    // What writes waits where its answer is large.
    let context = &export["arguments"]["contextId"];
    let update = json!({"action": "update", "contextId": context, "tags": ["a"]});
    is_done(&greedy.call("context-manage", &update).await);
    assert!(ended(unread).await.len() > 4 << 20);
    is_done(&result(&Answer::of(ask()).await));
}

#[tokio::test]
async fn a_page_that_is_too_large_says_how_many_messages_fit() {
    let data = Throughline::new();
    let service = Service::start_with(&data, &SETS);
    let caller = Caller::local(&service);
    let create = json!({"action": "create_from_preset", "presetId": "preset-calm-counselor"});
    let made = caller.call("context-manage", &create).await;
    let context = &made["structuredContent"]["context"]["id"];
    let session = format!("/v1/sessions/context-{}/messages", context.as_str().unwrap());
    let large = json!(["x".repeat(1_000_000)]);
    let message = json!({"role": "user", "content": "x", "parts": large, "attachments": large});
    service.post(&session, &json!({"messages": vec![message; 5]})).await.ok();
    let list = async |page: usize, size: usize| {
        let list = json!({
            "action": "list", "contextId": context, "page": page, "pageSize": size,
        });
        caller.call("conversation-manage", &list).await
    };
    let refused = list(1, 10).await;
    assert!(text(&refused).contains("pageSize: "), "{refused}");
    assert!(text(&refused).contains("ask for 2 at a time"), "{refused}");
    for page in 1..=3 {
        is_done(&list(page, 2).await);
    }
}
