//! The audit log of a tenant: every change and every refusal of its keys, and nothing of what was said or of
//! who said it.

use std::collections::BTreeSet;
use std::time::Duration;

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use throughline_core::ports::Clock;
use throughline_engine::adapters::SystemClock;

use super::service::{Answer, Service, key};
use crate::support::Throughline;

/// In names and in contents, and in no entry.
const SECRET: &str = "zyxcanaryq";

async fn ask(
    service: &Service,
    key: &str,
    method: Method,
    path: &str,
    body: Value,
) -> (StatusCode, Value) {
    let user = format!("ana-{SECRET}");
    let request = service.request(method, path).bearer_auth(key).header("Throughline-User", user);
    let answer = Answer::of(if body.is_null() { request } else { request.json(&body) }).await;
    (answer.status, serde_json::from_str(&answer.text).unwrap_or_default())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn audit_log_has_every_change_and_refusal_without_content() {
    let data = Throughline::new();
    let all = "read,write,admin";
    let admin = key(&data, "acme", &["--any-user"], all);
    let stranger = key(&data, "bolt", &["--any-user"], all);
    let service = Service::start(&data);
    let done = async |method, path: &str, body| {
        let (status, answer) = ask(&service, &admin, method, path, body).await;
        assert!(status.is_success(), "{path}: {answer}");
        answer
    };
    let refused = async |key: &str, method, path: &str, body, expected: u16| {
        let (status, answer) = ask(&service, key, method, path, body).await;
        assert_eq!(status, expected, "{path}: {answer}");
    };
    let mut expected: BTreeSet<(&str, &str)> = BTreeSet::new();

    // Changes.
    let session = format!("/v1/sessions/s-{SECRET}");
    let said = json!({"messages": [
        {"role": "user", "content": format!("I live in {SECRET}."), "name": SECRET},
        {"role": "user", "content": format!("My favorite color is {SECRET}.")},
    ]});
    let said = done(Method::POST, &format!("{session}/messages"), said).await;
    let with = json!({"members": [format!("bo-{SECRET}")], "writable": true});
    done(Method::PUT, &format!("{session}/share"), with).await;
    done(Method::DELETE, &format!("{session}/share"), Value::Null).await;
    for word in ["one", "two"] {
        let fact = json!({"text": format!("{SECRET} is {word}.")});
        let fact = text(&done(Method::POST, "/v1/facts", fact).await["id"]);
        let path = format!("/v1/facts/{fact}");
        match word {
            "one" => {
                let right = json!({"text": format!("{SECRET} is three.")});
                done(Method::PATCH, &path, right).await
            }
            _ => done(Method::DELETE, &path, Value::Null).await,
        };
    }
    let own = json!({"client_config": {"own": SECRET}, "models": {"chat": SECRET}});
    done(Method::PUT, "/v1/settings", own).await;
    let path = format!("{session}/messages?ids={}", text(&said["messages"][0]["id"]));
    done(Method::DELETE, &path, Value::Null).await;
    done(Method::DELETE, &session, Value::Null).await;
    done(Method::DELETE, &format!("/v1/users/bo-{SECRET}"), Value::Null).await;
    let new = |permissions: &[&str], more: Value| {
        let mut new = json!({"name": SECRET, "user": format!("ana-{SECRET}")});
        new["permissions"] = json!(permissions);
        new.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        new
    };
    let made = done(Method::POST, "/v1/keys", new(&["read"], json!({}))).await;
    let path = format!("/v1/keys/{}", text(&made["id"]));
    let reader = done(Method::POST, &format!("{path}/rotate"), json!({})).await;
    let reader = text(&reader["key"]);
    expected.extend(
        [
            "key.create", "key.rotate", "key.revoke", "settings.change", "session.share",
            "session.unshare", "messages.erase", "message.erase", "session.erase", "user.erase",
            "fact.remember", "fact.correct", "fact.retract",
        ]
        .map(|action| (action, "done")),
    );

    // Refusals: a permission, a key that would permit more, another user than the key's, its old secret.
    refused(&reader, Method::PUT, "/v1/settings", json!({"tier": "light"}), 403).await;
    refused(&reader, Method::POST, &format!("{session}/messages"), said, 403).await;
    let lesser = new(&["read", "admin"], json!({}));
    let lesser = text(&done(Method::POST, "/v1/keys", lesser).await["key"]);
    refused(&lesser, Method::POST, "/v1/keys", new(&["write"], json!({})), 403).await;
    let other = service.request(Method::GET, "/v1/whoami").bearer_auth(&reader);
    let other = Answer::of(other.header("Throughline-User", format!("cy-{SECRET}"))).await;
    other.problem(403, "forbidden");
    refused(&text(&made["key"]), Method::GET, "/v1/whoami", Value::Null, 401).await;
    // A rate.
    let slow = done(Method::POST, "/v1/keys", new(&["read"], json!({"requests_per_minute": 1})));
    let slow = text(&slow.await["key"]);
    ask(&service, &slow, Method::GET, "/v1/whoami", Value::Null).await;
    refused(&slow, Method::GET, "/v1/whoami", Value::Null, 429).await;
    // The end of a key, by time and by decision.
    let soon = SystemClock.now().plus(Duration::from_secs(2)).to_rfc3339();
    let short = new(&["read"], json!({"expires_at": soon}));
    let short = text(&done(Method::POST, "/v1/keys", short).await["key"]);
    let path_of_reader = path;
    done(Method::DELETE, &path_of_reader, Value::Null).await;
    refused(&reader, Method::GET, "/v1/whoami", Value::Null, 401).await;
    while ask(&service, &short, Method::GET, "/v1/whoami", Value::Null).await.0.is_success() {}
    expected.extend([
        ("PUT /v1/settings", "forbidden"),
        ("POST /v1/sessions/{id}/messages", "forbidden"),
        ("key.create", "forbidden"),
        ("authenticate", "forbidden"),
        ("authenticate", "wrong_secret"),
        ("authenticate", "revoked_key"),
        ("authenticate", "expired_key"),
        ("call", "rate_limited"),
    ]);

    let log = done(Method::GET, "/v1/audit?limit=500", Value::Null).await;
    assert!(!log.to_string().contains(SECRET), "{log}");
    let entries = log["items"].as_array().unwrap();
    let field = |entry: &Value, field: &str| text(&entry[field]);
    let found: BTreeSet<(String, String)> =
        entries.iter().map(|entry| (field(entry, "action"), field(entry, "outcome"))).collect();
    let expected: BTreeSet<(String, String)> =
        expected.into_iter().map(|(action, outcome)| (action.into(), outcome.into())).collect();
    assert_eq!(found, expected);
    // What was done by a key bears it; the first keys are the operator's.
    let unnamed = entries.iter().filter(|entry| entry["key"].is_null());
    let unnamed: Vec<_> = unnamed.map(|entry| field(entry, "action")).collect();
    assert_eq!(unnamed, ["key.create"]);
    // Nothing of it is in the log of another tenant.
    let (_, theirs) = ask(&service, &stranger, Method::GET, "/v1/audit", Value::Null).await;
    assert_eq!(theirs["items"].as_array().unwrap().len(), 1, "{theirs}");
    assert!(!service.log().contains(SECRET), "the log of the process names a caller");
}
