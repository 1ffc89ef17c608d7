//! Recall by meaning: the embedder in the binary, another one, none, and a broken one.

use crate::support::{Throughline, payload, stderr};

/// What was said, without a word of what will be asked; by the assistant, of whose words no fact is made.
const TALK: &str = r#"{"role": "assistant", "session": "a", "content": "The kitten you adopted last spring sleeps on the sofa all day."}
{"role": "assistant", "session": "a", "content": "How sweet! Congratulations."}
{"role": "user", "session": "a", "content": "The quarterly invoice went out on Monday without the discount."}
{"role": "user", "session": "a", "content": "My bicycle has a flat tyre again, so I took the bus."}
"#;
const ASKED: &str = "Do they own any pets?";

fn filled(settings: &[&str]) -> Throughline {
    let throughline = Throughline::new();
    throughline.file("talk.jsonl", TALK);
    throughline.json(&[&["import", "talk.jsonl"], settings].concat());
    throughline
}

fn shown(throughline: &Throughline, settings: &[&str]) -> String {
    payload(&throughline.json(&[&["assemble", ASKED], settings].concat()))
}

#[test]
fn other_words_find_what_was_said() {
    let throughline = filled(&[]);
    assert!(shown(&throughline, &[]).contains("kitten"));
    let by_words = shown(&throughline, &["--set", "embedder=none"]);
    assert!(!by_words.contains("kitten"), "{by_words}");
}

#[test]
fn the_same_question_has_the_same_bytes_on_every_run() {
    let throughline = filled(&[]);
    let first = throughline.json(&["assemble", ASKED]);
    for _ in 0..3 {
        assert_eq!(throughline.json(&["assemble", ASKED]), first);
    }
}

#[test]
fn what_was_written_without_an_embedder_is_embedded_later() {
    let throughline = filled(&["--set", "embedder=none"]);
    let idle = throughline.json(&["worker", "--once", "--set", "embedder=none"]);
    assert_eq!(idle["texts"], 0);
    let worked = throughline.json(&["worker", "--once"]);
    assert_eq!((&worked["enqueued"], &worked["jobs"]), (&1.into(), &1.into()));
    assert!(worked["texts"].as_u64() >= Some(4), "{worked}");
    let again = throughline.json(&["worker", "--once"]);
    assert_eq!((&again["enqueued"], &again["texts"]), (&0.into(), &0.into()));
    assert!(shown(&throughline, &[]).contains("kitten"));
    // A program without a worker catches up before it recalls.
    let throughline = filled(&["--set", "embedder=none"]);
    assert!(shown(&throughline, &[]).contains("kitten"));
}

/// What a process that was killed between the store and the index leaves.
fn without_vectors(throughline: &Throughline) {
    let store = rusqlite::Connection::open(throughline.database()).unwrap();
    for table in ["vector_state", "vector_tail", "vector_block"] {
        store.execute(&format!("DELETE FROM {table}"), []).unwrap();
    }
}

fn vectors(throughline: &Throughline) -> u64 {
    let store = rusqlite::Connection::open(throughline.database()).unwrap();
    store.query_row("SELECT count(*) FROM vector_tail", [], |row| row.get(0)).unwrap()
}

#[test]
fn every_command_makes_the_vectors_that_wait() {
    let throughline = filled(&[]);
    std::fs::create_dir_all(throughline.folder().join("one/.git")).unwrap();
    let at = |args: &[&str]| {
        let mut command = throughline.command(args);
        let output = command.current_dir(throughline.folder().join("one")).output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    };
    at(&["remember", "Tests run with vitest."]);
    let all = vectors(&throughline);
    assert!(all >= 5, "{all}: those of the user's scope and of the workspace's");
    for args in [
        &["facts"][..],
        &["recall", "vitest"],
        &["profile", "show"],
        &["export", "--to", "all.jsonl"],
        &["mcp"],
    ] {
        without_vectors(&throughline);
        at(args);
        assert_eq!(vectors(&throughline), all, "{args:?}");
    }
    without_vectors(&throughline);
    at(&["remember", "The editor is dark.", "--everywhere"]);
    assert_eq!(vectors(&throughline), all + 1);
}

