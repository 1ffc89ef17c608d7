//! Authorization, counted: every operation of the OpenAPI document has a case without a credential, one of
//! another tenant, one without the permission and one that is allowed. An operation without them fails.

use std::collections::BTreeSet;

use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};

use super::service::{Answer, Service, key};
use crate::chat::serve;
use crate::chat::upstream::Upstream;
use crate::support::Throughline;

/// What another tenant gets that asks for the same thing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Other {
    /// It is not there.
    NotFound,
    /// Its own, in which nothing of the first tenant shows.
    Own,
}

pub(super) struct Case {
    pub(super) operation: &'static str,
    method: Method,
    /// With `{session}`, `{fact}`, `{context}` and the like for what the first tenant has.
    path: &'static str,
    body: Option<Value>,
    pub(super) needs: &'static str,
    other: Other,
}

pub(super) fn cases() -> Vec<Case> {
    use Other::{NotFound, Own};
    let get = |operation, path, needs, other| Case {
        operation,
        method: Method::GET,
        path,
        body: None,
        needs,
        other,
    };
    let with = |operation, method, path, body, needs, other| Case {
        operation,
        method,
        path,
        body: Some(body),
        needs,
        other,
    };
    let delete = |operation, path, needs, other| Case {
        operation,
        method: Method::DELETE,
        path,
        body: None,
        needs,
        other,
    };
    let post = |operation, path| Case {
        operation,
        method: Method::POST,
        path,
        body: None,
        needs: "write",
        other: NotFound,
    };
    let message = json!({"messages": [{"role": "user", "content": "hello"}]});
    let turn = json!({"user_turn": "Where is the canary?"});
    let file = json!({"type": "uploaded", "title": "a.pdf"});
    let fact = json!({"text": "The harbour opens at nine."});
    let text = json!("# Facts\nhello\n");
    let new_key = json!({"user": "ana", "permissions": ["read"]});
    let context = json!({"name": "Guide", "system_prompt": "You are a guide."});
    let import = json!({"export": {"context": context}});
    let preset = json!({"name": "Own", "system_prompt": "You are a clerk."});
    vec![
        with("open_session", Method::POST, "/v1/sessions", json!({"id": "n1"}), "write", Own),
        get("list_sessions", "/v1/sessions", "read", Own),
        get("get_session", "/v1/sessions/{session}", "read", NotFound),
        with("append_messages", Method::POST, "/v1/sessions/n1/messages", message, "write", Own),
        get("list_messages", "/v1/sessions/{session}/messages", "read", NotFound),
        with(
            "assemble_context",
            Method::POST,
            "/v1/sessions/{session}/assemble",
            turn,
            "read",
            Own,
        ),
        with(
            "chat",
            Method::POST,
            "/v1/sessions/n1/chat",
            json!({"user_turn": "Where is the canary?"}),
            "chat",
            Own,
        ),
        with(
            "chat_with_context",
            Method::POST,
            "/v1/contexts/{context}/chat",
            json!({"message": "Where is the canary?"}),
            "chat",
            NotFound,
        ),
        get("list_models", "/v1/models", "read", Own),
        get("get_window", "/v1/sessions/{session}/window", "read", NotFound),
        get("list_entities", "/v1/sessions/{session}/entities", "read", NotFound),
        get("list_summaries", "/v1/sessions/{session}/summaries", "read", NotFound),
        with(
            "refer_to_file",
            Method::POST,
            "/v1/sessions/{session}/files",
            file,
            "write",
            NotFound,
        ),
        get("list_files", "/v1/sessions/{session}/files", "read", NotFound),
        get("get_share", "/v1/sessions/{session}/share", "read", NotFound),
        with(
            "share_session",
            Method::PUT,
            "/v1/sessions/{session}/share",
            json!({"members": ["bo"]}),
            "write",
            NotFound,
        ),
        delete("unshare_session", "/v1/sessions/{session}/share", "write", NotFound),
        get("list_shared", "/v1/shared", "read", Own),
        with("remember_fact", Method::POST, "/v1/facts", fact, "write", Own),
        get("list_facts", "/v1/facts", "read", Own),
        with(
            "search_facts",
            Method::POST,
            "/v1/facts/search",
            json!({"query": "canary"}),
            "read",
            Own,
        ),
        with("search", Method::POST, "/v1/search", json!({"query": "canary"}), "read", Own),
        get("get_fact", "/v1/facts/{fact}", "read", NotFound),
        with(
            "correct_fact",
            Method::PATCH,
            "/v1/facts/{fact}",
            json!({"text": "It is elsewhere.", "value": "elsewhere"}),
            "write",
            NotFound,
        ),
        delete("retract_fact", "/v1/facts/{other_fact}", "write", NotFound),
        get("get_profile", "/v1/profile", "read", Own),
        with("change_profile", Method::PUT, "/v1/profile", json!({"card": "Me"}), "write", Own),
        with("put_document", Method::PUT, "/v1/vaults/v1/memories/m1/context", text, "write", Own),
        get("get_document", "/v1/vaults/{vault}/memories/m1/context", "read", NotFound),
        get("list_snapshots", "/v1/vaults/{vault}/memories/m1/contexts", "read", NotFound),
        get("get_snapshot", "/v1/vaults/{vault}/memories/m1/contexts/c1", "read", NotFound),
        get("diff_snapshots", "/v1/vaults/{vault}/memories/m1/diff?from=c1", "read", NotFound),
        get("list_sections", "/v1/vaults/{vault}/memories/m1/context/sections", "read", NotFound),
        get(
            "get_section",
            "/v1/vaults/{vault}/memories/m1/context/sections/facts",
            "read",
            NotFound,
        ),
        get("list_vaults", "/v1/vaults", "read", Own),
        get("list_memories", "/v1/vaults/{vault}/memories", "read", NotFound),
        get("search_vault", "/v1/vaults/{vault}/search?q=canary", "read", Own),
        delete("erase_document", "/v1/vaults/{vault}/memories/m1", "write", NotFound),
        get("get_settings", "/v1/settings", "read", Own),
        with(
            "change_settings",
            Method::PUT,
            "/v1/settings",
            json!({"tier": "light"}),
            "admin",
            Own,
        ),
        get("list_jobs", "/v1/jobs", "read", Own),
        get("get_usage", "/v1/usage", "read", Own),
        get("whoami", "/v1/whoami", "", Own),
        with("create_key", Method::POST, "/v1/keys", new_key, "admin", Own),
        get("list_keys", "/v1/keys", "admin", Own),
        with("create_context", Method::POST, "/v1/contexts", context, "write", Own),
        get("list_contexts", "/v1/contexts", "read", Own),
        get("get_context", "/v1/contexts/{context}", "read", NotFound),
        with(
            "change_context",
            Method::PATCH,
            "/v1/contexts/{context}",
            json!({"temperature": 0.1}),
            "write",
            NotFound,
        ),
        with(
            "extend_context",
            Method::POST,
            "/v1/contexts/{context}/extend",
            json!({"days": 1}),
            "write",
            NotFound,
        ),
        get("list_conversations", "/v1/contexts/{context}/conversations", "read", NotFound),
        with(
            "search_conversations",
            Method::POST,
            "/v1/contexts/{context}/conversations/search",
            json!({"query": "canary"}),
            "read",
            NotFound,
        ),
        with(
            "tag_conversation",
            Method::PUT,
            "/v1/contexts/{context}/conversations/{message}/tags",
            json!({"tags": ["a"]}),
            "write",
            NotFound,
        ),
        with(
            "rate_answer",
            Method::PUT,
            "/v1/contexts/{context}/conversations/{answer}/rating",
            json!({"helpful": true, "note": "Fine."}),
            "write",
            NotFound,
        ),
        delete(
            "remove_rating",
            "/v1/contexts/{context}/conversations/{answer}/rating",
            "write",
            NotFound,
        ),
        get("get_effectiveness", "/v1/contexts/effectiveness", "read", Own),
        with(
            "search_contexts",
            Method::POST,
            "/v1/contexts/search",
            json!({"query": "canary"}),
            "read",
            Own,
        ),
        with(
            "share_context",
            Method::PUT,
            "/v1/contexts/{context}/share",
            json!({"members": ["bo"]}),
            "write",
            NotFound,
        ),
        get("get_context_share", "/v1/contexts/{context}/share", "read", NotFound),
        delete("unshare_context", "/v1/contexts/{context}/share", "write", NotFound),
        get("list_templates", "/v1/templates", "read", Own),
        get("export_context", "/v1/contexts/{context}/export", "read", NotFound),
        with("import_context", Method::POST, "/v1/contexts/import", import, "write", Own),
        get("list_context_backups", "/v1/contexts/{deleted}/backups", "read", NotFound),
        post("restore_context_backup", "/v1/contexts/{deleted}/backups/{backup}/restore"),
        post("restore_context", "/v1/contexts/{deleted}/restore"),
        delete(
            "delete_conversations",
            "/v1/contexts/{context}/conversations?ids={message}",
            "write",
            NotFound,
        ),
        delete("delete_context", "/v1/contexts/{context}", "write", NotFound),
        with("create_preset", Method::POST, "/v1/presets", preset, "write", Own),
        get("list_presets", "/v1/presets", "read", Own),
        get("get_preset", "/v1/presets/{preset}", "read", NotFound),
        with(
            "change_preset",
            Method::PATCH,
            "/v1/presets/{preset}",
            json!({"name": "Other"}),
            "write",
            NotFound,
        ),
        delete("delete_preset", "/v1/presets/{preset}", "write", NotFound),
        with("rotate_key", Method::POST, "/v1/keys/{key}/rotate", json!({}), "admin", NotFound),
        delete("revoke_key", "/v1/keys/{key}", "admin", NotFound),
        get("list_audit", "/v1/audit", "admin", Own),
        get("metrics", "/metrics", "", Own),
        delete(
            "erase_messages",
            "/v1/sessions/{session}/messages?before=2020-01-01",
            "write",
            NotFound,
        ),
        delete("erase_session", "/v1/sessions/{session}", "write", NotFound),
        delete("erase_user", "/v1/users/{user}", "admin", Own),
    ]
}

