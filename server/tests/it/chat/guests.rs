//! Chats in sessions and contexts that somebody shares, and with keys that may not read.

use reqwest::Method;
use serde_json::{Value, json};

use super::serve;
use super::upstream::{Next, Upstream, completion};
use crate::http::service::{Answer, Service, key};
use crate::mcp::client::Caller;
use crate::support::Throughline;

struct User<'s> {
    service: &'s Service,
    key: String,
}

impl User<'_> {
    async fn ask(&self, method: Method, path: &str, body: Value) -> Answer {
        let request = self.service.request(method, path).bearer_auth(&self.key);
        Answer::of(if body.is_null() { request } else { request.json(&body) }).await
    }

    /// Answers a turn under an idempotency key.
    async fn chat_once(&self, session: &str, turn: &Value) -> Answer {
        let path = format!("/v1/sessions/{session}/chat");
        let request = self.service.request(Method::POST, &path).bearer_auth(&self.key);
        Answer::of(request.header("Idempotency-Key", "one").json(turn)).await
    }
}

#[tokio::test]
async fn guests_have_their_own_idempotency_keys_and_names() {
    let (data, upstream) = (Throughline::new(), Upstream::start().await);
    let keys =
        ["ana", "bo", "cy"].map(|user| key(&data, "acme", &["--user", user], "read,write,chat"));
    let service = serve(&data, &upstream);
    let [ana, bo, cy] = keys.map(|key| User { service: &service, key });
    let said = json!({"messages": [{"role": "user", "content": "Good morning."}]});
    ana.ask(Method::POST, "/v1/sessions/trip/messages", said).await.ok();
    let grant = json!({"members": ["bo", "cy"], "writable": true});
    let grant = ana.ask(Method::PUT, "/v1/sessions/trip/share", grant).await.ok();
    let shared = grant["session"].as_str().unwrap();

    let call =
        json!({"id": "1", "type": "function", "function": {"name": "find", "arguments": "{}"}});
    let asks = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    upstream.then(Next::Json(200, completion(&asks, "tool_calls")));
    let tool = json!({"type": "function", "function": {"name": "find"}});
    let turn = json!({"user_turn": "Which gate?", "tools": [tool]});
    let steps = bo.chat_once(shared, &turn).await.ok()["steps"].clone();
    let mut steps = steps.as_array().unwrap().clone();
    steps.push(json!({"role": "tool", "tool_call_id": "1", "content": "B12"}));
    let turn = json!({"user_turn": "Which gate?", "tools": [tool], "steps": steps});
    upstream.says("Gate B12.");
    let first = bo.chat_once(shared, &turn).await.ok();
    upstream.says("B12.");
    let second = cy.chat_once(shared, &turn).await.ok();
    assert_eq!((&first["text"], &second["text"]), (&json!("Gate B12."), &json!("B12.")));
    let again = bo.chat_once(shared, &turn).await.ok();
    assert_eq!((&again["text"], &again["messages"][0]), (&first["text"], &first["messages"][0]));
    assert_eq!(upstream.asked().len(), 3);

    let held = ana.ask(Method::GET, "/v1/sessions/trip/messages", Value::Null).await.ok();
    let said = held["items"].as_array().unwrap().iter();
    let said: Vec<_> = said.map(|m| (m["role"].as_str().unwrap(), m["name"].as_str())).collect();
    // What a guest's client says of the tools is the guest's; the answer is the model's.
    let by = |name| {
        [("user", Some(name)), ("assistant", Some(name)), ("tool", Some(name)), ("assistant", None)]
    };
    assert_eq!(said[1..], [by("bo"), by("cy")].concat());
}

