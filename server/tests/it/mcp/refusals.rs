//! What is asked wrongly is refused with a word on what is wrong, and nothing is kept of it.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use throughline_engine::compose::Engine;
use throughline_engine::config::ToolSet;
use throughline_engine::config::{Config, EmbedderKind, McpConfig};
use throughline_testkit::FakeClock;

use super::client::{Caller, is_done, text};
use crate::http::service::Service;
use crate::support::Throughline;

const DAY: Duration = Duration::from_secs(86_400);

/// Calls with what is wrong in them: the beginning of what is said, and a word that it names.
fn table(context: &str) -> Vec<(&'static str, Value, &'static str, &'static str)> {
    let unknown = "01a00000-0000-7000-8000-000000000000";
    let session = format!("context-{context}");
    let with = |mut said: Value| {
        said["contextId"] = json!(context);
        said
    };
    let prompt = "You are a guide.";
    vec![
        ("context-manage", json!({"action": "explode"}), "invalid_input", "`create_from_preset`"),
        ("context-manage", json!({}), "invalid_input", "action"),
        ("context-manage", json!({"action": "get"}), "invalid_input", "contextId"),
        (
            "context-manage",
            json!({"action": "get", "contextId": "../../etc/passwd"}),
            "invalid_input",
            "Guide",
        ),
        ("context-manage", json!({"action": "get", "contextId": unknown}), "not_found", "Guide"),
        (
            "context-manage",
            json!({"action": "create", "name": "", "systemPrompt": prompt}),
            "invalid_input",
            "name",
        ),
        (
            "context-manage",
            json!({"action": "create", "name": "x", "systemPrompt": ""}),
            "invalid_input",
            "systemPrompt",
        ),
        (
            "context-manage",
            json!({"action": "create_from_preset", "presetId": "preset-angry"}),
            "not_found",
            "preset-calm-counselor",
        ),
        (
            "context-manage",
            with(json!({"action": "update", "temperature": 1.01})),
            "invalid_input",
            "temperature",
        ),
        (
            "context-manage",
            with(json!({"action": "update", "maxTokens": 0})),
            "invalid_input",
            "maxTokens",
        ),
        (
            "context-manage",
            with(json!({"action": "update", "maxTokens": -1})),
            "invalid_input",
            "maxTokens",
        ),
        (
            "context-manage",
            with(json!({"action": "update", "maxHistoryTokens": 4_000_000_000_u32})),
            "invalid_input",
            "maxHistoryTokens",
        ),
        (
            "context-manage",
            with(json!({"action": "update", "expiryDays": 0})),
            "invalid_input",
            "expiryDays",
        ),
        (
            "context-manage",
            with(json!({"action": "update", "name": "x", "version": 99})),
            "conflict",
            "version",
        ),
        ("context-manage", json!({"action": "list", "page": 0}), "invalid_input", "page"),
        (
            "context-manage",
            json!({"action": "import", "text": "not an export"}),
            "invalid_input",
            "",
        ),
        (
            "context-manage",
            json!({"action": "import", "text": "{\"version\": 99}"}),
            "invalid_input",
            "version",
        ),
        (
            "personality-preset-manage",
            json!({"action": "get", "presetId": "../x"}),
            "invalid_input",
            "",
        ),
        (
            "personality-preset-manage",
            json!({"action": "delete", "presetId": "preset-calm-counselor"}),
            "conflict",
            "built",
        ),
        (
            "conversation-manage",
            with(json!({"action": "list", "pageSize": 1_000_000})),
            "invalid_input",
            "pageSize",
        ),
        (
            "conversation-manage",
            with(json!({"action": "delete"})),
            "invalid_input",
            "conversationIds",
        ),
        (
            "conversation-manage",
            with(json!({"action": "delete", "olderThan": "yesterday"})),
            "invalid_input",
            "",
        ),
        (
            "conversation-manage",
            with(json!({"action": "delete", "conversationIds": ["x"]})),
            "invalid_input",
            "",
        ),
        (
            "conversation-manage",
            with(json!({"action": "tag", "conversationIds": [unknown], "tags": ["a"]})),
            "not_found",
            "",
        ),
        ("context-chat", with(json!({"message": ""})), "invalid_input", "message"),
        ("context-chat", with(json!({"message": "word ".repeat(40_000)})), "budget_too_small", ""),
        ("context-chat", with(json!({"message": "x", "tokenBudget": 1})), "", ""),
        (
            "append_messages",
            json!({"session": "s", "messages": [{"role": "wizard", "content": "x"}]}),
            "invalid_input",
            "wizard",
        ),
        ("append_messages", json!({"session": "s", "messages": []}), "invalid_input", "messages"),
        (
            "append_messages",
            json!({"session": "", "messages": [{"role": "user", "content": "x"}]}),
            "invalid_input",
            "session",
        ),
        ("recall", json!({"query": "x", "limit": 0}), "invalid_input", ""),
        ("describe_session", json!({"session": "nobody"}), "not_found", ""),
        (
            "put_context",
            json!({"vault": "../v", "memory": "m", "text": "x"}),
            "invalid_input",
            "vault",
        ),
        ("put_context", json!({"vault": "v", "memory": "m", "text": ""}), "invalid_input", ""),
        (
            "put_context",
            json!({"vault": "v", "memory": "m", "text": "x".repeat(2 << 20)}),
            "invalid_input",
            "",
        ),
        (
            "put_context",
            json!({"vault": "v", "memory": "m", "text": "x", "if_match": "\"stale\""}),
            "precondition_failed",
            "",
        ),
        ("get_latest_context", json!({"vault": "v", "memory": "m"}), "not_found", ""),
        ("forget", json!({"vault": "v", "memory": "m"}), "not_found", ""),
        // What is left out is not guessed.
        ("forget", json!({}), "invalid_input", "fact"),
        ("forget", json!({"vault": "v"}), "invalid_input", "memory"),
        ("forget", json!({"session": session, "vault": "v"}), "invalid_input", "memory"),
        ("forget", json!({"session": session, "memory": "m"}), "invalid_input", "vault"),
        ("forget", json!({"fact": unknown, "memory": "m"}), "invalid_input", "vault"),
        ("forget", json!({"fact": unknown, "message_ids": [unknown]}), "invalid_input", "session"),
        (
            "forget",
            json!({"session": session, "message_ids": vec![unknown; 101]}),
            "invalid_input",
            "at most 100",
        ),
    ]
}

