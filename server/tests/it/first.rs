//! What newcomers do first, and what they hand to it.

use reqwest::Method;
use serde_json::{Value, json};

use crate::http::service::{Answer, Service};
use crate::mcp::client::Caller;
use crate::support::{Throughline, payload, stderr};

async fn ask(service: &Service, method: Method, path: &str, body: Value) -> Answer {
    let request = service.request(method, path);
    Answer::of(if body.is_null() { request } else { request.json(&body) }).await
}

async fn say(service: &Service, session: &str, messages: Value) -> Value {
    let path = format!("/v1/sessions/{session}/messages");
    ask(service, Method::POST, &path, json!({"messages": messages})).await.ok()
}

#[test]
fn first_mistakes_get_an_error_that_helps() {
    let data = Throughline::new();
    let settings = |setting: &str| data.fails(&["facts", "--set", setting], 3);
    assert!(settings("log.level=verbose").contains("use off, error, warn, info, debug, trace"));
    data.json(&["doctor", "--set", "log.level=warn,throughline_core"]);
    assert!(settings("http.listen=127.0.0.1:1").contains("did you mean `listen`?"));
    data.json(&["doctor", "--set", "listen=localhost:0"]);
    assert!(data.fails(&["recall", ""], 3).contains("give a question"));
    data.json(&["remember", "The crane is yellow."]);
    assert!(
        data.fails(&["forget", "The crane is yellow."], 3).contains("find the fact with `recall`")
    );
    let unknown = data.fails(&["forget", "1f6a0c15"], 4);
    assert!(unknown.contains("`recall` shows the ids") && !unknown.contains("`list`"), "{unknown}");
    let keys = data.run(&["keys", "list", "--tenant", "other"]);
    assert!(String::from_utf8_lossy(&keys.stdout).contains("tenant other has no keys"));
    data.file("throughline.toml", "store = \"sqlite\n");
    let said = data.fails(&["facts"], 3);
    assert!(said.contains("throughline.toml") && said.contains("line 1"), "{said}");
}

