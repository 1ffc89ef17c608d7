//! What was taken away comes back by no older copy: of the store, of an export, of a guest.

use reqwest::Method;
use serde_json::{Value, json};

use crate::http::service::{Answer, Service, key};
use crate::stores::Store;

crate::stores::on_every_store! {
    members_who_were_taken_out_of_a_grant_stay_out_after_a_restore,
    a_guest_who_was_erased_stays_erased_after_a_restore,
    a_guests_copies_are_held_back_after_the_grant_was_taken_back,
    erased_messages_of_contexts_are_imported_by_who_says_so,
    the_backup_of_a_context_brings_nothing_erased_back,
}

async fn ask(service: &Service, key: &str, method: Method, path: &str, body: Value) -> Answer {
    let request = service.request(method, path);
    let request = if key.is_empty() { request } else { request.bearer_auth(key) };
    Answer::of(if body.is_null() { request } else { request.json(&body) }).await
}

async fn say(service: &Service, key: &str, session: &str, content: &str) -> Answer {
    let body = json!({"messages": [{"role": "user", "content": content}]});
    ask(service, key, Method::POST, &format!("/v1/sessions/{session}/messages"), body).await
}

/// Shares a session. Returns the id of the grant.
async fn share(service: &Service, key: &str, session: &str, with: Value) -> String {
    let path = format!("/v1/sessions/{session}/share");
    text(&ask(service, key, Method::PUT, &path, with).await.ok()["session"])
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("no text: {value}")).to_owned()
}

async fn members_who_were_taken_out_of_a_grant_stay_out_after_a_restore(store: Store) {
    let data = store.fresh().await;
    let user = |user: &str| key(&data, "acme", &["--user", user], "read,write");
    let (ana, bob, carol) = (user("ana"), user("bob"), user("carol"));
    let service = Service::start(&data);
    say(&service, &ana, "plan", "This is the plan.").await.ok();
    let both = json!({"members": ["bob", "carol"], "writable": true});
    let grant = share(&service, &ana, "plan", both).await;
    drop(service);
    data.backup().await;

    let service = Service::start(&data);
    let less = json!({"members": ["carol"], "writable": false});
    assert_eq!(share(&service, &ana, "plan", less).await, grant);
    drop(service);
    data.restore(1).await;

    let service = Service::start(&data);
    let path = "/v1/sessions/plan/share";
    let held = ask(&service, &ana, Method::GET, path, Value::Null).await.ok();
    assert_eq!((&held["members"], &held["writable"]), (&json!(["carol"]), &json!(false)), "{held}");
    let path = format!("/v1/sessions/{grant}/messages");
    ask(&service, &bob, Method::GET, &path, Value::Null).await.problem(404, "not_found");
    ask(&service, &carol, Method::GET, &path, Value::Null).await.ok();
    assert_eq!(say(&service, &carol, &grant, "May I?").await.status, 403);
    // Who is taken in again stays in.
    let again = json!({"members": ["bob", "carol"]});
    share(&service, &ana, "plan", again).await;
    drop(service);
    let service = Service::start(&data);
    ask(&service, &bob, Method::GET, &path, Value::Null).await.ok();
}

async fn a_guest_who_was_erased_stays_erased_after_a_restore(store: Store) {
    let data = store.fresh().await;
    let admin = key(&data, "acme", &["--any-user"], "read,write,admin");
    let ana = key(&data, "acme", &["--user", "ana"], "read,write");
    // A guest without any memory of their own.
    let guest = key(&data, "acme", &["--user", "bob"], "read");
    let service = Service::start(&data);
    say(&service, &ana, "plan", "This is the plan.").await.ok();
    share(&service, &ana, "plan", json!({"members": ["bob", "carol"]})).await;
    share(&service, &ana, "plan", json!({"members": ["bob", "carol"]})).await;
    drop(service);
    data.backup().await;

    let service = Service::start(&data);
    let erased = ask(&service, &admin, Method::DELETE, "/v1/users/bob", Value::Null).await;
    assert!(erased.status.is_success(), "{erased:?}");
    drop(service);
    data.restore(3).await;

    let service = Service::start(&data);
    let path = "/v1/sessions/plan/share";
    let held = ask(&service, &ana, Method::GET, path, Value::Null).await.ok();
    assert_eq!(held["members"], json!(["carol"]));
    let whoami = ask(&service, &guest, Method::GET, "/v1/whoami", Value::Null).await;
    whoami.problem(401, "unauthenticated");
}

