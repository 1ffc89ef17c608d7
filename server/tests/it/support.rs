//! The real binary, with its data in a temporary directory and none of this machine's settings.
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;
use tempfile::TempDir;

/// What the service reads of providers where its settings are silent: tests must not call them with a developer's key.
pub(crate) const PROVIDER_KEYS: [&str; 3] = ["OPENAI_API_KEY", "OPENAI_BASE_URL", "GEMINI_API_KEY"];

/// A data directory and the binary that works on it.
pub(crate) struct Throughline {
    folder: TempDir,
}

impl Throughline {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Where the data of a user with this home is kept.
    pub(crate) fn data_dir(&self) -> PathBuf {
        self.folder().join("throughline")
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.data_dir().join("throughline.db")
    }

    /// Writes a file beside the data directory.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.folder().join(name);
        std::fs::write(&path, content).unwrap();
        path
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_throughline"));
        for (key, _) in std::env::vars_os() {
            if key.to_string_lossy().starts_with("THROUGHLINE_") {
                command.env_remove(key);
            }
        }
        for key in PROVIDER_KEYS {
            command.env_remove(key);
        }
        command.args(args).current_dir(self.folder());
        command.env("HOME", self.folder()).env("XDG_DATA_HOME", self.folder());
        command
    }

    pub(crate) fn run(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Runs with `--json`, which must succeed.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let output = self.command(args).arg("--json").output().unwrap();
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        serde_json::from_slice(&output.stdout).unwrap()
    }

    /// Runs and must fail with this exit code; returns what it said.
    pub(crate) fn fails(&self, args: &[&str], code: i32) -> String {
        let output = self.run(args);
        assert_eq!(output.status.code(), Some(code), "{args:?}: {}", stderr(&output));
        let said = stderr(&output);
        assert!(said.starts_with("error: ") && said.trim().lines().count() == 1, "{said}");
        said
    }
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// `count` messages as JSON lines over sessions of `per_session`, each with a number of its own.
pub(crate) fn conversation(count: usize, per_session: usize) -> String {
    let line = |at: usize| {
        let role = if at.is_multiple_of(2) { "user" } else { "assistant" };
        let session = at / per_session;
        serde_json::json!({
            "role": role,
            "session": format!("s{session}"),
            "content": format!("Message number {at}: shipment CX-{at:05} is at gate {}.", at % 97),
        })
        .to_string()
    };
    (0..count).map(line).collect::<Vec<_>>().join("\n")
}

/// Everything that a payload shows, as one text.
pub(crate) fn payload(context: &Value) -> String {
    let Some(messages) = context["working_set"].as_array() else {
        panic!("not a context: {context}");
    };
    messages.iter().filter_map(|message| message["content"].as_str()).collect::<Vec<_>>().join("\n")
}
