//! Erasure by HTTP: no byte of what was erased is left in a file, in the log or in an answer, what lay beside
//! it is, and no backup brings it back. What was rejected stays so.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::service::{Answer, Service, key};
use crate::erasure::{CANARY, holders};
use crate::support::{Throughline, payload};

/// A service with a key that acts for users.
struct Tenant {
    service: Service,
    key: String,
}

impl Tenant {
    async fn ask(&self, user: &str, method: Method, path: &str, body: Value) -> Answer {
        let request = self.service.request(method, path).bearer_auth(&self.key);
        let request = request.header("Throughline-User", user);
        Answer::of(if body.is_null() { request } else { request.json(&body) }).await
    }

    async fn get(&self, user: &str, path: &str) -> Answer {
        self.ask(user, Method::GET, path, Value::Null).await
    }

    async fn post(&self, user: &str, path: &str, body: Value) -> Value {
        self.ask(user, Method::POST, path, body).await.ok()
    }

    async fn delete(&self, user: &str, path: &str) -> Value {
        self.ask(user, Method::DELETE, path, Value::Null).await.ok()
    }

    async fn recalled(&self, user: &str) -> String {
        let turn = json!({"user_turn": "Where does the crew of the walnut harbor work?"});
        payload(&self.post(user, "/v1/sessions/asking/assemble", turn).await)
    }

    /// Fails when a file, the log, or an answer of an operation that reads holds the canary.
    async fn shows_nothing(&self, data: &Throughline, users: &[&str], gone: &Gone) {
        assert_eq!(holders(&data.data_dir()), Vec::<String>::new());
        assert!(!self.service.log().contains(CANARY), "the log holds what was erased");
        let document = self.service.get("/openapi.json").await.ok();
        for (template, item) in document["paths"].as_object().unwrap() {
            // It tells the caller the name that the caller sent.
            if item["get"].is_null() || template == "/v1/whoami" {
                continue;
            }
            let id = match template.starts_with("/v1/facts/") {
                true => &gone.fact,
                false => &gone.session,
            };
            for user in users {
                let answer = self.get(user, &template.replace("{id}", id)).await;
                assert!(!answer.status.is_server_error(), "{template}: {answer:?}");
                let shown = answer.text.to_lowercase();
                assert!(!shown.contains(CANARY), "{template} as {user}: {answer:?}");
            }
        }
        for user in users {
            let turn = json!({"user_turn": "Where does Anna live, and who is she?"});
            let context = self.post(user, "/v1/sessions/asking/assemble", turn).await.to_string();
            assert!(!context.contains(CANARY), "{context}");
        }
        // Nor have the questions brought anything back.
        assert_eq!(holders(&data.data_dir()), Vec::<String>::new());
    }
}

/// What was erased, to be asked for afterwards.
struct Gone {
    session: String,
    fact: String,
}

/// A batch with the canary in every field of some messages, and a sibling between them.
fn batch(from: usize) -> Value {
    let told = |n: usize| {
        json!({
            "role": "user",
            "content": format!(
                "I live in {CANARY}. My favorite color is {CANARY}{n}. Mail anna@{CANARY}.example.org."
            ),
            "name": format!("Anna {CANARY}"),
            "external_id": format!("{CANARY}-{n}"),
            "parts": [{"type": "text", "text": CANARY}],
            "attachments": [{"url": format!("https://example.org/{CANARY}")}],
        })
    };
    let kept = json!({"role": "user", "content": "I work at the walnut harbor with the crew."});
    json!({"messages": [told(from), kept, told(from + 1)]})
}

fn file(message: Option<&str>) -> Value {
    json!({
        "type": "uploaded", "title": format!("{CANARY}.pdf"), "message_id": message,
        "reference": format!("https://example.org/{CANARY}.pdf"), "metadata": {"of": CANARY},
    })
}

fn counted(erased: &Value, of: &[&str]) {
    for of in of {
        assert!(erased[*of].as_u64().unwrap() > 0, "{of}: {erased}");
    }
}

