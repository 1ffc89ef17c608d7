//! Clients that listen hear of what changed, in both eras, under the URI that they gave.

use serde_json::{Value, json};

use super::client::{alone, initialize, is_done, message};
use super::stdio::Process;
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
