//! Recorded requests and answers.

use std::fs;
use std::path::Path;

use serde_json::Value;

use super::{Reply, Server};

impl Server {
    /// Gives the recorded answer to the recorded request, and to no other: a file with `request` (`method`, `path`, `body`)
    /// and `response` (`body`, or `events`).
    ///
    /// # Panics
    /// Where the file cannot be read, and in its task for another request.
    pub async fn playing(cassette: &Path) -> Self {
        let text = fs::read_to_string(cassette).unwrap();
        let cassette: Value = serde_json::from_str(&text).unwrap();
        Self::answering(move |received| {
            let (asked, given) = (&cassette["request"], &cassette["response"]);
            assert_eq!(received.method, asked["method"]);
            assert_eq!(received.path, asked["path"]);
            assert_eq!(received.body, asked["body"], "the request is not the recorded one");
            match given["events"].as_array() {
                None => Reply::json(200, &given["body"]),
                Some(events) => {
                    let text = |event: &Value| match event {
                        Value::String(text) => text.clone(),
                        other => other.to_string(),
                    };
                    Reply::events(&events.iter().map(text).collect::<Vec<_>>())
                }
            }
        })
        .await
    }
}

/// Looks through all cassettes of a folder, and says how many there are.
///
/// # Panics
/// Where one of them holds `key`, or what keys are sent in.
pub fn check_cassettes(folder: &Path, key: &str) -> usize {
    let files = fs::read_dir(folder).unwrap().map(|file| file.unwrap().path());
    files
        .map(|path| {
            let text = fs::read_to_string(&path).unwrap().to_lowercase();
            for secret in ["sk-", "aiza", "bearer", "authorization", "api-key", "api_key", key] {
                assert!(!text.contains(secret), "{} has `{secret}`", path.display());
            }
        })
        .count()
}
