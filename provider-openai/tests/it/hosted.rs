//! Hosted vector stores, against a server that keeps files and stores as OpenAI documents it.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use throughline_core::ErrorKind;
use throughline_core::ports::{FileSearch, SearchableFile};
use throughline_provider_openai::HostedFiles;
use throughline_testkit::conformance;

use crate::support::{Received, Reply, Server, client};

/// A day is the longest that what nobody deletes is kept.
const EXPIRY: &str = "86400";

#[derive(Default)]
struct Hosted {
    made: usize,
    /// File name and text of each upload.
    files: BTreeMap<String, (String, String)>,
    stores: BTreeMap<String, Value>,
    /// Files of each store, with their attributes.
    attached: BTreeMap<String, Vec<(String, Value)>>,
    /// Looks at a batch until it is indexed.
    looks: usize,
}

type Shared = Arc<Mutex<Hosted>>;

fn missing() -> Reply {
    Reply::json(
        404,
        &json!({"error": {"message": "No vector store found with id 'vs_x'.", "type": "invalid_request_error", "code": null}}),
    )
}

fn listed(items: Vec<Value>) -> Reply {
    Reply::json(200, &json!({"object": "list", "data": items, "has_more": false}))
}

impl Hosted {
    fn id(&mut self, kind: &str) -> String {
        self.made += 1;
        format!("{kind}_{}", self.made)
    }

    fn answer(&mut self, asked: &Received) -> Reply {
        let path = asked.path.split('?').next().unwrap_or_default();
        let parts: Vec<&str> = path.trim_start_matches("/v1/").split('/').collect();
        match (asked.method.as_str(), parts.as_slice()) {
            ("POST", ["files"]) => self.upload(asked),
            ("GET", ["files"]) => {
                assert!(asked.path.contains("purpose=assistants"), "{}", asked.path);
                let item = |(id, (name, _)): (&String, &(String, String))| json!({"id": id, "filename": name});
                listed(self.files.iter().map(item).collect())
            }
            ("DELETE", ["files", id]) => match self.files.remove(*id) {
                Some(_) => Reply::json(200, &json!({"id": id, "deleted": true})),
                None => missing(),
            },
            ("POST", ["vector_stores"]) => {
                assert_eq!(
                    asked.body["expires_after"],
                    json!({"anchor": "last_active_at", "days": 1})
                );
                let id = self.id("vs");
                let store =
                    json!({"id": id, "name": asked.body["name"], "file_counts": {"total": 0}});
                self.stores.insert(id.clone(), store.clone());
                self.attached.insert(id, Vec::new());
                Reply::json(200, &store)
            }
            ("GET", ["vector_stores"]) => listed(self.stores.values().cloned().collect()),
            (_, ["vector_stores", id, ..]) if !self.stores.contains_key(*id) => missing(),
            ("GET", ["vector_stores", id]) => {
                let mut store = self.stores[*id].clone();
                store["file_counts"]["total"] = json!(self.attached[*id].len());
                Reply::json(200, &store)
            }
            ("DELETE", ["vector_stores", id]) => {
                self.stores.remove(*id);
                self.attached.remove(*id);
                Reply::json(200, &json!({"id": id, "deleted": true}))
            }
            ("GET", ["vector_stores", id, "files"]) => {
                let item = |(file, attributes): &(String, Value)| json!({"id": file, "attributes": attributes});
                listed(self.attached[*id].iter().map(item).collect())
            }
            ("POST", ["vector_stores", id, "file_batches"]) => {
                for file in asked.body["files"].as_array().unwrap() {
                    let attached =
                        (file["file_id"].as_str().unwrap().to_owned(), file["attributes"].clone());
                    self.attached.get_mut(*id).unwrap().push(attached);
                }
                self.looks = 2;
                self.batch(asked.body["files"].as_array().unwrap().len())
            }
            ("GET", ["vector_stores", id, "file_batches", _]) => {
                self.looks = self.looks.saturating_sub(1);
                self.batch(self.attached[*id].len())
            }
            ("POST", ["vector_stores", id, "search"]) => self.search(id, asked),
            _ => Reply::text(405, "text/plain", "unknown"),
        }
    }

    fn batch(&self, files: usize) -> Reply {
        let (status, completed) =
            if self.looks > 0 { ("in_progress", 0) } else { ("completed", files) };
        Reply::json(
            200,
            &json!({"id": "vsfb_1", "status": status, "file_counts": {"completed": completed, "total": files}}),
        )
    }