#[test]
fn a_broken_table_is_told_and_words_go_on() {
    let throughline = filled(&[]);
    throughline.file("broken.tlvt", "not a table");
    for table in ["broken.tlvt", "nowhere.tlvt"] {
        let setting = format!("static.table={table}");
        let asked = ["assemble", "What about the kitten?", "--set", &setting, "--json"];
        let output = throughline.run(&asked);
        assert!(output.status.success());
        let said = stderr(&output);
        assert!(said.contains(table) && said.contains("keyword search only"), "{said}");
        let context = serde_json::from_slice(&output.stdout).unwrap();
        assert!(payload(&context).contains("kitten you adopted"));
    }
}

#[test]
fn an_embedder_that_is_not_in_the_binary_names_its_feature() {
    if cfg!(feature = "local-model") {
        return;
    }
    let throughline = Throughline::new();
    throughline.file("talk.jsonl", TALK);
    for args in [
        &["import", "talk.jsonl", "--set", "embedder=minilm"][..],
        &["model", "fetch", "--set", "data_dir=elsewhere"],
    ] {
        assert!(throughline.fails(args, 3).contains("--features local-model"));
    }
    assert!(!throughline.database().exists());
}

#[test]
fn odd_texts_are_kept_and_asked_about() {
    let throughline = Throughline::new();
    let long = "Räksmörgås på bryggan ".repeat(50_000);
    let texts = [
        "x",
        "…",
        "猫はソファで寝ています",
        "Кошка спит",
        "🐈🐈🐈",
        "\u{200b}\u{301}",
        &long[..1_000_000],
    ];
    let lines: Vec<String> = texts
        .iter()
        .map(|text| {
            serde_json::json!({"role": "user", "session": "a", "content": text}).to_string()
        })
        .collect();
    throughline.file("odd.jsonl", lines.join("\n"));
    assert_eq!(throughline.json(&["import", "odd.jsonl"])[0]["messages"], texts.len());
    for asked in texts {
        let file = throughline.file("asked.txt", asked);
        let mut command = throughline.command(&["assemble", "-", "--budget", "900000", "--json"]);
        let output = command.stdin(std::fs::File::open(file).unwrap()).output().unwrap();
        assert!(output.status.success(), "{asked:.20}: {}", stderr(&output));
    }
    assert!(payload(&throughline.json(&["assemble", "Кошка?"])).contains("спит"));
}

/// The transformer, in a binary that has it; `cargo xtask ci` fetches its files.
#[cfg(feature = "local-model")]
mod local_model {
    use super::*;

    fn model() -> String {
        let Some(folder) = std::env::var_os("THROUGHLINE_TEST_MODEL") else {
            panic!(
                "THROUGHLINE_TEST_MODEL is not set: `throughline model fetch` gets the files, set it \
                 to their folder"
            );
        };
        format!("minilm.path={}", folder.display())
    }

    #[test]
    fn messages_are_embedded_in_the_background() {
        let model = model();
        let patient = "minilm.timeout_ms=60000";
        let settings = ["--set", "embedder=minilm", "--set", &model, "--set", patient];
        let throughline = filled(&settings);
        assert!(!shown(&throughline, &settings).contains("kitten"), "not embedded yet");
        let worked = throughline.json(&[&["worker", "--once"][..], &settings].concat());
        assert!(worked["texts"].as_u64() >= Some(4) && worked["failed"] == 0, "{worked}");
        assert!(shown(&throughline, &settings).contains("kitten"));
    }

    #[test]
    fn missing_files_say_how_to_get_them() {
        let throughline = filled(&[]);
        let asked = ["assemble", "What about the kitten?", "--set", "embedder=minilm", "--json"];
        let output = throughline.run(&asked);
        assert!(output.status.success());
        let said = stderr(&output);
        assert!(
            said.contains("throughline model fetch") && said.contains("keyword search only"),
            "{said}"
        );
    }
}
