//! Plans of files, with the real binary and real folders.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::Throughline;

/// A project of a user, beside their data.
struct Project {
    data: Throughline,
    root: PathBuf,
}

impl Project {
    fn new() -> Self {
        let data = Throughline::new();
        let root = data.folder().join("project");
        fs::create_dir(&root).unwrap();
        Self { data, root }
    }

    /// Writes a file of so many words.
    fn write(&self, name: &str, words: usize) {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{} of {name}\n", "word ".repeat(words))).unwrap();
    }

    fn plan_with(&self, more: &[&str]) -> Value {
        let root = self.root.to_str().unwrap();
        let args = [&["files", "plan", "--session", "s1", "--budget", "500", root], more].concat();
        self.data.json(&args)
    }

    /// Plans as a call does that sends what it plans.
    fn call(&self) -> Value {
        self.plan_with(&["--commit"])
    }
}

/// Outcomes by the names of files, without the folder.
fn outcomes(plan: &Value) -> BTreeMap<String, String> {
    let files = plan["files"].as_array().unwrap();
    let outcome = |file: &Value| {
        let path = Path::new(file["path"].as_str().unwrap());
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        (name, file["outcome"].as_str().unwrap().to_owned())
    };
    files.iter().map(outcome).collect()
}

fn expected(files: &[(&str, &str)]) -> BTreeMap<String, String> {
    files.iter().map(|(name, outcome)| ((*name).to_owned(), (*outcome).to_owned())).collect()
}

#[test]
fn files_stay_where_they_are_and_only_changes_are_sent() {
    let project = Project::new();
    for (name, words) in [("a.rs", 50), ("b.rs", 60), ("c.rs", 70), ("large.rs", 900)] {
        project.write(name, words);
    }
    let first = project.call();
    let all =
        [("a.rs", "inline"), ("b.rs", "inline"), ("c.rs", "inline"), ("large.rs", "overflow")];
    assert_eq!(outcomes(&first), expected(&all));
    let sent = first["tokens"]["sent"].as_u64().unwrap();
    assert!((180..=500).contains(&sent) && first["tokens"]["saved"] == 0, "{first}");

    let second = project.call();
    let all = [
        ("a.rs", "unchanged"),
        ("b.rs", "unchanged"),
        ("c.rs", "unchanged"),
        ("large.rs", "overflow"),
    ];
    assert_eq!(outcomes(&second), expected(&all));
    assert_eq!((&second["tokens"]["sent"], &second["tokens"]["saved"]), (&0.into(), &sent.into()));

    project.write("a.rs", 55);
    project.write("b.rs", 60);
    fs::remove_file(project.root.join("c.rs")).unwrap();
    project.write("tests/new.rs", 5);
    project.write("large.rs", 3);
    let third = project.call();
    let all = [
        ("a.rs", "changed"),
        ("b.rs", "unchanged"),
        ("c.rs", "removed"),
        ("large.rs", "overflow"),
        ("new.rs", "new"),
    ];
    assert_eq!(outcomes(&third), expected(&all), "b.rs was written again with what it had");
    let fourth = outcomes(&project.call());
    assert_eq!((&fourth["a.rs"][..], &fourth["new.rs"][..]), ("unchanged", "overflow"));
    assert!(!fourth.contains_key("c.rs"), "what is gone is told once");
}

#[test]
fn plan_that_is_only_looked_at_keeps_nothing_and_reset_forgets() {
    let project = Project::new();
    project.write("a.rs", 50);
    for _ in 0..2 {
        assert_eq!(outcomes(&project.plan_with(&[])), expected(&[("a.rs", "inline")]));
    }
    project.call();
    assert_eq!(outcomes(&project.plan_with(&[])), expected(&[("a.rs", "unchanged")]));
    project.data.json(&["files", "reset", "--session", "s1"]);
    assert_eq!(outcomes(&project.plan_with(&[])), expected(&[("a.rs", "inline")]));
    // A session that has no list is one that was reset.
    project.data.json(&["files", "reset", "--session", "s2"]);
}

