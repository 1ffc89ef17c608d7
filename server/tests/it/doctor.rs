//! What an operator is told.

use std::sync::Arc;

use serde_json::Value;

use crate::chat::upstream::{Next, Upstream};
use crate::support::{Throughline, conversation, stderr};

/// The checks of a run, each as `check: state: what is the case`, and the exit code.
fn doctor(throughline: &Throughline, args: &[&str]) -> (Vec<String>, i32) {
    // The address that is the default may be in use on the machine that tests.
    let output = throughline.command(&["doctor", "--json"]).args(args).output().unwrap();
    let report: Value = serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", stderr(&output)));
    let text = |check: &Value, key: &str| check[key].as_str().unwrap().to_owned();
    let lines = report["checks"].as_array().unwrap().iter().map(|check| {
        format!("{}: {}: {}", text(check, "check"), text(check, "state"), text(check, "said"))
    });
    (lines.collect(), output.status.code().unwrap())
}

fn has(lines: &[String], start: &str, words: &str) -> bool {
    lines.iter().any(|line| line.starts_with(start) && line.contains(words))
}

#[test]
fn a_healthy_store_has_no_problem() {
    let throughline = Throughline::new();
    throughline.file("talk.jsonl", conversation(30, 10));
    throughline.json(&["import", "talk.jsonl"]);
    for args in [&[][..], &["--deep"]] {
        let (lines, code) = doctor(&throughline, args);
        assert_eq!(code, 0, "{lines:?}");
        for (check, words) in [
            ("configuration: ok", "settings, from: default"),
            ("data directory: ok", "only its owner can read"),
            ("database file: ok", "only its owner can read"),
            ("store: ok", "SQLite 3."),
            ("embedder: ok", "answers"),
            ("file search: ok", "in_process answers"),
            ("vector index: ok", "no text"),
            ("jobs: ok", "no job"),
            ("clock: ok", "20"),
        ] {
            assert!(has(&lines, check, words), "{check}: {lines:?}");
        }
        assert!(!lines.iter().any(|line| line.contains(": problem: ")), "{lines:?}");
    }
    assert!(has(&doctor(&throughline, &[]).0, "workspace: ok", "none: this folder"));
    std::fs::create_dir_all(throughline.folder().join(".git")).unwrap();
    assert!(has(&doctor(&throughline, &[]).0, "workspace: ok", "`Throughline-Workspace: "));
    let table = throughline.run(&["doctor"]);
    let text = String::from_utf8_lossy(&table.stdout);
    assert!(text.contains("| store          | ok"), "{text}");
}

#[test]
fn the_first_problem_is_the_exit_code_and_nothing_is_created() {
    let throughline = Throughline::new();
    let (lines, code) = doctor(&throughline, &[]);
    assert_eq!(code, 0, "a new user has no problem: {lines:?}");
    assert!(has(&lines, "data directory: ok", "will be created when"), "{lines:?}");
    assert!(!throughline.database().parent().unwrap().exists());
    let (lines, code) = doctor(&throughline, &["--set", "sqlite.raeders=3"]);
    assert_eq!(code, 3);
    assert!(has(&lines, "configuration: problem", "did you mean `readers`?"), "{lines:?}");
    let missing = "redis.url=file:/nowhere/secret";
    let (lines, code) = doctor(&throughline, &["--set", missing]);
    assert_eq!(code, 3);
    assert!(has(&lines, "secret: problem", "`redis.url`: /nowhere/secret"), "{lines:?}");
    std::fs::create_dir(throughline.data_dir()).unwrap();
    std::fs::write(throughline.database(), "this is no database, but a text that is long enough")
        .unwrap();
    let (lines, code) = doctor(&throughline, &[]);
    assert_eq!(code, 11, "{lines:?}");
    assert!(has(&lines, "store: problem", ""), "{lines:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn reports_open_permissions_and_the_writing_process() {
    use std::os::unix::fs::PermissionsExt;
    let throughline = Throughline::new();
    throughline.file("talk.jsonl", conversation(30, 10));
    throughline.json(&["import", "talk.jsonl"]);
    let open = |path: &std::path::Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    };
    let secret = throughline.file("secret", "redis://somewhere");
    for (path, mode) in
        [(throughline.database(), 0o644), (throughline.data_dir(), 0o755), (secret, 0o640)]
    {
        open(&path, mode);
    }
    let file = rusqlite::Connection::open(throughline.database()).unwrap();
    file.execute_batch("BEGIN IMMEDIATE").unwrap();
    let (lines, code) = doctor(&throughline, &["--set", "redis.url=file:secret"]);
    assert_eq!(code, 0, "a warning is no problem: {lines:?}");
    let process = std::process::id().to_string();
    for (check, words) in [
        ("database file: warning", "chmod 600"),
        ("data directory: warning", "0755"),
        ("secret: warning", "mode 0640"),
        ("other processes: warning", process.as_str()),
    ] {
        assert!(has(&lines, check, words), "{check}: {lines:?}");
    }
}

