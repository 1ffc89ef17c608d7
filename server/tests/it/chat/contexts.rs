//! Contexts that a configured model answers, over HTTP, MCP and the command line; and what is shared, rated and found of
//! them.

use reqwest::Method;
use serde_json::{Value, json};

use super::upstream::{Next, Upstream, completion, pieces, whole};
use super::{KEY, held, last_event, sent, serve, serve_with, start};
use crate::http::service::{Answer, Service, key};
use crate::support::{Throughline, stderr};

/// Makes a context; its id.
async fn create(service: &Service, new: Value) -> String {
    let made = service.post("/v1/contexts", &new).await.ok();
    made["id"].as_str().unwrap().to_owned()
}

fn guide() -> Value {
    json!({"name": "Guide", "system_prompt": "You are a calm guide of a harbour.", "max_tokens": 50_000})
}

/// A request under an idempotency key.
async fn once(service: &Service, path: &str, key: &str, body: Value) -> Answer {
    let request = service.request(Method::POST, path).header("Idempotency-Key", key);
    Answer::of(request.json(&body)).await
}

async fn conversation(service: &Service, context: &str) -> Vec<(String, String)> {
    held(service, &format!("context-{context}")).await
}

#[tokio::test]
async fn a_context_is_answered_by_the_configured_model_and_kept() {
    let (_data, upstream, service) = start().await;
    let context = create(&service, guide()).await;
    let path = format!("/v1/contexts/{context}/chat");
    upstream.says("At nine.");
    let answer = service.post(&path, &json!({"message": "When does it open?"})).await.ok();
    assert_eq!((&answer["text"], &answer["model"]), (&json!("At nine."), &json!("openai:gpt-4.1")));
    assert_eq!(answer["stop_reason"], "endTurn");
    assert!(answer["usage"]["cost_usd"].as_f64().unwrap() > 0.0, "{answer}");
    assert!(answer["tokens_used"].as_u64().unwrap() > 0 && answer["history_truncated"] == false);
    let asked = upstream.last().body;
    let (roles, texts): (Vec<_>, Vec<_>) = sent(&asked).into_iter().unzip();
    assert_eq!(roles, ["system", "user"]);
    assert!(texts[0].starts_with("You are a calm guide") && texts[1] == "When does it open?");
    assert!(texts[0].contains("Stay calm"), "{texts:?}");
    assert_eq!(asked["max_tokens"], 32_768, "no more than the model gives: {asked}");
    upstream.says("At six.");
    let plain = json!({"message": "And close?", "maintain_personality": false});
    let answer = service.post(&path, &plain).await.ok();
    assert!(answer["history_tokens"].as_u64().unwrap() > 0, "{answer}");
    let again = sent(&upstream.last().body);
    assert_eq!(again.len(), 4, "the history is sent: {again:?}");
    assert!(!again[0].1.contains("Stay calm"));
    let told = service.get(&format!("/v1/contexts/{context}")).await.ok();
    assert_eq!(told["turn_count"], 2);
    let kept: Vec<String> =
        conversation(&service, &context).await.into_iter().map(|(_, text)| text).collect();
    assert_eq!(kept, ["When does it open?", "At nine.", "And close?", "At six."]);

    // A repeat asks no model, and is told what is stored.
    upstream.says("Closed.");
    let (first, second) = (
        once(&service, &path, "k1", json!({"message": "On Sunday?"})).await.ok(),
        once(&service, &path, "k1", json!({"message": "On Sunday?"})).await.ok(),
    );
    for field in ["text", "messages", "model", "stop_reason"] {
        assert_eq!(second[field], first[field], "{field}");
    }
    assert_eq!((&second["text"], &second["usage"]), (&json!("Closed."), &Value::Null));
    assert_eq!((upstream.asked().len(), conversation(&service, &context).await.len()), (3, 6));
    let other = once(&service, &path, "k1", json!({"message": "On Monday?"})).await;
    other.problem(409, "conflict");

    // An answer that ended at its limit says so, and is marked.
    let half = json!({"role": "assistant", "content": "Well, the"});
    upstream.then(Next::Json(200, completion(&half, "length")));
    let answer = service.post(&path, &json!({"message": "Why?"})).await.ok();
    assert_eq!(answer["stop_reason"], "maxTokens");
    let said = service.get(&format!("/v1/sessions/context-{context}/messages")).await.ok();
    assert_eq!(said["items"][7]["parts"]["stop_reason"], "maxTokens", "{said}");
}