#[test]
fn tokens_of_files_are_counted_as_plans_have_them() {
    let project = Project::new();
    for (name, words) in [("a.rs", 50), ("b.rs", 60), ("deep/c.rs", 70)] {
        project.write(name, words);
    }
    fs::write(project.root.join("picture.png"), b"\x89PNG\0\0").unwrap();
    let counts = project.data.json(&["files", "count", project.root.to_str().unwrap()]);
    let tokens = |told: &Value| -> BTreeMap<String, u64> {
        let files = told["files"].as_array().unwrap().iter();
        let files = files.filter(|file| file["tokens"].as_u64() > Some(0));
        let entry = |file: &Value| {
            (file["path"].as_str().unwrap().to_owned(), file["tokens"].as_u64().unwrap())
        };
        files.map(entry).collect()
    };
    assert_eq!(tokens(&counts), tokens(&project.plan_with(&[])));
    assert_eq!(counts["tokens"], tokens(&counts).values().sum::<u64>());
    let largest = counts["files"][0]["path"].as_str().unwrap();
    assert!(largest.ends_with("deep/c.rs"), "{counts}");
    let skipped = &counts["skipped"][0];
    assert!(skipped["path"].as_str().unwrap().ends_with("picture.png"), "{counts}");
    assert!(skipped["reason"].as_str().unwrap().contains("binary"), "{counts}");
    let none = project.data.run(&["files", "count"]);
    assert_eq!(none.status.code(), Some(2));
}

#[test]
fn list_is_of_one_user_and_goes_with_its_session() {
    let project = Project::new();
    project.write("a.rs", 50);
    project.call();
    let other = ["--set", "identity.user=ben"];
    assert_eq!(outcomes(&project.plan_with(&other)), expected(&[("a.rs", "inline")]));
    project.data.json(&["erase", "session", "s1"]);
    assert_eq!(outcomes(&project.plan_with(&[])), expected(&[("a.rs", "inline")]));
}

#[test]
fn switched_off_or_recorded_every_call_sends_all() {
    let project = Project::new();
    project.write("a.rs", 50);
    let record = ["--commit", "--set", "files.stable_inline_list=record"];
    for _ in 0..2 {
        assert_eq!(outcomes(&project.plan_with(&record)), expected(&[("a.rs", "inline")]));
    }
    assert_eq!(outcomes(&project.plan_with(&[])), expected(&[("a.rs", "unchanged")]));
    let off = ["--commit", "--set", "files.stable_inline_list=off"];
    assert_eq!(outcomes(&project.plan_with(&off)), expected(&[("a.rs", "inline")]));
    assert_eq!(outcomes(&project.plan_with(&[])), expected(&[("a.rs", "unchanged")]));
}

#[test]
fn switched_off_without_a_list_or_recorded_beside_overflow_all_is_sent() {
    let project = Project::new();
    for name in ["a.rs", "b.rs"] {
        project.write(name, 200);
    }
    let off = ["--set", "files.stable_inline_list=off"];
    let all = [("a.rs", "inline"), ("b.rs", "inline")];
    assert_eq!(outcomes(&project.plan_with(&off)), expected(&all), "there is no list yet");
    let root = project.root.to_str().unwrap();
    let plan = ["files", "plan", "--session", "s1", "--budget", "300", root, "--commit"];
    let fixed = outcomes(&project.data.json(&plan));
    assert_eq!(fixed, expected(&[("a.rs", "inline"), ("b.rs", "overflow")]));
    let record = ["--set", "files.stable_inline_list=record"];
    assert_eq!(outcomes(&project.plan_with(&record)), expected(&all), "what fits is sent");
}

#[test]
fn names_and_rules_are_those_of_the_repository() {
    let project = Project::new();
    fs::create_dir(project.root.join(".git")).unwrap();
    fs::write(project.root.join(".git/config"), "url = https://token@example.org\n").unwrap();
    fs::write(project.root.join(".gitignore"), "local.env\n").unwrap();
    for name in ["README.md", "sub/README.md", "sub/local.env", "src/a.rs"] {
        project.write(name, 20);
    }
    let plan = |folder: &str, paths: &[&str]| {
        let args = [&["files", "plan", "--session", "s1", "--json", "--commit"], paths].concat();
        let mut command = project.data.command(&args);
        let output = command.current_dir(project.root.join(folder)).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let plan: Value = serde_json::from_slice(&output.stdout).unwrap();
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        let files = plan["files"].as_array().unwrap().iter();
        files.map(|file| (text(&file["path"]), text(&file["outcome"]))).collect::<BTreeMap<_, _>>()
    };
    let all = [("README.md", "inline"), ("src/a.rs", "inline"), ("sub/README.md", "inline")];
    assert_eq!(plan(".", &["."]), expected(&all));
    // From a folder of it, files are called the same, and what its rules ignore stays ignored.
    assert_eq!(plan("sub", &["."]), expected(&[("sub/README.md", "unchanged")]));
    assert_eq!(plan("src", &["../sub"]), expected(&[("sub/README.md", "unchanged")]));
    // Nothing of version control is read, wherever one stands.
    for path in ["../.git", "../.git/config"] {
        assert!(plan("sub", &[path]).values().all(|outcome| outcome == "skipped"), "{path}");
    }
}

