//! Vector stores that the server hosts: files are uploaded, attached to a store, searched there and deleted again.
//!
//! A file is uploaded apart from the store that it is searched in, and outlives it. So the name of each upload begins with
//! the label of its store: after a crash, uploads without a store are found by it. Stores and uploads expire after a day,
//! also if nobody deletes them.

mod upload;

use std::collections::HashMap;
use std::time::Duration;

use async_openai::types::vectorstores::{
    CreateVectorStoreFileBatchRequest, CreateVectorStoreFileRequest, CreateVectorStoreRequest,
    VectorStoreExpirationAfter, VectorStoreSearchQuery, VectorStoreSearchRequest,
};
use async_trait::async_trait;
use futures_util::{StreamExt as _, TryStreamExt as _, stream};
use http::{HeaderMap, Method, header};
use serde::Serialize;
use serde_json::Value;
use throughline_core::ports::{FileHit, FileSearch, SearchableFile, check_files, check_label};
use throughline_core::{Error, ErrorKind, Result};
use throughline_provider_http::json::{count, items, text};
use throughline_provider_http::{Call, TimeLimit};

use crate::provider::OpenAi;

use upload::Upload;

/// Most files of a store, and of one batch that is attached to it.
const MAX_FILES: usize = 10_000;
const MAX_BATCH: usize = 2_000;
/// Most hits of a search.
const MAX_HITS: usize = 50;
/// Items of a page.
const PAGE: usize = 100;
/// Uploads and deletions at once.
const AT_ONCE: usize = 8;
/// How long between two looks whether a batch is indexed, at first and at most.
const FIRST_WAIT: Duration = Duration::from_millis(200);
const LONGEST_WAIT: Duration = Duration::from_secs(3);
/// The attribute with the name of a file. It may have 500 bytes, as names may.
const NAME: &str = "name";

/// The hosted vector stores of a server.
#[derive(Debug, Clone)]
pub struct HostedFiles {
    server: OpenAi,
    /// How long attaching a batch may take.
    index_timeout: Duration,
}

impl OpenAi {
    /// The vector stores that this server hosts. OpenAI's own has them; few others do. Files that are added are indexed
    /// within `index_timeout`, or adding them fails.
    #[must_use]
    pub fn hosted_files(&self, index_timeout: Duration) -> HostedFiles {
        HostedFiles { server: self.clone(), index_timeout }
    }
}

#[async_trait]
impl FileSearch for HostedFiles {
    fn max_files(&self) -> usize {
        MAX_FILES
    }

    async fn create(&self, label: &str) -> Result<String> {
        check_label(label)?;
        let expiry = VectorStoreExpirationAfter { anchor: "last_active_at".to_owned(), days: 1 };
        let request = CreateVectorStoreRequest {
            name: Some(label.to_owned()),
            expires_after: Some(expiry),
            ..CreateVectorStoreRequest::default()
        };
        let created = self.post("create_store", "/vector_stores", &request).await?;
        self.id(&created, "create_store")
    }

    async fn add(&self, store: &str, files: Vec<SearchableFile>) -> Result<()> {
        let held = self.get("get_store", &format!("/vector_stores/{}", part(store)?)).await?;
        let label = text(&held["name"]);
        let before = count(&held["file_counts"]["total"]) as usize;
        let total = before + files.len();
        if total > MAX_FILES {
            return Err(Error::invalid(format!(
                "a hosted store has at most {MAX_FILES} files, and this one would have {total}: use another store for \
                 the rest"
            )));
        }
        let attached = match before {
            0 => Vec::new(),
            _ => {
                self.pages("list_store_files", &format!("/vector_stores/{store}/files"), "").await?
            }
        };
        check_files(&files, attached.iter().map(|file| text(&file["attributes"][NAME])))?;
        for batch in files.chunks(MAX_BATCH) {
            let mut uploads = Vec::with_capacity(batch.len());
            for file in batch {
                uploads.push(self.upload(label, file));
            }
            let uploaded = stream::iter(uploads).buffer_unordered(AT_ONCE).try_collect().await?;
            self.attach(store, uploaded).await?;
        }
        Ok(())
    }

    async fn search(&self, store: &str, question: &str, limit: usize) -> Result<Vec<FileHit>> {
        let request = VectorStoreSearchRequest {
            query: VectorStoreSearchQuery::Text(question.to_owned()),
            max_num_results: u8::try_from(limit.clamp(1, MAX_HITS)).ok(),
            ..VectorStoreSearchRequest::default()
        };
        let path = format!("/vector_stores/{}/search", part(store)?);
        let found = self.post("search_store", &path, &request).await?;
        Ok(items(&found["data"]).iter().filter_map(hit).collect())
    }

    async fn delete(&self, store: &str) -> Result<()> {
        // The files first: they are found by their store.
        let path = format!("/vector_stores/{}", part(store)?);
        let files = match self.pages("list_store_files", &format!("{path}/files"), "").await {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            files => files?,
        };
        let ids = files.iter().map(|file| text(&file["id"]).to_owned());
        self.delete_files(ids.collect()).await?;
        self.gone(&path, "delete_store").await
    }

    async fn delete_labelled(&self, prefix: &str) -> Result<u64> {
        let stores = self.pages("list_stores", "/vector_stores", "").await?;
        let labelled: Vec<&Value> =
            stores.iter().filter(|store| text(&store["name"]).starts_with(prefix)).collect();
        for store in &labelled {
            self.delete(text(&store["id"])).await?;
        }
        let files = self.pages("list_files", "/files", "&purpose=assistants").await?;
        let left = files.iter().filter(|file| text(&file["filename"]).starts_with(prefix));
        self.delete_files(left.map(|file| text(&file["id"]).to_owned()).collect()).await?;
        Ok(labelled.len() as u64)
    }
}