#[tokio::test]
async fn an_answer_of_a_context_is_streamed_and_kept_when_it_is_whole() {
    let (_data, upstream, service) = start().await;
    let context = create(&service, guide()).await;
    let path = format!("/v1/contexts/{context}/chat");
    upstream.then(Next::Stream(whole(&["At ", "nine."])));
    let turn = json!({"message": "When?", "stream": true});
    let answer = service.post(&path, &turn).await;
    assert_eq!(answer.headers["content-type"], "text/event-stream");
    let events: Vec<&str> =
        answer.text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(events, ["delta", "delta", "done"], "{}", answer.text);
    assert!(answer.text.contains(r#""text":"At nine.""#), "{}", answer.text);
    assert_eq!(conversation(&service, &context).await.len(), 2);

    upstream.then(Next::CutOff(pieces(&["At ", "n"])));
    let answer = service.post(&path, &turn).await;
    let problem = last_event(&answer, "error");
    let request = answer.headers["x-request-id"].to_str().unwrap();
    assert_eq!((&problem["status"], &problem["code"]), (&json!(503), &json!("unavailable")));
    assert_eq!(problem["request_id"], request);
    assert_eq!(conversation(&service, &context).await.len(), 2, "no half answer is kept");

    upstream.then(Next::Hangs(pieces(&["At "])));
    let request = service.request(Method::POST, &path).json(&turn);
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
    assert_eq!(
        conversation(&service, &context).await.len(),
        2,
        "a client that leaves keeps nothing"
    );
}

#[tokio::test]
async fn what_goes_wrong_with_a_context_is_told_and_nothing_is_kept() {
    let (data, upstream, service) = start().await;
    let context = create(&service, guide()).await;
    let path = format!("/v1/contexts/{context}/chat");
    let ask = async |body: Value| service.post(&path, &body).await;
    let error =
        |text: &str| json!({"error": {"message": text, "type": "x", "param": null, "code": null}});
    let table = [
        (401, error("Incorrect API key provided")),
        (429, error("Rate limit reached")),
        (500, json!("oops")),
        (200, json!({"nothing": "known"})),
        (200, completion(&json!({"role": "assistant", "content": ""}), "stop")),
        (200, completion(&json!({"role": "assistant", "content": null}), "content_filter")),
    ];
    for (status, body) in table {
        upstream.then(Next::Json(status, body.clone()));
        let answer = ask(json!({"message": "When?"})).await;
        assert!(!answer.status.is_success(), "{body}: {answer:?}");
        assert!(!answer.text.contains(KEY), "{answer:?}");
    }
    let asked = upstream.asked().len();
    let long = "word ".repeat(20_000);
    for (body, status, code) in [
        (json!({"message": " "}), 400, "invalid_input"),
        (json!({}), 400, "invalid_input"),
        (json!({"message": "When?", "model": "gpt-nonsense"}), 400, "invalid_input"),
        (json!({"message": "When?", "token_budget": 0}), 400, "invalid_input"),
        (json!({"message": "When?", "token_budget": 20}), 422, "budget_too_small"),
        (json!({"message": long}), 422, "budget_too_small"),
    ] {
        ask(body.clone()).await.problem(status, code);
        // Also of a stream.
        let mut streamed = body;
        streamed["stream"] = json!(true);
        ask(streamed).await.problem(status, code);
    }
    let unknown = format!("/v1/contexts/{}/chat", uuid::Uuid::max());
    service.post(&unknown, &json!({"message": "When?"})).await.problem(404, "not_found");
    let streamed = json!({"message": "When?", "stream": true});
    service.post(&unknown, &streamed).await.problem(404, "not_found");
    assert_eq!(upstream.asked().len(), asked, "what can be refused is, before a model is paid");
    assert_eq!(conversation(&service, &context).await, []);
    let changed = service.get(&format!("/v1/contexts/{context}")).await.ok();
    assert_eq!((&changed["turn_count"], &changed["version"]), (&json!(0), &json!(1)));
    drop(service);

    let none = Service::start(&data);
    let refused = none.post(&path, &json!({"message": "When?"})).await;
    assert!(refused.text.contains("OPENAI_API_KEY"), "{refused:?}");
}

#[tokio::test]
async fn a_context_that_expired_does_not_answer() {
    let (data, upstream, service) = start().await;
    let mut new = guide();
    new["expiry_days"] = json!(1);
    let context = create(&service, new).await;
    let path = format!("/v1/contexts/{context}/chat");
    let first = once(&service, &path, "k1", json!({"message": "Hello?"})).await.ok();
    drop(service);
    // Two days later.
    let database = rusqlite::Connection::open(data.database()).unwrap();
    let past = database.execute("UPDATE persona SET expires_at = expires_at - 172800000000", []);
    assert_eq!(past.unwrap(), 1);
    drop(database);
    let service = serve(&data, &upstream);
    for stream in [false, true] {
        let turn = json!({"message": "Still?", "stream": stream});
        let refused = service.post(&path, &turn).await;
        assert!(refused.problem(409, "conflict").contains("extend it"));
    }
    let repeat = once(&service, &path, "k1", json!({"message": "Hello?"})).await.ok();
    assert_eq!(repeat["messages"], first["messages"], "what is stored is told");
    service.post(&format!("/v1/contexts/{context}/extend"), &json!({})).await.ok();
    service.post(&path, &json!({"message": "Still?"})).await.ok();
    assert_eq!(upstream.asked().len(), 2);
}

#[tokio::test]
async fn repeat_is_streamed_as_it_is_stored_also_when_the_conversation_is_full() {
    let (data, upstream) = (Throughline::new(), Upstream::start().await);
    let service = serve_with(&data, &upstream, &["--set", "persona.max_conversations=2"]);
    let context = create(&service, guide()).await;
    let path = format!("/v1/contexts/{context}/chat");
    let turn = json!({"message": "When?", "stream": true});
    upstream.then(Next::Stream(whole(&["At ", "nine."])));
    let first = once(&service, &path, "k1", turn.clone()).await;
    let second = once(&service, &path, "k1", turn.clone()).await;
    let events: Vec<&str> =
        second.text.lines().filter_map(|line| line.strip_prefix("event: ")).collect();
    assert_eq!(events, ["delta", "done"], "{}", second.text);
    assert!(second.text.contains(r#"data: {"text":"At nine."}"#), "{}", second.text);
    let [first, second] = [&first, &second].map(|answer| last_event(answer, "done"));
    assert_eq!((&first["messages"], &first["text"]), (&second["messages"], &second["text"]));
    once(&service, &path, "k2", turn).await.problem(409, "conflict");
    assert_eq!(upstream.asked().len(), 1);
}

#[tokio::test]
async fn repeats_of_a_context_at_the_same_time_have_the_stored_answer() {
    let (_data, upstream, service) = start().await;
    let context = create(&service, guide()).await;
    let path = format!("/v1/contexts/{context}/chat");
    let (first, second) = (upstream.says_later("At nine."), upstream.says_later("At ten."));
    let send = async || once(&service, &path, "k1", json!({"message": "When?"})).await.ok();
    let release = async {
        upstream.is_asked(2).await;
        first.send(()).unwrap();
        while conversation(&service, &context).await.is_empty() {}
        second.send(()).unwrap();
    };
    let (one, other, ()) = tokio::join!(send(), send(), release);
    assert_eq!((&one["text"], &other["text"]), (&json!("At nine."), &json!("At nine.")));
    assert_eq!(one["messages"], other["messages"]);
    assert_eq!(conversation(&service, &context).await.len(), 2);
}

#[tokio::test]
async fn model_of_tenant_answers_for_contexts() {
    let (data, upstream) = (Throughline::new(), Upstream::start().await);
    let service = serve(&data, &upstream);
    let settings = json!({"models": {"chat": "openai:gpt-4.1-nano"}});
    Answer::of(service.request(Method::PUT, "/v1/settings").json(&settings)).await.ok();
    let context = create(&service, guide()).await;
    let path = format!("/v1/contexts/{context}/chat");
    service.post(&path, &json!({"message": "When?"})).await.ok();
    assert_eq!(upstream.last().body["model"], "gpt-4.1-nano");
    drop(service);

    // No model is needed but the tenant's.
    let service = serve_with(&data, &upstream, &["--set", "chat.model="]);
    service.post(&path, &json!({"message": "When?"})).await.ok();
    let none = json!({"models": {"chat": null}});
    Answer::of(service.request(Method::PUT, "/v1/settings").json(&none)).await.ok();
    service.post(&path, &json!({"message": "When?"})).await.problem(400, "invalid_input");
}

#[tokio::test]
async fn the_command_line_chats_with_contexts_and_searches_them() {
    let (data, upstream, service) = start().await;
    let context = create(&service, guide()).await;
    drop(service);
    let run = async |args: &[&str]| {
        let mut command = data.command(args);
        command.env("OPENAI_API_KEY", KEY).env("OPENAI_BASE_URL", &upstream.url);
        let output = tokio::task::spawn_blocking(move || command.output().unwrap()).await.unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    };
    upstream.then(Next::Stream(whole(&["At ", "nine."])));
    let chat = ["chat", "When does it open?", "--context", &context, "--model", "openai:gpt-4.1"];
    assert_eq!(run(&chat).await, "At nine.");
    let listed = data.json(&["contexts", "list"]);
    assert_eq!(
        (&listed["items"][0]["id"], &listed["items"][0]["turns"]),
        (&json!(context), &json!(1))
    );
    let found = data.json(&["contexts", "search", "nine"]);
    assert_eq!(found["items"][0]["context_name"], "Guide");
    assert!(run(&["contexts", "search", "nine"]).await.contains("At nine."));
    assert!(run(&["contexts", "search", "zanzibar"]).await.contains("No message"));
    let told = data.json(&["contexts", "effectiveness"]);
    assert_eq!((&told["items"][0]["turns"], &told["items"][0]["rated"]), (&json!(1), &json!(0)));
}

#[tokio::test]
async fn answers_are_rated_and_presets_told_by_version() {
    let (_data, upstream, service) = start().await;
    let preset =
        json!({"id": "preset-guide", "name": "Guide", "system_prompt": "You are a guide."});
    service.post("/v1/presets", &preset).await.ok();
    let send = async |method, path: &str, body: Value| {
        Answer::of(service.request(method, path).json(&body)).await
    };
    let mut rated = Vec::new();
    for (version, helpful) in [(1, false), (2, true)] {
        if version == 2 {
            let better = json!({"system_prompt": "You are a better guide."});
            send(Method::PATCH, "/v1/presets/preset-guide", better).await.ok();
        }
        let context = create(&service, json!({"preset_id": "preset-guide"})).await;
        let chat = format!("/v1/contexts/{context}/chat");
        let answer = service.post(&chat, &json!({"message": "When?"})).await.ok();
        let messages = answer["messages"].clone();
        let path = |n: usize| {
            let id = messages[n].as_str().unwrap();
            format!("/v1/contexts/{context}/conversations/{id}/rating")
        };
        let rating = json!({"helpful": helpful, "note": " Dry. "});
        let given = send(Method::PUT, &path(1), rating.clone()).await.ok();
        assert_eq!((&given["user"], &given["note"]), (&json!("local"), &json!("Dry.")));
        send(Method::PUT, &path(0), rating.clone()).await.problem(404, "not_found");
        let long = json!({"helpful": true, "note": "x".repeat(2_001)});
        send(Method::PUT, &path(1), long).await.problem(400, "invalid_input");
        let listed = service.get(&format!("/v1/contexts/{context}/conversations")).await.ok();
        assert_eq!(listed["items"][0]["ratings"][0], given);
        rated.push((context.clone(), path(1)));
    }
    let told = service.get("/v1/contexts/effectiveness?preset=preset-guide").await.ok();
    let of = |n: usize| {
        let of = &told["items"][n];
        (
            of["preset_version"].clone(),
            of["turns"].clone(),
            of["rated"].clone(),
            of["helpful_share"].clone(),
        )
    };
    assert_eq!(of(0), (json!(1), json!(1), json!(1), json!(0.0)));
    assert_eq!(of(1), (json!(2), json!(1), json!(1), json!(1.0)));
    assert!(told["items"][1]["last_rated_at"].is_string());
    let later = service.get("/v1/contexts/effectiveness?since=2999-01-01").await.ok();
    assert_eq!(later["items"][0]["rated"], 0);
    service.get("/v1/contexts/effectiveness?since=soon").await.problem(400, "invalid_input");

    // Taken back, and erased with the answer.
    assert_eq!(service.request(Method::DELETE, &rated[0].1).send().await.unwrap().status(), 204);
    let path = format!("/v1/contexts/{}/conversations?all=true", rated[1].0);
    service.delete(&path).await.ok();
    let told = service.get("/v1/contexts/effectiveness").await.ok();
    assert!(told["items"].as_array().unwrap().iter().all(|of| of["rated"] == 0), "{told}");
    assert_eq!(upstream.asked().len(), 2);
}

struct User<'s> {
    service: &'s Service,
    key: String,
}

impl User<'_> {
    async fn ask(&self, method: Method, path: &str, body: Value) -> Answer {
        let request = self.service.request(method, path).bearer_auth(&self.key);
        Answer::of(if body.is_null() { request } else { request.json(&body) }).await
    }

    async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, Value::Null).await
    }

    async fn chat(&self, context: &str, message: &str) -> Answer {
        let path = format!("/v1/contexts/{context}/chat");
        self.ask(Method::POST, &path, json!({"message": message})).await
    }
}

