//! Two tenants hold texts that are each other's best match. One of them, and another user and another
//! workspace of the other, try every way in; nothing crosses, and each still finds its own.

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::service::{Answer, Service, key};
use crate::support::{Throughline, payload};

/// Words of the owner, of which nobody else may see any.
const CANARIES: [&str; 5] =
    ["osprey-5519", "quartz-8842", "velvet-3076", "saffron-6621", "juniper-2290"];
const QUESTION: &str = "What is the vault code of the harbour office?";

fn said(code: &str, more: &str) -> Value {
    json!({"messages": [
        {"role": "user", "content": format!("The vault code of the harbour office is {code}."),
         "external_id": "m-1", "attachments": [{"note": more}]},
        {"role": "assistant", "content": format!("Noted: the vault code is {code}.")},
    ]})
}

struct Caller<'s> {
    service: &'s Service,
    key: &'s str,
    headers: Vec<(&'static str, String)>,
}

impl Caller<'_> {
    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.service.request(method, path).bearer_auth(self.key);
        self.headers.iter().fold(request, |request, (name, value)| request.header(*name, value))
    }

    async fn get(&self, path: &str) -> Answer {
        Answer::of(self.request(Method::GET, path)).await
    }

    async fn post(&self, path: &str, body: &Value) -> Answer {
        Answer::of(self.request(Method::POST, path).json(body)).await
    }

    async fn context(&self) -> Value {
        self.post("/v1/sessions/ask/assemble", &json!({"user_turn": QUESTION})).await.ok()
    }
}

fn without(mut context: Value, parts: &[&str]) -> Value {
    if let Some(fields) = context.as_object_mut() {
        fields.retain(|name, _| !parts.contains(&name.as_str()));
    }
    context
}

#[tokio::test]
async fn tenants_find_their_own_data_only() {
    nothing_crosses(&Throughline::new(), "alone", &[]).await;
}