#[test]
fn reports_waiting_texts_and_unloadable_embedder() {
    let throughline = Throughline::new();
    throughline.file("talk.jsonl", conversation(30, 10));
    throughline.json(&["import", "talk.jsonl", "--set", "embedder=none"]);
    let (lines, _) = doctor(&throughline, &["--set", "embedder=none"]);
    assert!(has(&lines, "embedder: ok", "none"), "{lines:?}");
    let (lines, code) = doctor(&throughline, &[]);
    assert_eq!(code, 0);
    assert!(has(&lines, "vector index: warning", "throughline worker"), "{lines:?}");
    let (lines, code) = doctor(&throughline, &["--set", "static.table=nowhere.bin"]);
    assert_ne!(code, 0);
    assert!(has(&lines, "embedder: problem", "nowhere.bin"), "{lines:?}");
}

#[test]
fn a_model_that_nothing_answers_for_is_a_problem() {
    let data = Throughline::new();
    let specialist = "[[specialists]]\nname = \"writer\"\nprompt = \"You write.\"\nmodel = \"gemini:gemini-9\"\n";
    data.file("throughline.toml", specialist);
    let (lines, code) = doctor(&data, &["--set", "chat.model=openai:gpt-4.1"]);
    assert_ne!(code, 0);
    let problem = "chat models: problem";
    assert!(has(&lines, problem, "`chat.model`: no chat provider is configured"), "{lines:?}");
    assert!(has(&lines, problem, "`model` of the specialist `writer`: "), "{lines:?}");
}

#[tokio::test]
async fn a_search_of_files_that_lets_nobody_in_is_a_problem() {
    let (data, upstream) = (Arc::new(Throughline::new()), Upstream::start().await);
    data.file("talk.jsonl", conversation(3, 10));
    data.json(&["import", "talk.jsonl"]);
    let url = format!("providers.openai.base_url={}", upstream.url);
    let list = serde_json::json!({"object": "list", "data": [], "has_more": false});
    let refusal = serde_json::json!({"error": {"message": "Incorrect API key provided", "type": "x",
        "param": null, "code": "invalid_api_key"}});
    for (last, state) in [((200, list.clone()), "ok"), ((401, refusal), "problem")] {
        // Models, stores of vectors, and files.
        for (status, body) in [(200, list.clone()), (200, list.clone()), last] {
            upstream.then(Next::Json(status, body));
        }
        let (data, url) = (Arc::clone(&data), url.clone());
        let told = tokio::task::spawn_blocking(move || {
            let key = "providers.openai.api_key=sk-test";
            doctor(&data, &["--set", "files.search=openai", "--set", key, "--set", &url])
        });
        let (lines, _) = told.await.unwrap();
        assert!(has(&lines, &format!("file search: {state}"), "openai"), "{lines:?}");
    }
    assert!(upstream.asked().iter().all(|asked| asked.body.is_null()), "nothing is created");
}