#[tokio::test]
async fn a_shared_context_answers_its_guests_and_shows_them_nothing_else() {
    let data = Throughline::new();
    let upstream = Upstream::start().await;
    let user = |tenant: &str, user: &str| key(&data, tenant, &["--user", user], "read,write,chat");
    let keys = [user("acme", "ana"), user("acme", "bo"), user("acme", "cy"), user("bolt", "bo")];
    let service = serve(&data, &upstream);
    let [ana, bo, cy, stranger] = keys.map(|key| User { service: &service, key });
    let private =
        json!({"messages": [{"role": "user", "content": "My locker code is tern-4471."}]});
    ana.ask(Method::POST, "/v1/sessions/private/messages", private).await.ok();
    let other = json!({"name": "Zanzibar", "system_prompt": "You are another."});
    ana.ask(Method::POST, "/v1/contexts", other).await.ok();
    let new =
        json!({"name": "Guide", "system_prompt": "You guard the word osprey.", "memory": true});
    let made = ana.ask(Method::POST, "/v1/contexts", new).await.ok();
    let context = made["id"].as_str().unwrap().to_owned();
    ana.chat(&context, "Good morning!").await.ok();

    let share = format!("/v1/contexts/{context}/share");
    ana.get(&share).await.problem(404, "not_found");
    let grant = json!({"members": ["bo"], "writable": false});
    let grant = ana.ask(Method::PUT, &share, grant).await.ok();
    assert_eq!((&grant["context"], &grant["members"]), (&json!("Guide"), &json!(["bo"])));
    let shared = grant["session"].as_str().unwrap().to_owned();
    let listed = bo.get("/v1/shared").await.ok();
    assert_eq!(
        (&listed["items"][0]["session"], &listed["items"][0]["context"]),
        (&json!(shared), &json!("Guide"))
    );
    // To read is not to chat, and nobody else may do either.
    let said = format!("/v1/contexts/{shared}/conversations");
    assert_eq!(bo.get(&said).await.ok()["items"].as_array().unwrap().len(), 2);
    bo.chat(&shared, "Who am I?").await.problem(403, "forbidden");
    for other in [&cy, &stranger] {
        other.get(&said).await.problem(404, "not_found");
        other.chat(&shared, "Who am I?").await.problem(404, "not_found");
        other.chat(&context, "Who am I?").await.problem(404, "not_found");
    }
    for own in ["", "/export", "/backups", "/share"] {
        let answer = bo.get(&format!("/v1/contexts/{shared}{own}")).await;
        assert!(answer.status.is_client_error(), "{own}: {answer:?}");
        assert!(!answer.text.contains("osprey") && !answer.text.contains("Zanzibar"), "{answer:?}");
    }

    let grant = json!({"members": ["bo"], "writable": true});
    ana.ask(Method::PUT, &share, grant).await.ok();
    upstream.says("I do not know.");
    let asked = "What is the locker code? I live in Oslo.";
    let answer = bo.chat(&shared, asked).await.ok();
    assert_eq!(answer["text"], "I do not know.");
    let to_model = upstream.last().body.to_string();
    assert!(
        !to_model.contains("tern-4471"),
        "the owner's other memory is not the guest's: {to_model}"
    );
    assert!(to_model.contains("said by=\\\"ana\\\""), "{to_model}");
    let facts = ana.get("/v1/facts").await;
    assert!(!facts.text.contains("Oslo"), "{facts:?}");
    // The owner sees who said what, and what they think of the answers.
    let rating = format!("{said}/{}/rating", answer["messages"][1].as_str().unwrap());
    bo.ask(Method::PUT, &rating, json!({"helpful": false, "note": "No help."})).await.ok();
    let all = ana.get(&format!("/v1/contexts/{context}/conversations")).await.ok();
    assert_eq!(
        (&all["items"][1]["name"], &all["items"][1]["content"]),
        (&json!("bo"), &json!(asked))
    );
    assert_eq!(all["items"][0]["ratings"][0]["user"], "bo");
    let mine = json!({"helpful": true, "note": "Good of it."});
    let owners = format!(
        "/v1/contexts/{context}/conversations/{}/rating",
        answer["messages"][1].as_str().unwrap()
    );
    ana.ask(Method::PUT, &owners, mine).await.ok();
    let guests = bo.get(&said).await;
    assert!(guests.text.contains("No help.") && !guests.text.contains("Good of it."), "{guests:?}");
    // The guest's words are fenced for the owner's model.
    ana.chat(&context, "What is my locker code?").await.ok();
    let to_model = upstream.last().body.to_string();
    assert!(to_model.contains("said by=\\\"bo\\\""), "{to_model}");
    assert!(to_model.contains("tern-4471"), "the owner's memory is the owner's: {to_model}");
    let found =
        bo.ask(Method::POST, &format!("{said}/search"), json!({"query": "Oslo"})).await.ok();
    assert_eq!(found["items"][0]["conversation"]["content"], asked);
    let everything =
        bo.ask(Method::POST, "/v1/contexts/search", json!({"query": "Oslo"})).await.ok();
    assert_eq!(everything["items"], json!([]), "a search goes over one's own contexts");

    // Taken back, and hidden with its context.
    assert_eq!(ana.ask(Method::DELETE, &share, Value::Null).await.status, 204);
    bo.chat(&shared, "Again?").await.problem(404, "not_found");
    bo.get(&said).await.problem(404, "not_found");
    bo.ask(Method::PUT, &rating, json!({"helpful": true})).await.problem(404, "not_found");
    ana.ask(Method::PUT, &share, json!({"members": ["bo"], "writable": true})).await.ok();
    let grant = ana.get(&share).await.ok();
    let shared = grant["session"].as_str().unwrap().to_owned();
    ana.ask(Method::DELETE, &format!("/v1/contexts/{context}"), Value::Null).await.ok();
    let gone = bo.chat(&shared, "Still there?").await;
    let told = gone.problem(404, "not_found");
    assert!(!told.contains("Zanzibar"), "{told}");
    let log = service.log();
    assert!(!log.contains("osprey") && !log.contains("tern-4471"));
}

