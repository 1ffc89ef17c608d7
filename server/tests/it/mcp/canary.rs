//! Another tenant, another user and another workspace try every tool and every resource of one who has secrets, in
//! both eras; nothing crosses, and the log holds none of it.

use serde_json::{Value, json};

use super::client::{ALL_TOOLS, Caller, Case, EVERYTHING, Names, is_done, result};
use crate::http::service::{Answer, Service, key};
use crate::support::Throughline;

/// Words of the owner, of which nobody else may see any.
const CANARY: &str = "marabou-7715";

#[tokio::test]
async fn tenants_find_their_own_data_only() {
    let data = Throughline::new();
    let owner = key(&data, "acme", &["--user", "ana"], EVERYTHING);
    let other_user = key(&data, "acme", &["--user", "bo"], EVERYTHING);
    let other_tenant = key(&data, "bolt", &["--any-user"], EVERYTHING);
    let service = Service::start_with(&data, &ALL_TOOLS);
    let with_key = |key: &str| Caller::keyed(&service, key);
    // A workspace has the profile of its user, unless it has its own.
    let anas = with_key(&owner);
    let owner = anas.clone().with("throughline-workspace", "one");
    let strangers = [
        with_key(&other_tenant).with("throughline-user", "ana"),
        with_key(&other_tenant).with("throughline-user", "%"),
        with_key(&other_tenant).with("throughline-user", "acme/ana"),
        with_key(&other_user),
        anas.clone().with("throughline-workspace", "other"),
        anas,
    ];

    // All but what erases.
    let cases: Vec<_> = Case::all().into_iter().filter(|case| case.tool != "forget").collect();
    let mut names = Names::from([("who".to_owned(), CANARY.to_owned())]);
    for case in &cases {
        let done = owner.call(&case.tool, &case.arguments(&names)).await;
        case.is_answered_by(&done, &names);
        case.keep(&done, &mut names);
    }
    let resources = result(&Answer::of(owner.alone("resources/list", json!({}))).await);
    let resources = resources["resources"].as_array().unwrap().clone();
    let uris: Vec<&str> = resources.iter().map(|found| found["uri"].as_str().unwrap()).collect();

    let forget = json!({"name": "forget", "arguments": {"fact": names["fact"]}});
    let erase = json!({"name": "forget", "arguments": {"session": "trip", "message_ids": [names["message"]]}});
    let complete = |name: &str, within: Value| {
        json!({
            "ref": {"type": "ref/resource", "uri": "throughline://vault/{vaultId}/memory/{memoryId}"},
            "argument": {"name": name, "value": ""}, "context": {"arguments": within},
        })
    };
    names.insert("who".to_owned(), "nobody".to_owned());
    for stranger in &strangers {
        let session = stranger.begin().await;
        let mut asked: Vec<(&str, Value)> = cases
            .iter()
            .map(|case| {
                ("tools/call", json!({"name": case.tool, "arguments": case.arguments(&names)}))
            })
            .collect();
        asked.extend([
            ("tools/call", forget.clone()),
            ("tools/call", erase.clone()),
            ("resources/list", json!({})),
            ("resources/templates/list", json!({})),
            ("prompts/list", json!({})),
            ("completion/complete", complete("vaultId", json!({}))),
            ("completion/complete", complete("memoryId", json!({"vaultId": "harbour"}))),
            ("completion/complete", complete("contextId", json!({}))),
            ("completion/complete", complete("contextName", json!({}))),
            ("resources/read", json!({"uri": "throughline://vault/harbour/memory/ferry"})),
            (
                "prompts/get",
                json!({"name": "context-document",
                       "arguments": {"vaultId": "harbour", "memoryId": "ferry"}}),
            ),
        ]);
        asked.extend(uris.iter().map(|uri| ("resources/read", json!({"uri": uri}))));
        for (method, params) in asked {
            for request in [
                stranger.alone(method, params.clone()),
                stranger.within(&session, method, params.clone()),
            ] {
                let answer = Answer::of(request).await;
                assert!(!answer.text.contains(CANARY), "{method} {params}: {answer:?}");
            }
        }
    }

    // What strangers tried to take back and to erase is still there.
    let recalled =
        owner.call("recall", &json!({"query": "When does the ferry leave Lisbon?"})).await;
    assert!(recalled.to_string().contains(CANARY), "{recalled}");
    let done = Answer::of(owner.alone("tools/call", forget)).await;
    is_done(&result(&done));
    assert!(!service.log().contains(CANARY), "the log holds what is a user's");
}
