//! The program as a user runs it: what it prints, and how it ends.

#![expect(
    clippy::unwrap_used,
    reason = "test support outside of test functions: a failure is the answer"
)]

use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// A folder of data, in which the program runs.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.path().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = Command::new(env!("CARGO_BIN_EXE_throughline-eval"));
        command.current_dir(self.0.path()).args(args).arg("--json").output().unwrap()
    }

    /// The report of a run that ends well.
    fn json(&self, args: &[&str]) -> Value {
        let output = self.run(args);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// What a run says that ends with this code.
    fn fails(&self, args: &[&str], code: i32) -> String {
        let output = self.run(args);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(code), "{said}");
        said
    }
}

#[test]
fn evidence_recall_is_the_share_that_is_shown() {
    let eval = Folder::new();
    // One question whose evidence is found, one of two found, and one whose evidence shares no word
    // with it and does not fit.
    let filler =
        |n: usize| format!("Filler number {n} about something else altogether, in some words.");
    let mut messages = vec![("a", "The harbour kitchen opens in April.".to_owned())];
    messages.push(("b", "Marmalade is for breakfast.".to_owned()));
    let ids: Vec<String> = (0..200).map(|n| format!("f{n}")).collect();
    messages.extend(ids.iter().enumerate().map(|(n, id)| (id.as_str(), filler(n))));
    let messages: Vec<_> = messages
        .iter()
        .map(|(id, content)| serde_json::json!({"id": id, "role": "user", "name": "Ana", "content": content}))
        .collect();
    let ask = |question: &str, evidence: &[&str], category: &str| serde_json::json!({"question": question, "answer": null, "evidence": evidence, "category": category});
    let data = serde_json::json!([{
        "sample_id": "x",
        "sessions": [{"started_at": "2026-03-02", "messages": messages}],
        "qa": [
            ask("When does the harbour kitchen open?", &["a"], "single_hop"),
            ask("When does the harbour kitchen open?", &["a", "f150", "a"], "multi_hop"),
            ask("When does the harbour kitchen open?", &["f150"], "adversarial"),
        ],
    }]);
    eval.file("samples.json", data.to_string());
    let report =
        eval.json(&["retrieval", "--data", "samples.json", "--budget", "300", "--no-ablation"]);
    assert_eq!(report["questions"], 3);
    assert_eq!(report["evidence_recall"], 0.5);
    assert_eq!(report["evidence_recall_without_adversarial"], 0.75);
    assert_eq!(report["false_empty"], 0.0);
    assert_eq!(report["all_evidence"].as_f64().map(|share| (share * 3.0).round()), Some(1.0));
    assert_eq!(report["by_category"]["multi_hop"]["evidence_recall"], 0.5);
    assert_eq!(report["by_category"]["adversarial"]["questions"], 1);
    let tokens = report["tokens"].as_object().unwrap();
    let keys: Vec<&str> = tokens.keys().map(String::as_str).collect();
    assert_eq!(keys, ["baseline_mean", "budget", "max", "mean", "saved"]);
    assert!(tokens["max"].as_u64().unwrap() <= 300);
    assert!(report["assembly_ms"]["p99"].as_f64().unwrap() > 0.0);
    eval.file("unknown.json", data.to_string().replace("\"f150\",\"a\"]", "\"nowhere\",\"a\"]"));
    let said = eval.fails(&["retrieval", "--data", "unknown.json"], 3);
    assert!(said.contains("[0].qa[1].evidence: `nowhere` is not a message"), "{said}");
}

#[test]
fn the_evaluations_of_facts_and_instructions_report() {
    let eval = Folder::new();
    let labelled = concat!(
        r#"{"id":"1","text":"Always use tabs.","facts":[{"kind":"instruction","value":"use tabs"}]}"#,
        "\n",
        r#"{"id":"2","text":"Nice.","facts":[{"kind":"fact","value":"nice"}]}"#,
    );
    eval.file("facts.jsonl", labelled);
    let report = eval.json(&["facts", "--data", "facts.jsonl"]);
    assert_eq!((&report["precision"], &report["recall"]), (&1.0.into(), &0.5.into()));
    assert_eq!(report["by_kind"]["instruction"]["matched"], 1);
    assert_eq!(report["missed"][0]["id"], "2");
    eval.file(
        "cases.jsonl",
        r#"{"id":"c","case":"set","messages":[{"role":"user","content":"Always use tabs."},{"filler":2}],"new_session":true,"ask":"Write a loop","holds":["use tabs","use braces"],"stale":["sunny"]}"#,
    );
    let said = r#"{"role":"user","content":"Is it sunny?"}"#;
    eval.file("filler.jsonl", format!("{said}\n{said}\n"));
    let args = ["instructions", "--data", "cases.jsonl", "--filler", "filler.jsonl"];
    let report = eval.json(&args);
    assert_eq!((&report["cases"], &report["holds"]), (&1.into(), &0.0.into()));
    assert_eq!(report["failures"][0]["text"], "use braces");
    assert_eq!(report["by_case"]["set"]["with_stale"], 1);
    eval.fails(&["facts", "--data", "nowhere.jsonl"], 4);
    eval.fails(&["facts", "--data", "cases.jsonl"], 3);
}

/// A server with OpenAI's API that gives each request the next of these answers. Returns its URL.
fn upstream(answers: Vec<Value>) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let answers = std::sync::Arc::new(std::sync::Mutex::new(answers.into_iter()));
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let answer = move || {
                let next = answers.lock().unwrap().next();
                async move { axum::Json(next) }
            };
            let app = axum::Router::new().fallback(answer);
            let listener = tokio::net::TcpListener::from_std(listener).unwrap();
            axum::serve(listener, app).await.unwrap();
        });
    });
    url
}