#[test]
fn one_memory_has_a_workspace_for_each_repository() {
    let data = Throughline::new();
    let at = |folder: &str, args: &[&str]| {
        let mut command = data.command(args);
        let output =
            command.arg("--json").current_dir(data.folder().join(folder)).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice::<Value>(&output.stdout).unwrap()
    };
    for folder in ["one/.git", "one/src", "two/.git", "plain"] {
        std::fs::create_dir_all(data.folder().join(folder)).unwrap();
    }
    at("one", &["remember", "Tests run with vitest."]);
    at("one/src", &["remember", "The editor is in dark mode.", "--everywhere"]);
    let found = |folder: &str, query: &str| {
        let found = at(folder, &["recall", query]);
        found["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| item["text"].to_string())
            .collect::<String>()
    };
    for folder in ["one", "one/src"] {
        assert!(found(folder, "vitest tests").contains("vitest"), "{folder}");
        assert!(found(folder, "editor dark mode").contains("dark mode"), "{folder}");
    }
    for folder in ["two", "plain"] {
        assert!(!found(folder, "vitest tests").contains("vitest"), "{folder}");
        assert!(found(folder, "editor dark mode").contains("dark mode"), "{folder}");
    }
    assert!(data.database().exists() && !data.folder().join("one/data").exists());

    // The log of an agent belongs to the project in which it worked.
    let line = json!({
        "type": "user", "sessionId": "5b1e", "uuid": "u-1", "timestamp": "2026-01-01T10:00:00Z",
        "cwd": data.folder().join("two"),
        "message": {"role": "user", "content": "From now on, use pnpm and never npm."}
    });
    data.file("plain/log.jsonl", format!("{line}\n"));
    let report = at("plain", &["import", "log.jsonl"]);
    assert!(report[0]["workspace"].as_str().unwrap().starts_with("two-"), "{report}");
    let header =
        |folder: &str| at(folder, &["assemble", "Which package manager?"])["header"].to_string();
    assert!(header("two").contains("pnpm") && !header("one").contains("pnpm"));
}

#[test]
fn a_file_that_a_project_shares_has_no_path_of_this_machine() {
    let data = Throughline::new();
    for (client, file) in [("claude-code", ".mcp.json"), ("vscode", ".vscode/mcp.json")] {
        let folder = data.folder().display().to_string();
        let url = data.file("postgres-url", "postgres://localhost/throughline");
        let secret = format!("postgres.url=file:{}", url.display());
        let told = data.json(&[
            "mcp",
            "install",
            "--client",
            client,
            "--write",
            "--data-dir",
            &folder,
            "--set",
            &secret,
            "--set",
            "static.table=\"/srv/table.tlvt\"",
        ]);
        let text = std::fs::read_to_string(data.folder().join(file)).unwrap();
        assert!(!text.contains(&folder) && !text.contains("/target/"), "{text}");
        assert!(text.contains("\"command\": \"throughline\""), "{text}");
        assert!(!text.contains("/srv"), "{text}");
        for key in ["data_dir", "postgres.url", "static.table"] {
            assert!(told["left_out"].to_string().contains(key), "{told}");
        }
    }
}

#[tokio::test]
async fn messages_are_taken_as_people_have_them() {
    let data = Throughline::new();
    let service = Service::start(&data);
    say(&service, "s", json!([
        {"role": "user", "content": [
            {"type": "text", "text": "The crane lifts forty tons."},
            {"type": "image_url", "image_url": {"url": "https://example.org/crane.png"}}
        ]},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "lookup", "arguments": "{\"id\":7}"}}
        ]},
        {"role": "tool", "tool_call_id": "c1", "content": "berth seven"},
        {"role": "assistant", "content": "It stands at berth seven."}
    ])).await;
    let held = ask(&service, Method::GET, "/v1/sessions/s/messages", Value::Null).await.ok();
    let said: Vec<&str> =
        held["items"].as_array().unwrap().iter().map(|m| m["content"].as_str().unwrap()).collect();
    assert_eq!(
        said[..3],
        ["The crane lifts forty tons.\n[image]", "called lookup({\"id\":7})", "berth seven"]
    );
    assert_eq!(held["items"][1]["parts"]["tool_calls"][0]["id"], "c1");
    assert_eq!(held["items"][2]["parts"]["tool_call_id"], "c1");

    // A turn that was appended is sent once.
    let question = "How much does the crane lift?";
    say(&service, "s", json!([{"role": "user", "content": question}])).await;
    let path = "/v1/sessions/s/assemble";
    let context = ask(&service, Method::POST, path, json!({"user_turn": question})).await.ok();
    assert_eq!(payload(&context).matches(question).count(), 1, "{context}");
    assert_eq!(context["intent"], "context_lookup");
    let saved = context["baseline_tokens"]
        .as_u64()
        .unwrap()
        .saturating_sub(context["budget"]["used"].as_u64().unwrap());
    assert_eq!(context["tokens_saved"], saved);
    let both = context["header"].as_array().unwrap().len()
        + context["working_set"].as_array().unwrap().len();
    assert_eq!(context["messages"].as_array().unwrap().len(), both);
    let asked = json!({"user_turn": question, "format": "anthropic", "k": 1});
    let context = ask(&service, Method::POST, path, asked).await.ok();
    assert!(context["system"].as_str().unwrap().contains("stored memory"), "{context}");
    let roles: Vec<&str> = context["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|m| m["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles.first(), Some(&"user"));
    assert!(roles.windows(2).all(|pair| pair[0] != pair[1]), "{roles:?}");
    let recalled = context["items"].as_array().unwrap().iter();
    let recalled = recalled.filter(|i| i["section"] == "recall" && i["outcome"] != "dropped");
    assert!(recalled.count() <= 1, "{context}");
}

