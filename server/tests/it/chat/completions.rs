//! What OpenAI's clients send and get back: which messages are stored and sent, who answers, and what is counted.

use std::ffi::OsStr;

use reqwest::Method;
use serde_json::{Value, json};

use super::upstream::{Next, Upstream, completion, pieces, whole};
use super::{complete, sent, serve, start};
use crate::http::service::{Answer, Service};
use crate::support::Throughline;

const PATH: &str = "/openai/v1/chat/completions";

fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

fn call(id: &str) -> Value {
    let function = json!({"name": "find_gate", "arguments": "{}"});
    json!({"role": "assistant", "content": null, "tool_calls": [{"id": id, "type": "function", "function": function}]})
}

fn result_of(id: &str) -> Value {
    json!({"role": "tool", "tool_call_id": id, "content": "B12"})
}

/// Sends a conversation of the session `s`.
async fn ask(service: &Service, messages: &[Value]) -> Answer {
    complete(service, &json!({"model": "gpt-4.1", "messages": messages}), Some("s")).await
}

/// What the session `s` holds, one `role: text` each.
async fn lines(service: &Service) -> Vec<String> {
    let answer = service.get("/v1/sessions/s/messages").await;
    if answer.status == 404 {
        return Vec::new();
    }
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let line = |held: &Value| format!("{}: {}", text(&held["role"]), text(&held["content"]));
    answer.ok()["items"].as_array().unwrap().iter().map(line).collect()
}

fn header(answer: &Answer, name: &str) -> u64 {
    answer.headers[name].to_str().unwrap().parse().unwrap()
}

#[tokio::test]
async fn conversation_goes_on_after_cut_answer() {
    let (_data, upstream, service) = start().await;
    upstream.then(Next::Json(200, completion(&assistant("It leaves"), "length")));
    let mut messages = vec![user("When?")];
    ask(&service, &messages).await.ok();
    for question in ["And?", "And then?"] {
        messages.extend([assistant("It leaves"), user(question)]);
        upstream.says("It leaves");
        ask(&service, &messages).await.ok();
    }
    let held = lines(&service).await;
    assert_eq!(held.len(), 6, "{held:?}");
    let first = service.get("/v1/sessions/s/messages").await.ok()["items"][1].clone();
    assert_eq!(first["parts"]["stop_reason"], "maxTokens", "the stored answer stays marked");
}

#[tokio::test]
async fn conversation_goes_on_after_empty_tool_calls() {
    let (_data, upstream, service) = start().await;
    let mut messages = vec![user("When?")];
    upstream.says("At 7:40.");
    ask(&service, &messages).await.ok();
    for (calls, question) in [(json!([]), "And?"), (Value::Null, "And then?")] {
        let mut echo = assistant("At 7:40.");
        echo["tool_calls"] = calls;
        echo["tool_call_id"] = Value::Null;
        messages.extend([echo, user(question)]);
        upstream.says("At 7:40.");
        ask(&service, &messages).await.ok();
    }
    assert_eq!(lines(&service).await.len(), 6);
}

#[tokio::test]
async fn conversation_goes_on_after_regenerated_tool_call() {
    let (_data, upstream, service) = start().await;
    for id in ["call_1", "call_2"] {
        upstream.says("Gate B12.");
        let messages = [user("Which gate?"), call(id), result_of(id)];
        ask(&service, &messages).await.ok();
        upstream.says("Yes.");
        let more = [assistant("Gate B12."), user("Sure?")];
        ask(&service, &[&messages[..], &more].concat()).await.ok();
    }
    assert_eq!(
        lines(&service).await,
        [
            "user: Which gate?",
            "assistant: called find_gate({})",
            "tool: B12",
            "assistant: Gate B12.",
            "user: Sure?",
            "assistant: Yes."
        ]
    );
    assert!(!service.log().contains("was not stored"), "{}", service.log());
}