impl HostedFiles {
    /// Uploads a file, and says how it is attached: with its name, which the search gives back.
    async fn upload(
        &self,
        label: &str,
        file: &SearchableFile,
    ) -> Result<CreateVectorStoreFileRequest> {
        let call = Call { method: Method::POST, ..self.call("/files", "upload_file") };
        let upload = Upload::of(format!("{label}.txt"), file.text.clone()).await?;
        let headers = HeaderMap::from_iter([(header::CONTENT_TYPE, upload.content_type)]);
        let call = Call { headers, body: upload.body, ..call };
        let uploaded = self.server.transport.json(&call).await?;
        let attributes = HashMap::from([(NAME.to_owned(), file.name.clone().into())]);
        Ok(CreateVectorStoreFileRequest {
            file_id: self.id(&uploaded, "upload_file")?,
            attributes: Some(attributes.into()),
            ..CreateVectorStoreFileRequest::default()
        })
    }

    /// Attaches files to a store, and waits until they are indexed.
    async fn attach(&self, store: &str, files: Vec<CreateVectorStoreFileRequest>) -> Result<()> {
        let path = format!("/vector_stores/{}/file_batches", part(store)?);
        let expected = files.len() as u64;
        let request = CreateVectorStoreFileBatchRequest {
            files: Some(files),
            ..CreateVectorStoreFileBatchRequest::default()
        };
        let mut batch = self.post("attach_files", &path, &request).await?;
        let looking = async {
            let mut wait = FIRST_WAIT;
            while text(&batch["status"]) == "in_progress" {
                tokio::time::sleep(wait).await;
                wait = (wait * 2).min(LONGEST_WAIT);
                let id = self.id(&batch, "attach_files")?;
                batch = self.get("attach_files", &format!("{path}/{}", part(&id)?)).await?;
            }
            Ok::<Value, Error>(batch)
        };
        let late = |_| {
            let limit = TimeLimit { after: self.index_timeout, setting: None };
            self.server.transport.origin("attach_files", None).timed_out(limit)
        };
        let batch = tokio::time::timeout(self.index_timeout, looking).await.map_err(late)??;
        let done = count(&batch["file_counts"]["completed"]);
        if text(&batch["status"]) != "completed" || done < expected {
            return Err(Error::new(
                ErrorKind::Unavailable,
                format!("the provider indexed {done} of {expected} files: try again"),
            ));
        }
        Ok(())
    }

    async fn delete_files(&self, ids: Vec<String>) -> Result<()> {
        let deletions = ids.into_iter().map(async |id| {
            let path = format!("/files/{}", part(&id)?);
            self.gone(&path, "delete_file").await
        });
        stream::iter(deletions).buffer_unordered(AT_ONCE).try_collect::<Vec<()>>().await.map(drop)
    }

    /// Deletes what is there.
    async fn gone(&self, path: &str, operation: &'static str) -> Result<()> {
        let call = Call { method: Method::DELETE, ..self.call(path, operation) };
        match self.server.transport.json(&call).await {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
            deleted => deleted.map(drop),
        }
    }

    /// All items of a list.
    async fn pages(&self, operation: &'static str, path: &str, query: &str) -> Result<Vec<Value>> {
        let mut all: HashMap<String, Value> = HashMap::new();
        let mut after = String::new();
        loop {
            let page = format!("{path}?limit={PAGE}&order=asc{query}{after}");
            let page = self.get(operation, &page).await?;
            let before = all.len();
            for item in items(&page["data"]) {
                all.insert(self.id(item, operation)?, item.clone());
            }
            // A server that repeats a page has no more.
            let last = items(&page["data"]).last().map(|item| text(&item["id"]).to_owned());
            match last {
                Some(last) if page["has_more"] == true && all.len() > before => {
                    after = format!("&after={}", part(&last)?);
                }
                _ => return Ok(all.into_values().collect()),
            }
        }
    }

    async fn get(&self, operation: &'static str, path: &str) -> Result<Value> {
        self.server.transport.json(&self.call(path, operation)).await
    }

    async fn post(
        &self,
        operation: &'static str,
        path: &str,
        body: &impl Serialize,
    ) -> Result<Value> {
        let origin = self.server.transport.origin(operation, None);
        self.server.transport.json(&Call::post(path, body, origin)?).await
    }

    fn call(&self, path: &str, operation: &'static str) -> Call {
        Call::get(path, self.server.transport.origin(operation, None))
    }

    fn id(&self, value: &Value, operation: &'static str) -> Result<String> {
        match text(&value["id"]) {
            "" => Err(self.server.transport.origin(operation, None).unreadable()),
            id => Ok(id.to_owned()),
        }
    }
}

/// An id as part of a path: only characters that ids have.
fn part(id: &str) -> Result<&str> {
    let is_id = |c: u8| c.is_ascii_alphanumeric() || matches!(c, b'-' | b'_');
    if id.is_empty() || !id.bytes().all(is_id) {
        return Err(Error::not_found("there is no such store of files"));
    }
    Ok(id)
}

fn hit(found: &Value) -> Option<FileHit> {
    let passages = items(&found["content"]).iter().map(|part| text(&part["text"]));
    let passage = passages.collect::<Vec<_>>().join("\n");
    let score = found["score"].as_f64().unwrap_or_default().clamp(0.0, 1.0) as f32;
    let file = text(&found["attributes"][NAME]).to_owned();
    (!passage.is_empty()).then_some(FileHit { file, text: passage, score })
}