#[tokio::test]
async fn one_search_finds_messages_facts_and_documents() {
    let data = Throughline::new();
    let service = Service::start(&data);
    for (session, at) in [("old", "2026-01-05T10:00:00Z"), ("new", "2026-03-05T10:00:00Z")] {
        let content = format!("The ferry leaves from berth {session}.");
        say(&service, session, json!([{"role": "user", "content": content, "created_at": at}]))
            .await;
    }
    let fact = json!({"text": "The ferry has forty seats.", "tags": ["ferry"]});
    ask(&service, Method::POST, "/v1/facts", fact).await.json();
    let put = service.request(Method::PUT, "/v1/vaults/v/memories/m/context");
    let put = put.header("content-type", "text/plain").body("# Ferry\nThe ferry is blue.\n");
    assert!(Answer::of(put).await.status.is_success());
    let search = async |body: Value| {
        let found = ask(&service, Method::POST, "/v1/search", body).await.ok();
        let items = found["items"].as_array().unwrap().clone();
        items.iter().map(|i| format!("{}: {}", i["kind"], i["text"])).collect::<Vec<_>>()
    };
    let all = search(json!({"query": "ferry berth seats blue"})).await;
    for kind in ["message", "fact", "document"] {
        assert!(all.iter().any(|hit| hit.starts_with(&format!("\"{kind}\""))), "{all:?}");
    }
    let one = search(json!({"query": "ferry berth", "kinds": ["message"], "session": "old"})).await;
    assert!(one.len() == 1 && one[0].contains("berth old"), "{one:?}");
    let late =
        search(json!({"query": "ferry berth", "kinds": ["message"], "since": "2026-02-01"})).await;
    assert!(late.len() == 1 && late[0].contains("berth new"), "{late:?}");
    assert_eq!(search(json!({"query": "ferry", "k": 1})).await.len(), 1);
    let body = json!({"query": "ferry", "session": "old", "k": 5});
    let facts = ask(&service, Method::POST, "/v1/facts/search", body).await.ok();
    assert_eq!(facts["items"], json!([]), "no fact was stated in that session");
}

#[tokio::test]
async fn small_things_are_answered_well() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let home = service.request(Method::GET, "/");
    assert!(Answer::of(home).await.text.contains("swagger"), "/ leads to the documentation");
    let all = service.request(Method::GET, "/v1/facts").header("throughline-user", "*");
    assert!(Answer::of(all).await.problem(400, "invalid_input").contains("name one"));
    say(&service, "s", json!([{"role": "user", "content": "See the file."}])).await;
    let file = json!({"type": "uploaded", "title": "x", "message_id": "0193d2f0-5a3c-7b1e-9c55-0b1f6a1f0c15"});
    let refused = ask(&service, Method::POST, "/v1/sessions/s/files", file).await;
    assert!(refused.problem(404, "not_found").contains("message_id"));
    let new = json!({"name": "Guide", "system_prompt": "You are a calm guide of a harbour."});
    let made = ask(&service, Method::POST, "/v1/contexts", new).await.json();
    assert_eq!(made["memory"], false);
    let path = format!("/v1/contexts/{}", made["id"].as_str().unwrap());
    let same = ask(&service, Method::PATCH, &path, json!({"name": "Guide"})).await.ok();
    assert_eq!(same["version"], made["version"], "nothing changed");
    let preset = json!({"name": "Pilot", "system_prompt": "You are a calm pilot of a harbour."});
    let preset = ask(&service, Method::POST, "/v1/presets", preset).await.json();
    let of_preset = format!("/v1/presets/{}", preset["id"].as_str().unwrap());
    let same = ask(&service, Method::PATCH, &of_preset, json!({"name": "Pilot"})).await.ok();
    assert_eq!(same["version"], preset["version"], "nothing changed");
    let profile = json!({"card": "Engineer"});
    for _ in 0..2 {
        let put = ask(&service, Method::PUT, "/v1/profile", profile.clone()).await.ok();
        assert_eq!(put["version"], 1, "the second one changes nothing");
    }
    assert!(ask(&service, Method::DELETE, &path, Value::Null).await.status.is_success());
    let gone = ask(&service, Method::GET, &path, Value::Null).await;
    assert!(gone.problem(404, "not_found").contains("restore"));
}