/// Words of the first tenant, of which nobody else may see any.
pub(super) const CANARY: &str = "zanzibar-canary-7731";

/// The preset that it has.
const PRESET: &str = "preset-zanzibar-canary-7731";

pub(super) struct Things {
    pub(super) session: String,
    pub(super) context: String,
    message: String,
    answer: String,
    deleted: String,
    backup: String,
    fact: String,
    other_fact: String,
    key: String,
}

impl Things {
    /// The preset.
    pub(super) const fn preset(&self) -> &'static str {
        PRESET
    }
}

impl Case {
    pub(super) fn request(&self, service: &Service, things: &Things) -> RequestBuilder {
        let path = self
            .path
            .replace("{session}", &things.session)
            .replace("{context}", &things.context)
            .replace("{message}", &things.message)
            .replace("{answer}", &things.answer)
            .replace("{deleted}", &things.deleted)
            .replace("{backup}", &things.backup)
            .replace("{preset}", PRESET)
            .replace("{fact}", &things.fact)
            .replace("{other_fact}", &things.other_fact)
            .replace("{key}", &things.key)
            .replace("{vault}", &format!("vault-{CANARY}"))
            .replace("{user}", "ana");
        let request = service.request(self.method.clone(), &path);
        match &self.body {
            Some(body) => request.json(body),
            None => request,
        }
    }
}

