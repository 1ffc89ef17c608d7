//! The command line as its users have it: the real binary over real files.

use std::io::Write;
use std::process::Stdio;

use crate::support::{Throughline, conversation, payload, stderr};

#[test]
fn what_was_imported_is_recalled_within_the_budget() {
    let throughline = Throughline::new();
    let file = throughline.file("talk.jsonl", conversation(600, 50));
    let file = file.to_str().unwrap();
    let report = throughline.json(&["import", file]);
    assert_eq!(report[0]["messages"], 600);
    assert_eq!(report[0]["sessions"], 12);
    let again = throughline.json(&["import", file]);
    assert_eq!((&again[0]["messages"], &again[0]["replayed"]), (&0.into(), &600.into()));
    for budget in [200_u64, 800, 3_000] {
        let question = "At which gate is shipment CX-00321?";
        let context = throughline.json(&["assemble", question, "--budget", &budget.to_string()]);
        assert!(context["budget"]["used"].as_u64().unwrap() <= budget);
        assert!(payload(&context).contains("CX-00321 is at gate 30."), "{budget}");
        let items = context["items"].as_array().unwrap();
        assert!(items.iter().all(|item| item["reason"].is_string()));
        assert_eq!(context["working_set"].as_array().unwrap().last().unwrap()["content"], question);
    }
    let usage = throughline.json(&["usage"]);
    assert_eq!((&usage[0]["messages"], &usage[0]["contexts"]), (&600.into(), &3.into()));
}