#[test]
fn a_plan_is_that_of_the_model_that_would_be_asked() {
    let project = Project::new();
    for name in ["a.rs", "b.rs", "c.rs"] {
        project.write(name, 3_300);
    }
    let root = project.root.to_str().unwrap();
    let models = "providers.openai.models=[{id=\"small\", window=16000, max_output=1000}, \
                  {id=\"large\", window=100000, max_output=1000}]";
    let key = "providers.openai.api_key=sk-test-0123456789";
    let plan = ["files", "plan", "--session", "s1", root, "--set", models, "--set", key];
    let fits = |more: &[&str]| {
        let plan = outcomes(&project.data.json(&[&plan, more].concat()));
        plan.values().filter(|outcome| *outcome == "inline").count()
    };
    assert_eq!(fits(&["--model", "openai:small"]), 2);
    assert_eq!(fits(&["--set", "chat.model=openai:small"]), 2);
    assert_eq!(fits(&["--model", "large", "--commit"]), 3);
    // What was sent to a large window does not fit into a small one, also where nothing changed.
    let told = project.data.fails(&[&plan[..], &["--model", "openai:small"]].concat(), 6);
    assert!(told.contains("window is full") && told.contains("fresh session"), "{told}");
    let told = project.data.fails(&[&plan[..], &["--model", "other"]].concat(), 3);
    assert!(told.contains("small") && told.contains("large"), "{told}");
}

#[test]
fn what_cannot_be_sent_is_named_with_its_reason() {
    let project = Project::new();
    project.write("a.rs", 50);
    fs::write(project.root.join("image.png"), b"\x89PNG\0\0\xff").unwrap();
    fs::write(project.root.join(".gitignore"), "target\n").unwrap();
    project.write("target/built.rs", 5);
    let missing = project.root.join("missing.rs");
    let plan = project.plan_with(&["--priority", missing.to_str().unwrap()]);
    let all = [("a.rs", "inline"), ("image.png", "skipped"), ("missing.rs", "skipped")];
    assert_eq!(outcomes(&plan), expected(&all));
    let reasons: Vec<_> = plan["files"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|file| file["reason"].as_str())
        .collect();
    assert!(reasons.iter().all(|reason| !reason.is_empty()), "{plan}");

    let inner = project.root.join("inner");
    fs::create_dir(&inner).unwrap();
    let roots = format!("files.roots=[\"{}\"]", inner.display());
    let outside = project.plan_with(&["--set", &roots]);
    assert!(outcomes(&outside).values().all(|outcome| outcome == "skipped"), "{outside}");
}

#[test]
fn bad_input_says_what_to_do() {
    let project = Project::new();
    project.write("a.rs", 50);
    let root = project.root.to_str().unwrap();
    let plan = ["files", "plan", "--session", "s1"];
    let fails = |more: &[&str], code, words: &[&str]| {
        let told = project.data.fails(&[&plan, more].concat(), code);
        assert!(words.iter().all(|word| told.contains(word)), "{told}");
    };
    fails(&["--budget", "0", root], 3, &["budget"]);
    fails(&["--set", "files.roots=[\"/does/not/exist\"]", root], 3, &["/does/not/exist"]);
    fails(
        &["--set", "files.stable_inline_list=sometimes", root],
        3,
        &["stable_inline_list", "record"],
    );
    let told = project.data.fails(
        &["files", "plan", "--session", "share:0193d2f0-5a3c-7b1e-9c55-0b1f6a1f0c13", root],
        13,
    );
    assert!(told.contains("belongs to its owner"), "{told}");
    let without = project.data.run(&plan);
    assert_eq!(without.status.code(), Some(2), "a path is missing");
}
