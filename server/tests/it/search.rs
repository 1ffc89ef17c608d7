//! One search over messages, facts and documents: filters choose before anything is cut off.

use reqwest::Method;
use serde_json::{Value, json};

use crate::http::service::{Answer, Service};
use crate::support::Throughline;

async fn found(service: &Service, body: Value) -> Vec<Value> {
    let found = service.post("/v1/search", &body).await.ok();
    found["items"].as_array().unwrap().clone()
}

/// So much about one thing that only a part of it is looked at for a turn.
async fn fill(service: &Service, sessions: usize) {
    for session in 0..sessions {
        let messages: Vec<Value> = (0..100)
            .map(|at| {
                json!({
                    "role": "user", "created_at": "2026-03-05T10:00:00Z",
                    "content": format!(
                        "The ferry to pier {at} of harbour {session} leaves from the ferry berth with its \
                         ferry crew, and the ferry timetable for the ferry line {at} says so."
                    ),
                })
            })
            .collect();
        let path = format!("/v1/sessions/new-{session}/messages");
        service.post(&path, &json!({"messages": messages})).await.ok();
    }
}

#[tokio::test]
async fn filters_choose_among_everything() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let old = json!({"messages": [{
        "role": "user", "created_at": "2026-01-05T10:00:00Z",
        "content": "By the way, among many other things that we talked about on that long day, somebody once \
                    mentioned in passing that there is a ferry."
    }]});
    service.post("/v1/sessions/old/messages", &old).await.ok();
    fill(&service, 12).await;
    let query = "ferry timetable line berth crew";
    for filter in [json!({"session": "old"}), json!({"until": "2026-02-01"})] {
        let mut body = filter.clone();
        body["query"] = json!(query);
        let hits = found(&service, body).await;
        assert_eq!(hits.len(), 1, "{filter}: {hits:?}");
        assert_eq!(hits[0]["session"], "old");
        assert!(hits[0]["text"].as_str().unwrap().starts_with("user: By the way"), "{hits:?}");
    }
    let hits = found(&service, json!({"query": query, "kinds": ["message"], "k": 100})).await;
    assert_eq!(hits.len(), 100);
    let scores: Vec<f64> = hits.iter().map(|hit| hit["score"].as_f64().unwrap()).collect();
    let best = scores.iter().copied().fold(0.0, f64::max);
    assert!(scores.is_sorted_by(|a, b| *a > b - best / 10.0), "{scores:?}");
    assert!(found(&service, json!({"query": query, "session": "none"})).await.is_empty());
}

#[tokio::test]
async fn facts_are_found_though_their_message_is_and_as_many_as_are_asked_for() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let said =
        json!({"messages": [{"role": "user", "content": "From now on, answer in Portuguese."}]});
    service.post("/v1/sessions/s/messages", &said).await.ok();
    let hits = found(&service, json!({"query": "answer in Portuguese", "kinds": ["fact"]})).await;
    assert!(hits.iter().any(|hit| hit["text"].to_string().contains("Portuguese")), "{hits:?}");
    for at in 0..40 {
        let fact = json!({"text": format!("The crane at berth {at} lifts {at} tons.")});
        service.post("/v1/facts", &fact).await.ok();
        let text = format!("# Crane {at}\n\nThe crane at berth {at} was painted in year {at}.\n");
        let put = service.request(Method::PUT, &format!("/v1/vaults/v/memories/m{at}/context"));
        let put = put.header("content-type", "text/plain").body(text);
        assert!(Answer::of(put).await.status.is_success());
    }
    for kind in ["fact", "document"] {
        let hits = found(&service, json!({"query": "crane berth", "kinds": [kind], "k": 30})).await;
        assert_eq!(hits.len(), 30, "{kind}");
    }
    let kinds: Vec<Value> = found(&service, json!({"query": "crane berth Portuguese", "k": 4}))
        .await
        .iter()
        .map(|hit| hit["kind"].clone())
        .collect();
    assert_eq!(kinds, ["message", "fact", "document", "fact"], "kinds take turns");
}

#[tokio::test]
async fn newer_messages_of_the_same_words_come_first() {
    let data = Throughline::new();
    let service = Service::start(&data);
    for (database, at) in [("Postgres", "2026-01-05T10:00:00Z"), ("SQLite", "2026-03-05T10:00:00Z")]
    {
        let said = json!({"messages": [{
            "role": "assistant", "created_at": at,
            "content": format!("We decided that the database of the ledger is {database}.")
        }]});
        service.post(&format!("/v1/sessions/{database}/messages"), &said).await.ok();
    }
    let hits = found(&service, json!({"query": "database of the ledger"})).await;
    assert_eq!((hits.len(), &hits[0]["session"]), (2, &json!("SQLite")), "{hits:?}");
}

#[tokio::test]
async fn a_search_is_no_turn() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let said = json!({"messages": [{"role": "user", "content": "The ferry leaves at nine."}]});
    service.post("/v1/sessions/s/messages", &said).await.ok();
    let request =
        service.request(Method::PUT, "/v1/settings").json(&json!({"flags": {"recall": false}}));
    let set = Answer::of(request).await;
    assert!(set.status.is_success(), "{set:?}");
    assert_eq!(found(&service, json!({"query": "When does the ferry leave?"})).await.len(), 1);
    let used = service.get("/v1/usage").await.ok();
    assert!(!used.to_string().contains("\"contexts\":1"), "{used}");
}

#[tokio::test]
async fn a_persona_is_searched_by_its_session() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let new = json!({"name": "Guide", "system_prompt": "You are a calm guide of a harbour."});
    let made = service.post("/v1/contexts", &new).await.json();
    let id = made["id"].as_str().unwrap();
    let said = json!({"messages": [{"role": "user", "content": "The lighthouse is green."}]});
    let session = format!("context-{id}");
    service.post(&format!("/v1/sessions/{session}/messages"), &said).await.ok();
    let query = "lighthouse green";
    let own =
        found(&service, json!({"query": query, "session": session, "kinds": ["message"]})).await;
    assert_eq!(own.len(), 1);
    let other = found(&service, json!({"query": query, "kinds": ["message"]})).await;
    assert!(other.is_empty(), "its memory is off: {other:?}");
}