/// Tries every way in to the data of `data`; `run` tells tenants of runs apart that share a store. Parts
/// of contexts in `moves` may differ from turn to turn for reasons of their own.
pub(super) async fn nothing_crosses(data: &Throughline, run: &str, moves: &[&str]) {
    let everything = "read,write,chat,admin";
    let (acme, bolt) = (format!("acme-{run}"), format!("bolt-{run}"));
    let owner_key = key(data, &acme, &["--user", "ana"], everything);
    let tenant_key = key(data, &bolt, &["--any-user"], everything);
    let user_key = key(data, &acme, &["--user", "bo"], "read,write");
    let service = Service::start(data);
    let caller = |key, headers| Caller { service: &service, key, headers };
    let owner = caller(&owner_key, vec![]);
    let callers = [
        // Another tenant, as a user of the same name.
        caller(&tenant_key, vec![("Throughline-User", "ana".to_owned())]),
        // The same with a workspace, and as users and workspaces that read like wildcards.
        caller(
            &tenant_key,
            vec![("Throughline-User", "ana".to_owned()), ("Throughline-Workspace", acme.clone())],
        ),
        caller(&tenant_key, vec![("Throughline-User", "%".to_owned())]),
        caller(&tenant_key, vec![("Throughline-User", format!("{acme}/ana"))]),
        caller(&tenant_key, vec![("Throughline-User", "' OR '1'='1".to_owned())]),
        // Another user of the tenant, and the owner's own other workspace.
        caller(&user_key, vec![]),
        caller(&owner_key, vec![("Throughline-Workspace", "other".to_owned())]),
    ];

    // What strangers have is theirs before the owner comes, so that it can be compared afterwards.
    for (n, stranger) in callers.iter().enumerate() {
        stranger.post("/v1/sessions/s1/messages", &said(&format!("own-{n}"), "")).await.ok();
    }
    let mut before = Vec::new();
    for stranger in &callers {
        before.push(without(stranger.context().await, moves));
    }

    let messages = said(CANARIES[0], CANARIES[1]);
    let appended = owner.post("/v1/sessions/s1/messages", &messages).await.ok();
    let message = appended["messages"][0]["id"].as_str().unwrap().to_owned();
    let fact = json!({"text": format!("The vault code was {}.", CANARIES[2])});
    let fact = owner.post("/v1/facts", &fact).await.ok()["id"].as_str().unwrap().to_owned();
    let file = json!({"type": "uploaded", "title": CANARIES[3], "message_id": message});
    owner.post("/v1/sessions/s1/files", &file).await.ok();
    let secret = format!("only-{}", CANARIES[3]);
    owner.post("/v1/sessions", &json!({"id": secret})).await.ok();
    let text = format!("# Facts\nThe vault code of the harbour office is {}.\n", CANARIES[4]);
    let path = format!("/v1/vaults/v1/memories/m1/context?context_id=c1&actor_id={}", CANARIES[4]);
    Answer::of(owner.request(Method::PUT, &path).json(&text)).await.ok();
    let hidden = format!("/v1/vaults/{}/memories/m1/context", CANARIES[4]);
    Answer::of(owner.request(Method::PUT, &hidden).json(&text)).await.ok();
    let context =
        json!({"name": CANARIES[1], "system_prompt": format!("You guard {}.", CANARIES[2])});
    let context =
        owner.post("/v1/contexts", &context).await.ok()["id"].as_str().unwrap().to_owned();
    let share = format!("/v1/contexts/{context}/share");
    Answer::of(owner.request(Method::PUT, &share).json(&json!({"members": ["cy"]}))).await.ok();
    let preset = format!("preset-{}", CANARIES[3]);
    let own = json!({"id": preset, "name": CANARIES[3], "system_prompt": "You are a guard."});
    owner.post("/v1/presets", &own).await.ok();
    let cursor = owner.get("/v1/sessions?limit=1").await.ok()["next_cursor"].clone();
    let cursor = cursor.as_str().unwrap();

    let gets = [
        "/v1/sessions".to_owned(),
        format!("/v1/sessions?cursor={cursor}"),
        "/v1/sessions?cursor=0".to_owned(),
        "/v1/sessions/s1".to_owned(),
        format!("/v1/sessions/{secret}"),
        "/v1/sessions/%25".to_owned(),
        "/v1/sessions/*/messages".to_owned(),
        "/v1/sessions/s1/messages".to_owned(),
        "/v1/sessions/s1/messages?cursor=0".to_owned(),
        "/v1/sessions/s1/window".to_owned(),
        "/v1/sessions/s1/entities".to_owned(),
        "/v1/sessions/s1/summaries".to_owned(),
        "/v1/sessions/s1/files".to_owned(),
        "/v1/sessions/s1/share".to_owned(),
        format!("/v1/sessions/share:{message}"),
        "/v1/shared".to_owned(),
        "/v1/facts".to_owned(),
        format!("/v1/facts/{fact}"),
        "/v1/vaults".to_owned(),
        "/v1/vaults?cursor=0".to_owned(),
        "/v1/vaults/v1/memories".to_owned(),
        "/v1/vaults/v1/memories/m1/context".to_owned(),
        "/v1/vaults/v1/memories/m1/contexts".to_owned(),
        "/v1/vaults/v1/memories/m1/contexts/c1".to_owned(),
        "/v1/vaults/v1/memories/m1/diff?from=c1".to_owned(),
        "/v1/vaults/v1/memories/m1/context/sections".to_owned(),
        "/v1/vaults/v1/memories/m1/context/sections/facts".to_owned(),
        "/v1/vaults/*/memories/*/context".to_owned(),
        "/v1/vaults/v1/search?q=vault+code+harbour".to_owned(),
        hidden.clone(),
        "/v1/contexts?include_expired=true&include_deleted=true".to_owned(),
        format!("/v1/contexts/{context}"),
        format!("/v1/contexts/{context}/conversations"),
        format!("/v1/contexts/{context}/export"),
        format!("/v1/contexts/{context}/backups"),
        format!("/v1/contexts/{context}/share"),
        "/v1/contexts/effectiveness".to_owned(),
        "/v1/templates".to_owned(),
        "/v1/contexts/..%2f..%2fetc".to_owned(),
        "/v1/presets?include_inactive=true".to_owned(),
        "/v1/presets/preset-unknown".to_owned(),
        "/v1/profile".to_owned(),
        "/v1/settings".to_owned(),
        "/v1/jobs".to_owned(),
        "/v1/usage".to_owned(),
        "/v1/keys".to_owned(),
        "/v1/audit".to_owned(),
        "/metrics".to_owned(),
    ];
    let shows_none = |what: &str, answer: &Answer| {
        for canary in CANARIES {
            assert!(!answer.text.contains(canary), "{what}: {answer:?}");
        }
    };
    for (n, stranger) in callers.iter().enumerate() {
        for path in &gets {
            shows_none(path, &stranger.get(path).await);
        }
        let turn = json!({"user_turn": QUESTION, "topic_tags": ["*", acme], "force_refresh": true});
        for session in ["s1", &secret, "*"] {
            let path = format!("/v1/sessions/{session}/assemble");
            shows_none(&path, &stranger.post(&path, &turn).await);
        }
        let found =
            stranger.post("/v1/facts/search", &json!({"query": QUESTION, "limit": 24})).await;
        shows_none("search", &found);
        let found = stranger.post("/v1/contexts/search", &json!({"query": CANARIES[2]})).await;
        shows_none("search of contexts", &found);
        // Things of others are not there, whether they are or not: the answers are the same.
        for (theirs, nowhere) in [
            (format!("/v1/sessions/{secret}"), "/v1/sessions/nowhere".to_owned()),
            (format!("/v1/facts/{fact}"), format!("/v1/facts/{message}")),
            (hidden.clone(), "/v1/vaults/nowhere/memories/m1/context".to_owned()),
            (format!("/v1/contexts/{context}"), format!("/v1/contexts/{message}")),
            (format!("/v1/presets/{preset}"), "/v1/presets/preset-unknown".to_owned()),
        ] {
            let (theirs, nowhere) = (stranger.get(&theirs).await, stranger.get(&nowhere).await);
            assert_eq!(theirs.problem(404, "not_found"), nowhere.problem(404, "not_found"));
        }
        // Ids of others erase nothing.
        let path = format!("/v1/sessions/s1/messages?ids={message}");
        let erased = Answer::of(stranger.request(Method::DELETE, &path)).await.ok();
        assert_eq!(erased["messages"], 0);
        let path = "/v1/vaults/v1/memories/m1";
        Answer::of(stranger.request(Method::DELETE, path)).await.problem(404, "not_found");
        // What others hold moves nothing: not a score, not a rank, not a token.
        let own = stranger.context().await;
        assert!(payload(&own).contains(&format!("own-{n}")), "its own is found: {own}");
        assert_eq!(without(own, moves), before[n], "what strangers hold changed an answer");
    }
    let context = owner.context().await;
    let shown = payload(&context);
    assert!(shown.contains(CANARIES[0]) && !shown.contains("own-"), "{shown}");
    let found = owner.get("/v1/vaults/v1/search?q=vault+code+harbour").await.ok();
    assert!(found["items"][0]["text"].as_str().unwrap().contains(CANARIES[4]), "{found}");
    let log = service.log();
    for canary in CANARIES {
        assert!(!log.contains(canary), "the log holds what is a user's");
    }
}
