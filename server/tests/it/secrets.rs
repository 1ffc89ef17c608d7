//! Secrets stay out of what a model reads, whatever they stand in, and with their owner.

use reqwest::Method;
use serde_json::{Value, json};

use crate::http::service::{Answer, Service, key};
use crate::mcp::client::{Caller, result};
use crate::stores::Store;
use crate::support::{Throughline, payload};

crate::stores::on_every_store! {
    secrets_behind_escaped_quotes_are_masked,
    secrets_in_parts_and_calls_are_dropped_and_json_stays_json,
    no_part_of_a_secret_is_left_of_an_agents_long_call,
    an_export_of_a_context_shows_a_model_no_secrets,
    a_profile_shows_a_model_no_secrets_and_keeps_them,
    the_prompt_of_a_context_shows_a_model_no_secrets_and_keeps_them,
    an_id_tells_nothing_of_a_secret_that_was_dropped,
    a_guest_gets_no_secrets_in_parts,
}

/// Every set of tools that these tests call.
const ALL_TOOLS: [&str; 2] =
    ["--set", r#"mcp.tool_sets=["memory", "sessions", "documents", "persona", "files", "admin"]"#];
const KEEP: [&str; 4] = [ALL_TOOLS[0], ALL_TOOLS[1], "--set", "secrets=\"keep\""];

async fn ask(service: &Service, key: &str, method: Method, path: &str, body: Value) -> Answer {
    let request = service.request(method, path);
    let request = if key.is_empty() { request } else { request.bearer_auth(key) };
    Answer::of(if body.is_null() { request } else { request.json(&body) }).await
}

async fn append(service: &Service, session: &str, message: Value) {
    let path = format!("/v1/sessions/{session}/messages");
    let body = json!({"messages": [message]});
    ask(service, "", Method::POST, &path, body).await.ok();
}

/// Calls a tool that works, and returns its whole answer.
async fn called(model: &Caller<'_>, tool: &str, arguments: Value) -> Value {
    let done = model.call(tool, &arguments).await;
    assert_ne!(done["isError"], true, "{tool} {arguments}: {done}");
    done
}

#[track_caller]
fn shows_none(answer: &Value, secrets: &[&str]) {
    let text = answer.to_string();
    for secret in secrets {
        assert!(!text.contains(secret), "{secret} in {text}");
    }
    assert!(text.contains("[secret: "), "{text}");
}

#[track_caller]
fn shows_all(text: &str, secrets: &[&str]) {
    for secret in secrets {
        assert!(text.contains(secret), "no {secret} in {text}");
    }
}

/// The lines of an export that are messages.
fn exported(data: &Throughline) -> (String, Vec<Value>) {
    data.json(&["export", "--to", "out.jsonl"]);
    let text = std::fs::read_to_string(data.folder().join("out.jsonl")).unwrap();
    std::fs::remove_file(data.folder().join("out.jsonl")).unwrap();
    let lines = text.lines().map(|line| serde_json::from_str(line).unwrap());
    let lines: Vec<Value> = lines.filter(|line: &Value| line["role"].is_string()).collect();
    (text, lines)
}

async fn secrets_behind_escaped_quotes_are_masked(store: Store) {
    let data = store.fresh().await;
    let service = Service::start_with(&data, &ALL_TOOLS);
    let inner = json!({"password": "s3cr3t!", "user": "ana"});
    let once = json!({"login": inner.to_string()}).to_string();
    let twice = json!({"call": once}).to_string();
    for (n, text) in [once, twice].iter().enumerate() {
        let content = format!("The login of the harbor portal is {text}");
        append(&service, "s", json!({"role": "user", "content": content})).await;
        let body = json!({"user_turn": "What is the login of the harbor portal?"});
        let context = ask(&service, "", Method::POST, "/v1/sessions/t/assemble", body).await.ok();
        let payload = payload(&context);
        assert!(payload.contains("harbor portal is") && !payload.contains("s3cr3t"), "{payload}");
        let count = ["1 secret is masked", "2 secrets are masked"][n];
        assert!(context.to_string().contains(count), "{context}");
    }
    let stored = ask(&service, "", Method::GET, "/v1/sessions/s/messages", Value::Null).await.ok();
    shows_all(&stored["items"][0]["content"].to_string(), &["s3cr3t!"]);
    shows_all(&stored["items"][1]["content"].to_string(), &["s3cr3t!"]);
}

async fn secrets_in_parts_and_calls_are_dropped_and_json_stays_json(store: Store) {
    let data = store.fresh().await;
    let arguments = json!({"user": "ana", "password": "s3cr3t!\"x", "note": "say \"hi\""});
    let messages = [
        json!({
            "role": "assistant", "content": null, "id": "m-1",
            "tool_calls": [{"function": {"name": "login", "arguments": arguments.to_string()}}]
        }),
        json!({
            "role": "tool", "content": "done", "id": "m-2",
            "parts": [{"type": "tool_use", "input": {
                "command": "export DB_PASSWORD=\"s3cr3t-pass\" && npm test",
                "body": arguments.to_string(), "pin": 48_213, "recovery_codes": ["ab12-cd34"]
            }}],
            "attachments": [{"name": "vault.json", "api_key": "k3y-abcdef", "size": 4096}]
        }),
    ];
    let lines = messages.map(|message| message.to_string()).join("\n");
    data.file("log.jsonl", &lines);
    data.json(&["import", "log.jsonl", "--secrets", "drop"]);
    let secrets = ["s3cr3t", "48213", "ab12-cd34", "k3y-abcdef"];
    for secret in secrets {
        assert!(!data.holds(secret).await, "{secret}");
    }
    let (text, stored) = exported(&data);
    for secret in secrets {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
    let tool = stored.iter().find(|line| line["role"] == "tool").unwrap();
    let input = &tool["parts"][0]["input"];
    assert_eq!(input["command"], "export DB_PASSWORD=\"[secret: password]\" && npm test");
    let body: Value = serde_json::from_str(input["body"].as_str().unwrap()).unwrap();
    assert_eq!((&body["user"], &body["note"]), (&json!("ana"), &json!("say \"hi\"")));
    assert_eq!(tool["attachments"][0]["size"], 4096);
    // It is the same file, whatever becomes of its secrets.
    for policy in ["drop", "mask", "keep"] {
        let again = data.json(&["import", "log.jsonl", "--secrets", policy]);
        assert_eq!((&again[0]["messages"], &again[0]["replayed"]), (&json!(0), &json!(2)));
    }
}

async fn no_part_of_a_secret_is_left_of_an_agents_long_call(store: Store) {
    let data = store.fresh().await;
    let line = |n: usize, input: Value| {
        json!({
            "type": "assistant", "sessionId": "5b1e", "uuid": format!("u-{n}"), "parentUuid": null,
            "timestamp": "2026-01-01T10:00:00Z",
            "message": {"id": format!("m-{n}"), "role": "assistant", "content": [
                {"type": "tool_use", "id": format!("t-{n}"), "name": "Login", "input": input}
            ]}
        })
        .to_string()
    };
    // The input is told up to its 200th character: within the secret, wherever that is.
    let lines = (100..200).step_by(9).map(|length| {
        line(length, json!({"a": "x".repeat(length), "password": "hunter2-tr0ub4dor-swordfish-9"}))
    });
    let nested = line(
        999,
        json!({"command": "curl -d \"{\\\"token\\\": 1, \\\"password\\\": \\\"hunter2-x\\\"}\""}),
    );
    data.file("log.jsonl", lines.chain([nested]).collect::<Vec<_>>().join("\n") + "\n");
    data.json(&["import", "log.jsonl"]);
    assert!(!data.holds("hunter2").await);
    let (text, stored) = exported(&data);
    assert!(stored.len() > 10 && !text.contains("hunter2") && !text.contains("hunte"), "{text}");
    for message in stored {
        let input = &message["parts"][0]["input"];
        assert!(
            input["password"] == "[secret: password]" || input["command"].is_string(),
            "{input}"
        );
    }
}

const GUIDE: &str = "You are a calm guide.\nThe staging password is hunter2-guide.";

/// A context with secrets in its prompt and its conversation.
async fn context(service: &Service) -> String {
    let export = json!({"export": {
        "format": "throughline.context", "version": 1,
        "context": {
            "name": "Guide", "system_prompt": GUIDE,
            "personality": "Calm; the door code is 48213."
        },
        "conversations": [
            {"role": "user", "content": "My password is swordfish7.", "created_at": "2026-01-01T10:00:00Z"},
            {"role": "assistant", "content": "Noted.", "created_at": "2026-01-01T10:00:01Z"}
        ]
    }});
    let made = ask(service, "", Method::POST, "/v1/contexts/import", export).await.json();
    made["id"].as_str().unwrap_or_else(|| panic!("{made}")).to_owned()
}

async fn an_export_of_a_context_shows_a_model_no_secrets(store: Store) {
    let data = store.fresh().await;
    let service = Service::start_with(&data, &ALL_TOOLS);
    let id = context(&service).await;
    let secrets = ["swordfish7", "hunter2-guide", "48213"];
    let model = Caller::local(&service);
    for format in ["json", "markdown"] {
        let export = json!({"action": "export", "contextId": id, "format": format});
        let export = called(&model, "context-manage", export).await;
        shows_none(&export, &secrets);
        assert!(export.to_string().contains("3 secrets are masked"), "{export}");
        if format == "json" {
            let text = export["structuredContent"]["text"].as_str().unwrap();
            let read: Value = serde_json::from_str(text).unwrap();
            assert_eq!(
                read["conversations"][0]["content"], "My password is [secret: password].",
                "{read}"
            );
        }
        // Its owner gets the whole.
        let path = format!("/v1/contexts/{id}/export?format={format}");
        shows_all(&ask(&service, "", Method::GET, &path, Value::Null).await.text, &secrets);
    }
    drop(service);
    shows_all(&exported(&data).0, &secrets);

    let kept = store.fresh().await;
    let service = Service::start_with(&kept, &KEEP);
    let id = context(&service).await;
    let export = json!({"action": "export", "contextId": id});
    let export = called(&Caller::local(&service), "context-manage", export).await;
    shows_all(&export.to_string(), &secrets);
}

async fn a_profile_shows_a_model_no_secrets_and_keeps_them(store: Store) {
    let data = store.fresh().await;
    let service = Service::start_with(&data, &ALL_TOOLS);
    let profile = json!({
        "rules": "Be brief.\nThe wifi password is swordfish7.",
        "card": "My card is 4111 1111 1111 1111."
    });
    let secrets = ["swordfish7", "4111 1111"];
    ask(&service, "", Method::PUT, "/v1/profile", profile).await.ok();
    let model = Caller::local(&service);
    let read = called(&model, "get_profile", json!({})).await;
    shows_none(&read, &secrets);
    assert!(read.to_string().contains("2 secrets are masked"), "{read}");
    let turn = json!({"session": "s", "user_turn": "Hello?"});
    shows_none(&called(&model, "assemble_context", turn).await, &secrets);
    // What it writes is masked in the answer; what it gives back masked stays as it was.
    let rules = read["structuredContent"]["rules"].as_str().unwrap().replace("brief", "kind");
    let changed = json!({"rules": format!("My password is hunter2.\n{rules} Use it.")});
    let changed = called(&model, "set_profile", changed).await;
    shows_none(&changed, &["swordfish7", "4111 1111", "hunter2"]);
    let owned = ask(&service, "", Method::GET, "/v1/profile", Value::Null).await.ok();
    assert_eq!(
        owned["rules"],
        "My password is hunter2.\nBe kind.\nThe wifi password is swordfish7. Use it."
    );
    drop(service);
    let service = Service::start_with(&data, &KEEP);
    let read = called(&Caller::local(&service), "get_profile", json!({})).await;
    shows_all(&read.to_string(), &secrets);
    assert!(!read.to_string().contains("masked"), "{read}");
}

async fn the_prompt_of_a_context_shows_a_model_no_secrets_and_keeps_them(store: Store) {
    let data = store.fresh().await;
    let service = Service::start_with(&data, &ALL_TOOLS);
    let id = context(&service).await;
    let secrets = ["hunter2-guide", "48213", "swordfish7"];
    let prompt = "You are a calm harbor pilot.\nThe staging password is hunter2-guide.";
    let preset = json!({
        "id": "pilot", "name": "Pilot", "system_prompt": prompt,
        "metadata": {"password": "swordfish7"}
    });
    let made = ask(&service, "", Method::POST, "/v1/presets", preset).await;
    assert_eq!(made.status, 201, "{made:?}");
    let model = Caller::local(&service);
    for (tool, arguments) in [
        ("context-manage", json!({"action": "get", "contextId": id})),
        ("context-manage", json!({"action": "list"})),
        ("context-manage", json!({"action": "extend", "contextId": id, "expiryDays": 3})),
        ("personality-preset-manage", json!({"action": "get", "presetId": "pilot"})),
        ("personality-preset-manage", json!({"action": "list"})),
        (
            "context-manage",
            json!({"action": "create_from_preset", "presetId": "pilot", "name": "Second"}),
        ),
    ] {
        shows_none(&called(&model, tool, arguments).await, &secrets);
    }
    for path in ["contexts", &format!("context/{id}"), "personality-presets", "preset/pilot"] {
        let uri = json!({"uri": format!("throughline://{path}")});
        shows_none(&result(&Answer::of(model.alone("resources/read", uri)).await), &secrets);
    }
    // What the client's model is sent, and what comes of it.
    let chat = json!({"contextId": id, "message": "Where is the ferry?"});
    let asked = model.ask("context-chat", &chat).await;
    let sent = &asked["inputRequests"]["answer"]["params"];
    assert!(sent["systemPrompt"].as_str().unwrap().starts_with("You are a calm guide."), "{sent}");
    shows_none(sent, &secrets);
    let answered = called(&model, "context-chat", chat).await;
    shows_none(&answered, &secrets);
    let warnings = answered["structuredContent"]["metadata"]["warnings"].to_string();
    assert!(warnings.contains("3 secrets are masked"), "{warnings}");

    // What it gives back masked stays as it was.
    let read = called(&model, "context-manage", json!({"action": "get", "contextId": id})).await;
    let context = &read["structuredContent"]["context"];
    let masked = context["systemPrompt"].as_str().unwrap().replace("calm", "kind");
    let update = json!({
        "action": "update", "contextId": id, "systemPrompt": masked,
        "personality": context["personality"]
    });
    shows_none(&called(&model, "context-manage", update).await, &secrets);
    let owned =
        ask(&service, "", Method::GET, &format!("/v1/contexts/{id}"), Value::Null).await.ok();
    assert_eq!(owned["system_prompt"], GUIDE.replace("calm", "kind"));
    assert_eq!(owned["personality"], "Calm; the door code is 48213.");
    let update = json!({
        "action": "update", "presetId": "pilot",
        "systemPrompt": "You are a calm harbor pilot.\nThe staging password is [secret: password]."
    });
    shows_none(&called(&model, "personality-preset-manage", update).await, &secrets);
    let owned = ask(&service, "", Method::GET, "/v1/presets/pilot", Value::Null).await.ok();
    assert_eq!(owned["system_prompt"], prompt);
    drop(service);

    let service = Service::start_with(&data, &KEEP);
    let model = Caller::local(&service);
    let read = called(&model, "context-manage", json!({"action": "get", "contextId": id})).await;
    shows_all(&read.to_string(), &["hunter2-guide", "48213"]);
    let asked = model
        .ask("context-chat", &json!({"contextId": id, "message": "Where is the ferry?"}))
        .await;
    shows_all(&asked["inputRequests"].to_string(), &["hunter2-guide", "48213"]);
}

async fn an_id_tells_nothing_of_a_secret_that_was_dropped(store: Store) {
    let ids = async |passwords: [&str; 2]| {
        let data = store.fresh().await;
        let line = |password: &str| {
            json!({
                "role": "user", "content": format!("My password is {password}."),
                "parts": [{"password": password}], "session": "s", "created_at": "2026-01-01T10:00:00Z"
            })
            .to_string()
        };
        data.file("first.jsonl", line(passwords[0]));
        data.file("both.jsonl", passwords.map(line).join("\n"));
        let import =
            |file| data.json(&["import", file, "--secrets", "drop"])[0]["messages"].clone();
        assert_eq!([import("first.jsonl"), import("both.jsonl"), import("both.jsonl")], [1, 1, 0]);
        let (text, stored) = exported(&data);
        assert!(!passwords.iter().any(|password| text.contains(password)), "{text}");
        stored.iter().map(|message| message["id"].clone()).collect::<Vec<_>>()
    };
    let told = ids(["hunter2-a", "hunter2-b"]).await;
    assert_eq!(told.len(), 2);
    let is_made = |id: &Value| id.as_str().is_some_and(|id| id.starts_with("import-"));
    assert!(told.iter().all(is_made) && told[0] != told[1], "{told:?}");
    assert_eq!(told, ids(["swordfish7", "tr0ub4dor"]).await);
}

async fn a_guest_gets_no_secrets_in_parts(store: Store) {
    let data = store.fresh().await;
    let owner = key(&data, "acme", &["--user", "ana"], "read,write");
    let guest = key(&data, "acme", &["--user", "bob"], "read");
    let service = Service::start(&data);
    let body = json!({"messages": [{
        "role": "user", "content": "My password is hunter2-a.",
        "parts": [{"text": "My password is hunter2-a.", "password": "hunter2-b", "size": 4096}]
    }]});
    ask(&service, &owner, Method::POST, "/v1/sessions/s/messages", body).await.ok();
    let share = json!({"members": ["bob"], "writable": false});
    ask(&service, &owner, Method::PUT, "/v1/sessions/s/share", share).await.ok();
    let shared = ask(&service, &guest, Method::GET, "/v1/shared", Value::Null).await.ok();
    let session = shared["items"][0]["session"].as_str().unwrap_or_else(|| panic!("{shared}"));
    for what in ["messages", "window"] {
        let path = format!("/v1/sessions/{session}/{what}");
        let read = ask(&service, &guest, Method::GET, &path, Value::Null).await.ok();
        shows_none(&read, &["hunter2-a", "hunter2-b"]);
        shows_all(&read.to_string(), &["4096"]);
    }
    let read =
        ask(&service, &owner, Method::GET, "/v1/sessions/s/messages", Value::Null).await.ok();
    shows_all(&read.to_string(), &["hunter2-a", "hunter2-b"]);
}
