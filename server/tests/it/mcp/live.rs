//! Sessions of 2025-11-25 on replicas that share a cache.

use reqwest::Method;
use serde_json::json;

use super::client::{Caller, is_done, result};
use crate::combinations::Combination;
use crate::http::service::{Answer, Service};
use crate::support::Throughline;

/// A replica, with a data directory of its own.
fn replica(combination: &Combination) -> (Throughline, Service) {
    let data = Throughline::new();
    combination.configure(&data);
    let service = Service::start_with(&data, &["--set", r#"mcp.tool_sets=["admin"]"#]);
    (data, service)
}

async fn works(service: &Service, session: &str) {
    let whoami = json!({"name": "whoami", "arguments": {}});
    let caller = Caller::local(service);
    is_done(&result(&Answer::of(caller.within(session, "tools/call", whoami)).await));
}

/// To its own caller, or to one who is not.
async fn is_gone(caller: &Caller<'_>, session: &str) {
    Answer::of(caller.within(session, "tools/list", json!({}))).await.problem(404, "not_found");
}

#[tokio::test]
async fn any_replica_takes_a_session_up_and_each_may_end_it() {
    let combination =
        tokio::task::spawn_blocking(|| Combination::of("postgres", "store", "redis", "mcp"));
    let combination = combination.await.unwrap();
    let ((data, mut one), (_folder, other)) = (replica(&combination), replica(&combination));
    let session = Caller::local(&one).begin().await;
    works(&one, &session).await;
    works(&other, &session).await;
    let stranger = Caller::local(&other).with("throughline-workspace", "other");
    is_gone(&stranger, &session).await;

    // After a restart as well.
    one.kill();
    let one = Service::start_with(&data, &["--set", r#"mcp.tool_sets=["admin"]"#]);
    works(&one, &session).await;
    is_gone(&Caller::local(&one).with("throughline-workspace", "other"), &session).await;
    works(&other, &session).await;

    let end = Caller::local(&other).request(Method::DELETE).header("mcp-session-id", &session);
    assert_eq!(Answer::of(end).await.status, 204);
    for service in [&one, &other] {
        is_gone(&Caller::local(service), &session).await;
        let again = Caller::local(service).begin().await;
        works(service, &again).await;
    }
}
