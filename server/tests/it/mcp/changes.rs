//! Clients that listen hear of what changed, in both eras, under the URI that they gave.

use reqwest::Method;
use serde_json::{Value, json};

use super::client::{Caller, alone, hears, initialize, is_done, message};
use super::stdio::Process;
use crate::http::service::{Answer, Service};
use crate::support::Throughline;

fn request(id: u32, method: &str, params: Value) -> Value {
    let mut request = message(method, params);
    request["id"] = json!(id);
    request
}

fn create(id: u32, params: fn(Value) -> Value) -> Value {
    let arguments = json!({"action": "create_from_preset", "presetId": "preset-calm-counselor"});
    request(id, "tools/call", params(json!({"name": "context-manage", "arguments": arguments})))
}

fn rename(id: u32, context: &str, params: fn(Value) -> Value) -> Value {
    let arguments = json!({"action": "update", "contextId": context, "name": "Ombud"});
    request(id, "tools/call", params(json!({"name": "context-manage", "arguments": arguments})))
}

/// The messages up to the answer to a request, without it.
fn heard(process: &mut Process, asked: &Value, last: &str) -> Vec<Value> {
    process.send(asked.to_string().as_bytes());
    let (mut heard, mut answered) = (Vec::new(), false);
    while !answered || !heard.iter().any(|told: &Value| told["params"]["uri"] == last) {
        let told = process.next();
        if told["id"] == asked["id"] {
            is_done(&told["result"]);
            answered = true;
        } else {
            heard.push(told);
        }
    }
    heard
}

#[test]
fn a_session_hears_of_what_it_watches() {
    let data = Throughline::new();
    let mut process = Process::start(&data, "persona");
    let begun = process.ask(&initialize());
    assert_eq!(begun["result"]["capabilities"]["resources"]["subscribe"], true, "{begun}");
    process.send(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#);
    let uri = "mcp-llm-generator://contexts";
    let watch = request(2, "resources/subscribe", json!({"uri": uri}));
    assert!(process.ask(&watch)["result"].is_object());
    let foreign = request(3, "resources/subscribe", json!({"uri": "file:///etc/passwd"}));
    assert_eq!(process.ask(&foreign)["error"]["code"], -32002);

    let told = heard(&mut process, &create(4, |params| params), uri);
    assert!(
        told.iter().any(|told| told["method"] == "notifications/resources/updated"),
        "{told:?}"
    );
    let end = request(5, "resources/unsubscribe", json!({"uri": uri}));
    assert!(process.ask(&end)["result"].is_object());
    assert!(process.end());
}

#[test]
fn a_subscription_hears_of_what_it_asked_for() {
    let data = Throughline::new();
    let mut process = Process::start(&data, "persona");
    let made = process.ask(&create(1, alone));
    let context = made["result"]["structuredContent"]["context"]["id"].as_str().unwrap().to_owned();
    let uri = format!("throughline://context/{context}");
    let wanted = json!({"notifications": {"resourceSubscriptions": [uri]}});
    process.send(request(2, "subscriptions/listen", alone(wanted)).to_string().as_bytes());
    let acknowledged = process.next();
    assert_eq!(
        acknowledged["method"], "notifications/subscriptions/acknowledged",
        "{acknowledged}"
    );

    let told = heard(&mut process, &rename(3, &context, alone), &uri);
    assert!(told.iter().all(|told| told["params"]["uri"] == uri.as_str()), "{told:?}");
    assert!(
        told.iter().all(|told| told["method"] == "notifications/resources/updated"),
        "{told:?}"
    );
    assert!(process.end());
}

/// What is done over HTTP is heard over MCP, in both eras.
#[tokio::test]
async fn clients_hear_of_what_others_did() {
    let data = Throughline::new();
    let service = Service::start_with(&data, &["--set", r#"mcp.tool_sets=["memory","persona"]"#]);
    let caller = Caller::local(&service);
    let document = "throughline://vault/port/memory/harbour";

    let wanted = json!({"notifications": {
        "resourceSubscriptions": [document], "resourcesListChanged": true,
    }});
    let mut listening = caller.alone("subscriptions/listen", wanted).send().await.unwrap();
    hears(&mut listening, &["subscriptions/acknowledged"]).await;
    let session = caller.begin().await;
    let open = caller.request(Method::GET).header("mcp-session-id", &session);
    let mut open = open.header("accept", "text/event-stream").send().await.unwrap();
    for uri in ["throughline://contexts", document] {
        let watch = caller.within(&session, "resources/subscribe", json!({"uri": uri}));
        assert_eq!(Answer::of(watch).await.status, 200);
    }

    let new = json!({"preset_id": "preset-calm-counselor"});
    let made = service.post("/v1/contexts", &new).await.ok();
    let lists = "notifications/resources/list_changed";
    hears(&mut open, &["throughline://contexts", lists]).await;
    hears(&mut listening, &[lists]).await;

    let put = service.request(Method::PUT, "/v1/vaults/port/memories/harbour/context");
    let put = put.header("content-type", "text/plain").body("The ferry has berth seven.");
    assert!(Answer::of(put).await.status.is_success());
    hears(&mut open, &[document]).await;
    hears(&mut listening, &[document]).await;

    // What is erased with its session is no more.
    let session = made["session"].as_str().unwrap();
    assert!(service.delete(&format!("/v1/sessions/{session}")).await.status.is_success());
    hears(&mut open, &["throughline://contexts", lists]).await;
    hears(&mut listening, &[lists]).await;
}
