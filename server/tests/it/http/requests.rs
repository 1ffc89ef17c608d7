//! What is wrong with a request is told by field, and nothing of it is stored.

use reqwest::Method;
use serde_json::{Value, json};

use super::service::{Answer, Service, key};
use crate::support::Throughline;

#[tokio::test]
async fn a_bad_request_is_told_what_is_wrong_and_the_next_one_works() {
    let data = Throughline::new();
    let service = Service::start_with(&data, &["--set", "http.max_body_mb=1"]);
    let append = "/v1/sessions/s1/messages";
    let content = |content: Value| json!({"messages": [{"role": "user", "content": content}]});
    let table = [
        (append, json!({}), "missing field `messages`"),
        (append, json!({"messages": []}), "1 to 1000 messages"),
        (append, content(json!("")), "content is empty"),
        (append, content(json!(7)), "messages[0].content"),
        (append, content(json!("a\u{0}b")), "NUL"),
        (append, json!({"messages": [{"role": "boss", "content": "x"}]}), "messages[0].role"),
        (
            append,
            json!({"messages": [{"role": "user", "content": "x", "scope": "y"}]}),
            "unknown field `scope`",
        ),
        (
            append,
            json!({"messages": [{"role": "user", "content": "x", "created_at": "soon"}]}),
            "is not a time",
        ),
        (
            append,
            json!({"messages": [{"role": "user", "content": "x", "external_id": " x"}]}),
            "messages[0]: external_id",
        ),
        ("/v1/sessions/s1/assemble", json!({"user_turn": "  "}), "user_turn"),
        (
            "/v1/sessions/s1/assemble",
            json!({"user_turn": "x", "token_budget": 2_000_000}),
            "token_budget",
        ),
        ("/v1/sessions/s1/assemble", json!({"user_turn": "x", "tier": "huge"}), "tier"),
        ("/v1/sessions/%20s1/messages", content(json!("x")), "white space"),
        ("/v1/facts", json!({"text": "x", "subject": "y"}), "give all three or none"),
        ("/v1/facts/search", json!({"query": "x", "limit": 0}), "k (or `limit`) must be 1 to 24"),
        ("/v1/search", json!({"query": "x", "k": 0}), "k (or `limit`) must be 1 to 100"),
        ("/v1/search", json!({"query": " "}), "query"),
        ("/v1/search", json!({"query": "x", "since": "then"}), "time"),
        ("/v1/sessions/s1/assemble", json!({"user_turn": "x", "k": 0}), "at least 1"),
        ("/v1/facts/search", json!({"query": ""}), "query"),
        (append, json!([[]]), "expected a JSON object"),
        (append, json!({"messages": [["user", "x"]]}), "expected a JSON object"),
        ("/v1/keys", json!({"permissions": ["read"]}), "any_user"),
        ("/v1/keys", json!({"any_user": true, "permissions": []}), "permissions"),
    ];
    for (path, body, said) in table {
        let detail = service.post(path, &body).await.problem(400, "invalid_input");
        assert!(detail.contains(said), "{path} {body}: {detail}");
    }
    for (path, said) in [
        ("/v1/sessions?limit=0", "limit must be 1 to 500"),
        ("/v1/sessions?limit=x", "limit"),
        ("/v1/sessions?cursor=zz", "cursor"),
        ("/v1/sessions?cursor=%2B1", "cursor"),
        ("/v1/sessions?cursor=00000000000000001", "cursor"),
        ("/v1/sessions?tenant=acme", "unknown field `tenant`"),
        ("/v1/facts/7", "`7` is not the id of a fact: give its whole id or the last 8 digits"),
        ("/v1/usage?from=2026-02-02&to=2026-02-01", "from and to"),
        ("/v1/sessions/%FF", "path"),
    ] {
        let detail = service.get(path).await.problem(400, "invalid_input");
        assert!(detail.contains(said), "{path}: {detail}");
    }

    let raw = |kind: &'static str, body: &str| {
        service.request(Method::POST, append).header("content-type", kind).body(body.to_owned())
    };
    let detail = Answer::of(raw("application/json", "{\"messages\": [")).await;
    assert!(detail.problem(400, "invalid_input").contains("EOF"), "{detail:?}");
    Answer::of(raw("application/json", "{} {}")).await.problem(400, "invalid_input");
    Answer::of(raw("text/plain", "{}")).await.problem(415, "invalid_input");
    let large = content(json!("x".repeat(2 << 20))).to_string();
    Answer::of(raw("application/json", &large)).await.problem(413, "invalid_input");
    service.get("/v1/nothing").await.problem(404, "not_found");
    service.delete("/v1/profile").await.problem(405, "invalid_input");
    service.get("/v1/sessions/s1").await.problem(404, "not_found");
    for method in [Method::OPTIONS, Method::TRACE, Method::PATCH] {
        let answer = Answer::of(service.request(method, "/v1/profile")).await;
        answer.problem(405, "invalid_input");
        assert_eq!(answer.headers["allow"], "GET,HEAD,PUT", "{answer:?}");
    }
    // Names are UTF-8 wherever they are, and no longer than a name.
    for name in [&b"an\xffa"[..], b"", &[b'x'; 201]] {
        let value = reqwest::header::HeaderValue::from_bytes(name).unwrap();
        for header in ["Throughline-User", "Throughline-Workspace"] {
            let request = service.request(Method::GET, "/v1/sessions").header(header, &value);
            Answer::of(request).await.problem(400, "invalid_input");
        }
    }

    let detail = service
        .post("/v1/sessions/s1/assemble", &json!({"user_turn": "x", "token_budget": 3}))
        .await
        .problem(422, "budget_too_small");
    assert!(detail.contains(|c: char| c.is_ascii_digit()), "the least that works: {detail}");
    assert_eq!(service.get("/v1/sessions").await.ok()["items"], json!([]), "nothing was stored");

    let appended = service.post(append, &content(json!("The ferry leaves at nine."))).await.ok();
    assert_eq!(appended["messages"][0]["seq"], 1);
    let context = json!({"user_turn": "When does the ferry leave?"});
    let context = service.post("/v1/sessions/s2/assemble", &context).await.ok();
    assert!(crate::support::payload(&context).contains("The ferry leaves at nine."));
}

