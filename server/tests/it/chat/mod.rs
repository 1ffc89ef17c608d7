//! Turns that a model answers, and clients of OpenAI whose base URL is ours.

mod completions;
mod contexts;
mod erased;
mod faults;
mod files;
mod gemini;
mod guests;
mod rounds;
pub(crate) mod upstream;

use serde_json::{Value, json};
use throughline_core::tokens::message_tokens;
use throughline_engine::adapters::O200k;

use crate::http::service::{Answer, Service, key};
use crate::support::{Throughline, stderr};
use upstream::{Next, Upstream, completion, pieces, whole};

const KEY: &str = "sk-test-0123456789ABCDEFabcdef";

/// A service whose provider is an upstream of the test.
async fn start() -> (Throughline, Upstream, Service) {
    let (data, upstream) = (Throughline::new(), Upstream::start().await);
    let service = serve(&data, &upstream);
    (data, upstream, service)
}

/// Serves with that upstream as the provider.
pub(crate) fn serve(data: &Throughline, upstream: &Upstream) -> Service {
    serve_with(data, upstream, &[])
}

/// The same, with more flags.
pub(crate) fn serve_with(data: &Throughline, upstream: &Upstream, more: &[&str]) -> Service {
    let url = format!("providers.openai.base_url={}", upstream.url);
    let key = format!("providers.openai.api_key={KEY}");
    let retries = "providers.openai.max_retries=0";
    let flags =
        ["--set", &url, "--set", &key, "--set", "chat.model=openai:gpt-4.1", "--set", retries];
    Service::start_with(data, &[&flags, more].concat())
}

/// What a session holds, as roles and contents.
async fn held(service: &Service, session: &str) -> Vec<(String, String)> {
    let answer = service.get(&format!("/v1/sessions/{session}/messages")).await;
    if answer.status == 404 {
        return Vec::new();
    }
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let held = answer.ok();
    held["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| (text(&m["role"]), text(&m["content"])))
        .collect()
}

fn sent(body: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| (text(&m["role"]), text(&m["content"])))
        .collect()
}

