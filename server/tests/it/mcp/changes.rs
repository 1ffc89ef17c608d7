//! Clients that listen hear of what changed, in both eras, under the URI that they gave.

use std::time::Duration;

use reqwest::Method;
use serde_json::{Value, json};

use super::client::{Caller, EVERYTHING, alone, ended, hears, initialize, is_done, message};
use super::stdio::Process;
use crate::http::service::{Answer, Service, key};
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
fn session_is_notified_of_subscribed_resources() {
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
fn listen_stream_is_notified_of_requested_changes() {
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
async fn clients_are_notified_of_changes_by_others() {
    let data = Throughline::new();
    let service = Service::start_with(
        &data,
        &["--set", r#"mcp.tool_sets=["memory","sessions","documents","persona"]"#],
    );
    let caller = Caller::local(&service);
    let document = "throughline://vault/port/memory/harbour";

    let wanted = json!({"notifications": {
        "resourceSubscriptions": [document], "resourcesListChanged": true,
    }});
    let mut listening = caller.alone("subscriptions/listen", wanted).send().await.unwrap();
    hears(&mut listening, &["subscriptions/acknowledged"]).await;
    let session = caller.begin().await;
    let mut open = caller.stream(&session).await;
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

async fn put(service: &Service, memory: &str, text: &'static str) {
    let path = format!("/v1/vaults/port/memories/{memory}/context");
    let put = service.request(Method::PUT, &path).header("content-type", "text/plain").body(text);
    assert!(Answer::of(put).await.status.is_success());
}

#[tokio::test]
async fn unreadable_resource_hides_no_other_change() {
    let data = Throughline::new();
    let service = Service::start_with(&data, &["--set", r#"mcp.tool_sets=["documents"]"#]);
    for memory in ["berth", "harbour"] {
        put(&service, memory, "The ferry has berth seven.").await;
    }
    let documents =
        ["berth", "harbour"].map(|name| format!("throughline://vault/port/memory/{name}"));
    let wanted = json!({"notifications": {"resourceSubscriptions": documents}});
    let caller = Caller::local(&service);
    let mut listening = caller.alone("subscriptions/listen", wanted).send().await.unwrap();
    put(&service, "harbour", "It has berth nine.").await;
    hears(&mut listening, &[&documents[1]]).await;

    let file = rusqlite::Connection::open(data.database()).unwrap();
    let broken = "UPDATE document_snapshot SET etag = x'00' WHERE document_id = \
                  (SELECT id FROM document WHERE memory = 'berth')";
    assert_eq!(file.execute(broken, []).unwrap(), 1);
    let text = "vaults/port/memories/berth/context";
    assert_eq!(service.get(&format!("/v1/{text}")).await.status, 500);
    put(&service, "harbour", "It has berth ten.").await;
    let told = [documents[1].as_str()];
    let heard = hears(&mut listening, &told);
    tokio::time::timeout(Duration::from_secs(20), heard).await.expect("one hides the other");
    service.logged("were not checked").await;
    assert_eq!(service.log().matches("were not checked").count(), 1, "{}", service.log());
}

#[tokio::test]
async fn streams_end_with_their_key() {
    let data = Throughline::new();
    let admin = key(&data, "acme", &["--user", "ana"], EVERYTHING);
    let made =
        data.json(&["keys", "create", "--tenant", "acme", "--user", "bo", "--permissions", "read"]);
    let service = Service::start(&data);
    let caller = Caller::keyed(&service, made["key"].as_str().unwrap());
    let uri = "throughline://vault/port/memory/harbour";
    let wanted = json!({"notifications": {"resourceSubscriptions": [uri]}});
    let mut listening = caller.alone("subscriptions/listen", wanted).send().await.unwrap();
    hears(&mut listening, &["subscriptions/acknowledged"]).await;
    let session = caller.begin().await;
    let open = caller.stream(&session).await;
    let watch = caller.within(&session, "resources/subscribe", json!({"uri": uri}));
    assert_eq!(Answer::of(watch).await.status, 200);

    let path = format!("/v1/keys/{}", made["id"].as_str().unwrap());
    let revoked = Answer::of(service.request(Method::DELETE, &path).bearer_auth(&admin)).await;
    assert!(revoked.status.is_success(), "{revoked:?}");
    ended(open).await;
    let said = ended(listening).await;
    assert!(said.contains("unauthenticated"), "{said}");
}

#[tokio::test]
async fn a_key_that_does_not_read_hears_nothing() {
    let data = Throughline::new();
    let keys = ["read", "write", "read,write"]
        .map(|permissions| key(&data, "acme", &["--user", "ana"], permissions));
    let service = Service::start_with(&data, &["--set", r#"mcp.tool_sets=["persona"]"#]);
    let [reads, writes, both] = keys.map(|key| Caller::keyed(&service, &key));
    let (heard, silent) = (reads.begin().await, writes.begin().await);
    let (mut heard, open) = (reads.stream(&heard).await, writes.stream(&silent).await);
    for _ in 0..2 {
        let create = json!({"action": "create_from_preset", "presetId": "preset-calm-counselor"});
        is_done(&both.call("context-manage", &create).await);
        hears(&mut heard, &["notifications/resources/list_changed"]).await;
    }
    let end = writes.request(Method::DELETE).header("mcp-session-id", &silent);
    assert_eq!(Answer::of(end).await.status, 204);
    let said = ended(open).await;
    assert!(!said.contains("list_changed"), "{said}");
}

#[tokio::test]
async fn refuses_streams_over_limit() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let caller = Caller::local(&service);
    let listen = || caller.alone("subscriptions/listen", json!({"notifications": {}}));
    let mut open = Vec::new();
    for _ in 0..128 {
        let mut stream = listen().send().await.unwrap();
        hears(&mut stream, &["subscriptions/acknowledged"]).await;
        open.push(stream);
    }
    let refused = ended(listen().send().await.unwrap()).await;
    assert!(refused.contains("too many streams"), "{refused}");
    assert!(refused.contains("-32600"), "{refused}");
    // A caller may invent workspaces.
    let other = caller.clone().with("throughline-workspace", "other");
    let other = other.alone("subscriptions/listen", json!({"notifications": {}}));
    let refused = ended(other.send().await.unwrap()).await;
    assert!(refused.contains("too many streams"), "{refused}");
    drop(open);
    let again = async {
        loop {
            let mut stream = listen().send().await.unwrap();
            let first = stream.chunk().await.unwrap().unwrap();
            if tokio::time::timeout(Duration::from_secs(1), stream.chunk()).await.is_err() {
                return first;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), again).await.expect("none comes free");
}

#[tokio::test]
async fn streams_of_one_key_leave_connections_to_the_others() {
    let data = Throughline::new();
    let greedy = key(&data, "acme", &["--any-user"], "read");
    let other = key(&data, "bolt", &["--user", "bob"], "read");
    let service = Service::start_with(&data, &["--set", "http.max_connections=16"]);
    let listen = async |key: &str, user: &str| {
        let caller = Caller::keyed(&service, key).with("throughline-user", user);
        let listen = caller.alone("subscriptions/listen", json!({"notifications": {}}));
        listen.send().await.unwrap()
    };
    let mut open = Vec::new();
    for n in 0..4 {
        let mut stream = listen(&greedy, &format!("user{n}")).await;
        hears(&mut stream, &["subscriptions/acknowledged"]).await;
        open.push(stream);
    }
    let refused = listen(&greedy, "user5").await;
    assert_eq!(refused.status(), 429);
    assert!(refused.headers().contains_key("retry-after"));
    let refused = refused.text().await.unwrap();
    assert!(refused.contains("requests of MCP open"), "{refused}");
    hears(&mut listen(&other, "bob").await, &["subscriptions/acknowledged"]).await;
    assert_eq!(service.get("/healthz").await.status, 200);
}
