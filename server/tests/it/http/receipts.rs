//! What a key that may write and not read is answered: ids and versions.

use reqwest::Method;
use serde_json::{Value, json};

use super::access::{CANARY, cases, fill};
use super::service::{Answer, Service, key};
use crate::mcp::client::Caller;
use crate::support::Throughline;

/// What an answer may have: ids, versions, counts of what was removed, and what the call itself gave.
const ALLOWED: &[&str] = &[
    "id", "session", "version", "etag", "held_back", "warnings", "context", "erased", "messages",
    "deleted", "removed", "tags", "user", "helpful", "note", "rated_at", "sessions", "tokens",
    "facts", "entities", "files", "summaries", "documents",
];

/// Holds an answer against what it may have; `ids` are of the caller and may be in it.
fn check(what: &str, answer: &Answer, ids: &[&str]) {
    assert!(answer.status.is_success(), "{what}: {answer:?}");
    let told = ids.iter().fold(answer.text.clone(), |text, id| text.replace(id, "<id>"));
    assert!(!told.contains(CANARY), "{what}: {answer:?}");
    if answer.text.is_empty() {
        return;
    }
    let answer = answer.json();
    for object in [Some(&answer), answer.get("context")].into_iter().flatten() {
        for field in object.as_object().into_iter().flatten().map(|(field, _)| field) {
            assert!(ALLOWED.contains(&field.as_str()), "{what} answers `{field}`");
        }
    }
}

#[tokio::test]
async fn writes_without_read_are_answered_with_ids_and_versions() {
    let data = Throughline::new();
    let [all, writes] = ["read,write,chat,admin", "write,admin"]
        .map(|may| key(&data, "acme", &["--user", "ana"], may));
    let service = Service::start(&data);
    let things = fill(&service, &all).await;
    let ids = [&*things.session, things.preset()];
    let own = |method, path: &str, body: Value| {
        service.request(method, path).bearer_auth(&writes).json(&body)
    };

    let nothing = [
        (Method::PUT, "/v1/profile".to_owned()),
        (Method::PUT, "/v1/settings".to_owned()),
        (Method::PATCH, format!("/v1/contexts/{}", things.context)),
        (Method::POST, format!("/v1/contexts/{}/extend", things.context)),
        (Method::PATCH, format!("/v1/presets/{}", things.preset())),
    ];
    for (method, path) in nothing {
        let answer = Answer::of(own(method, &path, json!({}))).await;
        check(&path, &answer, &ids);
        assert!(answer.json()["version"].as_u64().is_some(), "{path}: {answer:?}");
    }
    // A session that is there already, and what the user rejected.
    let answer = Answer::of(own(Method::POST, "/v1/sessions", json!({"id": things.session}))).await;
    check("open_session", &answer, &ids);
    for case in cases().iter().filter(|case| case.needs == "write") {
        let answer = Answer::of(case.request(&service, &things).bearer_auth(&writes)).await;
        check(case.operation, &answer, &ids);
    }
    let rules = json!({"rules": format!("The code is {CANARY}.")});
    let warned = Answer::of(own(Method::PUT, "/v1/profile", rules)).await;
    check("change_profile", &warned, &[]);
    assert_eq!(warned.json()["warnings"].as_array().map(Vec::len), Some(1), "{warned:?}");
}

#[tokio::test]
async fn tools_that_write_quote_nothing_without_read() {
    let data = Throughline::new();
    let [all, writes] =
        ["read,write", "write"].map(|may| key(&data, "acme", &["--user", "ana"], may));
    let service = Service::start_with(&data, &["--set", r#"mcp.tool_sets=["memory","admin"]"#]);
    let [all, writes] = [all, writes].map(|key| Caller::keyed(&service, &key));
    let fact = json!({"text": "The harbour of Osprey Bay opens at nine."});
    all.call("remember", &fact).await;
    all.call("set_profile", &json!({"card": "Warden of Osprey Bay"})).await;

    let similar = json!({"text": "The harbour of the bay opens at nine."});
    for (tool, arguments) in [("remember", similar), ("set_profile", json!({}))] {
        let told = writes.call(tool, &arguments).await;
        assert!(told["isError"] != true && !told.to_string().contains("Osprey"), "{told}");
        let told = all.call(tool, &arguments).await;
        assert!(told.to_string().contains("Osprey"), "{told}");
    }
}
