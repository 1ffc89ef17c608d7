//! The documents of memories over HTTP: text in, the same text out, and nothing lost between writers.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::service::{Answer, Service};
use crate::support::{Throughline, payload};

const TEXT: &str = "# Description\r\nThe Alfred move.\r\n\r\n## Progress\n- 2025-08-15: deadline moved\n\
                    ```\n# not a heading\n```\n# Facts\n- CEO = Bob (日本)  \n";
const PATH: &str = "/v1/vaults/projects/memories/alfred/context";

struct World(Service);

impl World {
    fn new(data: &Throughline) -> Self {
        Self(Service::start_with(data, &["--set", "document.max_bytes=600"]))
    }

    fn putting(&self, query: &str, text: &str) -> RequestBuilder {
        let request = self.0.request(Method::PUT, &format!("{PATH}{query}"));
        request.header("content-type", "text/plain; charset=utf-8").body(text.to_owned())
    }

    async fn put(&self, query: &str, text: &str) -> Answer {
        Answer::of(self.putting(query, text)).await
    }

    async fn text(&self) -> String {
        self.0.get(PATH).await.text
    }

    async fn json(&self, path: &str) -> Value {
        let request = self.0.request(Method::GET, path).header("accept", "application/json");
        Answer::of(request).await.ok()
    }
}