#[test]
fn a_session_that_goes_on_has_history_and_a_turn_from_standard_input() {
    let throughline = Throughline::new();
    throughline.file("talk.jsonl", conversation(60, 60));
    throughline.json(&["import", "talk.jsonl"]);
    let mut child = throughline
        .command(&["assemble", "-", "--session", "s0", "--tier", "light", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"And what is next?\n").unwrap();
    let output = child.wait_with_output().unwrap();
    let context: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert!(payload(&context).contains("Message number 59"));
    assert_eq!(context["budget"]["limit"], 800);
}

#[test]
fn a_broken_import_names_file_line_and_field_and_imports_nothing() {
    let throughline = Throughline::new();
    let good = r#"{"role":"user","content":"fine"}"#;
    throughline.file("good.jsonl", good);
    throughline.file("role.jsonl", format!("{good}\n{{\"role\":\"robot\",\"content\":\"x\"}}"));
    throughline.file("latin.jsonl", b"{\"role\":\"user\",\"content\":\"caf\xe9\"}");
    let long = "x".repeat((1 << 20) + 1);
    throughline.file("long.jsonl", format!("{{\"role\":\"user\",\"content\":\"{long}\"}}"));
    let table = [
        ("role.jsonl", ":2: role: unknown role `robot`: use one of system, user, assistant, tool"),
        ("latin.jsonl", ":1: not UTF-8"),
        ("long.jsonl", "at most 1 MiB"),
    ];
    for (file, expected) in table {
        let said = throughline.fails(&["import", "good.jsonl", file], 3);
        assert!(said.contains(file) && said.contains(expected), "{said}");
        assert!(said.contains("nothing of this file was imported"), "{said}");
    }
    assert!(!throughline.database().exists(), "files are checked before the store is opened");
    throughline.fails(&["import", "nowhere.jsonl"], 4);
}

#[test]
fn another_content_under_a_known_id_is_a_conflict_that_changes_nothing() {
    let throughline = Throughline::new();
    let line = |id: &str, content: &str| {
        format!(
            "{{\"role\":\"user\",\"session\":\"s\",\"id\":\"{id}\",\"content\":\"{content}\"}}\n"
        )
    };
    throughline.file("first.jsonl", line("1", "the port is 7410"));
    throughline.file("second.jsonl", line("2", "a new line") + &line("1", "the port is 7460"));
    throughline.json(&["import", "first.jsonl"]);
    let said = throughline.fails(&["import", "second.jsonl"], 5);
    assert!(said.contains("external_id `1`"), "{said}");
    let context = throughline.json(&["assemble", "what about the new line and the port?"]);
    assert!(payload(&context).contains("7410") && !payload(&context).contains("a new line"));
}

#[test]
fn a_budget_that_cannot_work_is_refused_with_the_least_that_does() {
    let throughline = Throughline::new();
    throughline.file("talk.jsonl", conversation(40, 40));
    throughline.json(&["import", "talk.jsonl"]);
    let turn = "At which gate is shipment CX-00012?";
    let said = throughline.fails(&["assemble", turn, "--budget", "20"], 6);
    let least: u32 =
        said.trim().rsplit(' ').next().unwrap().parse().unwrap_or_else(|_| unreachable!("{said}"));
    throughline.fails(&["assemble", turn, "--budget", &(least - 1).to_string()], 6);
    let context =
        throughline.json(&["assemble", turn, "--session", "s0", "--budget", &least.to_string()]);
    assert_eq!(context["budget"]["used"], least);
    let warning = context["budget"]["warnings"][0].as_str().unwrap();
    assert!(warning.contains("minimum viable context"), "{warning}");
}

#[test]
fn rules_and_card_are_part_of_every_header() {
    let throughline = Throughline::new();
    throughline.json(&[
        "profile",
        "set",
        "--rules",
        "Answer in metric units.",
        "--card",
        "Engineer",
    ]);
    let shown = throughline.json(&["profile", "show"]);
    assert_eq!(
        (&shown["rules"], &shown["version"]),
        (&"Answer in metric units.".into(), &1.into())
    );
    let header = |turn: &str| throughline.json(&["assemble", turn]);
    let (first, second) = (header("one?"), header("another question?"));
    assert!(first["header"][0]["content"].as_str().unwrap().contains("Answer in metric units."));
    assert_eq!(first["header_hash"], second["header_hash"]);
    let long = "rule ".repeat(500);
    let said = throughline.fails(&["profile", "set", "--rules", &long], 3);
    assert!(said.contains("at most"), "{said}");
    assert_eq!(throughline.json(&["profile", "show"])["version"], 1);
}

#[test]
fn a_backup_is_restored_only_where_that_is_asked_for() {
    let throughline = Throughline::new();
    throughline.fails(&["backup", "copy.db"], 4);
    throughline.file("talk.jsonl", conversation(100, 50));
    throughline.json(&["import", "talk.jsonl"]);
    throughline.json(&["backup", "copy.db"]);
    throughline.fails(&["backup", "copy.db"], 5);
    throughline.file("more.jsonl", r#"{"role":"user","content":"a zebra came later"}"#);
    throughline.json(&["import", "more.jsonl"]);
    throughline.fails(&["restore", "copy.db"], 5);
    throughline.file("junk.db", "this is not a database, only some text that is long enough");
    throughline.fails(&["restore", "junk.db", "--replace"], 11);
    let zebra = || payload(&throughline.json(&["assemble", "what about the zebra?"]));
    assert!(zebra().contains("zebra came later"));
    throughline.json(&["restore", "copy.db", "--replace"]);
    assert!(!zebra().contains("zebra came later"));
    let health = throughline.json(&["migrate", "--check"]);
    assert_eq!(health["problems"].as_array().unwrap().len(), 0);
}

#[cfg(unix)]
#[test]
fn what_is_kept_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let throughline = Throughline::new();
    throughline.file("talk.jsonl", conversation(10, 10));
    throughline.json(&["import", "talk.jsonl"]);
    throughline.json(&["backup", "copy.db"]);
    let mode =
        |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(throughline.database().parent().unwrap()), 0o700);
    assert_eq!(mode(&throughline.database()), 0o600);
    assert_eq!(mode(&throughline.folder().join("copy.db")), 0o600);
}

#[test]
fn settings_come_in_layers_and_wrong_ones_are_explained() {
    let throughline = Throughline::new();
    throughline.file("throughline.toml", "data_dir = \"./elsewhere\"\n[sqlite]\nreaders = 2\n");
    let explained = |environment: &[(&str, &str)], args: &[&str]| {
        let mut command = throughline.command(&["config", "explain", "--json"]);
        command.args(args).envs(environment.iter().copied());
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        let lines: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        move |key: &str| {
            let lines = lines.as_array().unwrap();
            let line = lines.iter().find(|line| line["key"] == key).unwrap();
            (line["value"].as_str().unwrap().to_owned(), line["layer"].as_str().unwrap().to_owned())
        }
    };
    let of = explained(&[("THROUGHLINE_SQLITE__READERS", "6")], &["--data-dir", "flagged"]);
    assert_eq!(of("data_dir"), ("\"flagged\"".into(), "flag".into()));
    assert_eq!(of("sqlite.readers"), ("6".into(), "environment".into()));
    assert!(explained(&[], &[])("sqlite.readers").1.ends_with("throughline.toml"));
    assert_eq!(explained(&[], &[])("store").1, "default");
    let said = throughline.fails(&["profile", "show", "--set", "sqlite.raeders=3"], 3);
    assert!(said.contains("did you mean `readers`?"), "{said}");
}