/// Fills a tenant with what every operation works on.
pub(super) async fn fill(service: &Service, admin: &str) -> Things {
    let ask = |method, path: &str| service.request(method, path).bearer_auth(admin);
    let session = format!("case-{CANARY}");
    let messages = json!({"messages": [{
        "role": "user",
        "content": format!("My locker code is {CANARY}. I live in Lisbon."),
    }]});
    Answer::of(ask(Method::POST, &format!("/v1/sessions/{session}/messages")).json(&messages))
        .await
        .ok();
    Answer::of(
        ask(Method::PUT, &format!("/v1/sessions/{session}/share"))
            .json(&json!({"members": ["bo"]})),
    )
    .await
    .ok();
    let fact = json!({
        "text": format!("The code is {CANARY}."), "subject": "locker", "attribute": "code",
        "value": CANARY
    });
    let fact = Answer::of(ask(Method::POST, "/v1/facts").json(&fact)).await.ok();
    let other = json!({"text": format!("It was {CANARY} before.")});
    let other = Answer::of(ask(Method::POST, "/v1/facts").json(&other)).await.ok();
    let path = format!("/v1/vaults/vault-{CANARY}/memories/m1/context?context_id=c1");
    let text = format!("# Facts\nThe canary is {CANARY}.\n");
    Answer::of(ask(Method::PUT, &path).json(&text)).await.ok();
    let key = json!({"name": CANARY, "user": "ana", "permissions": ["read"]});
    let key = Answer::of(ask(Method::POST, "/v1/keys").json(&key)).await.ok();
    let own = json!({"client_config": {"own": CANARY}});
    Answer::of(ask(Method::PUT, "/v1/settings").json(&own)).await.ok();
    Answer::of(ask(Method::PUT, "/v1/profile").json(&json!({"card": CANARY}))).await.ok();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let said = json!({"role": "user", "content": format!("The code is {CANARY}.")});
    let import = json!({"export": {
        "context": {"name": CANARY, "system_prompt": format!("You are {CANARY}."), "tags": [CANARY]},
        "conversations": [said, {"role": "assistant", "content": format!("Noted: {CANARY}")}],
    }});
    let mut contexts = Vec::new();
    for _ in 0..2 {
        let made = Answer::of(ask(Method::POST, "/v1/contexts/import").json(&import)).await.ok();
        contexts.push(text(&made["id"]));
    }
    let (context, deleted) = (contexts.remove(0), contexts.remove(0));
    let path = format!("/v1/contexts/{context}/conversations");
    let listed = Answer::of(ask(Method::GET, &path)).await.ok();
    let (answer, message) = (text(&listed["items"][0]["id"]), text(&listed["items"][1]["id"]));
    let rating = format!("{path}/{answer}/rating");
    let rated = json!({"helpful": false, "note": CANARY});
    Answer::of(ask(Method::PUT, &rating).json(&rated)).await.ok();
    let share = format!("/v1/contexts/{context}/share");
    Answer::of(ask(Method::PUT, &share).json(&json!({"members": ["bo"]}))).await.ok();
    Answer::of(ask(Method::DELETE, &format!("/v1/contexts/{deleted}"))).await.ok();
    let path = format!("/v1/contexts/{deleted}/backups");
    let backup = text(&Answer::of(ask(Method::GET, &path)).await.ok()["items"][0]["id"]);
    let preset =
        json!({"id": PRESET, "name": CANARY, "system_prompt": format!("You are {CANARY}.")});
    Answer::of(ask(Method::POST, "/v1/presets").json(&preset)).await.ok();
    Things {
        session,
        context,
        message,
        answer,
        deleted,
        backup,
        fact: text(&fact["id"]),
        other_fact: text(&other["id"]),
        key: text(&key["id"]),
    }
}

