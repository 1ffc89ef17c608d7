//! Data that is erased while a model answers from it: the answer is not stored.

use reqwest::Method;
use serde_json::{Value, json};

use super::upstream::Upstream;
use super::{complete, held, serve, start};
use crate::http::service::{Answer, Service, key};
use crate::support::Throughline;

async fn send(service: &Service, key: &str, method: Method, path: &str, body: &Value) -> Answer {
    let request = service.request(method, path).bearer_auth(key).header("Throughline-User", "ana");
    Answer::of(if body.is_null() { request } else { request.json(body) }).await
}

/// Says something in a session; the id of the message.
async fn say(service: &Service, session: &str, text: &str) -> String {
    let said = json!({"messages": [{"role": "user", "content": text}]});
    let path = format!("/v1/sessions/{session}/messages");
    let stored = service.post(&path, &said).await.ok();
    stored["messages"][0]["id"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn answer_made_of_erased_message_is_not_stored() {
    let (_data, upstream, service) = start().await;
    let message = say(&service, "trip", "My flight to Lisbon leaves at 7:40.").await;
    let release = upstream.says_later("At 7:40.");
    let turn = json!({"user_turn": "When does my flight leave?"});
    let erase = async {
        upstream.is_asked(1).await;
        service.delete(&format!("/v1/sessions/trip/messages?ids={message}")).await.ok();
        release.send(()).unwrap();
    };
    let (refused, ()) = tokio::join!(service.post("/v1/sessions/today/chat", &turn), erase);
    assert!(upstream.last().body.to_string().contains("7:40"));
    let detail = refused.problem(409, "conflict");
    assert!(detail.contains("erased") && detail.contains("again"), "{detail}");
    assert_eq!(held(&service, "today").await, []);

    // What was said in the meantime is no reason to refuse.
    let release = upstream.says_later("I do not know.");
    let said = async {
        upstream.is_asked(2).await;
        say(&service, "trip", "It is raining.").await;
        release.send(()).unwrap();
    };
    let (answer, ()) = tokio::join!(service.post("/v1/sessions/today/chat", &turn), said);
    answer.ok();
    assert_eq!(held(&service, "today").await.len(), 2);

    // A client of OpenAI has the answer, and it is not stored.
    let message = say(&service, "trip", "My flight to Porto leaves at 9:15.").await;
    let release = upstream.says_later("At 9:15.");
    let body =
        json!({"messages": [{"role": "user", "content": "When does my flight to Porto leave?"}]});
    let erase = async {
        upstream.is_asked(3).await;
        service.delete(&format!("/v1/sessions/trip/messages?ids={message}")).await.ok();
        release.send(()).unwrap();
    };
    let (answer, ()) = tokio::join!(complete(&service, &body, Some("client")), erase);
    assert_eq!(answer.ok()["choices"][0]["message"]["content"], "At 9:15.");
    service.logged("an answer was not stored").await;
    assert_eq!(held(&service, "client").await, []);
}

#[tokio::test]
async fn answer_does_not_bring_an_erased_user_back() {
    let (data, upstream) = (Throughline::new(), Upstream::start().await);
    let key = key(&data, "acme", &["--any-user"], "read,write,chat,admin");
    let service = serve(&data, &upstream);
    let ask =
        async |method, path: &str, body: Value| send(&service, &key, method, path, &body).await;
    let said = json!({"messages": [{"role": "user", "content": "My flight leaves at 7:40."}]});
    ask(Method::POST, "/v1/sessions/trip/messages", said).await.ok();
    let release = upstream.says_later("At 7:40.");
    let erase = async {
        upstream.is_asked(1).await;
        ask(Method::DELETE, "/v1/users/ana", Value::Null).await.ok();
        release.send(()).unwrap();
    };
    let turn = json!({"user_turn": "When does my flight leave?"});
    let (refused, ()) = tokio::join!(ask(Method::POST, "/v1/sessions/today/chat", turn), erase);
    refused.problem(409, "conflict");
    let sessions = ask(Method::GET, "/v1/sessions", Value::Null).await.ok();
    assert_eq!(sessions["items"], json!([]));
}

#[tokio::test]
async fn context_does_not_store_answer_made_of_erased_message() {
    let (_data, upstream, service) = start().await;
    let new = json!({"name": "Guide", "system_prompt": "You are a guide."});
    let context = service.post("/v1/contexts", &new).await.ok()["id"].as_str().unwrap().to_owned();
    let path = format!("/v1/contexts/{context}/chat");
    upstream.says("At nine.");
    service.post(&path, &json!({"message": "When does it open?"})).await.ok();
    let release = upstream.says_later("I said: at nine.");
    let erase = async {
        upstream.is_asked(2).await;
        let all = format!("/v1/contexts/{context}/conversations?all=true");
        service.delete(&all).await.ok();
        release.send(()).unwrap();
    };
    let question = json!({"message": "What did you say?"});
    let (refused, ()) = tokio::join!(service.post(&path, &question), erase);
    let detail = refused.problem(409, "conflict");
    assert!(detail.contains("erased"), "{detail}");
    assert_eq!(held(&service, &format!("context-{context}")).await, []);
    service.post(&path, &question).await.ok();
}
