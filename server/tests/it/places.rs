//! Where memory is looked for: workspaces, what holds in all of them, and sessions.

use reqwest::Method;
use serde_json::{Value, json};

use crate::http::service::{Answer, Service};
use crate::mcp::client::Caller;
use crate::support::{Throughline, stderr};

fn run(data: &Throughline, folder: &str, args: &[&str]) -> String {
    let output = data.command(args).current_dir(data.folder().join(folder)).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn report_of_an_import_names_a_workspace_that_finds_it() {
    let data = Throughline::new();
    for folder in ["project", "plain"] {
        std::fs::create_dir_all(data.folder().join(folder)).unwrap();
    }
    let line = json!({
        "type": "user", "sessionId": "5b1e", "uuid": "u-1", "timestamp": "2026-01-01T10:00:00Z",
        "cwd": data.folder().join("project"),
        "message": {"role": "user", "content": "From now on, use pnpm and never npm."}
    });
    data.file("log.jsonl", format!("{line}\n"));
    let report = run(&data, ".", &["import", "log.jsonl"]);
    assert!(report.contains("in no git repository on this machine"), "{report}");
    let with = report.split("--workspace '").nth(1).unwrap().split('\'').next().unwrap();
    let args = ["facts", "--workspace", with];
    assert!(run(&data, "plain", &args).contains("pnpm"));
    assert!(!run(&data, "plain", &["facts"]).contains("pnpm"), "it is no rule for all");
}

#[test]
fn facts_that_hold_everywhere_are_listed_in_every_workspace() {
    let data = Throughline::new();
    for folder in ["one/.git", "plain"] {
        std::fs::create_dir_all(data.folder().join(folder)).unwrap();
    }
    run(&data, "plain", &["remember", "The kettle is in the attic."]);
    run(&data, "one", &["remember", "The editor is dark.", "--everywhere"]);
    run(&data, "one", &["remember", "Tests run with vitest."]);
    let listed = run(&data, "one", &["facts"]);
    assert!(listed.contains("editor is dark") && listed.contains("vitest"), "{listed}");
    assert!(!listed.contains("kettle"), "what is told outside of all holds there: {listed}");
    assert!(!run(&data, "one", &["recall", "Where is the kettle?"]).contains("attic"));
    // Page by page, too.
    let mut seen = Vec::new();
    let mut after = Vec::<String>::new();
    loop {
        let mut args = vec!["facts", "--json", "--limit", "1"];
        args.extend(after.iter().map(String::as_str));
        let page: Value = serde_json::from_str(&run(&data, "one", &args)).unwrap();
        seen.extend(page["items"].as_array().unwrap().iter().map(|fact| fact["text"].clone()));
        let Some(next) = page["next_cursor"].as_str() else { break };
        after = vec!["--after".to_owned(), next.to_owned()];
    }
    assert_eq!(seen, ["Tests run with vitest.", "The editor is dark."]);
    for flag in ["--everywhere", "--subject=x"] {
        let args = ["remember", "x", "--replaces", "1f6a0c15", flag];
        let refused = data.run(&args);
        assert!(stderr(&refused).contains("cannot be used with"), "{}", stderr(&refused));
    }
}

#[tokio::test]
async fn everywhere_is_one_thing_over_every_interface() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let send = async |method: Method, path: &str, body: Value| {
        let request = service.request(method, path).header("throughline-workspace", "one");
        Answer::of(request.json(&body)).await
    };
    let new = json!({"text": "The editor is dark.", "everywhere": true, "tags": ["editor"]});
    assert_eq!(
        send(Method::POST, "/v1/facts", new).await.json()["tags"],
        json!(["editor", "everywhere"])
    );
    let listed = send(Method::GET, "/v1/facts", Value::Null).await.ok();
    assert_eq!(listed["items"][0]["text"], "The editor is dark.");
    let other = service.request(Method::GET, "/v1/facts").header("throughline-workspace", "two");
    assert_eq!(Answer::of(other).await.ok()["items"].as_array().unwrap().len(), 1);
    let tagged = json!({"text": "x", "tags": ["everywhere"]});
    let said = send(Method::POST, "/v1/facts", tagged).await.problem(400, "invalid_input");
    assert!(said.contains("reserved"), "{said}");
    let tags: Vec<String> = (0..16).map(|at| format!("t{at}")).collect();
    let full = json!({"text": "x", "tags": tags, "everywhere": true});
    let said = send(Method::POST, "/v1/facts", full).await.problem(400, "invalid_input");
    assert!(said.contains("at most 15 together with `everywhere`"), "{said}");
    let id = Answer::of(service.request(Method::GET, "/v1/facts/7")).await;
    assert!(id.problem(400, "invalid_input").contains("is not the id of a fact"));

    let model = Caller::local(&service);
    let replaces = json!({"text": "y", "replaces": "1f6a0c15", "kind": "decision"});
    let told = model.call("remember", &replaces).await;
    assert!(told["isError"] == true && told.to_string().contains("leave out `kind`"), "{told}");
}

#[tokio::test]
async fn what_recall_shows_is_enough_to_erase_a_message() {
    let data = Throughline::new();
    let service = Service::start(&data);
    let said = json!({"messages": [{"role": "user", "content": "The safe opens with 4711."}]});
    service.post("/v1/sessions/old%20talk/messages", &said).await.ok();
    let printed = run(&data, ".", &["recall", "What opens the safe?"]);
    assert!(printed.contains("session old talk"), "{printed}");
    let model = Caller::local(&service);
    let found = model.call("recall", &json!({"query": "What opens the safe?"})).await;
    let item = &found["structuredContent"]["items"][0];
    assert!(found["content"][0]["text"].to_string().contains("session old talk"), "{found}");
    let which = json!({"session": item["session"], "message_ids": [item["source"]]});
    let gone = model.call("forget", &which).await;
    assert_eq!(gone["structuredContent"]["messages"], 1, "{gone}");
}
