//! The OpenAPI document: committed, and its examples are requests that work.

use std::path::Path;

use reqwest::Method;
use serde_json::{Value, json};

use super::service::Answer;
use crate::chat::serve;
use crate::chat::upstream::Upstream;
use crate::support::Throughline;

#[test]
fn the_committed_document_is_that_of_the_code() {
    let data = Throughline::new();
    let told = data.run(&["openapi"]);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/openapi.json");
    let committed = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        String::from_utf8(told.stdout).unwrap() == committed,
        "docs/openapi.json is not up to date: `throughline openapi --to docs/openapi.json` writes it"
    );
}

/// The schema that a value of the document refers to.
fn resolved<'d>(document: &'d Value, value: &'d Value) -> &'d Value {
    match value["$ref"].as_str() {
        Some(reference) => document.pointer(&reference[1..]).unwrap(),
        None => value,
    }
}

#[tokio::test]
async fn every_example_of_a_request_is_answered_as_documented() {
    let data = Throughline::new();
    let service = serve(&data, &Upstream::start().await);
    let document = service.get("/openapi.json").await.ok();
    let say =
        json!({"messages": [{"role": "user", "content": "The Alfred cutover is on 21 May."}]});
    service.post("/v1/sessions/s1/messages", &say).await.ok();
    let fact = json!({"text": "a", "subject": "Alfred", "attribute": "lead", "value": "a"});
    let fact = service.post("/v1/facts", &fact).await.ok();
    let export = json!({"export": {"context": {"name": "a", "system_prompt": "You are a."},
        "conversations": [{"role": "assistant", "content": "a"}]}});
    let context = service.post("/v1/contexts/import", &export).await.ok();
    let context = context["id"].as_str().unwrap();
    let said = service.get(&format!("/v1/contexts/{context}/conversations")).await.ok();
    let said = said["items"][0]["id"].as_str().unwrap();
    let preset = json!({"id": "preset-a", "name": "a", "system_prompt": "You are a."});
    service.post("/v1/presets", &preset).await.ok();
    let mut replayed = 0;
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let Some(body) = operation.pointer("/requestBody/content/application~1json/schema")
            else {
                continue;
            };
            // A key would end the time of the local user; keys have tests of their own.
            if path.starts_with("/v1/keys") {
                continue;
            }
            // A text has nothing to be tried field by field; documents have tests of their own.
            if resolved(&document, body)["type"] == "string" {
                continue;
            }
            let what = &operation["operationId"];
            let example = &resolved(&document, body)["example"];
            assert!(example.is_object(), "{what} has no example of its request");
            let id = match path.split('/').nth(2) {
                Some("facts") => fact["id"].as_str().unwrap(),
                Some("contexts") => context,
                Some("presets") => "preset-a",
                _ => "s1",
            };
            let method = Method::from_bytes(method.to_uppercase().as_bytes()).unwrap();
            let path = path.replace("{id}", id).replace("{message}", said);
            let request = service.request(method, &path).json(example);
            let answer = Answer::of(request).await;
            let documented = &operation["responses"][answer.status.as_str()];
            assert!(answer.status.is_success() && documented.is_object(), "{what}: {answer:?}");
            let schema = &documented["content"]["application/json"]["schema"];
            let schema = resolved(&document, schema);
            // What a write is answered with goes by the permissions of the key; here it is whole.
            let schema = match schema["oneOf"].get(0) {
                Some(whole) => resolved(&document, whole),
                None => schema,
            };
            let fields = answer.json();
            for field in fields.as_object().unwrap().keys() {
                assert!(schema["properties"][field].is_object(), "{what} answers `{field}`");
            }
            for field in schema["required"].as_array().unwrap() {
                assert!(!fields[field.as_str().unwrap()].is_null(), "{what} lacks {field}");
            }
            replayed += 1;
        }
    }
    assert!(replayed > 9, "{replayed} examples");
}