#[tokio::test]
async fn erased_messages_do_not_come_back_with_next_turn() {
    let (_data, upstream, service) = start().await;
    upstream.says("At 7:40.");
    ask(&service, &[user("When?")]).await.ok();
    let first = service.get("/v1/sessions/s/messages").await.ok()["items"][0]["id"].clone();
    let erase = format!("/v1/sessions/s/messages?ids={}", first.as_str().unwrap());
    assert_eq!(service.delete(&erase).await.ok()["messages"], 1);
    upstream.says("B12.");
    ask(&service, &[user("When?"), assistant("At 7:40."), user("Where?")]).await.ok();
    assert_eq!(lines(&service).await, ["assistant: At 7:40.", "user: Where?", "assistant: B12."]);
}

#[tokio::test]
async fn unstored_conversation_is_sent_within_budget() {
    let (_data, upstream, service) = start().await;
    let unstored = async |messages: &[Value], budget: u32| {
        let body = json!({"model": "gpt-4.1", "store": false, "messages": messages});
        let request = service.request(Method::POST, PATH).json(&body);
        let request = request.header("Throughline-Session", "s");
        Answer::of(request.header("Throughline-Budget", budget)).await
    };
    unstored(&[user("My cat is called Turing.")], 3_000).await.ok();
    let call = call("c");
    let turns = [
        user("My cat is called Turing."),
        assistant("A good name."),
        user("Which gate?"),
        call.clone(),
        result_of("c"),
        assistant("B12."),
        user("What is my cat called?"),
    ];
    unstored(&turns, 3_000).await.ok();
    let body = upstream.last().body;
    let list = body["messages"].as_array().unwrap();
    assert_eq!(list[list.len() - turns.len()..], turns, "{body}");

    let long: Vec<Value> = (0..200)
        .flat_map(|n| {
            let id = format!("c{n}");
            [
                user(&format!("Question {n} about the weather?")),
                self::call(&id),
                result_of(&id),
                assistant("It rains."),
            ]
        })
        .chain([user("So does it rain?")])
        .collect();
    let answer = unstored(&long, 500).await;
    answer.ok();
    assert!(header(&answer, "throughline-context-tokens") <= 500);
    assert!(header(&answer, "throughline-tokens-saved") > 3_000);
    let body = upstream.last().body;
    let list = sent(&body);
    assert!((8..100).contains(&list.len()), "{body}");
    let own = body["messages"].as_array().unwrap().iter().find(|m| m["role"] != "system").unwrap();
    assert_ne!(own["role"], "tool", "a result without its call is refused");
    assert_eq!(lines(&service).await, [] as [&str; 0]);
}

#[tokio::test]
async fn question_without_answer_is_not_stored() {
    let (_data, upstream, service) = start().await;
    let down = || Next::Json(500, json!({"error": {"message": "down"}}));
    upstream.then(down());
    ask(&service, &[user("When?")]).await;
    let both = [user("When?"), user("And where?")];
    upstream.then(down());
    ask(&service, &both).await;
    assert_eq!(lines(&service).await, [] as [&str; 0]);
    // Nor is one whose answer was empty.
    upstream.then(down());
    ask(&service, &[user("When?"), assistant(""), user("And where?")]).await;
    assert_eq!(lines(&service).await, [] as [&str; 0]);
    upstream.says("At 7:40, gate B12.");
    ask(&service, &both).await.ok();
    let list = sent(&upstream.last().body);
    assert_eq!(list[list.len() - 2].1, "When?", "{list:?}");
    assert_eq!(
        lines(&service).await,
        ["user: When?", "user: And where?", "assistant: At 7:40, gate B12."]
    );
}

#[tokio::test]
async fn answer_is_stored_once_whatever_its_white_space() {
    let (_data, upstream, service) = start().await;
    upstream.says(" Hi\n");
    ask(&service, &[user("Hello ")]).await.ok();
    upstream.says("Well.");
    ask(&service, &[user("Hello"), assistant("Hi"), user("How are you?")]).await.ok();
    assert_eq!(
        lines(&service).await,
        ["user: Hello", "assistant: Hi", "user: How are you?", "assistant: Well."]
    );
}

