//! Turns that a Gemini model answers. Nobody but the configuration can tell which provider it was.

use serde_json::{Value, json};

use super::held;
use super::upstream::{Next, Upstream};
use crate::http::service::{Answer, Service};
use crate::support::{Throughline, stderr};

const KEY: &str = "AIza-test-0123456789ABCDEF";
const MODEL: &str = "gemini:gemini-4-neon";

async fn start() -> (Throughline, Upstream, Service) {
    let (data, upstream) = (Throughline::new(), Upstream::start().await);
    let url = format!("providers.gemini.base_url={}", base_url(&upstream));
    let (key, model) = (format!("providers.gemini.api_key={KEY}"), format!("chat.model={MODEL}"));
    let retries = "providers.gemini.max_retries=0";
    let flags = ["--set", &url, "--set", &key, "--set", &model, "--set", retries];
    let service = Service::start_with(&data, &flags);
    (data, upstream, service)
}

fn base_url(upstream: &Upstream) -> String {
    upstream.url.replace("/v1", "/v1beta")
}

fn response(parts: &Value, finish: Option<&str>) -> Value {
    json!({
        "candidates": [{"content": {"parts": parts, "role": "model"}, "finishReason": finish}],
        "usageMetadata": {"promptTokenCount": 100, "candidatesTokenCount": 4, "thoughtsTokenCount": 6,
                          "cachedContentTokenCount": 40},
        "modelVersion": "gemini-4-neon", "responseId": "r1"
    })
}

fn event(parts: &Value, finish: Option<&str>) -> String {
    format!("data: {}\r\n\r\n", response(parts, finish))
}

#[tokio::test]
async fn a_turn_is_answered_from_memory_and_kept() {
    let (_data, upstream, service) = start().await;
    let said =
        json!({"messages": [{"role": "user", "content": "My flight to Lisbon leaves at 7:40."}]});
    service.post("/v1/sessions/trip/messages", &said).await.ok();
    upstream.then(Next::Stream(vec![
        event(&json!([{"text": "At "}]), None),
        event(&json!([{"text": "7:40."}]), Some("STOP")),
    ]));
    let turn = json!({"user_turn": "When does my flight leave?", "max_tokens": 50});
    let answer = service.post("/v1/sessions/today/chat", &turn).await.ok();
    assert_eq!((&answer["text"], &answer["model"]), (&json!("At 7:40."), &json!(MODEL)));
    assert_eq!(
        answer["usage"],
        json!({"input_tokens": 100, "cached_input_tokens": 40, "output_tokens": 10,
               "cost_usd": answer["usage"]["cost_usd"]})
    );
    assert!(answer["usage"]["cost_usd"].as_f64().unwrap() > 0.0, "{answer}");
    let asked = upstream.last();
    assert_eq!(asked.path, "/v1beta/models/gemini-4-neon:streamGenerateContent");
    assert_eq!(asked.key, KEY);
    assert_eq!(asked.body["generationConfig"], json!({"maxOutputTokens": 50}));
    assert!(asked.body["contents"].to_string().contains("7:40"), "{}", asked.body);
    let roles: Vec<_> = held(&service, "today").await.into_iter().map(|(role, _)| role).collect();
    assert_eq!(roles, ["user", "assistant"]);
}