/// What a model answered, as OpenAI's API gives it.
fn answered(text: &str) -> Value {
    serde_json::json!({
        "id": "chatcmpl-C4Jq", "object": "chat.completion", "created": 1_756_300_000, "model": "gpt-4.1-2025-04-14",
        "choices": [{
            "index": 0, "finish_reason": "stop", "logprobs": null,
            "message": {"role": "assistant", "content": text, "refusal": null, "annotations": []}
        }],
        "usage": {
            "prompt_tokens": 612, "completion_tokens": 58, "total_tokens": 670,
            "prompt_tokens_details": {"cached_tokens": 0, "audio_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0, "audio_tokens": 0}
        },
        "service_tier": "default", "system_fingerprint": "fp_51e1070cf2"
    })
}

#[test]
fn a_model_is_measured_against_the_forms_with_cost_and_provenance() {
    let eval = Folder::new();
    let lines = [
        r#"{"id":"1","text":"Always use tabs.","facts":[{"kind":"instruction","value":"use tabs"}]}"#,
        r#"{"id":"2","text":"So Lisbon it is, we signed the lease.","facts":[{"kind":"decision","value":"we signed the lease"}]}"#,
        r#"{"id":"3","text":"The build takes 14 minutes.","facts":[{"kind":"metric","value":"14 minutes"}]}"#,
        r#"{"id":"4","text":"```\nport = 80\n```","facts":[]}"#,
    ];
    eval.file("facts.jsonl", lines.join("\n"));
    let finds = "```json\n{\"finds\": [\
        {\"message\": 1, \"kind\": \"instruction\", \"quote\": \"Always use tabs\", \"subject\": null, \"attribute\": null, \"value\": null},\
        {\"message\": 2, \"kind\": \"decision\", \"quote\": \"we signed the lease\"},\
        {\"message\": 3, \"kind\": \"metric\", \"quote\": \"The build takes 14 minutes\", \"subject\": \"project\", \"attribute\": \"build time\", \"value\": \"14 minutes\"},\
        {\"message\": 3, \"kind\": \"fact\", \"quote\": \"the team is in a hurry\"}]}\n```";
    let url = format!("providers.openai.base_url={}", upstream(vec![answered(finds)]));
    let args = ["facts", "--data", "facts.jsonl", "--set", &url];
    let forms = eval.json(&args);
    assert_eq!((&forms["recall"], forms.get("with_model")), (&(1.0 / 3.0).into(), None));
    let report = eval.json(&[&args[..], &["--model", "openai:gpt-4.1"]].concat());
    let with_model = &report["with_model"];
    assert_eq!(report["recall"], forms["recall"], "the forms are measured as without it");
    assert_eq!(
        (&with_model["precision"], &with_model["recall"]),
        (&1.0.into(), &1.0.into()),
        "{report}"
    );
    assert_eq!(with_model["refused"], serde_json::json!({"known": 1, "no_evidence": 1}));
    assert_eq!(with_model["extracted_by"], "model:openai:gpt-4.1/1");
    assert_eq!((&with_model["requests"], &with_model["input_tokens"]), (&1.into(), &612.into()));
    assert!(with_model["cost_usd"].as_f64().unwrap() > 0.0, "{report}");
    let said = eval.fails(&[&args[..], &["--model", "openai:gpt-0"]].concat(), 3);
    assert!(said.contains("openai:gpt-4.1"), "{said}");
}

#[test]
fn entities_are_compared_with_labels() {
    let eval = Folder::new();
    eval.file(
        "messages.jsonl",
        r#"{"id":"m","text":"Write to A@B.org about OPS-7.","entities":[{"kind":"email","value":"a@b.org"},{"kind":"money","value":"7 €"}]}"#,
    );
    let report = eval.json(&["entities", "--data", "messages.jsonl"]);
    assert_eq!((&report["messages"], &report["matched"]), (&1.into(), &1.into()));
    assert_eq!(report["by_kind"]["email"]["precision"], 1.0);
    assert_eq!(report["missed"][0]["value"], "7 €");
    assert_eq!(report["false_finds"][0]["value"], "OPS-7");
    eval.fails(&["entities", "--data", "nowhere.jsonl"], 4);
}

#[test]
fn history_in_steps_keeps_more_bytes_than_by_age() {
    let eval = Folder::new();
    let said = |n: usize| {
        let words = format!("Sentence number {n} about the harbour and its cranes. ").repeat(8);
        serde_json::json!({"role": if n.is_multiple_of(2) { "user" } else { "assistant" }, "content": words})
    };
    let messages: Vec<Value> = (0..40).map(said).collect();
    let samples = serde_json::json!([{
        "sample_id": "a", "sessions": [{"started_at": "2026-03-02T09:14:00Z", "messages": messages}],
        "qa": []
    }]);
    eval.file("samples.json", samples.to_string());
    let report = eval.json(&["history", "--data", "samples.json"]);
    let of = |fading: &str, name: &str| report[fading][name].as_f64().unwrap();
    assert_eq!(report["steps"]["turns"], 19);
    assert!(of("steps", "stable") > of("by_age", "stable"), "{report}");
    assert!(of("steps", "messages") < of("by_age", "messages"), "{report}");
}

#[test]
fn held_back_entities_are_precise_by_kind() {
    let eval = Folder::new();
    let held = concat!(env!("CARGO_MANIFEST_DIR"), "/entities-held.jsonl");
    let report = eval.json(&["entities", "--data", held]);
    let kinds = report["by_kind"].as_object().unwrap();
    assert_eq!(kinds.len(), 9, "{report}");
    for (kind, score) in kinds {
        assert!(score["precision"].as_f64() >= Some(0.9), "{kind}: {score}");
    }
}