#[tokio::test]
async fn erased_data_is_gone_and_no_backup_restores_it() {
    let data = Throughline::new();
    let admin = key(&data, "acme", &["--any-user"], "read,write,admin");
    let mut tenant = Tenant { service: Service::start(&data), key: admin };
    let files = data.data_dir();
    let backup = data.folder().join("older.db");
    let backup = backup.to_str().unwrap();

    // Messages, by id: what came in the same batch stays.
    let told = tenant.post("ana", "/v1/sessions/one/messages", batch(0)).await;
    let ids = [0, 2].map(|at| told["messages"][at]["id"].as_str().unwrap().to_owned());
    tenant.post("ana", "/v1/sessions/one/files", file(Some(&ids[0]))).await;
    assert!(!holders(&files).is_empty(), "the canary is where it can be found");
    let fact = tenant.get("ana", "/v1/facts").await.ok()["items"][0]["id"].clone();
    let path = format!("/v1/sessions/one/messages?ids={},{}", ids[0], ids[1]);
    let erased = tenant.delete("ana", &path).await;
    assert_eq!(erased["messages"], 2, "{erased}");
    counted(&erased, &["tokens", "facts", "entities", "files"]);
    let fact = fact.as_str().unwrap().to_owned();
    let mut gone = Gone { session: "one".to_owned(), fact };
    tenant.shows_nothing(&data, &["ana"], &gone).await;
    assert!(tenant.recalled("ana").await.contains("walnut harbor"));

    // A session, with the canary in its name; its grant goes with it.
    let named = format!("{CANARY}-session");
    let path = format!("/v1/sessions/{named}");
    for n in 0..20 {
        tenant.post("ana", &format!("{path}/messages"), batch(2 * n)).await;
    }
    tenant.post("ana", &format!("{path}/files"), file(None)).await;
    let share = json!({"members": ["bo"], "writable": true});
    tenant.ask("ana", Method::PUT, &format!("{path}/share"), share.clone()).await.ok();
    let erased = tenant.delete("ana", &path).await;
    assert_eq!((&erased["sessions"], &erased["messages"]), (&json!(1), &json!(60)), "{erased}");
    counted(&erased, &["tokens", "facts", "entities", "files", "summaries"]);
    gone.session = named;
    tenant.shows_nothing(&data, &["ana", "bo"], &gone).await;
    assert!(tenant.recalled("ana").await.contains("walnut harbor"));

    // A user, with the canary in the name: memory, profile, grants from and to it, keys.
    let user = format!("anna-{CANARY}");
    tenant.post(&user, &format!("{path}/messages"), batch(0)).await;
    tenant.ask(&user, Method::PUT, &format!("{path}/share"), share).await.ok();
    let slot = json!({
        "text": format!("Anna is {CANARY}."), "subject": format!("Anna {CANARY}"),
        "attribute": "name", "value": CANARY, "tags": [format!("project:{CANARY}")],
    });
    gone.fact = tenant.post(&user, "/v1/facts", slot).await["id"].as_str().unwrap().to_owned();
    let card = json!({"card": CANARY, "rules": format!("Mention {CANARY}.")});
    tenant.ask(&user, Method::PUT, "/v1/profile", card).await.ok();
    let bound = json!({"name": format!("of {CANARY}"), "user": user, "permissions": ["read"]});
    let bound = tenant.post("root", "/v1/keys", bound).await["key"].as_str().unwrap().to_owned();
    let with = json!({"members": [user, "bo"]});
    tenant.ask("ana", Method::PUT, "/v1/sessions/one/share", with).await.ok();
    data.json(&["backup", backup]);
    let erased = tenant.delete("root", &format!("/v1/users/{user}")).await;
    assert_eq!((&erased["sessions"], &erased["messages"]), (&json!(1), &json!(3)), "{erased}");
    counted(&erased, &["facts", "entities"]);
    let whoami = tenant.service.request(Method::GET, "/v1/whoami").bearer_auth(&bound);
    assert_eq!(Answer::of(whoami).await.status, StatusCode::UNAUTHORIZED);
    tenant.shows_nothing(&data, &["ana", "bo", "root", &user], &gone).await;
    assert!(tenant.recalled("ana").await.contains("walnut harbor"));
    let members = tenant.get("ana", "/v1/sessions/one/share").await.ok()["members"].clone();
    assert_eq!(members, json!(["bo"]));

    // The backup holds the user, and is brought up to date before it is served.
    tenant.service.kill();
    assert!(data.json(&["restore", backup, "--replace"])["erasures"].as_u64().unwrap() > 0);
    tenant.service = Service::start(&data);
    tenant.shows_nothing(&data, &["ana", "bo", "root", &user], &gone).await;
    assert!(tenant.recalled("ana").await.contains("walnut harbor"));
}