#[tokio::test]
async fn a_turn_is_answered_from_memory_and_kept() {
    let (_data, upstream, service) = start().await;
    let said =
        json!({"messages": [{"role": "user", "content": "My flight to Lisbon leaves at 7:40."}]});
    service.post("/v1/sessions/trip/messages", &said).await.ok();
    upstream.says("At 7:40.");
    let turn = json!({"user_turn": "When does my flight leave?", "max_tokens": 50});
    let answer = service.post("/v1/sessions/today/chat", &turn).await.ok();
    assert_eq!((&answer["text"], &answer["model"]), (&json!("At 7:40."), &json!("openai:gpt-4.1")));
    assert_eq!(answer["usage"]["input_tokens"], 100);
    assert_eq!(answer["usage"]["cached_input_tokens"], 40);
    assert!(answer["usage"]["cost_usd"].as_f64().unwrap() > 0.0, "{answer}");
    assert!(
        answer["context"]["budget"]["used"].as_u64()
            <= answer["context"]["budget"]["limit"].as_u64()
    );
    let asked = upstream.last();
    assert_eq!(
        (asked.path.as_str(), asked.key.as_str()),
        ("/v1/chat/completions", &*format!("Bearer {KEY}"))
    );
    let messages = sent(&asked.body);
    assert!(messages.iter().any(|(_, content)| content.contains("7:40")), "{messages:?}");
    assert_eq!(messages.last().unwrap().1, "When does my flight leave?");
    let kept = [("user", "When does my flight leave?"), ("assistant", "At 7:40.")];
    assert_eq!(
        held(&service, "today").await,
        kept.map(|(role, text)| (role.to_owned(), text.to_owned()))
    );
    assert_eq!(answer["messages"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn tools_are_called_by_the_client_and_kept_with_the_answer() {
    let (_data, upstream, service) = start().await;
    let call = json!({"id": "call_1", "type": "function", "function": {"name": "find_gate", "arguments": "{\"flight\":"}});
    let asks = json!({"role": "assistant", "content": null, "tool_calls": [call]});
    upstream.then(Next::Json(200, completion(&asks, "tool_calls")));
    let tool = json!({"type": "function", "function": {"name": "find_gate", "description": "The gate of a flight",
        "parameters": {"type": "object", "properties": {"flight": {"type": "string"}}}}});
    let turn = json!({"user_turn": "Which gate?", "tools": [tool]});
    let answer = service.post("/v1/sessions/s/chat", &turn).await.ok();
    assert_eq!(answer["tool_calls"], json!([call]), "its arguments are passed on as they are");
    assert_eq!(answer["stop_reason"], "toolUse");
    assert_eq!(held(&service, "s").await, [], "nothing is kept before the answer");
    assert_eq!(upstream.last().body["tools"], json!([tool]));

    let result = json!({"role": "tool", "tool_call_id": "call_1", "content": "B12"});
    let no_result = json!({"user_turn": "Which gate?", "tools": [tool], "steps": [asks]});
    let refused = service.post("/v1/sessions/s/chat", &no_result).await;
    assert!(refused.problem(400, "invalid_input").contains("call_1"));
    upstream.says("Gate B12.");
    let turn = json!({"user_turn": "Which gate?", "tools": [tool], "steps": [asks, result]});
    let answer = service.post("/v1/sessions/s/chat", &turn).await.ok();
    assert_eq!(answer["text"], "Gate B12.");
    let messages = upstream.last().body["messages"].as_array().unwrap().clone();
    assert_eq!(messages[messages.len() - 2]["tool_calls"], json!([call]));
    assert_eq!(messages[messages.len() - 1]["tool_call_id"], "call_1");
    let roles: Vec<String> = held(&service, "s").await.into_iter().map(|(role, _)| role).collect();
    assert_eq!(roles, ["user", "assistant", "tool", "assistant"]);

    let loops: Vec<&Value> = [&asks, &result].repeat(21);
    let turn = json!({"user_turn": "Which gate?", "tools": [tool], "steps": loops});
    let refused = service.post("/v1/sessions/s/chat", &turn).await;
    assert!(refused.problem(400, "invalid_input").contains("loop"));
}

#[tokio::test]
async fn an_answer_is_streamed_and_kept_when_it_is_whole() {
    let (_data, upstream, service) = start().await;
    upstream.then(Next::Stream(whole(&["At ", "7:40."])));
    let turn = json!({"user_turn": "When?", "stream": true});
    let answer = service.post("/v1/sessions/s/chat", &turn).await;
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    let events: Vec<&str> =
        answer.text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(events, ["context", "delta", "delta", "usage", "done"], "{}", answer.text);
    assert_eq!(held(&service, "s").await.len(), 2);

    upstream.then(Next::CutOff(pieces(&["At ", "7"])));
    let answer = service.post("/v1/sessions/s/chat", &turn).await;
    let problem = last_event(&answer, "error");
    let request = answer.headers["x-request-id"].to_str().unwrap();
    assert_eq!((&problem["status"], &problem["code"]), (&json!(503), &json!("unavailable")));
    assert_eq!(
        (&problem["type"], &problem["request_id"]),
        (&json!("about:blank"), &json!(request))
    );
    assert!(problem["title"].is_string() && problem["detail"].is_string(), "{problem}");
    assert_eq!(held(&service, "s").await.len(), 2, "no half answer is kept");
}

/// The data of the last event of a stream, which has this name.
fn last_event(answer: &Answer, name: &str) -> Value {
    let mut lines = answer.text.lines().filter(|line| !line.is_empty()).rev();
    let data = lines.next().and_then(|line| line.strip_prefix("data: "));
    assert_eq!(lines.next(), Some(&*format!("event: {name}")), "{answer:?}");
    serde_json::from_str(data.unwrap()).unwrap()
}

#[tokio::test]
async fn a_client_that_leaves_ends_the_models_answer() {
    let (_data, upstream, service) = start().await;
    upstream.then(Next::Hangs(pieces(&["At "])));
    let turn = json!({"user_turn": "When?", "stream": true});
    let request = service.request(reqwest::Method::POST, "/v1/sessions/s/chat").json(&turn);
    let mut response = request.send().await.unwrap();
    let mut read = String::new();
    while !read.contains("event: delta") {
        read.push_str(&String::from_utf8_lossy(&response.chunk().await.unwrap().unwrap()));
    }
    assert_eq!(upstream.open(), 1);
    drop(response);
    while upstream.open() > 0 {
        service.get("/healthz").await;
    }
    assert_eq!(held(&service, "s").await, []);
}

#[tokio::test]
async fn what_goes_wrong_is_told_and_nothing_is_kept() {
    let (data, upstream, service) = start().await;
    let error = |text: &str, code: &str| json!({"error": {"message": text, "type": "x", "param": null, "code": code}});
    let empty = json!({"role": "assistant", "content": ""});
    let refusal =
        json!({"role": "assistant", "content": null, "refusal": "I cannot help with that."});
    let table = [
        (
            401,
            error("Incorrect API key provided: sk-test", "invalid_api_key"),
            None,
            "OPENAI_API_KEY",
        ),
        (
            404,
            error("The model does not exist", "model_not_found"),
            Some((404, "not_found")),
            "gpt-4.1",
        ),
        (429, error("Rate limit reached", "rate_limit_exceeded"), Some((429, "rate_limited")), ""),
        (500, json!("oops"), Some((503, "unavailable")), ""),
        (200, json!({"nothing": "known"}), Some((422, "declined")), ""),
        (200, completion(&empty, "stop"), Some((422, "declined")), ""),
        (200, completion(&refusal, "stop"), Some((422, "declined")), ""),
        (
            200,
            completion(&json!({"role": "assistant", "content": null}), "content_filter"),
            Some((422, "declined")),
            "",
        ),
    ];
    for (status, body, refused, said) in table {
        upstream.then(Next::Json(status, body.clone()));
        let answer = service.post("/v1/sessions/s/chat", &json!({"user_turn": "When?"})).await;
        assert!(!answer.status.is_success(), "{body}: {answer:?}");
        if let Some((status, code)) = refused {
            answer.problem(status, code);
        }
        assert!(answer.text.contains(said), "{body}: {answer:?}");
        assert!(!answer.text.contains(KEY), "{answer:?}");
    }
    let unknown = json!({"user_turn": "When?", "model": "gpt-nonsense"});
    let refused = service.post("/v1/sessions/s/chat", &unknown).await;
    assert!(refused.problem(400, "invalid_input").contains("openai:gpt-4.1"));
    assert_eq!(held(&service, "s").await, []);
    assert!(!service.log().contains(KEY));
    drop(service);

    let none = Service::start(&data);
    let refused = none.post("/v1/sessions/s/chat", &json!({"user_turn": "When?"})).await;
    assert!(refused.text.contains("OPENAI_API_KEY"), "{refused:?}");
    let models = data.json(&["models"]);
    assert!(
        models["items"].as_array().unwrap().is_empty()
            && models["missing"][0].as_str().unwrap().contains("OPENAI_API_KEY")
    );
}

#[tokio::test]
async fn the_command_line_chats() {
    let (data, upstream) = (Throughline::new(), Upstream::start().await);
    upstream.then(Next::Stream(whole(&["At ", "7:40."])));
    let mut command = data
        .command(&["chat", "When does it leave?", "--session", "s", "--model", "openai:gpt-4.1"]);
    command.env("OPENAI_API_KEY", KEY).env("OPENAI_BASE_URL", &upstream.url);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(String::from_utf8_lossy(&output.stdout).trim(), "At 7:40.");
    assert_eq!(upstream.last().key, format!("Bearer {KEY}"));
    let exported = data.json(&["recall", "When does it leave?"]);
    assert!(exported["items"].to_string().contains("7:40"), "{exported}");

    // A specialist has no context to answer in.
    let wrong = data.run(&["chat", "Hi", "--context", "c", "--specialist", "writer"]);
    assert_eq!(wrong.status.code(), Some(2), "{}", stderr(&wrong));
    assert!(stderr(&wrong).contains("--specialist"), "{}", stderr(&wrong));
}

#[tokio::test]
async fn command_line_stays_within_its_budget() {
    let (data, upstream, service) = start().await;
    let results: Vec<Value> =
        (0..100).map(|n| json!({"role": "tool", "content": format!("{n}")})).collect();
    service.post("/v1/sessions/s/messages", &json!({"messages": results})).await.ok();
    drop(service);
    let mut command = data.command(&[
        "chat", "And now?", "--session", "s", "--model", "openai:gpt-4.1", "--budget", "200",
    ]);
    command.env("OPENAI_API_KEY", KEY).env("OPENAI_BASE_URL", &upstream.url);
    let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let messages = sent(&upstream.last().body);
    assert!(messages.len() > 5 && messages[2].1.starts_with("Tool result: "), "{messages:?}");
    let tokens: u32 = messages.iter().map(|(_, text)| message_tokens(&O200k, text)).sum();
    assert!(tokens <= 200, "{tokens} tokens: {messages:?}");
}

#[tokio::test]
async fn budget_of_tenant_holds_in_small_windows() {
    let (data, upstream) = (Throughline::new(), Upstream::start().await);
    let models = r#"
        [providers.openai]
        models = [{id = "small", window = 4096, max_output = 4096}, {id = "medium", window = 8192, max_output = 4096}]
    "#;
    data.file("throughline.toml", models);
    let service = serve(&data, &upstream);
    let limit = async |tenant: u32, turn: Value| {
        let settings = json!({"token_budget": tenant});
        let request = service.request(reqwest::Method::PUT, "/v1/settings").json(&settings);
        Answer::of(request).await.ok();
        let answer = service.post("/v1/sessions/s/chat", &turn).await.ok();
        answer["context"]["budget"]["limit"].clone()
    };
    assert_eq!(limit(1_000, json!({"user_turn": "Hi", "model": "small"})).await, 1_000);
    assert_eq!(limit(20_000, json!({"user_turn": "Hi", "model": "medium"})).await, 4_096);
    let asked = json!({"user_turn": "Hi", "model": "medium", "token_budget": 100_000});
    assert_eq!(limit(1_000, asked).await, 4_096);
}

/// A request of OpenAI's client.
async fn complete(service: &Service, body: &Value, session: Option<&str>) -> Answer {
    let request = service.request(reqwest::Method::POST, "/openai/v1/chat/completions").json(body);
    Answer::of(match session {
        Some(session) => request.header("Throughline-Session", session),
        None => request,
    })
    .await
}

#[tokio::test]
async fn a_client_of_openai_gets_memory_and_a_budget() {
    let (_data, upstream, service) = start().await;
    let said =
        json!({"messages": [{"role": "user", "content": "My flight to Lisbon leaves at 7:40."}]});
    service.post("/v1/sessions/trip/messages", &said).await.ok();
    let image = json!([{"type": "text", "text": "When does my flight leave?"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA=="}}]);
    let mut messages = vec![
        json!({"role": "system", "content": "Be brief."}),
        json!({"role": "user", "content": image}),
    ];
    upstream.says("At 7:40.");
    let body = json!({"model": "gpt-4.1", "messages": messages, "logit_bias": {"50256": -100}, "x_new": true});
    let answer = complete(&service, &body, None).await;
    let whole_answer = answer.ok();
    assert_eq!(whole_answer["choices"][0]["message"]["content"], "At 7:40.");
    assert_eq!(whole_answer["system_fingerprint"], "fp_1", "the answer is the provider's own");
    let session = answer.headers["throughline-session"].to_str().unwrap().to_owned();
    assert!(
        answer.headers["throughline-context-tokens"].to_str().unwrap().parse::<u32>().unwrap() > 0
    );
    let asked = upstream.last().body;
    assert_eq!((&asked["x_new"], &asked["logit_bias"]["50256"]), (&json!(true), &json!(-100)));
    let list = asked["messages"].as_array().unwrap();
    assert_eq!(list[0]["content"], "Be brief.");
    assert_eq!(list.last().unwrap()["content"], image, "parts are sent whole");
    assert!(asked["messages"].to_string().contains("7:40"), "{asked}");
    assert_eq!(held(&service, &session).await.len(), 2);

    // The client sends the conversation again, and it is kept once.
    messages.extend([
        json!({"role": "assistant", "content": "At 7:40."}),
        json!({"role": "user", "content": "And the gate?"}),
    ]);
    upstream.says("B12.");
    let answer = complete(&service, &json!({"messages": messages}), None).await;
    answer.ok();
    assert_eq!(answer.headers["throughline-session"], session.as_str());
    assert_eq!(
        upstream.last().body["model"],
        "gpt-4.1",
        "the configured model answers where none is named"
    );
    assert_eq!(held(&service, &session).await.len(), 4);

    // A long history is sent within the budget.
    let long: Vec<Value> = (0..200)
        .flat_map(|n| [json!({"role": "user", "content": format!("Question {n} about the weather in Bergen, please?")}), json!({"role": "assistant", "content": format!("Answer {n}: it rains in Bergen, as on most days.")})])
        .chain([json!({"role": "user", "content": "So does it rain?"})])
        .collect();
    upstream.says("Yes.");
    let answer =
        complete(&service, &json!({"model": "gpt-4.1", "messages": long}), Some("weather")).await;
    answer.ok();
    let tokens = |name: &str| answer.headers[name].to_str().unwrap().parse::<u64>().unwrap();
    assert!(
        tokens("throughline-context-tokens") <= 3_000 && tokens("throughline-tokens-saved") > 1_000
    );
    assert!(upstream.last().body["messages"].as_array().unwrap().len() < 100);
    assert_eq!(held(&service, "weather").await.len(), 50, "a page of the 402 that are kept");
}

#[tokio::test]
async fn a_streamed_completion_passes_through_and_is_kept() {
    let (_data, upstream, service) = start().await;
    let sent = whole(&["At ", "7:40."]);
    upstream.then(Next::Stream(sent.clone()));
    let body = json!({"model": "gpt-4.1", "stream": true, "messages": [{"role": "user", "content": "When?"}]});
    let answer = complete(&service, &body, Some("s")).await;
    assert_eq!(answer.text, sent.concat(), "byte by byte");
    assert_eq!(held(&service, "s").await[1].1, "At 7:40.");

    // What is marked as not to be stored is not, nor what calls tools or was cut off.
    let not_stored = json!({"model": "gpt-4.1", "store": false, "messages": [{"role": "user", "content": "Secretly?"}]});
    upstream.says("Yes.");
    complete(&service, &not_stored, Some("t")).await.ok();
    let call =
        json!([{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}]);
    upstream.then(Next::Json(
        200,
        completion(
            &json!({"role": "assistant", "content": null, "tool_calls": call}),
            "tool_calls",
        ),
    ));
    complete(&service, &json!({"messages": [{"role": "user", "content": "Call?"}]}), Some("t"))
        .await
        .ok();
    assert_eq!(held(&service, "t").await, []);

    // What the provider refuses is passed on; what is refused here has the same form.
    upstream.then(Next::Json(
        429,
        json!({"error": {"message": "slow down", "type": "rate_limit", "code": null}}),
    ));
    let answer = complete(&service, &body, Some("t")).await;
    assert_eq!(
        (answer.status.as_u16(), &answer.json()["error"]["message"]),
        (429, &json!("slow down"))
    );
    let answer = complete(&service, &json!({"messages": []}), None).await;
    assert_eq!(answer.status, 400);
    assert!(answer.json()["error"]["message"].as_str().unwrap().contains("messages"), "{answer:?}");
    let listed = service.get("/openai/v1/models").await.ok();
    assert!(listed["data"].as_array().unwrap().iter().any(|model| model["id"] == "gpt-4.1"));
    let one = service.get("/openai/v1/models/gpt-4.1").await.ok();
    assert_eq!((&one["id"], &one["owned_by"]), (&json!("gpt-4.1"), &json!("openai")));
    let none = service.get("/openai/v1/models/gpt-nonsense").await;
    assert_eq!(none.status, 404);
    assert!(none.json()["error"]["message"].as_str().unwrap().contains("openai:gpt-4.1"));
}

#[tokio::test]
async fn openai_endpoint_takes_keys_and_keeps_tenants_apart() {
    let (data, upstream) = (Throughline::new(), Upstream::start().await);
    let ada = key(&data, "acme", &["--user", "ada"], "read,write,chat");
    let reader = key(&data, "acme", &["--user", "ada"], "read");
    let other = key(&data, "other", &["--user", "ada"], "read,write,chat");
    let service = serve(&data, &upstream);
    let body = json!({"model": "gpt-4.1", "messages": [{"role": "user", "content": "The canary sleeps in Bergen."}]});
    let send = async |key: &str, path: &str| {
        let request = service.request(reqwest::Method::POST, path).json(&body);
        Answer::of(if key.is_empty() { request } else { request.bearer_auth(key) }).await
    };
    for path in ["/openai/v1/chat/completions", "/openai/v1/embeddings"] {
        for (key, status, kind) in [
            ("", 401, "authentication_error"),
            ("tl_nonsense", 401, "authentication_error"),
            (&*reader, 403, "permission_error"),
        ] {
            let refused = send(key, path).await;
            assert_eq!(
                (refused.status.as_u16(), &refused.json()["error"]["type"]),
                (status, &json!(kind))
            );
        }
    }
    assert!(upstream.asked().is_empty(), "who is refused costs nothing");
    send(&ada, "/openai/v1/chat/completions").await.ok();
    let asked = json!({"model": "gpt-4.1", "messages": [{"role": "user", "content": "Where does the canary sleep?"}]});
    for (key, knows) in [(&ada, true), (&other, false)] {
        let request = service.request(reqwest::Method::POST, "/openai/v1/chat/completions");
        Answer::of(request.bearer_auth(key).json(&asked)).await.ok();
        assert_eq!(upstream.last().body["messages"].to_string().contains("Bergen"), knows);
    }
}