#[tokio::test]
async fn refusal_is_stored_as_text() {
    let (_data, upstream, service) = start().await;
    let refusal = json!({"role": "assistant", "content": null, "refusal": "I cannot."});
    upstream.then(Next::Json(200, completion(&refusal, "stop")));
    ask(&service, &[user("Do it.")]).await.ok();
    let held = service.get("/v1/sessions/s/messages").await.ok()["items"][1].clone();
    assert_eq!(held["parts"]["stop_reason"], "refusal", "{held}");
    upstream.says("Yes.");
    ask(&service, &[user("Do it."), refusal, user("Please?")]).await.ok();
    assert_eq!(
        lines(&service).await,
        ["user: Do it.", "assistant: I cannot.", "user: Please?", "assistant: Yes."]
    );
}

/// Requests, tokens of requests and of answers of a model, for one sort of work.
fn used(data: &Throughline, work: &str, model: &str) -> (u64, u64, u64) {
    let rows = data.json(&["usage", "--models", "--days", "1"]);
    let is_it = |row: &&Value| row["work"] == work && row["model"] == model;
    let row = rows.as_array().unwrap().iter().find(is_it).cloned().unwrap_or_default();
    let number = |name: &str| row[name].as_u64().unwrap_or_default();
    (number("requests"), number("input_tokens"), number("output_tokens"))
}