async fn a_guests_copies_are_held_back_after_the_grant_was_taken_back(store: Store) {
    let data = store.fresh().await;
    let admin = key(&data, "acme", &["--any-user"], "read,write,admin");
    let user = |user: &str| key(&data, "acme", &["--user", user], "read,write");
    let (ana, bob) = (user("ana"), user("bob"));
    let mut copies = Vec::new();
    let service = Service::start(&data);
    for (session, word) in [("plan", "saffron"), ("diary", "sumac"), ("own", "thyme")] {
        say(&service, &ana, session, &format!("The word is {word}.")).await.ok();
        let grant = share(&service, &ana, session, json!({"members": ["bob"]})).await;
        let path = format!("/v1/sessions/{grant}/messages");
        let seen = ask(&service, &bob, Method::GET, &path, Value::Null).await.ok();
        let message = &seen["items"][0];
        // As a file of their own, without the time at which it was said.
        let copy = json!({
            "role": "user", "session": "copies", "content": message["content"],
            "throughline_id": message["id"],
        });
        copies.push(copy.to_string());
        let path = format!("/v1/sessions/{session}/share");
        let taken_back = ask(&service, &ana, Method::DELETE, &path, Value::Null).await;
        assert!(taken_back.status.is_success(), "{taken_back:?}");
    }
    data.file("plan.jsonl", &copies[0]);
    data.file("rest.jsonl", copies[1..].join("\n"));
    ask(&service, &ana, Method::DELETE, "/v1/sessions/plan", Value::Null).await.ok();
    drop(service);
    let import = |file: &str| {
        let of_guest = ["--set", "identity.tenant=acme", "--set", "identity.user=bob"];
        let report = data.json(&[&["import", file], &of_guest[..]].concat());
        (report[0]["held_back"].clone(), report[0]["messages"].clone())
    };
    assert_eq!(import("plan.jsonl"), (json!(1), json!(0)));
    // It is the same where the owner is erased.
    let service = Service::start(&data);
    ask(&service, &admin, Method::DELETE, "/v1/users/ana", Value::Null).await.ok();
    drop(service);
    assert_eq!(import("rest.jsonl"), (json!(2), json!(0)));
}

/// A context with two messages. Returns its id.
async fn make_context(service: &Service, word: &str) -> String {
    let export = json!({"export": {
        "format": "throughline.context", "version": 1,
        "context": {"name": "Guide", "system_prompt": "You are a calm guide."},
        "conversations": [
            {"role": "user", "content": format!("The word is {word}."),
             "created_at": "2026-01-01T10:00:00Z"},
            {"role": "assistant", "content": "Noted.", "created_at": "2026-01-01T10:00:01Z"}
        ]
    }});
    let made = ask(service, "", Method::POST, "/v1/contexts/import", export).await;
    assert_eq!(made.status, 201, "{made:?}");
    text(&made.json()["id"])
}

async fn erased_messages_of_contexts_are_imported_by_who_says_so(store: Store) {
    let data = store.fresh().await;
    let service = Service::start(&data);
    let id = make_context(&service, "saffron").await;
    drop(service);
    data.json(&["export", "--to", "all.jsonl"]);
    let service = Service::start(&data);
    let path = format!("/v1/contexts/{id}?permanent=true");
    ask(&service, "", Method::DELETE, &path, Value::Null).await.ok();
    drop(service);

    let report = data.json(&["import", "all.jsonl", "--include-erased"]);
    assert_eq!((&report[0]["contexts"], &report[0]["held_back"]), (&json!(1), &json!(0)));
    let service = Service::start(&data);
    let contexts = ask(&service, "", Method::GET, "/v1/contexts", Value::Null).await.ok();
    let id = text(&contexts["items"][0]["id"]);
    let path = format!("/v1/contexts/{id}/export");
    let copy = ask(&service, "", Method::GET, &path, Value::Null).await.text;
    assert!(copy.contains("saffron") && copy.contains("Noted."), "{copy}");
    // Who does not say so gets the context without them.
    let path = format!("/v1/contexts/{id}?permanent=true");
    ask(&service, "", Method::DELETE, &path, Value::Null).await.ok();
    drop(service);
    let report = data.json(&["import", "all.jsonl"]);
    assert_eq!((&report[0]["contexts"], &report[0]["held_back"]), (&json!(1), &json!(2)));
}

async fn the_backup_of_a_context_brings_nothing_erased_back(store: Store) {
    let data = store.fresh().await;
    let service = Service::start(&data);
    let asked = async |method, path: &str| ask(&service, "", method, path, Value::Null).await;
    let id = make_context(&service, "saffron").await;
    let path = format!("/v1/contexts/{id}");
    let backups = format!("{path}/backups");
    // Deleting it makes a backup, and restoring it keeps that.
    asked(Method::DELETE, &path).await.ok();
    asked(Method::POST, &format!("{path}/restore")).await.ok();
    let held = asked(Method::GET, &backups).await.ok();
    let restore = format!("{backups}/{}/restore", text(&held["items"][0]["id"]));
    let copy = asked(Method::POST, &restore).await.json();
    assert_eq!(copy["held_back"], 0, "{copy}");
    drop(service);
    data.backup().await;

    let service = Service::start(&data);
    let asked = async |method, path: &str| ask(&service, "", method, path, Value::Null).await;
    for id in [&id, &text(&copy["id"])] {
        let shown = asked(Method::GET, &format!("/v1/contexts/{id}/export")).await.json();
        let gone = text(&shown["conversations"][0]["id"]);
        let path = format!("/v1/contexts/{id}/conversations?ids={gone}");
        asked(Method::DELETE, &path).await.ok();
    }
    // The backups that held it went with it, and come back with no older copy of the store.
    assert_eq!(asked(Method::GET, &backups).await.ok()["items"], json!([]));
    asked(Method::POST, &restore).await.problem(404, "not_found");
    drop(service);
    data.restore(2).await;
    let service = Service::start(&data);
    let asked = async |method, path: &str| ask(&service, "", method, path, Value::Null).await;
    asked(Method::POST, &restore).await.problem(404, "not_found");
    let shown = asked(Method::GET, &format!("{path}/export")).await.text;
    assert!(!shown.contains("saffron") && shown.contains("Noted."), "{shown}");
    assert!(!data.holds("saffron").await);
}