#[tokio::test]
async fn templates_are_filled_in_to_contexts_and_presets() {
    let (_data, _upstream, service) = start().await;
    let listed = service.get("/v1/templates").await.ok();
    let tutor = &listed["items"][1];
    assert_eq!(
        (&tutor["id"], &tutor["fields"][0]["name"]),
        (&json!("template-language-tutor"), &json!("language"))
    );
    let presets = service.get("/v1/presets").await.ok();
    assert_eq!(presets["items"].as_array().unwrap().len(), 6, "templates are no presets");
    let fields = json!({"language": "Dutch", "level": "B1"});
    let new =
        json!({"template_id": "template-language-tutor", "fields": fields, "max_tokens": 300});
    let made = service.post("/v1/contexts", &new).await.ok();
    assert!(
        made["system_prompt"]
            .as_str()
            .unwrap()
            .starts_with("You are a tutor of Dutch for a learner of the level B1.")
    );
    assert_eq!((&made["name"], &made["max_tokens"]), (&json!("Language Tutor"), &json!(300)));
    assert_eq!((&made["preset_id"], &made["findings"]), (&Value::Null, &json!([])));
    let new = json!({"template_id": "template-language-tutor", "fields": fields, "id": "preset-dutch", "name": "Dutch"});
    let preset = service.post("/v1/presets", &new).await.ok();
    assert_eq!(
        (&preset["name"], &preset["system_prompt"]),
        (&json!("Dutch"), &made["system_prompt"])
    );
    let from = service.post("/v1/contexts", &json!({"preset_id": "preset-dutch"})).await.ok();
    assert_eq!(from["system_prompt"], made["system_prompt"]);
    for (path, body, status, told) in [
        ("/v1/contexts", json!({"template_id": "template-language-tutor"}), 400, "language"),
        ("/v1/contexts", json!({"template_id": "template-none"}), 404, "template-study-coach"),
        (
            "/v1/contexts",
            json!({"fields": {"a": "b"}, "name": "A", "system_prompt": "You are A."}),
            400,
            "template_id",
        ),
        (
            "/v1/contexts",
            json!({"template_id": "template-language-tutor", "fields": fields, "system_prompt": "You are."}),
            400,
            "system_prompt",
        ),
        (
            "/v1/contexts",
            json!({"template_id": "template-language-tutor", "fields": fields, "preset_id": "preset-dutch"}),
            400,
            "not both",
        ),
        (
            "/v1/presets",
            json!({"template_id": "template-language-tutor", "fields": {"accent": "x"}}),
            400,
            "fields.accent",
        ),
        ("/v1/presets", json!({"name": "A"}), 400, "system_prompt"),
    ] {
        let code = if status == 404 { "not_found" } else { "invalid_input" };
        let detail = service.post(path, &body).await.problem(status, code);
        assert!(detail.contains(told), "{body}: {detail}");
    }
}
