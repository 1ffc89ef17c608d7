//! Files that are searched by the words that they share with a question.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use throughline_core::ports::{FileHit, FileSearch, SearchableFile, check_files, check_label};
use throughline_core::{Error, Result};

/// Most files of a store: few, so that a test can reach it.
const MAX_FILES: usize = 20;

/// Stores of files in memory.
#[derive(Debug, Default)]
pub struct MemoryFileSearch(Mutex<Stores>);

#[derive(Debug, Default)]
struct Stores {
    /// How many were created.
    created: u64,
    stores: BTreeMap<String, FileStore>,
}

#[derive(Debug)]
struct FileStore {
    label: String,
    files: Vec<SearchableFile>,
}

impl MemoryFileSearch {
    /// The labels of the stores that are there, in the order in which they were created.
    #[must_use]
    pub fn labels(&self) -> Vec<String> {
        self.stores(|stores| stores.values().map(|store| store.label.clone()).collect())
    }

    /// How many stores were created.
    #[must_use]
    pub fn created(&self) -> u64 {
        self.lock().created
    }

    fn lock(&self) -> MutexGuard<'_, Stores> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn stores<T>(&self, work: impl FnOnce(&mut BTreeMap<String, FileStore>) -> T) -> T {
        work(&mut self.lock().stores)
    }
}

fn no_store() -> Error {
    Error::not_found("there is no such store of files")
}

fn words(text: &str) -> BTreeSet<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

#[async_trait]
impl FileSearch for MemoryFileSearch {
    fn max_files(&self) -> usize {
        MAX_FILES
    }

    async fn create(&self, label: &str) -> Result<String> {
        check_label(label)?;
        let mut held = self.lock();
        held.created += 1;
        let id = format!("store-{:08}", held.created);
        let store = FileStore { label: label.to_owned(), files: Vec::new() };
        held.stores.insert(id.clone(), store);
        Ok(id)
    }

    async fn add(&self, store: &str, files: Vec<SearchableFile>) -> Result<()> {
        self.stores(|stores| {
            let store = stores.get_mut(store).ok_or_else(no_store)?;
            check_files(&files, store.files.iter().map(|file| file.name.as_str()))?;
            if store.files.len() + files.len() > MAX_FILES {
                return Err(Error::invalid(format!("a store has at most {MAX_FILES} files")));
            }
            store.files.extend(files);
            Ok(())
        })
    }

    async fn search(&self, store: &str, question: &str, limit: usize) -> Result<Vec<FileHit>> {
        let asked = words(question);
        self.stores(|stores| {
            let store = stores.get(store).ok_or_else(no_store)?;
            let hit = |file: &SearchableFile| {
                let shared = words(&file.text).intersection(&asked).count();
                let score = shared as f32 / asked.len().max(1) as f32;
                FileHit { file: file.name.clone(), text: file.text.clone(), score }
            };
            let mut hits: Vec<FileHit> =
                store.files.iter().map(hit).filter(|hit| hit.score > 0.0).collect();
            hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.file.cmp(&b.file)));
            hits.truncate(limit);
            Ok(hits)
        })
    }

    async fn delete(&self, store: &str) -> Result<()> {
        self.stores(|stores| stores.remove(store));
        Ok(())
    }

    async fn delete_labelled(&self, prefix: &str) -> Result<u64> {
        Ok(self.stores(|stores| {
            let before = stores.len();
            stores.retain(|_, store| !store.label.starts_with(prefix));
            (before - stores.len()) as u64
        }))
    }
}