#[tokio::test]
async fn tools_are_called_by_the_client_with_what_the_model_signed() {
    let (_data, upstream, service) = start().await;
    let signed = json!([{"functionCall": {"id": "f1", "name": "find_gate", "args": {"flight": "TP1"}},
                         "thoughtSignature": "EjQK+/=="}]);
    upstream.then(Next::Stream(vec![event(&signed, Some("STOP"))]));
    let tool = json!({"type": "function", "function": {"name": "find_gate", "description": "The gate of a flight",
        "parameters": {"type": "object", "properties": {"flight": {"type": "string"}}, "additionalProperties": false}}});
    let turn = json!({"user_turn": "Which gate?", "tools": [tool]});
    let answer = service.post("/v1/sessions/s/chat", &turn).await.ok();
    assert_eq!(answer["stop_reason"], "toolUse");
    assert_eq!(answer["tool_calls"][0]["function"]["arguments"], r#"{"flight":"TP1"}"#);
    let declared = &upstream.last().body["tools"][0]["functionDeclarations"][0];
    assert_eq!(
        declared["parameters"],
        json!({"type": "object", "properties": {"flight": {"type": "string"}}})
    );

    upstream.then(Next::Stream(vec![event(&json!([{"text": "Gate B12."}]), Some("STOP"))]));
    let asks = json!({"role": "assistant", "content": null, "tool_calls": answer["tool_calls"]});
    let id = &answer["tool_calls"][0]["id"];
    let result = json!({"role": "tool", "tool_call_id": id, "content": "B12"});
    let turn = json!({"user_turn": "Which gate?", "tools": [tool], "steps": [asks, result]});
    let answer = service.post("/v1/sessions/s/chat", &turn).await.ok();
    assert_eq!(answer["text"], "Gate B12.");
    let contents = upstream.last().body["contents"].as_array().unwrap().clone();
    assert_eq!(contents[contents.len() - 2]["parts"], signed);
    assert_eq!(
        contents[contents.len() - 1]["parts"],
        json!([{"functionResponse": {"id": "f1", "name": "find_gate", "response": {"result": "B12"}}}])
    );
}

#[tokio::test]
async fn what_goes_wrong_is_told_and_nothing_is_kept() {
    let (data, upstream, service) = start().await;
    let error = |code: u16, status: &str, message: &str| json!({"error": {"code": code, "message": message, "status": status, "details": []}});
    let blocked = json!({"promptFeedback": {"blockReason": "SAFETY"}});
    for (status, body, said) in [
        (400, error(400, "INVALID_ARGUMENT", "API key not valid."), "GEMINI_API_KEY"),
        (404, error(404, "NOT_FOUND", "models/x is not found"), "gemini-4-neon"),
        (429, error(429, "RESOURCE_EXHAUSTED", "slow down"), ""),
        (200, blocked, "content filter"),
    ] {
        upstream.then(Next::Json(status, body.clone()));
        let answer = service.post("/v1/sessions/s/chat", &json!({"user_turn": "When?"})).await;
        assert!(!answer.status.is_success(), "{body}: {answer:?}");
        assert!(answer.text.contains(said) && !answer.text.contains(KEY), "{body}: {answer:?}");
    }
    upstream.then(Next::CutOff(vec![event(&json!([{"text": "At "}]), None)]));
    let answer = service.post("/v1/sessions/s/chat", &json!({"user_turn": "When?"})).await;
    // A status may not have come before the connection broke.
    answer.problem(503, "unavailable");
    assert_eq!(held(&service, "s").await, []);
    assert!(!service.log().contains(KEY));
    drop(service);

    let models = data.json(&["models"]);
    let missing = models["missing"].to_string();
    assert!(missing.contains("OPENAI_API_KEY") && missing.contains("GEMINI_API_KEY"), "{models}");
}

#[tokio::test]
async fn the_command_line_takes_the_key_from_the_environment() {
    let (data, upstream) = (Throughline::new(), Upstream::start().await);
    let url = format!("providers.gemini.base_url={}", base_url(&upstream));
    let run = |arguments: &[&str]| {
        let mut command = data.command(arguments);
        command.args(["--set", &url]).env("GEMINI_API_KEY", KEY);
        tokio::task::spawn_blocking(move || command.output().unwrap())
    };
    upstream.then(Next::Stream(vec![event(&json!([{"text": "At 7:40."}]), Some("STOP"))]));
    let output = run(&["chat", "When?", "--session", "s", "--model", MODEL]).await.unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "At 7:40.");
    assert_eq!(upstream.last().key, KEY);

    let output = run(&["models", "--json"]).await.unwrap();
    let listed: Value = serde_json::from_slice(&output.stdout).unwrap();
    let items = listed["items"].as_array().unwrap();
    for model in [MODEL, "gemini:gemini-2.5-pro", "gemini:gemini-2.5-flash"] {
        assert!(items.iter().any(|item| item["model"] == model), "{listed}");
    }

    upstream.then(Next::Json(200, json!({"models": []})));
    let output = run(&["doctor", "--json"]).await.unwrap();
    let report = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(report.contains("gemini answers"), "{report}");
    assert_eq!(upstream.last().path, "/v1beta/models");
}

#[tokio::test]
async fn a_model_of_the_provider_makes_vectors() {
    let (data, upstream) = (Throughline::new(), Upstream::start().await);
    let url = format!("providers.gemini.base_url={}", base_url(&upstream));
    let embedder = "embedder=gemini:gemini-embedding-001";
    let mut command = data.command(&["doctor", "--json", "--set", &url, "--set", embedder]);
    command.env("GEMINI_API_KEY", KEY);
    upstream.then(Next::Json(200, json!({"embedding": {"values": vec![0.5; 3072]}})));
    upstream.then(Next::Json(200, json!({"models": []})));
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    let report: Value = serde_json::from_slice(&output.stdout).unwrap();
    let checks = report["checks"].as_array().unwrap();
    let embeds = checks.iter().any(|check| check["check"] == "embedder" && check["state"] == "ok");
    assert!(embeds, "{report}");
    assert_eq!(upstream.asked()[0].path, "/v1beta/models/gemini-embedding-001:embedContent");
}

#[tokio::test]
async fn openai_clients_reach_gemini_at_its_compatible_endpoint() {
    let (_data, upstream, service) = start().await;
    let said = |body: Value| {
        let request = service.request(reqwest::Method::POST, "/openai/v1/chat/completions");
        Answer::of(request.header("Throughline-Session", "s").json(&body))
    };
    let messages = json!([{"role": "user", "content": "When?"}]);
    upstream.says("At 7:40.");
    // By its name with the provider's, and where none is named.
    said(json!({"model": MODEL, "messages": messages})).await.ok();
    upstream.says("At 7:40.");
    said(json!({"messages": messages})).await.ok();
    for asked in upstream.asked() {
        assert_eq!(asked.path, "/v1beta/openai/chat/completions");
        assert_eq!(asked.key, format!("Bearer {KEY}"));
        assert_eq!(asked.body["model"], "gemini-4-neon");
    }
    assert_eq!(held(&service, "s").await.len(), 2);
    upstream.then(Next::Json(401, json!({"error": {"message": "API key not valid"}})));
    let refused = said(json!({"model": MODEL, "messages": messages})).await;
    assert!(refused.text.contains("GEMINI_API_KEY") && !refused.text.contains(KEY), "{refused:?}");
}