#[tokio::test]
async fn a_repeated_post_is_answered_as_it_was_and_changes_nothing() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let send = async |path: &str, key: &str, body: &Value| {
        let request = service.request(Method::POST, path).header("Idempotency-Key", key);
        Answer::of(request.json(body)).await
    };
    let path = "/v1/sessions/s1/messages";
    let body = json!({"messages": [
        {"role": "user", "content": "The ferry leaves at nine."},
        {"role": "assistant", "content": "Noted."},
    ]});
    let first = send(path, "k1", &body).await.ok();
    let again = send(path, "k1", &body).await.ok();
    let ids = |answer: &Value| {
        let messages = answer["messages"].as_array().unwrap();
        messages.iter().map(|message| message["id"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(ids(&first), ids(&again));
    assert_eq!(again["messages"][1]["replayed"], true);
    let other = json!({"messages": [{"role": "user", "content": "Another."}]});
    send(path, "k1", &other).await.problem(409, "conflict");
    send("/v1/sessions/s2/messages", "k1", &body).await.problem(409, "conflict");
    let held = service.get(path).await.ok();
    assert_eq!(held["items"].as_array().unwrap().len(), 2);

    let fact = json!({"text": "The pier is closed."});
    let first = send("/v1/facts", "k2", &fact).await.ok();
    let again = send("/v1/facts", "k2", &fact).await.ok();
    assert_eq!(first["id"], again["id"]);
    let opened = send("/v1/sessions", "k3", &json!({})).await.ok();
    let again = send("/v1/sessions", "k3", &json!({})).await.ok();
    assert_eq!(opened["id"], again["id"]);
    let new_key = json!({"any_user": true, "permissions": ["read"]});
    send("/v1/keys", "k4", &new_key).await.ok();
    // From here on there are keys, and nobody is the local user any more.
    send("/v1/keys", "k4", &new_key).await.problem(401, "unauthenticated");
}

#[tokio::test]
async fn lists_go_page_by_page_and_ids_may_be_any_text() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let names = ["a b", "日本語", "x/y?z#", "..", "%2e%2e", "s1"];
    for name in names {
        let opened = service.post("/v1/sessions", &json!({"id": name})).await.ok();
        assert_eq!(opened["id"], name);
    }
    let mut seen = Vec::new();
    let mut path = "/v1/sessions?limit=2".to_owned();
    loop {
        let page = service.get(&path).await.ok();
        let items = page["items"].as_array().unwrap().clone();
        assert!(items.len() <= 2);
        seen.extend(items.iter().map(|item| item["id"].as_str().unwrap().to_owned()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        path = format!("/v1/sessions?limit=2&cursor={cursor}");
    }
    assert_eq!(seen, names);
    for (name, encoded) in [("a b", "a%20b"), ("x/y?z#", "x%2Fy%3Fz%23"), ("日本語", "日本語")]
    {
        let session = service.get(&format!("/v1/sessions/{encoded}")).await.ok();
        assert_eq!(session["id"], name);
    }
}

#[tokio::test]
async fn a_page_of_large_messages_ends_early() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let path = "/v1/sessions/large/messages";
    let large = "x".repeat(900_000);
    let texts: Vec<String> = (0..20).map(|number| format!("Message {number}.")).collect();
    for texts in texts.chunks(10) {
        let message = |text: &String| json!({"role": "user", "content": text, "parts": [large]});
        let messages: Vec<_> = texts.iter().map(message).collect();
        service.post(path, &json!({"messages": messages})).await.ok();
    }
    let (mut seen, mut pages) = (Vec::new(), 0);
    let mut next = format!("{path}?limit=500");
    loop {
        let page = service.get(&next).await.ok();
        let items = page["items"].as_array().unwrap();
        seen.extend(items.iter().map(|item| item["content"].as_str().unwrap().to_owned()));
        pages += 1;
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        next = format!("{path}?limit=500&cursor={cursor}");
    }
    assert_eq!(seen, texts);
    assert!(pages > 1, "18 MB came at once");
}

/// A store numbers the keys and the audit entries of all tenants together.
#[tokio::test]
async fn a_cursor_tells_nothing_of_other_tenants_and_belongs_to_its_list() {
    let data = Throughline::new();
    let mine = key(&data, "acme", &["--any-user"], "read,admin");
    for _ in 0..3 {
        key(&data, "bolt", &["--any-user"], "read");
        key(&data, "acme", &["--any-user"], "read");
    }
    let service = Service::start(&data);
    let ask = async |path: &str| {
        let request = service.request(Method::GET, path).bearer_auth(&mine);
        Answer::of(request).await.ok()
    };
    let through = async |list: &str| {
        let (mut found, mut cursors) = (Vec::new(), Vec::new());
        let mut page = ask(&format!("{list}?limit=1")).await;
        loop {
            found.extend(page["items"].as_array().unwrap().clone());
            let Some(cursor) = page["next_cursor"].as_str() else { return (found, cursors) };
            cursors.push(cursor.to_owned());
            page = ask(&format!("{list}?limit=1&cursor={cursor}")).await;
        }
    };
    let (keys, of_keys) = through("/v1/keys").await;
    let (entries, of_entries) = through("/v1/audit").await;
    assert_eq!(keys, *ask("/v1/keys").await["items"].as_array().unwrap());
    assert_eq!(entries, *ask("/v1/audit").await["items"].as_array().unwrap());
    assert_eq!((keys.len(), of_keys.len()), (4, 3));
    assert!(of_entries.len() > 2, "{of_entries:?}");
    for cursor in of_keys.iter().chain(&of_entries) {
        assert!(cursor.len() > 32, "{cursor} is a number");
    }
    assert!(of_keys.iter().all(|cursor| !of_entries.contains(cursor)));
}