#[tokio::test]
async fn a_model_sees_what_it_remembers_twice_and_replaces_it() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let model = Caller::local(&service);
    let told = |answer: &Value| answer["structuredContent"].clone();
    let first = model.call("remember", &json!({"text": "The locker of Ana is number 44."})).await;
    let id = told(&first)["id"].as_str().unwrap().to_owned();
    assert_eq!(id.len(), 8, "{first}");
    let again = model.call("remember", &json!({"text": "Ana has the locker number 44."})).await;
    assert_eq!(told(&again)["similar"][0]["id"], json!(id), "{again}");
    let other = told(&again)["id"].as_str().unwrap().to_owned();
    model.call("forget", &json!({"fact": other})).await;
    let new = json!({"text": "The locker of Ana is number 45.", "replaces": format!("fact:{id}")});
    assert_ne!(model.call("remember", &new).await["isError"], true);
    let listed = told(&model.call("list", &json!({})).await);
    assert_eq!((&listed["total"], &listed["facts"][0]["by_model"]), (&json!(1), &json!(true)));
    assert!(listed["facts"][0]["text"].as_str().unwrap().contains("45"), "{listed}");
    let found = model.call("recall", &json!({"query": "Which locker has Ana?", "k": 1})).await;
    let items = told(&found)["items"].clone();
    assert!(items.as_array().unwrap().len() == 1 && items[0]["at"].is_string(), "{found}");
    let empty = model.call("recall", &json!({"query": " "})).await;
    assert!(empty.to_string().contains("`list` shows all facts"), "{empty}");
    let text = model.call("forget", &json!({"fact": "The locker of Ana"})).await;
    assert!(text.to_string().contains("is not the id of a fact"), "{text}");
}

#[tokio::test]
async fn newer_facts_come_first_and_old_ones_fade() {
    let data = Throughline::new();
    let query = json!({"query": "deploy day of the web shop", "k": 1});
    let found = async |service: &Service, body: &Value| {
        let found = ask(service, Method::POST, "/v1/facts/search", body.clone()).await.ok();
        found["items"].as_array().unwrap().clone()
    };
    let old = json!([{
        "role": "user", "created_at": "2020-01-05T10:00:00Z",
        "content": "From now on, answer in Portuguese when I ask about the ferry."
    }]);
    let score = {
        let service = Service::start_with(&data, &["--set", "facts.half_life_days=0"]);
        say(&service, "s", old).await;
        for day in ["Tuesday", "Thursday"] {
            let fact = json!({"text": format!("The deploy day of the web shop is {day}."), "kind": "decision"});
            ask(&service, Method::POST, "/v1/facts", fact).await.json();
        }
        // Of the same words the newer one comes first, with and without fading.
        let first = found(&service, &query).await;
        assert!(first[0]["fact"]["text"].to_string().contains("Thursday"), "{first:?}");
        let body = json!({"query": "deploy day of the web shop", "kinds": ["fact"]});
        let hits = ask(&service, Method::POST, "/v1/search", body).await.ok();
        assert!(hits["items"][0]["text"].to_string().contains("Thursday"), "{hits}");
        let model = Caller::local(&service);
        let recalled =
            model.call("recall", &json!({"query": "deploy day of the web shop", "k": 1})).await;
        assert!(recalled["structuredContent"].to_string().contains("Thursday"), "{recalled}");
        for at in 0..20 {
            let fact =
                json!({"text": format!("Crane {at} is yellow."), "tags": [format!("crane:{at}")]});
            ask(&service, Method::POST, "/v1/facts", fact).await.json();
        }
        assert_eq!(found(&service, &json!({"query": "yellow crane"})).await.len(), 12);
        let tagged = json!({"query": "yellow crane", "tags": ["crane:3"], "k": 1});
        assert_eq!(found(&service, &tagged).await[0]["fact"]["tags"], json!(["crane:3"]));
        found(&service, &json!({"query": "Portuguese ferry", "k": 1})).await[0]["score"]
            .as_f64()
            .unwrap()
    };
    let service = Service::start_with(&data, &["--set", "facts.half_life_days=1"]);
    let first = found(&service, &query).await;
    assert!(first[0]["fact"]["text"].to_string().contains("Thursday"), "{first:?}");
    let faded = found(&service, &json!({"query": "Portuguese ferry", "k": 1})).await;
    let share = faded[0]["score"].as_f64().unwrap() / score;
    assert!((0.49..0.51).contains(&share), "{share}");
}