/// The same statement as a look-alike of it would be imported.
const AGAIN: [&str; 5] = [
    "I live in Berlin.",
    "I live in BERLIN.",
    "I  live in   berlin .",
    "I live in \u{0412}erlin.",
    "I live in B\u{0435}rl\u{0456}n.",
];

impl Tenant {
    /// Texts of the facts that hold.
    async fn holding(&self) -> Vec<String> {
        let facts = self.get("ana", "/v1/facts?limit=500").await.ok();
        let facts = facts["items"].as_array().unwrap().iter();
        facts
            .filter(|fact| fact["holds"] == true && fact["kind"] != "retraction")
            .map(|fact| fact["text"].as_str().unwrap().to_owned())
            .collect()
    }

    /// Says it all again, as a new source, and looks what is believed.
    async fn insists(&self, session: &str) {
        for (n, text) in AGAIN.iter().chain(&["My favorite color is teal."]).enumerate() {
            let said = json!({"messages": [{"role": "user", "content": text}]});
            self.post("ana", &format!("/v1/sessions/{session}-{n}/messages"), said).await;
            let holding = self.holding().await;
            let wrong = |text: &&String| text.contains("live") || text.contains("teal");
            assert_eq!(holding.iter().find(wrong), None, "{text}: {holding:?}");
            assert!(holding.iter().any(|text| text.contains("green")), "{text}: {holding:?}");
        }
        let query = json!({"query": "Where do I live?", "limit": 24});
        let found = self.post("ana", "/v1/facts/search", query).await.to_string();
        assert!(!found.to_lowercase().contains("berlin"), "{found}");
    }
}

#[tokio::test]
async fn rejections_survive_imports_restarts_and_restores() {
    let data = Throughline::new();
    let admin = key(&data, "acme", &["--any-user"], "read,write,admin");
    let mut tenant = Tenant { service: Service::start(&data), key: admin };
    let said = json!({"messages": [
        {"role": "user", "content": "I live in Berlin."},
        {"role": "user", "content": "My favorite color is teal."},
    ]});
    tenant.post("ana", "/v1/sessions/first/messages", said).await;
    let facts = tenant.get("ana", "/v1/facts").await.ok();
    let id = |word: &str| {
        let all = facts["items"].as_array().unwrap().iter();
        let found = all.map(|fact| (fact.to_string(), &fact["id"]));
        let mut found = found.filter(|(text, _)| text.contains(word));
        found.next().unwrap_or_else(|| panic!("{word}: {facts}")).1.as_str().unwrap().to_owned()
    };
    let backup = data.folder().join("older.db");
    let backup = backup.to_str().unwrap();
    data.json(&["backup", backup]);

    tenant.delete("ana", &format!("/v1/facts/{}", id("Berlin"))).await;
    let right = json!({"text": "My favorite color is green.", "value": "green"});
    let path = format!("/v1/facts/{}", id("teal"));
    let corrected = tenant.ask("ana", Method::PATCH, &path, right.clone()).await.ok();
    assert_eq!(corrected["value"], "green");
    tenant.insists("again").await;

    tenant.service.kill();
    tenant.service = Service::start(&data);
    tenant.insists("restarted").await;

    tenant.service.kill();
    data.json(&["restore", backup, "--replace"]);
    tenant.service = Service::start(&data);
    // The correction is newer than the backup; what it rejected is rejected there, too.
    let holding = tenant.holding().await;
    assert!(!holding.iter().any(|text| text.contains("teal")), "{holding:?}");
    let green = json!({
        "text": "My favorite color is green.", "subject": "user", "attribute": "favorite color",
        "value": "green",
    });
    tenant.post("ana", "/v1/facts", green).await;
    tenant.insists("restored").await;
}