/// The sum of a metric over all its labels that have this text.
async fn metric(service: &Service, name: &str, label: &str) -> u64 {
    let text = service.get("/metrics").await.text;
    let lines = text.lines().filter(|line| line.starts_with(name) && line.contains(label));
    lines.map(|line| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum()
}

#[tokio::test]
async fn what_a_declined_turn_took_is_counted() {
    let (data, upstream, service) = start().await;
    let refusal = json!({"role": "assistant", "content": null, "refusal": "I cannot."});
    let declines = || upstream.then(Next::Json(200, completion(&refusal, "stop")));
    declines();
    let turn = json!({"user_turn": "Do it."});
    service.post("/v1/sessions/s/chat", &turn).await.problem(422, "declined");
    assert_eq!(used(&data, "chat", "openai:gpt-4.1"), (1, 100, 10));
    let guide = json!({"name": "Guide", "system_prompt": "You are a calm guide."});
    let context = service.post("/v1/contexts", &guide).await.ok()["id"].clone();
    declines();
    let path = format!("/v1/contexts/{}/chat", context.as_str().unwrap());
    service.post(&path, &json!({"message": "Do it."})).await.problem(422, "declined");
    assert_eq!(used(&data, "chat", "openai:gpt-4.1"), (2, 200, 20));
    // What the provider refuses before the model works is billed by none.
    upstream.then(Next::Json(500, json!("oops")));
    service.post("/v1/sessions/s/chat", &turn).await.problem(503, "unavailable");
    assert_eq!(used(&data, "chat", "openai:gpt-4.1"), (2, 200, 20));
}

#[tokio::test]
async fn no_answer_is_stored_without_its_question() {
    let (_data, upstream, service) = start().await;
    upstream.says("At 7:40.");
    let messages = [user("When\0 does it leave?"), assistant("Which one?"), user("The first.")];
    complete(&service, &json!({"model": "gpt-4.1", "messages": messages}), Some("s")).await;
    let held = super::held(&service, "s").await;
    let texts: Vec<_> = held.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(texts, ["When does it leave?", "Which one?", "The first.", "At 7:40."]);
    let large = [user(&"word ".repeat(300_000)), assistant("Long."), user("Shorter?")];
    upstream.says("Yes.");
    complete(&service, &json!({"model": "gpt-4.1", "messages": large}), Some("l")).await;
    let held = super::held(&service, "l").await;
    assert!(held[0].1.starts_with("(not stored: content has 1499999 bytes"), "{}", held[0].1);
    assert_eq!(held.len(), 4);
}

#[tokio::test]
async fn use_of_models_is_counted() {
    let (data, upstream, service) = start().await;
    const MODEL: &str = "openai:gpt-4.1";
    ask(&service, &[user("When?")]).await.ok();
    assert_eq!(used(&data, "chat", MODEL), (1, 100, 10));
    let tokens = "throughline_model_tokens_total";
    assert_eq!(metric(&service, tokens, "kind=\"input\"").await, 100);
    assert_eq!(metric(&service, tokens, "kind=\"cached_input\"").await, 40);

    // An answer that says nothing costs as much.
    upstream.then(Next::Json(200, completion(&assistant(""), "stop")));
    ask(&service, &[user("When?")]).await.ok();
    assert_eq!(used(&data, "chat", MODEL), (2, 200, 20));

    // A stream may say what it took.
    let stream =
        json!({"model": "gpt-4.1", "stream": true, "messages": [user("When does it leave?")]});
    upstream.then(Next::Stream(whole(&["At 7:40."])));
    complete(&service, &stream, Some("s")).await;
    assert_eq!(used(&data, "chat", MODEL), (3, 300, 30));

    // If it does not, or if the client leaves, tokens are counted here.
    let silent = [pieces(&["At 7:40."]), vec!["data: [DONE]\n\n".to_owned()]].concat();
    upstream.then(Next::Stream(silent));
    complete(&service, &stream, Some("s")).await;
    let (calls, input, output) = used(&data, "chat", MODEL);
    assert!(calls == 4 && input > 305 && (33..60).contains(&output), "{calls} {input} {output}");
    upstream.then(Next::Hangs(vec![pieces(&["At half past seven"])[..2].concat()]));
    let request = service.request(Method::POST, PATH).json(&stream);
    let mut response = request.send().await.unwrap();
    let mut read = String::new();
    while !read.contains("past seven") {
        read.push_str(&String::from_utf8_lossy(&response.chunk().await.unwrap().unwrap()));
    }
    drop(response);
    for _ in 0..200 {
        service.get("/healthz").await;
        if metric(&service, tokens, "kind=\"output\"").await > output {
            break;
        }
    }
    let (calls, _, after) = used(&data, "chat", MODEL);
    assert!(calls == 5 && after > output, "{calls} {after} {output}");

    // What the provider refuses costs nothing.
    upstream.then(Next::Json(429, json!({"error": {"message": "slow down"}})));
    ask(&service, &[user("When?")]).await;
    assert_eq!(used(&data, "chat", MODEL).0, 5);

    let vectors = json!({"object": "list", "model": "text-embedding-3-small", "data": [], "usage": {"prompt_tokens": 8, "total_tokens": 8}});
    upstream.then(Next::Json(200, vectors));
    let embed = json!({"model": "text-embedding-3-small", "input": ["A ferry.", "A gate."]});
    service.post("/openai/v1/embeddings", &embed).await.ok();
    assert_eq!(used(&data, "embeddings", "openai:text-embedding-3-small"), (1, 8, 0));
}

#[tokio::test]
async fn contexts_are_in_the_metrics() {
    let (_data, _upstream, service) = start().await;
    let new = json!({"name": "Guide", "system_prompt": "You guide tourists."});
    let context = service.post("/v1/contexts", &new).await.ok()["id"].clone();
    let path = format!("/v1/contexts/{}/chat", context.as_str().unwrap());
    service.post(&path, &json!({"message": "Where to?"})).await.ok();
    assert_eq!(metric(&service, "throughline_model_tokens_total", "kind=\"input\"").await, 100);
    service.post("/v1/sessions/own/chat", &json!({"user_turn": "When?"})).await.ok();
    assert_eq!(metric(&service, "throughline_model_tokens_total", "kind=\"input\"").await, 200);
}

#[tokio::test]
async fn requests_go_to_the_provider_of_their_model() {
    let (data, openai, gemini) =
        (Throughline::new(), Upstream::start().await, Upstream::start().await);
    let urls = [
        format!("providers.openai.base_url={}", openai.url),
        format!("providers.gemini.base_url={}", gemini.url.replace("/v1", "/v1beta")),
    ];
    let settings = [
        urls[0].as_str(),
        &urls[1],
        "providers.openai.api_key=sk-test",
        "providers.gemini.api_key=AIza-test",
        "chat.model=gemini:gemini-2.5-pro",
    ];
    let flags: Vec<&str> = settings.iter().flat_map(|setting| ["--set", setting]).collect();
    let service = Service::start_with(&data, &flags);
    let table = [
        ("chat/completions", json!("gpt-4.1"), "openai", json!("gpt-4.1")),
        (
            "chat/completions",
            json!("openai:gpt-4.1-2025-04-14"),
            "openai",
            json!("gpt-4.1-2025-04-14"),
        ),
        ("chat/completions", json!("openai:ft:gpt-4.1:acme"), "openai", json!("ft:gpt-4.1:acme")),
        ("chat/completions", json!("llama3.1:8b"), "openai", json!("llama3.1:8b")),
        ("chat/completions", json!("gemini:gemini-9-new"), "gemini", json!("gemini-9-new")),
        ("chat/completions", json!("gemini-9-new"), "gemini", json!("gemini-9-new")),
        ("chat/completions", Value::Null, "gemini", json!("gemini-2.5-pro")),
        ("embeddings", json!("text-embedding-3-small"), "openai", json!("text-embedding-3-small")),
        ("embeddings", json!("gemini-embedding-001"), "gemini", json!("gemini-embedding-001")),
        (
            "embeddings",
            json!("models/gemini-embedding-001"),
            "gemini",
            json!("models/gemini-embedding-001"),
        ),
        (
            "embeddings",
            json!("gemini:gemini-embedding-001"),
            "gemini",
            json!("gemini-embedding-001"),
        ),
        ("embeddings", Value::Null, "openai", Value::Null),
    ];
    for (path, model, provider, expected) in table {
        let (to, other) =
            if provider == "openai" { (&openai, &gemini) } else { (&gemini, &openai) };
        let before = (to.asked().len(), other.asked().len());
        let mut body = json!({"model": model, "messages": [user("When?")], "input": "When?"});
        if model.is_null() {
            body.as_object_mut().unwrap().remove("model");
        }
        service.post(&format!("/openai/v1/{path}"), &body).await.ok();
        assert_eq!(
            (to.asked().len(), other.asked().len()),
            (before.0 + 1, before.1),
            "{path} {model}"
        );
        let asked = to.last();
        assert!(asked.path.ends_with(path), "{}", asked.path);
        assert_eq!(asked.body["model"], expected, "{path} {model}");
    }
}

#[tokio::test]
async fn model_of_unconfigured_provider_is_refused() {
    let (_data, upstream, service) = start().await;
    let body = json!({"model": "gemini:gemini-2.5-pro", "messages": [user("When?")]});
    let refused = complete(&service, &body, None).await;
    assert_eq!(refused.status, 400, "{refused:?}");
    assert!(refused.text.contains("GEMINI_API_KEY"), "{refused:?}");
    assert!(upstream.asked().is_empty());

    let (data, upstream) = (Throughline::new(), Upstream::start().await);
    let service = serve(&data, &upstream);
    let settings = json!({"models": {"chat": "openai:gpt-nonsense"}});
    Answer::of(service.request(Method::PUT, "/v1/settings").json(&settings)).await;
    complete(&service, &json!({"messages": [user("When?")]}), None).await.ok();
    assert_eq!(upstream.last().body["model"], "gpt-nonsense", "the provider says what it has");
}

#[tokio::test]
async fn unknown_paths_and_methods_have_errors_of_openai() {
    let (_data, _upstream, service) = start().await;
    for (method, path, status) in [
        (Method::POST, "/openai/v1/responses", 404),
        (Method::GET, "/openai/v1", 404),
        (Method::GET, "/openai/v1/files/file-1/content", 404),
        (Method::GET, PATH, 405),
        (Method::DELETE, "/openai/v1/models/gpt-4.1", 405),
    ] {
        let refused = Answer::of(service.request(method.clone(), path)).await;
        assert_eq!(refused.status, status, "{method} {path}: {refused:?}");
        assert_eq!(refused.headers["content-type"], "application/json");
        let error = refused.json()["error"].clone();
        assert_eq!(error["type"], "invalid_request_error", "{error}");
        assert!(error["message"].as_str().unwrap().contains("/openai/v1"), "{error}");
    }
}

#[tokio::test]
async fn refused_key_of_provider_is_not_a_refused_caller() {
    let (_data, upstream, service) = start().await;
    let wrong = json!({"error": {"message": "Incorrect API key", "code": "invalid_api_key"}});
    let embed = json!({"model": "text-embedding-3-small", "input": "A gate."});
    for (path, body) in [
        (PATH, json!({"messages": [user("When?")]})),
        ("/openai/v1/embeddings", embed),
        ("/v1/sessions/s/chat", json!({"user_turn": "When?"})),
    ] {
        upstream.then(Next::Json(401, wrong.clone()));
        let answer = service.post(path, &body).await;
        assert_eq!(answer.status, 503, "{path}: {answer:?}");
        assert!(answer.text.contains("OPENAI_API_KEY"), "{answer:?}");
        assert!(!answer.headers.contains_key("www-authenticate"), "{answer:?}");
    }
}

#[tokio::test]
async fn saved_tokens_are_those_of_the_conversation() {
    let (_data, upstream, service) = start().await;
    let much: Vec<Value> = (0..200)
        .map(|n| user(&format!("Note {n}: the yellow crane stands at berth {n} of the harbour.")))
        .collect();
    service.post("/v1/sessions/notes/messages", &json!({"messages": much})).await.ok();
    let short = ask(&service, &[user("Hello?"), assistant("Yes."), user("Well?")]).await;
    short.ok();
    assert!(header(&short, "throughline-tokens-saved") < 50, "{short:?}");
    upstream.says("It does.");
    let long: Vec<Value> = (0..300)
        .flat_map(|n| [user(&format!("Does it rain in Bergen on day {n}?")), assistant("It does.")])
        .chain([user("So does it rain?")])
        .collect();
    // What is held already counts as much as what is new.
    let mut saved = Vec::new();
    for _ in 0..2 {
        let answer = ask(&service, &long).await;
        answer.ok();
        saved.push(header(&answer, "throughline-tokens-saved"));
    }
    assert!(saved.iter().all(|saved| *saved > 3_000), "{saved:?}");
}

#[tokio::test]
async fn session_header_may_be_utf8_and_is_given_once() {
    let (_data, _upstream, service) = start().await;
    let body = json!({"messages": [user("When?")]});
    let name = "Zürich";
    let value = reqwest::header::HeaderValue::from_bytes(name.as_bytes()).unwrap();
    let request = || service.request(Method::POST, PATH).json(&body);
    let answer = Answer::of(request().header("Throughline-Session", &value)).await;
    answer.ok();
    assert_eq!(answer.headers["throughline-session"].as_bytes(), name.as_bytes());
    service.get(&format!("/v1/sessions/{name}/messages")).await.ok();
    let twice = request().header("Throughline-Session", "a").header("Throughline-Session", "b");
    let twice = Answer::of(twice).await;
    assert_eq!(twice.status, 400, "{twice:?}");
    assert!(twice.text.contains("twice"), "{twice:?}");
}

#[tokio::test]
async fn tools_beyond_documented_limits_are_refused() {
    let (_data, upstream, service) = start().await;
    let tool = |name: &str| json!({"type": "function", "function": {"name": name}});
    let many: Vec<Value> = (0..129).map(|n| tool(&format!("find_{n}"))).collect();
    let long = "a".repeat(65);
    for (tools, said) in [
        (json!(many), "128"),
        (json!([tool("find gate")]), "find gate"),
        (json!([tool("")]), "name"),
        (json!([tool(&long)]), "64"),
    ] {
        let turn = json!({"user_turn": "When?", "tools": tools});
        let refused = service.post("/v1/sessions/s/chat", &turn).await;
        let detail = refused.problem(400, "invalid_input");
        assert!(detail.starts_with("tools") && detail.contains(said), "{detail}");
    }
    assert!(upstream.asked().is_empty());
}

#[test]
fn keys_of_the_developer_are_not_used() {
    let data = Throughline::new();
    let command = data.command(&["models"]);
    for key in ["OPENAI_API_KEY", "OPENAI_BASE_URL", "GEMINI_API_KEY"] {
        let is_removed = |(name, value): (&OsStr, Option<&OsStr>)| name == key && value.is_none();
        assert!(command.get_envs().any(is_removed), "{key}");
    }
}