fn etag(answer: &Answer) -> String {
    answer.headers["etag"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_text_comes_back_byte_for_byte() {
    let data = Throughline::new();
    let world = World::new(&data);
    world.0.get(PATH).await.problem(404, "not_found");
    let first = world.put("?context_id=c%201&actor_id=agent-7", TEXT).await;
    assert_eq!((first.status.as_u16(), first.ok()["outcome"].clone()), (201, json!("created")));
    let read = world.0.get(PATH).await;
    assert_eq!((read.text.as_str(), etag(&read)), (TEXT, etag(&first)));
    assert_eq!(read.headers["content-type"], "text/plain; charset=utf-8");
    assert_eq!(read.headers["throughline-context-id"], "c 1");
    assert_eq!(read.headers["throughline-actor-id"], "agent-7");
    let told = world.json(PATH).await;
    assert_eq!((&told["context"], &told["vault_id"]), (&json!(TEXT), &json!("projects")));
    assert_eq!((&told["memory_id"], &told["actor_id"]), (&json!("alfred"), &json!("agent-7")));
    assert_eq!(told["etag"], etag(&read).trim_matches('"'));
    // A JSON string is the same text.
    let again = world.0.request(Method::PUT, PATH).json(&json!(TEXT));
    assert_eq!(Answer::of(again).await.ok()["outcome"], "unchanged");
    let known = world.0.request(Method::GET, PATH).header("if-none-match", etag(&read));
    let known = Answer::of(known).await;
    assert_eq!((known.status.as_u16(), known.text.as_str()), (304, ""));
    let next = world.put("", "# Facts\n- CEO = Carol\n").await;
    assert_eq!((next.status.as_u16(), next.ok()["outcome"].clone()), (200, json!("added")));
    assert_eq!(next.ok()["actor_id"], "local", "the user, where none is named");
    let repeated = world.put("?context_id=c%201", TEXT).await;
    assert_eq!(repeated.ok()["outcome"], "repeated");
    assert_eq!(world.text().await, "# Facts\n- CEO = Carol\n");
    world.put("?context_id=c%201", "other").await.problem(409, "conflict");
}

#[tokio::test]
async fn a_stale_writer_is_told_and_nothing_is_lost() {
    let data = Throughline::new();
    let world = World::new(&data);
    let if_match = async |tag: &str, text: &str| {
        Answer::of(world.putting("", text).header("if-match", tag)).await
    };
    if_match("*", "one").await.problem(412, "precondition_failed");
    let first = etag(&world.put("", "one").await);
    let absent = Answer::of(world.putting("", "two").header("if-none-match", "*")).await;
    absent.problem(412, "precondition_failed");
    let second = if_match(&first, "two").await;
    assert_eq!(second.status.as_u16(), 200);
    let detail = if_match(&first, "three").await.problem(412, "precondition_failed");
    assert!(detail.contains(&etag(&second)), "{detail}");
    assert_eq!(world.text().await, "two");
    // A caller whose answer was lost sends the same again.
    assert_eq!(if_match(&first, "two").await.ok()["outcome"], "unchanged");
    let texts: Vec<String> = (0..12).map(|n| format!("by writer {n}")).collect();
    let tag = etag(&second);
    let race = texts.iter().map(|text| if_match(&tag, text));
    let answers = futures_util::future::join_all(race).await;
    let won: Vec<_> = answers.iter().filter(|answer| answer.status.is_success()).collect();
    assert_eq!(won.len(), 1, "{answers:?}");
    assert!(answers.iter().all(|answer| [200, 412].contains(&answer.status.as_u16())));
    let history = world.0.get("/v1/vaults/projects/memories/alfred/contexts").await.ok();
    assert_eq!(history["items"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn put_without_condition_is_never_refused() {
    let data = Throughline::new();
    let world = World::new(&data);
    let texts: Vec<String> = (0..30).map(|n| format!("by writer {n}")).collect();
    let puts = texts.iter().map(|text| world.put("", text));
    for answer in futures_util::future::join_all(puts).await {
        assert!(answer.status.is_success(), "{answer:?}");
    }
    let history = world.0.get("/v1/vaults/projects/memories/alfred/contexts").await.ok();
    let held: Vec<&Value> = history["items"].as_array().unwrap().iter().collect();
    assert_eq!(held.len(), 30);
    assert!(texts.contains(&world.text().await));
}

#[tokio::test]
async fn conditional_delete_needs_the_current_etag() {
    let data = Throughline::new();
    let world = World::new(&data);
    let of = "/v1/vaults/projects/memories/alfred";
    let erase = async |tag: &str| {
        Answer::of(world.0.request(Method::DELETE, of).header("if-match", tag)).await
    };
    let first = etag(&world.put("", "one").await);
    let second = etag(&world.put("", "two").await);
    for stale in [first.as_str(), "\"no etag\""] {
        let detail = erase(stale).await.problem(412, "precondition_failed");
        assert!(detail.contains(&second), "{detail}");
    }
    assert_eq!(world.text().await, "two");
    assert_eq!(erase(&second).await.ok()["documents"], 1);
    world.0.get(PATH).await.problem(404, "not_found");
    erase("*").await.problem(404, "not_found");
}

#[tokio::test]
async fn what_is_no_document_is_refused_and_leaves_nothing() {
    let data = Throughline::new();
    let world = World::new(&data);
    let table = [
        ("", "text/plain", b"".to_vec(), 400, "empty"),
        ("", "text/plain", b" \n\t".to_vec(), 400, "empty"),
        ("", "text/plain", b"a\0b".to_vec(), 400, "NUL"),
        ("", "text/plain", b"ab\xff".to_vec(), 400, "not valid UTF-8 at byte 2"),
        ("", "text/plain", vec![b'x'; 601], 413, "601 bytes: at most 600"),
        ("", "application/json", b"{\"facts\": [\"a\"]}".to_vec(), 400, "migrate=true"),
        ("?migrate=true", "application/json", b"{}".to_vec(), 400, "nothing to store"),
        ("", "application/json", b"[1]".to_vec(), 400, "JSON string"),
        ("", "application/json", b"\"a".to_vec(), 400, "not JSON"),
        ("", "application/x-www-form-urlencoded", b"a".to_vec(), 415, "text/plain"),
        ("", "text/plain; charset=latin1", b"a".to_vec(), 415, "utf-8"),
        (
            "?context_id=a%2Fb",
            "text/plain",
            b"a".to_vec(),
            400,
            "context_id must not look like a path",
        ),
        ("?context_id=", "text/plain", b"a".to_vec(), 400, "context_id is empty"),
        ("?actor_id=%20", "text/plain", b"a".to_vec(), 400, "actor_id"),
        ("?contextid=a", "text/plain", b"a".to_vec(), 400, "unknown field"),
    ];
    for (query, kind, body, status, said) in table {
        let request = world.0.request(Method::PUT, &format!("{PATH}{query}"));
        let answer = Answer::of(request.header("content-type", kind).body(body)).await;
        let detail = answer.problem(status, "invalid_input");
        assert!(detail.contains(said), "{query} {kind}: {detail}");
    }
    for path in
        ["/v1/vaults/a%2F..%2Fb/memories/m/context", "/v1/vaults/v/memories/%2e%2e%5c/context"]
    {
        let request = world.0.request(Method::PUT, path).header("content-type", "text/plain");
        let detail = Answer::of(request.body("x")).await.problem(400, "invalid_input");
        assert!(detail.contains("must not look like a path"), "{detail}");
    }
    world.0.get(PATH).await.problem(404, "not_found");
    assert_eq!(world.0.get("/v1/vaults").await.ok()["items"], json!([]));
    let bad = world.0.get("/v1/vaults/projects/search?q=+").await.problem(400, "invalid_input");
    assert!(bad.contains("empty"), "{bad}");
    world.0.get("/v1/vaults/projects/search?q=a&limit=51").await.problem(400, "invalid_input");
}

#[tokio::test]
async fn old_documents_become_text() {
    let data = Throughline::new();
    let world = World::new(&data);
    let old = json!({"timeline": ["2025-07-05 – CEO changed"], "facts": {"ceo": "Bob", "team": 7},
        "activeContext": "Moving Alfred", "nothing": null});
    let put = world.0.request(Method::PUT, &format!("{PATH}?migrate=true")).json(&old);
    assert_eq!(Answer::of(put).await.ok()["outcome"], "created");
    let text = "# Active context\nMoving Alfred\n\n# Facts\n\n## Ceo\nBob\n\n## Team\n7\n\n\
                # Timeline\n- 2025-07-05 – CEO changed\n";
    assert_eq!(world.text().await, text);
    let again = world.0.request(Method::PUT, &format!("{PATH}?migrate=true")).json(&old);
    assert_eq!(Answer::of(again).await.ok()["outcome"], "unchanged");
    let putting = |body: &str| {
        let put = world.0.request(Method::PUT, &format!("{PATH}?migrate=true"));
        Answer::of(put.header("content-type", "application/json").body(body.to_owned()))
    };
    let numbers = r##"{"b": [12345678901234567890123, 1.10], "a": "# X\n```\nopen"}"##;
    assert_eq!(putting(numbers).await.ok()["outcome"], "added");
    let text = "# A\n\\# X\n```\nopen\n```\n\n# B\n- 12345678901234567890123\n- 1.10\n";
    assert_eq!(world.text().await, text);
    let twice = putting(r#"{"a": 1, "a": 2}"#).await.problem(400, "invalid_input");
    assert!(twice.contains("twice"), "{twice}");
    assert_eq!(world.text().await, text);
}

#[tokio::test]
async fn sections_history_and_search_are_read_from_the_text() {
    let data = Throughline::new();
    let world = World::new(&data);
    world.put("?context_id=c1", TEXT).await.ok();
    let sections = world.0.get(&format!("{PATH}/sections")).await.ok();
    let names: Vec<&str> = sections["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|section| section["section"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["description", "progress", "facts"]);
    let progress = world.0.get(&format!("{PATH}/sections/progress")).await;
    assert_eq!(progress.text, &TEXT[TEXT.find("## Pro").unwrap()..TEXT.find("# Facts").unwrap()]);
    let told = world.json(&format!("{PATH}/sections/Facts")).await;
    let offset = usize::try_from(told["offset"].as_u64().unwrap()).unwrap();
    assert_eq!(told["text"], TEXT[offset..]);
    let detail = world.0.get(&format!("{PATH}/sections/nowhere")).await.problem(404, "not_found");
    assert!(detail.contains("description, progress, facts"), "{detail}");

    let changed = TEXT.replace("Bob", "Carol");
    world.put("?context_id=c2", &changed).await.ok();
    let of = "/v1/vaults/projects/memories/alfred";
    let page = world.0.get(&format!("{of}/contexts?limit=1")).await.ok();
    assert_eq!(page["items"][0]["context_id"], "c2");
    let cursor = page["next_cursor"].as_str().unwrap();
    let page = world.0.get(&format!("{of}/contexts?limit=1&cursor={cursor}")).await.ok();
    assert_eq!(
        (&page["items"][0]["context_id"], &page["next_cursor"]),
        (&json!("c1"), &Value::Null)
    );
    assert_eq!(world.0.get(&format!("{of}/contexts/c1")).await.text, TEXT);
    assert_eq!(world.text().await, changed);
    let diff = world.0.get(&format!("{of}/diff?from=c1&to=c2")).await.ok();
    let diff = diff["diff"].as_str().unwrap();
    assert!(diff.contains("-- CEO = Bob") && diff.contains("+- CEO = Carol"), "{diff}");
    assert_eq!(world.0.get(&format!("{of}/diff?from=c2")).await.ok()["diff"], "");

    let found = world.0.get("/v1/vaults/projects/search?q=Who+is+the+CEO%3F").await.ok();
    let best = &found["items"][0];
    assert_eq!((&best["section"], &best["context_id"]), (&json!("facts"), &json!("c2")));
    assert!(best["text"].as_str().unwrap().contains("Carol"));
    assert!(!found.to_string().contains("Bob"), "only the latest is searched");
    assert_eq!(world.0.get("/v1/vaults/other/search?q=CEO").await.ok()["items"], json!([]));
    let vaults = world.0.get("/v1/vaults").await.ok();
    assert_eq!(vaults["items"][0]["memory_count"], 1);
    let memories = world.0.get("/v1/vaults/projects/memories").await.ok();
    assert_eq!(memories["items"][0]["snapshot_count"], 2);

    let turn = json!({"user_turn": "Who is the CEO?"});
    let context = world.0.post("/v1/sessions/s1/assemble", &turn).await.ok();
    assert!(payload(&context).contains("CEO = Carol"), "{context}");
    let item = context["items"].as_array().unwrap().iter().find(|item| item["kind"] == "document");
    assert_eq!(item.unwrap()["source"], "doc:projects/alfred/c2#facts");

    let erased = world.0.delete(of).await.ok();
    assert_eq!(erased["documents"], 1);
    world.0.get(PATH).await.problem(404, "not_found");
    world.0.delete(of).await.problem(404, "not_found");
    let context = world.0.post("/v1/sessions/s1/assemble", &turn).await.ok();
    assert!(!payload(&context).contains("Carol"), "{context}");
    let audit = world.0.get("/v1/audit").await.ok().to_string();
    assert!(audit.contains("document.erase") && !audit.contains("alfred"), "{audit}");
}
