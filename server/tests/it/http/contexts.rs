//! Contexts with a fixed character, over real HTTP: made, used, changed, deleted, taken out and in again.

use reqwest::Method;
use serde_json::{Value, json};

use super::service::{Answer, Service};
use crate::support::Throughline;

struct World {
    service: Service,
    _data: Throughline,
}

impl World {
    fn new() -> Self {
        Self::with(&[])
    }

    fn with(args: &[&str]) -> Self {
        let data = Throughline::new();
        Self { service: Service::start_with(&data, args), _data: data }
    }

    async fn get(&self, path: &str) -> Answer {
        self.service.get(path).await
    }

    async fn post(&self, path: &str, body: Value) -> Answer {
        self.service.post(path, &body).await
    }

    async fn send(&self, method: Method, path: &str, body: Value) -> Answer {
        Answer::of(self.service.request(method, path).json(&body)).await
    }

    async fn create(&self, name: &str) -> String {
        let new = json!({"name": name, "system_prompt": format!("You are {name}.")});
        text(&self.post("/v1/contexts", new).await.ok()["id"])
    }

    /// Says things in the session of a context, as a client with a model of its own does.
    async fn say(&self, context: &str, content: &str) {
        let path = format!("/v1/sessions/context-{context}/messages");
        let messages = json!({"messages": [
            {"role": "user", "content": content},
            {"role": "assistant", "content": format!("Noted: {content}")},
        ]});
        self.post(&path, messages).await.ok();
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_context_lives_from_its_creation_to_its_erasure() {
    let world = World::new();
    let new = json!({"preset_id": "preset-calm-counselor", "name": "Mine", "max_tokens": 99});
    let made = world.post("/v1/contexts", new).await;
    assert_eq!(made.status.as_u16(), 201);
    let made = made.ok();
    assert_eq!((&made["temperature"], &made["max_tokens"]), (&json!(0.6), &json!(99)));
    assert_eq!((&made["expiry_days"], &made["status"]), (&json!(14), &json!("active")));
    assert_eq!((&made["findings"], &made["memory"]), (&json!([]), &json!(false)));
    let path = format!("/v1/contexts/{}", text(&made["id"]));
    assert_eq!(world.get(&path).await.ok(), made);
    let session = world.get(&format!("/v1/sessions/{}", text(&made["session"]))).await.ok();
    assert_eq!(session["message_count"], 0);

    let change = json!({"system_prompt": "Be nice.", "tags": ["b", "a"], "expected_version": 1});
    let changed = world.send(Method::PATCH, &path, change.clone()).await.ok();
    assert_eq!((&changed["tags"], &changed["version"]), (&json!(["a", "b"]), &json!(2)));
    assert_eq!(changed["findings"][0]["code"], "no_role");
    world.send(Method::PATCH, &path, change).await.problem(409, "conflict");
    let extend = || {
        let request = world.service.request(Method::POST, &format!("{path}/extend"));
        request.header("Idempotency-Key", "e1").json(&json!({"days": 3}))
    };
    let extended = Answer::of(extend()).await.ok();
    assert!(text(&extended["expires_at"]) > text(&changed["expires_at"]));
    assert_eq!(Answer::of(extend()).await.ok(), extended, "a repeat adds no days");

    let deleted = world.service.delete(&path).await.ok();
    assert_eq!(deleted["context"]["status"], "deleted");
    assert!(deleted["context"]["erased_from"].is_string());
    world.get(&path).await.problem(404, "not_found");
    assert_eq!(world.get("/v1/contexts").await.ok()["items"], json!([]));
    let hidden = world.get("/v1/contexts?include_deleted=true").await.ok();
    assert_eq!(hidden["items"].as_array().unwrap().len(), 1);
    let restored = world.post(&format!("{path}/restore"), json!({})).await.ok();
    assert_eq!((&restored["status"], &restored["deleted_at"]), (&json!("active"), &Value::Null));
    world.post(&format!("{path}/restore"), json!({})).await.problem(409, "conflict");

    let erased = world.service.delete(&format!("{path}?permanent=true")).await.ok();
    assert_eq!(erased["erased"]["sessions"], 1);
    for gone in [path.clone(), format!("{path}/backups"), format!("{path}/export")] {
        world.get(&gone).await.problem(404, "not_found");
    }
    assert_eq!(world.get("/v1/contexts?include_deleted=true").await.ok()["items"], json!([]));
}

#[tokio::test]
async fn a_conversation_is_listed_searched_tagged_and_deleted() {
    let world = World::new();
    let id = world.create("Guide").await;
    for said in ["The harbor opens at nine.", "The kettle is copper.", "The shelf is walnut."] {
        world.say(&id, said).await;
    }
    let path = format!("/v1/contexts/{id}/conversations");
    let first = world.get(&format!("{path}?limit=4")).await.ok();
    assert_eq!(first["items"][0]["content"], "Noted: The shelf is walnut.");
    let cursor = text(&first["next_cursor"]);
    let second = world.get(&format!("{path}?limit=4&cursor={cursor}")).await.ok();
    assert_eq!(second["items"].as_array().unwrap().len(), 2);
    assert_eq!(second["next_cursor"], Value::Null);
    let oldest = world.get(&format!("{path}?limit=1&oldest_first=true")).await.ok();
    let message = text(&oldest["items"][0]["id"]);
    assert_eq!(oldest["items"][0]["content"], "The harbor opens at nine.");

    let look = json!({"query": "copper kettle", "limit": 1});
    let found = world.post(&format!("{path}/search"), look).await.ok();
    let hit = &found["items"][0];
    assert!(text(&hit["passage"]).contains("kettle") && hit["score"].as_f64().unwrap() > 0.0);

    let tags = json!({"tags": ["opening"]});
    let tag = format!("{path}/{message}/tags");
    assert_eq!(world.send(Method::PUT, &tag, tags.clone()).await.ok(), tags);
    let tagged = world.get(&format!("{path}?tag=opening")).await.ok();
    assert_eq!(
        (&tagged["items"][0]["id"], &tagged["items"][0]["tags"]),
        (&json!(message), &json!(["opening"]))
    );
    let unknown = format!("{path}/{}/tags", uuid::Uuid::max());
    world.send(Method::PUT, &unknown, tags).await.problem(404, "not_found");

    let both = format!("{path}?ids={message},{}", uuid::Uuid::max());
    world.service.delete(&both).await.problem(404, "not_found");
    let one = world.service.delete(&format!("{path}?ids={message}")).await.ok();
    assert_eq!(one, json!({"deleted": 1}));
    world.service.delete(&path).await.problem(400, "invalid_input");
    let old = world.service.delete(&format!("{path}?older_than=2020-01-01")).await.ok();
    assert_eq!(old, json!({"deleted": 0}));
    let all = world.service.delete(&format!("{path}?all=true")).await.ok();
    assert_eq!(all, json!({"deleted": 5}));
    assert_eq!(world.get(&path).await.ok()["items"], json!([]));
}

#[tokio::test]
async fn an_export_is_imported_and_a_backup_restored() {
    let world = World::new();
    let id = world.create("Guide").await;
    world.say(&id, "The harbor opens at nine.").await;
    let path = format!("/v1/contexts/{id}");
    let json_form = world.get(&format!("{path}/export")).await;
    assert_eq!(json_form.headers["content-type"], "application/json");
    let markdown = world.get(&format!("{path}/export?format=markdown")).await;
    assert_eq!(markdown.headers["content-type"], "text/markdown; charset=utf-8");
    assert!(markdown.text.starts_with("# Guide\n"), "{}", markdown.text);
    world.get(&format!("{path}/export?format=pdf")).await.problem(400, "invalid_input");
    let refused = world.post("/v1/contexts/import", json!({"text": markdown.text})).await;
    refused.problem(400, "invalid_input");
    for body in [json!({"export": json_form.json()}), json!({"text": json_form.text})] {
        let came = world.post("/v1/contexts/import", body).await.ok();
        assert_eq!((&came["name"], &came["turn_count"]), (&json!("Guide"), &json!(0)));
        let said = format!("/v1/contexts/{}/conversations", text(&came["id"]));
        let said = world.get(&said).await.ok();
        assert_eq!(said["items"][1]["content"], "The harbor opens at nine.");
    }
    let deleted = world.service.delete(&path).await.ok();
    assert_eq!(deleted["erased"], Value::Null);
    let backups = world.get(&format!("{path}/backups")).await.ok();
    let backup = &backups["items"][0];
    assert_eq!(backup["reason"], "deletion");
    let restore = format!("{path}/backups/{}/restore", text(&backup["id"]));
    let restored = world.post(&restore, json!({})).await.ok();
    assert_ne!(restored["id"], json!(id));
    // What is erased leaves its backups, too.
    let session = format!("/v1/sessions/context-{id}/messages?before=2999-01-01");
    assert_eq!(world.service.delete(&session).await.ok()["messages"], 2);
    let left = world.get(&format!("{path}/backups")).await.ok();
    assert_eq!(left["items"], json!([]));
}

#[tokio::test]
async fn a_preset_of_ones_own_is_made_used_and_removed() {
    let world = World::new();
    let listed = world.get("/v1/presets").await.ok();
    let built_in: Vec<&Value> = listed["items"].as_array().unwrap().iter().collect();
    assert_eq!(built_in.len(), 6);
    assert!(built_in.iter().all(|preset| preset["is_built_in"] == true));
    let new = json!({
        "id": "preset-poet", "name": "Poet", "system_prompt": "You are a playful poet.",
        "default_settings": {"temperature": 0.1}, "metadata": {"mood": "light"}
    });
    let made = world.post("/v1/presets", new.clone()).await.ok();
    assert_eq!(made["findings"][0]["code"], "contradicts_settings");
    assert_eq!(made["metadata"]["mood"], "light");
    world.post("/v1/presets", new).await.problem(409, "conflict");
    let warmer = json!({"default_settings": {"temperature": 0.9}, "expected_version": 1});
    let changed = world.send(Method::PATCH, "/v1/presets/preset-poet", warmer).await.ok();
    assert_eq!((&changed["findings"], &changed["version"]), (&json!([]), &json!(2)));
    let context = world.post("/v1/contexts", json!({"preset_id": "preset-poet"})).await.ok();
    assert_eq!((&context["name"], &context["temperature"]), (&json!("Poet"), &json!(0.9)));
    let used = world.get("/v1/presets/preset-poet").await.ok();
    assert_eq!(used["usage"]["contexts"], 1);
    for (removed, total) in [(false, 7), (true, 6)] {
        let gone = world.service.delete("/v1/presets/preset-poet").await.ok();
        assert_eq!(gone, json!({"id": "preset-poet", "removed": removed}));
        let all = world.get("/v1/presets?include_inactive=true").await.ok();
        assert_eq!(all["items"].as_array().unwrap().len(), total);
    }
    let told = world.get("/v1/presets/preset-poet").await.problem(404, "not_found");
    assert!(told.contains("preset-calm-counselor"), "{told}");
    let ours = "/v1/presets/preset-calm-counselor";
    world.service.delete(ours).await.problem(409, "conflict");
}

#[tokio::test]
async fn invalid_requests_are_explained_and_store_nothing() {
    let world = World::with(&["--set", "persona.max_contexts=1"]);
    let good = json!({"name": "A", "system_prompt": "You are A."});
    let with = |field: &str, value: Value| {
        let mut body = good.clone();
        body[field] = value;
        body
    };
    for (body, told) in [
        (json!({}), "name"),
        (json!({"name": "A"}), "system_prompt"),
        (with("name", json!("a\nb")), "name"),
        (with("temperature", json!(1.2)), "temperature"),
        (with("temperature", json!("hot")), "temperature"),
        (with("max_tokens", json!(0)), "max_tokens"),
        (with("max_history_tokens", json!(99)), "max_history_tokens"),
        (with("expiry_days", json!(-1)), "expiry_days"),
        (with("tags", json!(["a,b"])), "tags"),
        (with("unknown", json!(1)), "unknown field"),
        (with("preset_id", json!("../x")), "preset_id"),
    ] {
        let detail = world.post("/v1/contexts", body).await.problem(400, "invalid_input");
        assert!(detail.contains(told), "{told}: {detail}");
    }
    let markdown = json!({"text": "# A\n\n## System prompt\n\n```\nYou are A.\n```\n"});
    let detail = world.post("/v1/contexts/import", markdown).await.problem(400, "invalid_input");
    assert!(detail.contains("Markdown is for reading"), "{detail}");
    world.post("/v1/contexts/import", json!({})).await.problem(400, "invalid_input");
    assert_eq!(world.get("/v1/contexts").await.ok()["items"], json!([]));
    let preset = json!({"preset_id": "preset-none"});
    let told = world.post("/v1/contexts", preset).await.problem(404, "not_found");
    assert!(told.contains("preset-rational-advisor"), "{told}");
    world.get("/v1/contexts/..%2f..%2fetc%2fpasswd").await.problem(400, "invalid_input");
    let made = world.create("A").await;
    world.post("/v1/contexts", good).await.problem(409, "conflict");
    let unknown = format!("/v1/contexts/{}", uuid::Uuid::max());
    let told = world.get(&unknown).await.problem(404, "not_found");
    assert!(told.contains(&made), "{told}");
}

#[tokio::test]
async fn messages_that_are_appended_have_the_limit_of_their_context() {
    let data = Throughline::new();
    let service = Service::start_with(&data, &["--set", "persona.max_context_mb=1"]);
    let create = json!({"name": "Guide", "system_prompt": "You are a guide."});
    let made = service.post("/v1/contexts", &create).await.ok();
    let append = async |session: &str| {
        let said = json!({"messages": [{"role": "user", "content": "-".repeat(600_000)}]});
        service.post(&format!("/v1/sessions/{session}/messages"), &said).await
    };
    let session = format!("context-{}", made["id"].as_str().unwrap());
    append(&session).await.ok();
    let refused = append(&session).await.problem(409, "conflict");
    assert!(refused.contains("largest size allowed"), "{refused}");
    for _ in 0..2 {
        append("plain").await.ok();
    }
}