#[tokio::test]
async fn guests_do_not_filter_by_tags_and_streams_refuse_with_a_status() {
    let (data, upstream) = (Throughline::new(), Upstream::start().await);
    let keys = ["ana", "bo"].map(|user| key(&data, "acme", &["--user", user], "read,write,chat"));
    let flags = ["--set", r#"mcp.tool_sets=["persona"]"#];
    let service = super::serve_with(&data, &upstream, &flags);
    let [ana, bo] = keys.map(|key| User { service: &service, key });
    let new = json!({"name": "Guide", "system_prompt": "You are a guide."});
    let made = ana.ask(Method::POST, "/v1/contexts", new).await.ok();
    let context = made["id"].as_str().unwrap();
    let chat = format!("/v1/contexts/{context}/chat");
    let answer = ana.ask(Method::POST, &chat, json!({"message": "Hello!"})).await.ok();
    let answered = answer["messages"][1].as_str().unwrap();
    let tag = format!("/v1/contexts/{context}/conversations/{answered}/tags");
    ana.ask(Method::PUT, &tag, json!({"tags": ["secret"]})).await.ok();
    let grant = json!({"members": ["bo"], "writable": false});
    let grant = ana.ask(Method::PUT, &format!("/v1/contexts/{context}/share"), grant).await.ok();
    let shared = grant["session"].as_str().unwrap();

    let list = |id: &str| format!("/v1/contexts/{id}/conversations?tag=secret");
    let listed = ana.ask(Method::GET, &list(context), Value::Null).await.ok();
    assert_eq!(listed["items"].as_array().unwrap().len(), 1);
    let refused = bo.ask(Method::GET, &list(shared), Value::Null).await;
    assert!(refused.problem(403, "forbidden").contains("`tag`"), "{refused:?}");
    let caller = Caller::keyed(&service, &bo.key);
    let arguments = json!({"action": "list", "contextId": shared, "tag": "secret"});
    let told = caller.call("conversation-manage", &arguments).await;
    assert!(told["isError"] == true && told.to_string().contains("`tag`"), "{told}");

    let turn = json!({"message": "Hello!", "stream": true});
    let refused = bo.ask(Method::POST, &format!("/v1/contexts/{shared}/chat"), turn).await;
    refused.problem(403, "forbidden");
}

#[tokio::test]
async fn keys_see_only_what_they_may_read() {
    let (data, upstream) = (Throughline::new(), Upstream::start().await);
    let keys =
        ["read,write,chat", "chat", "write"].map(|may| key(&data, "acme", &["--user", "ana"], may));
    let service = serve(&data, &upstream);
    let [all, chats, writes] = keys.map(|key| User { service: &service, key });
    let said = json!({"messages": [{"role": "user", "content": "My locker code is 4471."}]});
    all.ask(Method::POST, "/v1/sessions/private/messages", said).await.ok();
    let new = json!({"name": "Osprey", "system_prompt": "You guard the nest.", "tags": ["birds"]});
    let made = all.ask(Method::POST, "/v1/contexts", new).await.ok();
    let context = format!("/v1/contexts/{}", made["id"].as_str().unwrap());

    // The model is shown what is recalled; the key is not.
    for stream in [false, true] {
        let turn = json!({"user_turn": "What is my locker code?", "stream": stream});
        let answer = chats.ask(Method::POST, "/v1/sessions/s/chat", turn.clone()).await;
        assert!(answer.status.is_success() && answer.text.contains("Yes."), "{answer:?}");
        assert!(upstream.last().body.to_string().contains("4471"));
        assert!(!answer.text.contains("4471") && !answer.text.contains("by_section"), "{answer:?}");
        let answer = all.ask(Method::POST, "/v1/sessions/t/chat", turn).await;
        assert!(answer.text.contains("4471"), "{answer:?}");
    }
    chats.ask(Method::POST, &format!("{context}/chat"), json!({"message": "Hello!"})).await.ok();

    // What changes a context does not show it.
    let hidden = |answer: &Answer| {
        for secret in ["Osprey", "nest", "birds"] {
            assert!(!answer.text.contains(secret), "{answer:?}");
        }
    };
    let grant = json!({"members": ["bo"]});
    for (method, path, body) in [
        (Method::POST, format!("{context}/extend"), json!({})),
        (Method::PATCH, context.clone(), json!({})),
        (Method::PUT, format!("{context}/share"), grant),
        (Method::DELETE, context.clone(), Value::Null),
        (Method::POST, format!("{context}/restore"), Value::Null),
    ] {
        let answer = writes.ask(method, &path, body).await;
        answer.ok();
        hidden(&answer);
    }
    let extended = all.ask(Method::POST, &format!("{context}/extend"), json!({})).await.ok();
    assert_eq!((&extended["name"], &extended["tags"]), (&json!("Osprey"), &json!(["birds"])));

    // Errors name the contexts to those who may read them only.
    for id in ["nonsense".to_owned(), uuid::Uuid::max().to_string()] {
        let unknown = format!("/v1/contexts/{id}");
        let refused = [
            writes.ask(Method::POST, &format!("{unknown}/extend"), json!({})).await,
            writes.ask(Method::PUT, &format!("{unknown}/share"), json!({"members": ["bo"]})).await,
            writes.ask(Method::DELETE, &unknown, Value::Null).await,
            chats.ask(Method::POST, &format!("{unknown}/chat"), json!({"message": "Hi"})).await,
        ];
        for refused in &refused {
            assert!(refused.status.is_client_error(), "{refused:?}");
            hidden(refused);
        }
        let told = all.ask(Method::GET, &unknown, Value::Null).await;
        assert!(told.text.contains("Osprey"), "{told:?}");
    }
}
