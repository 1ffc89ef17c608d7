//! The quick start of the README, as it is written there, in a shell.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

use super::service::Service;
use crate::support::{PROVIDER_KEYS, Throughline, payload, stderr};

/// The code blocks of the README's section, in order.
fn blocks() -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../README.md");
    let readme = std::fs::read_to_string(path).unwrap();
    let section = readme.split("\n## Serve it\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let blocks = section.split("```sh\n").skip(1);
    blocks.map(|block| block.split("```").next().unwrap().to_owned()).collect()
}

/// A shell as a user has it, with the binary on its path. Its curl finds the port of the README at the
/// service, whichever port that has.
fn shell(data: &Throughline, service: &Service, script: &str) -> Vec<Value> {
    let address = service.base().strip_prefix("http://").unwrap();
    data.file(".curlrc", format!("silent\nconnect-to = localhost:7447:{address}\n"));
    let binary = Path::new(env!("CARGO_BIN_EXE_throughline")).parent().unwrap();
    let path = format!("{}:{}", binary.display(), std::env::var("PATH").unwrap());
    let mut bash = Command::new("bash");
    for (key, _) in std::env::vars_os() {
        if key.to_string_lossy().starts_with("THROUGHLINE_") {
            bash.env_remove(key);
        }
    }
    for key in PROVIDER_KEYS {
        bash.env_remove(key);
    }
    bash.args(["-euo", "pipefail", "-c", script]).current_dir(data.folder());
    let output = bash
        .env("PATH", path)
        .env("CURL_HOME", data.folder())
        .env("HOME", data.folder())
        .env("XDG_DATA_HOME", data.folder())
        .output()
        .unwrap();
    assert!(output.status.success(), "{script}\n{}", stderr(&output));
    let answers = serde_json::Deserializer::from_slice(&output.stdout).into_iter();
    answers.map(Result::unwrap).collect()
}

#[test]
fn the_quick_start_works_as_it_is_written() {
    let blocks = blocks();
    let [serve, calls, keys] = blocks.as_slice() else { panic!("{blocks:?}") };
    let data = Throughline::new();
    let words = serve.split('#').next().unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(words[0], "throughline");
    let mut command = data.command(&words[1..]);
    // Told by the environment, so that the words stay as they are.
    command.arg("--json").env("THROUGHLINE_LISTEN", "127.0.0.1:0");
    let service = Service::spawn(command);

    let answers = shell(&data, &service, calls);
    let [appended, context, found, window] = answers.as_slice() else { panic!("{answers:?}") };
    assert!(appended["messages"][0]["id"].is_string(), "{appended}");
    assert!(payload(context).contains("7:40"), "{context}");
    assert!(context["budget"]["used"].as_u64() <= context["budget"]["limit"].as_u64(), "{context}");
    assert!(found["items"][0]["fact"]["text"].as_str().unwrap().contains("7:40"), "{found}");
    let said = &window["recent_history"][0]["content"];
    assert_eq!(said, "My flight to Lisbon leaves at 7:40.");

    let answers = shell(&data, &service, keys);
    let [known, refused] = answers.as_slice() else { panic!("{answers:?}") };
    assert_eq!((known["tenant"].as_str(), known["user"].as_str()), (Some("acme"), Some("ana")));
    assert_eq!(refused["status"], 401);
}
