//! Whether anything bears on a turn at all, with the embedder in the binary.

use crate::support::{Throughline, payload};

const TALK: &str = r#"{"role": "user", "session": "a", "content": "We use pnpm for the web shop, never npm."}
{"role": "assistant", "session": "a", "content": "Noted, pnpm it is."}
{"role": "user", "session": "a", "content": "The password of the printer is heron-41."}
{"role": "user", "session": "a", "content": "My sister Odile arrives on Friday with the night train."}
"#;

#[test]
fn a_turn_that_nothing_bears_on_recalls_nothing() {
    let throughline = Throughline::new();
    throughline.file("talk.jsonl", TALK);
    throughline.json(&["import", "talk.jsonl"]);
    for (turn, expected) in [
        ("quantum chromodynamics lattice", None),
        ("Suggest a snack.", None),
        ("What is the boiling point of helium?", None),
        ("Which package manager do we use?", Some("pnpm")),
        ("How do I log in to the printer?", Some("heron-41")),
        ("When will she get here?", None),
        ("When does my sister get here?", Some("Friday")),
    ] {
        let shown = payload(&throughline.json(&["assemble", turn, "--session", "b"]));
        match expected {
            None => assert!(!shown.contains("\n<recalled>"), "{turn}: {shown}"),
            Some(text) => assert!(shown.contains(text), "{turn}: {shown}"),
        }
    }
}