#[tokio::test]
async fn every_operation_is_refused_without_a_key_in_another_tenant_and_without_its_permission() {
    let data = Throughline::new();
    let everything = "read,write,chat,admin";
    let admin = key(&data, "acme", &["--user", "ana"], everything);
    let stranger = key(&data, "bolt", &["--user", "ana"], everything);
    let service = serve(&data, &Upstream::start().await);

    let document = service.get("/openapi.json").await.ok();
    let paths = document["paths"].as_object().unwrap();
    let secured = |operation: &&Value| operation["security"] != json!([{}]);
    let operations: BTreeSet<&str> = paths
        .values()
        .flat_map(|item| item.as_object().unwrap().values())
        .filter(secured)
        .map(|operation| operation["operationId"].as_str().unwrap())
        .collect();
    let cases = cases();
    let covered: BTreeSet<&str> = cases.iter().map(|case| case.operation).collect();
    let missing: Vec<_> = operations.symmetric_difference(&covered).collect();
    assert!(
        missing.is_empty(),
        "operations without cases, or cases without operations: {missing:?}"
    );

    let things = fill(&service, &admin).await;
    for case in &cases {
        let what = case.operation;
        // On a loopback address metrics are anybody's: nothing in them is of one tenant.
        if what != "metrics" {
            Answer::of(case.request(&service, &things)).await.problem(401, "unauthenticated");
            let malformed = case.request(&service, &things).bearer_auth("tl_nothing");
            Answer::of(malformed).await.problem(401, "unauthenticated");
        }
        let foreign = Answer::of(case.request(&service, &things).bearer_auth(&stranger)).await;
        match case.other {
            Other::NotFound => drop(foreign.problem(404, "not_found")),
            Other::Own => assert!(foreign.status.is_success(), "{what}: {foreign:?}"),
        }
        assert!(!foreign.text.contains(CANARY), "{what}: {foreign:?}");
        if !case.needs.is_empty() {
            let others = everything.split(',').filter(|one| *one != case.needs);
            let lacking = others.collect::<Vec<_>>().join(",");
            let lacking = key(&data, "acme", &["--user", "ana"], &lacking);
            let refused = case.request(&service, &things).bearer_auth(&lacking);
            Answer::of(refused).await.problem(403, "forbidden");
        }
    }
    // Whatever strangers tried, all of it is still there for its own tenant, and each is allowed.
    for case in &cases {
        let allowed = Answer::of(case.request(&service, &things).bearer_auth(&admin)).await;
        assert!(allowed.status.is_success(), "{}: {allowed:?}", case.operation);
    }
    assert!(!service.log().contains(CANARY), "the log holds what is a user's");
}