    fn upload(&mut self, asked: &Received) -> Reply {
        let form = String::from_utf8(asked.raw.clone()).unwrap();
        let boundary = asked.headers["content-type"].split("boundary=").nth(1).unwrap().to_owned();
        let mut fields = BTreeMap::new();
        for part in form.split(&format!("--{boundary}")) {
            let Some((head, text)) = part.split_once("\r\n\r\n") else { continue };
            let of = |key: &str| {
                head.split(&format!("{key}=\"")).nth(1).map(|rest| rest.split('"').next().unwrap())
            };
            let name = of("; name").unwrap().to_owned();
            let text = text.strip_suffix("\r\n").unwrap().to_owned();
            fields.insert(name, (of("filename").unwrap_or_default().to_owned(), text));
        }
        assert_eq!(fields["purpose"].1, "assistants");
        assert_eq!(fields["expires_after[seconds]"].1, EXPIRY);
        let id = self.id("file");
        self.files.insert(id.clone(), fields["file"].clone());
        Reply::json(200, &json!({"id": id, "object": "file"}))
    }

    fn search(&self, store: &str, asked: &Received) -> Reply {
        let words = |text: &str| {
            let words = text.split(|c: char| !c.is_alphanumeric()).map(str::to_lowercase);
            words.filter(|word| !word.is_empty()).collect::<Vec<_>>()
        };
        let question = words(asked.body["query"].as_str().unwrap());
        let mut found: Vec<(usize, Value)> = Vec::new();
        for (id, attributes) in &self.attached[store] {
            let (name, text) = &self.files[id];
            let held = words(text);
            let shared = question.iter().filter(|word| held.contains(word)).count();
            let score = shared as f64 / question.len() as f64;
            let content = json!([{"type": "text", "text": text}]);
            let hit = json!({"file_id": id, "filename": name, "score": score, "attributes": attributes, "content": content});
            found.push((shared, hit));
        }
        found.retain(|(shared, _)| *shared > 0);
        found.sort_by_key(|(shared, _)| usize::MAX - shared);
        found.truncate(usize::try_from(asked.body["max_num_results"].as_u64().unwrap()).unwrap());
        Reply::json(
            200,
            &json!({"data": found.into_iter().map(|(_, hit)| hit).collect::<Vec<_>>()}),
        )
    }
}

async fn start() -> (Server, Shared) {
    let hosted = Shared::default();
    let shared = Arc::clone(&hosted);
    let server = Server::answering(move |asked| {
        shared.lock().unwrap_or_else(PoisonError::into_inner).answer(asked)
    });
    (server.await, hosted)
}

fn files(server: &Server, timeout: Duration) -> HostedFiles {
    client(server).hosted_files(timeout)
}

fn text(name: &str) -> SearchableFile {
    SearchableFile { name: name.to_owned(), text: format!("The text of {name}.") }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hosted_stores_conform() {
    let servers = Mutex::new(Vec::new());
    let make = async || {
        let (server, _) = start().await;
        let made = files(&server, Duration::from_secs(30));
        servers.lock().unwrap().push(server);
        made
    };
    conformance::file_search(make, &[]).await;
}

#[tokio::test]
async fn nothing_is_left_of_a_store() {
    let (server, hosted) = start().await;
    let files = files(&server, Duration::from_secs(30));
    let store = files.create("run-1").await.unwrap();
    files.add(&store, vec![text("a.md"), text("b.md")]).await.unwrap();
    files.delete(&store).await.unwrap();
    {
        let held = hosted.lock().unwrap();
        assert!(held.files.is_empty() && held.stores.is_empty());
    }
    // An upload that no store has, as a crash leaves it.
    hosted
        .lock()
        .unwrap()
        .files
        .insert("file_x".to_owned(), ("run-1.txt".to_owned(), String::new()));
    hosted
        .lock()
        .unwrap()
        .files
        .insert("file_y".to_owned(), ("other.txt".to_owned(), String::new()));
    assert_eq!(files.delete_labelled("run-").await.unwrap(), 0);
    let left: Vec<String> = hosted.lock().unwrap().files.keys().cloned().collect();
    assert_eq!(left, ["file_y"]);
}

#[tokio::test]
async fn indexing_that_takes_too_long_is_told() {
    let (server, hosted) = start().await;
    let files = files(&server, Duration::ZERO);
    let store = files.create("run-1").await.unwrap();
    let error = files.add(&store, vec![text("a.md")]).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unavailable);
    assert!(!error.message().contains("timeout_ms"), "it is not the timeout of an answer: {error}");
    files.delete(&store).await.unwrap();
    assert!(hosted.lock().unwrap().files.is_empty(), "what was uploaded goes with its store");
}