#[test]
fn the_demo_explains_itself() {
    let throughline = Throughline::new();
    let output = throughline.run(&["demo"]);
    let text = String::from_utf8(output.stdout).unwrap();
    for expected in ["410 messages in 24 sessions", "whole history", "saved", "<recalled>", "Next:"]
    {
        assert!(text.contains(expected), "{expected}: {text}");
    }
    // The question, the line that answers it, what is saved, and only then a table.
    let at = |what: &str| text.find(what).unwrap_or_else(|| unreachable!("{what}: {text}"));
    let order = [
        "The user asks: Who on my team looks after the infrastructure",
        "Odile Marchetti does infrastructure and most of the on-call",
        "the whole history takes",
        "| the user asks",
    ];
    assert!(order.map(at).is_sorted(), "{text}");
    // What its user really stated to stand, and no line of a log, a list or a joke.
    let standing = text.split("Standing instructions of this user:\n").nth(1).unwrap();
    let standing: Vec<&str> = standing.lines().take_while(|line| !line.is_empty()).collect();
    let expected = [
        "- From now on keep answers under five lines, please.",
        "- Also: always use metric units and the 24-hour clock with me.",
        "- New rule: work answers may have up to ten lines, private things stay at five.",
        "- A small thing: please always put the weekday next to a date from now on.",
    ];
    assert_eq!(standing, expected);
    throughline.file("talk.jsonl", conversation(80, 40));
    let own = throughline.json(&["demo", "talk.jsonl", "--budget", "500"]);
    assert!(own.as_array().unwrap().iter().all(|turn| turn["sent"].as_u64().unwrap() <= 500));
    assert!(!throughline.database().exists(), "a demo leaves nothing behind");
}

#[test]
fn completions_know_the_commands() {
    let throughline = Throughline::new();
    for shell in ["bash", "zsh", "fish"] {
        let output = throughline.run(&["completions", shell]);
        let script = String::from_utf8(output.stdout).unwrap();
        for command in ["remember", "recall", "forget", "assemble"] {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
}

#[test]
fn a_key_in_an_imported_log_is_not_recalled() {
    let throughline = Throughline::new();
    let key = ["ghp", "16C7e42F292c6912E7710c838347Ae178B4a"].join("_");
    let line = serde_json::json!({
        "type": "user", "sessionId": "5b1e", "uuid": "u-1", "timestamp": "2026-01-01T10:00:00Z",
        "cwd": throughline.folder(),
        "message": {"role": "user", "content": format!("The token of the release bot is {key}, use it.")}
    });
    throughline.file("log.jsonl", format!("{line}\n"));
    let report = throughline.json(&["import", "log.jsonl"]);
    let workspace = report[0]["workspace"].as_str().unwrap();
    let asked = ["recall", "What is the token of the release bot?", "--workspace", workspace];
    let found = throughline.json(&asked).to_string();
    assert!(found.contains("token of the release bot"), "{found}");
    assert!(!found.contains(&key) && !found.contains("16C7e42F"), "{found}");
}

#[test]
fn assemble_takes_a_number_of_items() {
    let throughline = Throughline::new();
    throughline.file("talk.jsonl", conversation(60, 20));
    throughline.json(&["import", "talk.jsonl"]);
    let context = throughline.json(&["assemble", "Which shipment is at gate 7?", "-k", "2"]);
    let items = context["items"].as_array().unwrap().iter();
    let shown = items.filter(|i| i["section"] == "recall" && i["outcome"] != "dropped").count();
    assert!((1..=2).contains(&shown), "{context}");
}

#[test]
fn a_log_that_grew_adds_what_is_new() {
    let throughline = Throughline::new();
    let line = |text: &str| format!("{{\"role\":\"user\",\"content\":\"{text}\"}}\n");
    throughline.file("log.jsonl", line("hello") + &line("yes") + &line("yes"));
    assert_eq!(throughline.json(&["import", "log.jsonl"])[0]["messages"], 3);
    throughline.file("log.jsonl", line("hello") + &line("yes") + &line("yes") + &line("yes"));
    let report = throughline.json(&["import", "log.jsonl"]);
    assert_eq!((&report[0]["messages"], &report[0]["replayed"]), (&1.into(), &3.into()));
}
