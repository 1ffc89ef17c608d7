//! Sessions of 2025-11-25: each is its caller's alone, and ends with the process that it began in.

use reqwest::Method;
use serde_json::{Value, json};

use super::client::{Caller, EVERYTHING, ended, initialize, is_done, result, text, told};
use crate::http::service::{Answer, Service, key};
use crate::support::Throughline;

const TOOLS: [&str; 2] = ["--set", r#"mcp.tool_sets=["memory","sessions","documents","admin"]"#];

fn whoami() -> Value {
    json!({"name": "whoami", "arguments": {}})
}

async fn whose(caller: &Caller<'_>, session: &str) -> Answer {
    Answer::of(caller.within(session, "tools/call", whoami())).await
}

#[tokio::test]
async fn a_session_is_its_callers_alone() {
    let data = Throughline::new();
    let ana = key(&data, "acme", &["--user", "ana"], EVERYTHING);
    let others_key = key(&data, "acme", &["--user", "ana"], EVERYTHING);
    let any = key(&data, "acme", &["--any-user"], EVERYTHING);
    let bolt = key(&data, "bolt", &["--user", "ana"], EVERYTHING);
    let service = Service::start_with(&data, &TOOLS);
    let with_key = |key: &str| Caller::keyed(&service, key);
    let owner = with_key(&ana);
    let session = owner.begin().await;
    let strangers = [
        with_key(&bolt),
        with_key(&others_key),
        with_key(&any).with("throughline-user", "ana"),
        with_key(&any).with("throughline-user", "bo"),
        owner.clone().with("throughline-workspace", "other"),
    ];
    for stranger in &strangers {
        whose(stranger, &session).await.problem(404, "not_found");
        for method in [Method::GET, Method::DELETE] {
            let request = stranger.request(method).header("mcp-session-id", &session);
            Answer::of(request).await.problem(404, "not_found");
        }
        // Nor does one that stands alone get by with it.
        let request = stranger.alone("tools/call", whoami()).header("mcp-session-id", &session);
        Answer::of(request).await.problem(404, "not_found");
        // Whether it is somebody's or nobody's.
        whose(stranger, "no-such-session").await.problem(404, "not_found");
    }
    let mine = whose(&owner, &session).await;
    is_done(&result(&mine));

    let mut nobody = owner.clone();
    nobody.key = None;
    whose(&nobody, &session).await.problem(401, "unauthenticated");
    let ended = owner.request(Method::DELETE).header("mcp-session-id", &session);
    assert_eq!(Answer::of(ended).await.status, 204);
    whose(&owner, &session).await.problem(404, "not_found");
}

#[tokio::test]
async fn a_key_that_is_revoked_ends_its_sessions() {
    let data = Throughline::new();
    let admin = key(&data, "acme", &["--user", "ana"], EVERYTHING);
    let made =
        data.json(&["keys", "create", "--tenant", "acme", "--user", "bo", "--permissions", "read"]);
    let service = Service::start_with(&data, &TOOLS);
    let caller = Caller::keyed(&service, made["key"].as_str().unwrap());
    let session = caller.begin().await;
    is_done(&result(&whose(&caller, &session).await));
    let path = format!("/v1/keys/{}", made["id"].as_str().unwrap());
    let revoked = Answer::of(service.request(Method::DELETE, &path).bearer_auth(&admin)).await;
    assert!(revoked.status.is_success(), "{revoked:?}");
    whose(&caller, &session).await.problem(401, "unauthenticated");
}

/// Without a cache that processes share there is nobody to ask.
#[tokio::test]
async fn after_a_restart_a_client_begins_anew() {
    let data = Throughline::new();
    let mut service = Service::start_with(&data, &TOOLS);
    let session = Caller::local(&service).begin().await;
    service.kill();
    let service = Service::start_with(&data, &TOOLS);
    let caller = Caller::local(&service);
    whose(&caller, &session).await.problem(404, "not_found");
    let request = caller.request(Method::GET).header("mcp-session-id", &session);
    Answer::of(request).await.problem(404, "not_found");
    let again = caller.begin().await;
    is_done(&result(&whose(&caller, &again).await));
}

#[tokio::test]
async fn a_key_that_reads_does_not_write() {
    let data = Throughline::new();
    let admin = key(&data, "acme", &["--user", "ana"], EVERYTHING);
    let reader = key(&data, "acme", &["--user", "ana"], "read");
    let service = Service::start_with(&data, &TOOLS);
    let caller = Caller::keyed(&service, &reader);
    let session = caller.begin().await;
    let writes = json!({"name": "remember", "arguments": {"text": "The gate is open."}});
    for request in [
        caller.alone("tools/call", writes.clone()),
        caller.within(&session, "tools/call", writes.clone()),
    ] {
        let refused = result(&Answer::of(request).await);
        assert_eq!(refused["isError"], true, "{refused}");
        assert!(text(&refused).starts_with("forbidden: "), "{refused}");
    }
    let log = service.request(Method::GET, "/v1/audit").bearer_auth(&admin);
    let log = Answer::of(log).await.ok();
    let refusals = log["items"].as_array().unwrap().iter();
    let of_tool =
        |entry: &&Value| entry["action"] == "mcp remember" && entry["outcome"] == "forbidden";
    // An equal one is written down at most once a minute.
    assert_eq!(refusals.filter(of_tool).count(), 1, "{log}");
    let facts = service.request(Method::GET, "/v1/facts").bearer_auth(&admin);
    let facts = Answer::of(facts).await.ok();
    assert!(!facts.to_string().contains("gate"), "{facts}");
}

#[tokio::test]
async fn evicted_session_closes_its_stream() {
    let data = Throughline::new();
    let service = Service::start_with(&data, &TOOLS);
    let caller = Caller::local(&service);
    let mut open = Vec::new();
    for _ in 0..65 {
        let session = caller.begin().await;
        open.push((caller.stream(&session).await, session));
    }
    let (stream, session) = open.remove(0);
    ended(stream).await;
    whose(&caller, &session).await.problem(404, "not_found");
    is_done(&result(&whose(&caller, &open[0].1).await));
}

#[tokio::test]
async fn refuses_large_initialize_request() {
    let data = Throughline::new();
    let service = Service::start_with(&data, &TOOLS);
    let caller = Caller::local(&service);
    let mut begin = initialize();
    begin["params"]["clientInfo"]["title"] = json!("t".repeat(64 << 10));
    let refused = Answer::of(caller.post(&begin)).await;
    let error = told(&refused)["error"].clone();
    assert_eq!(error["code"], -32602, "{error}");
    assert!(error["message"].as_str().unwrap().contains("at most 65536 are allowed"), "{error}");
    let id = refused.headers["mcp-session-id"].to_str().unwrap();
    whose(&caller, id).await.problem(404, "not_found");
}