#[tokio::test]
async fn a_report_is_shown_whole_in_windows_and_contexts() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let report = "ERROR: connection to https://db.example.com:5432/x?y=1 refused (code E4711) after 3 retries.";
    let before = "The nightly job of the billing system broke again and I have no idea why it does, since nothing \
                  was changed in the last days as far as anybody here knows.";
    let after = "We looked at the log for a long while and then went home, because nobody had an idea what else \
                 could be done about it at that hour.";
    let mut messages =
        vec![json!({"role": "user", "content": format!("{before} {report} {after}")})];
    messages.extend((1..120).map(|at| {
        let role = if at % 2 == 0 { "user" } else { "assistant" };
        json!({"role": role, "content": format!(
            "Step {at}: we look at part {at} of the configuration together and write down what we see there, \
             one line at a time, without any hurry, and then go on."
        )})
    }));
    say(&service, "s", Value::Array(messages)).await;
    let window = ask(&service, Method::GET, "/v1/sessions/s/window", Value::Null).await.ok();
    let summary = window["summary"].to_string();
    assert!(summary.contains(report), "{summary}");
    let turn = json!({"user_turn": "What is next?"});
    let context = ask(&service, Method::POST, "/v1/sessions/s/assemble", turn).await.ok();
    assert!(payload(&context).contains(&format!("user: {report}")), "{context}");
}

#[tokio::test]
async fn entities_end_where_their_sentence_does() {
    let data = Throughline::new();
    let service = Service::start(&data);
    say(
        &service,
        "s",
        json!([
            {"role": "user", "content": "We live at 5 Oak Avenue, Berlin. Call me."},
            {"role": "user", "content": "Joan moved to Berlin."},
            {"role": "user", "content": "The project is called Zeus. Tell Joan."},
            {"role": "user", "content": "Write to a@b.org, which is the same as A@B.org."}
        ]),
    )
    .await;
    let found = ask(&service, Method::GET, "/v1/sessions/s/entities", Value::Null).await.ok();
    let mut found: Vec<(&str, &str)> = found["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| (item["type"].as_str().unwrap(), item["value"].as_str().unwrap()))
        .collect();
    found.sort_unstable();
    found.dedup();
    let expected = [
        ("address", "5 Oak Avenue, Berlin"),
        ("email", "a@b.org"),
        ("name", "Joan"),
        ("project", "Zeus"),
    ];
    assert_eq!(found, expected);
}

#[tokio::test]
async fn schemas_are_named_for_what_they_are() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let document = service.get("/openapi.json").await.ok();
    let schemas = document["components"]["schemas"].as_object().unwrap();
    for name in ["SearchFacts", "FoundFact", "Search", "SearchHit", "Erased", "Settings"] {
        assert!(schemas.contains_key(name), "{name}");
    }
    for name in schemas.keys() {
        assert!(
            !name.ends_with("Json")
                && !["Founds", "Gone", "LookFor", "SaidSettings"].contains(&name.as_str())
        );
    }
}