#[tokio::test]
async fn invalid_calls_are_explained_and_store_nothing() {
    let data = Throughline::new();
    let sets = r#"mcp.tool_sets=["memory","sessions","documents","persona"]"#;
    let service = Service::start_with(&data, &["--set", sets]);
    let caller = Caller::local(&service);
    let create =
        json!({"action": "create", "name": "Guide", "systemPrompt": "You are a calm guide."});
    let made = caller.call("context-manage", &create).await;
    let context = made["structuredContent"]["context"]["id"].as_str().unwrap();
    let chat = json!({"contextId": context, "message": "Where is the ferry?"});
    is_done(&caller.call("context-chat", &chat).await);
    let everything = async || {
        let mut all = Vec::new();
        for (tool, arguments) in [
            ("context-manage", json!({"action": "list", "includeDeleted": true})),
            ("personality-preset-manage", json!({"action": "list", "includeInactive": true})),
            ("conversation-manage", json!({"action": "list", "contextId": context})),
            ("list_sessions", json!({})),
            ("search_documents", json!({"query": "x"})),
        ] {
            all.push(caller.call(tool, &arguments).await["structuredContent"].clone());
        }
        all
    };
    let before = everything().await;
    let mut surprises = Vec::new();
    for (tool, arguments, begins, names) in table(context) {
        let refused = caller.call(tool, &arguments).await;
        let said = text(&refused);
        if refused["isError"] != true || !said.starts_with(begins) || !said.contains(names) {
            let shown: String = arguments.to_string().chars().take(200).collect();
            surprises.push(format!("{tool} {shown}: {said}"));
        }
    }
    assert!(surprises.is_empty(), "{surprises:#?}");
    assert_eq!(everything().await, before);
}

/// With a clock of its own, in this process.
#[tokio::test]
async fn a_context_that_expired_says_so_until_it_is_extended() {
    let folder = tempfile::tempdir().unwrap();
    let config = Config {
        data_dir: folder.path().to_owned(),
        listen: "127.0.0.1:0".to_owned(),
        embedder: EmbedderKind::None,
        mcp: McpConfig { tool_sets: vec![ToolSet::Persona], ..McpConfig::default() },
        ..Config::default()
    };
    let clock = Arc::new(FakeClock::default());
    let engine = Engine::open_by(&config, clock.clone()).await.unwrap();
    let service = Service::within(engine, &config).await;
    let caller = Caller::local(&service);
    let create = json!({"action": "create_from_preset", "presetId": "preset-calm-counselor",
        "presetOverrides": {"expiryDays": 3}});
    let made = caller.call("context-manage", &create).await;
    let context = made["structuredContent"]["context"]["id"].as_str().unwrap();
    let chat = json!({"contextId": context, "message": "Where is the ferry?"});
    is_done(&caller.call("context-chat", &chat).await);

    let get = json!({"action": "get", "contextId": context});
    clock.advance(5 * DAY / 2);
    let warned = caller.call("context-manage", &get).await;
    assert!(warned["structuredContent"]["warnings"].to_string().contains("expires"), "{warned}");

    // What was asked in time is kept, whenever it is answered.
    let open = caller.ask("context-chat", &chat).await;
    clock.advance(DAY);
    let refused = caller.call("context-chat", &chat).await;
    assert!(text(&refused).starts_with("conflict: "), "{refused}");
    assert!(text(&refused).contains("extend"), "{refused}");
    let list = json!({"action": "list"});
    assert_eq!(caller.call("context-manage", &list).await["structuredContent"]["totalCount"], 0);
    is_done(&caller.answer("context-chat", &chat, &open).await);

    let extend = json!({"action": "extend", "contextId": context});
    is_done(&caller.call("context-manage", &extend).await);
    is_done(&caller.call("context-chat", &chat).await);
    let said = json!({"action": "list", "contextId": context});
    assert_eq!(
        caller.call("conversation-manage", &said).await["structuredContent"]["totalCount"],
        6
    );
}
