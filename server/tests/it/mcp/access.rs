//! Authorization, counted: every tool of `tools/list` has a call without a key, one without its permission, one of
//! another tenant and one that is allowed. A tool without them fails.

use std::collections::BTreeSet;

use serde_json::json;

use super::client::{ALL_TOOLS, Caller, Case, EVERYTHING, Names, result, text};
use crate::http::service::{Answer, Service, key};
use crate::support::Throughline;

/// Words of the first tenant, of which nobody else may see any.
const CANARY: &str = "kestrel-canary-2094";

#[tokio::test]
async fn every_tool_is_refused_without_a_key_in_another_tenant_and_without_its_permission() {
    let data = Throughline::new();
    let admin = key(&data, "acme", &["--user", "ana"], EVERYTHING);
    let stranger = key(&data, "bolt", &["--user", "ana"], EVERYTHING);
    let service = Service::start_with(&data, &ALL_TOOLS);
    let (admin, stranger) = (Caller::keyed(&service, &admin), Caller::keyed(&service, &stranger));

    let listed = result(&Answer::of(admin.alone("tools/list", json!({}))).await);
    let tools: BTreeSet<&str> =
        listed["tools"].as_array().unwrap().iter().map(|t| t["name"].as_str().unwrap()).collect();
    let cases = Case::all();
    let covered: BTreeSet<&str> = cases.iter().map(|case| case.tool.as_str()).collect();
    let missing: Vec<_> = tools.symmetric_difference(&covered).collect();
    assert!(missing.is_empty(), "tools without cases, or cases without tools: {missing:?}");

    let who = |name: &str| Names::from([("who".to_owned(), name.to_owned())]);
    let (mut own, mut foreign) = (who(CANARY), who("nobody"));
    for case in &cases {
        let what = &case.tool;
        let params = json!({"name": what, "arguments": case.arguments(&own)});
        for unknown in [Caller::local(&service), Caller::keyed(&service, "tl_nothing")] {
            let refused = Answer::of(unknown.alone("tools/call", params.clone())).await;
            refused.problem(401, "unauthenticated");
            let refused = Answer::of(unknown.within("any", "tools/call", params.clone())).await;
            refused.problem(401, "unauthenticated");
        }

        let lacking = EVERYTHING.split(',').filter(|one| *one != case.needs);
        let lacking =
            key(&data, "acme", &["--user", "ana"], &lacking.collect::<Vec<_>>().join(","));
        let lacking = Caller::keyed(&service, &lacking);
        let refused = lacking.call(what, &case.arguments(&own)).await;
        assert_eq!(refused["isError"], true, "{what}: {refused}");
        assert!(text(&refused).starts_with("forbidden: "), "{what}: {refused}");

        // With the ids of the first tenant, and names that both may give.
        let theirs = stranger.call(what, &case.arguments(&foreign)).await;
        assert!(!theirs.to_string().contains(CANARY), "{what}: {theirs}");

        let allowed = admin.call(what, &case.arguments(&own)).await;
        case.is_answered_by(&allowed, &own);
        case.keep(&allowed, &mut own);
        case.keep(&allowed, &mut foreign);
    }

    let audit = service.request(reqwest::Method::GET, "/v1/audit?limit=500");
    let audit = Answer::of(audit.bearer_auth(admin.key.as_ref().unwrap())).await.ok();
    let refused: BTreeSet<&str> = audit["items"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|entry| entry["outcome"] == "forbidden")
        .map(|entry| entry["action"].as_str().unwrap())
        .filter_map(|action| action.strip_prefix("mcp "))
        .collect();
    assert_eq!(refused, tools, "a refusal is not in the audit log");
    assert!(!audit.to_string().contains(CANARY), "{audit}");
    assert!(!service.log().contains(CANARY), "the log holds what is a user's");
}
