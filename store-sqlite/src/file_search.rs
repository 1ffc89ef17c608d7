//! Files that are searched in this process, in memory: by words (FTS5's BM25) and, where the embedder is instant, by meaning.
//!
//! A store is an in-memory database of its own, so that one ranks nothing of another's, and it goes when it is deleted or the
//! process ends: nothing of it is ever on the disk. The database holds hashes of terms, as core analyses them (stems, parts of
//! identifiers, pairs of characters where a script has no spaces); passages are ranges of the texts.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use rusqlite::{Connection, params};
use throughline_core::files::{fuse, passages as passages_of};
use throughline_core::index::TermId;
use throughline_core::ports::{
    Embedder, FileHit, FileSearch, SearchableFile, check_files, check_label,
};
use throughline_core::text::{query_terms, terms};
use throughline_core::{Error, Result};
use tokio::runtime::Handle;

use crate::records::mapped;

/// Most files of a store: a guard; what is searched is bounded by bytes.
const MAX_FILES: usize = 100_000;
/// Most hits of a search.
const MAX_HITS: usize = 50;
/// Passages of each list that are fused.
const CANDIDATES: usize = 100;
/// Passages that are embedded at once.
const EMBEDDED_AT_ONCE: usize = 256;

/// Nothing has to survive: no journal and no temporary file.
const SCHEMA: &str = "
    PRAGMA journal_mode = OFF;
    PRAGMA temp_store = MEMORY;
    CREATE VIRTUAL TABLE passage USING fts5(name, text, content = '', tokenize = 'ascii');";
/// The name counts for a third: it says what a file is about, and is the same for all of its passages.
const SEARCH: &str = "SELECT rowid FROM passage WHERE passage MATCH ?1
    ORDER BY bm25(passage, 0.33, 1.0), rowid LIMIT ?2";

/// Stores of files in the memory of this process.
#[derive(Clone)]
pub struct InProcessFiles {
    stores: Arc<Mutex<Stores>>,
    /// One that is instant.
    embedder: Option<Arc<dyn Embedder>>,
}

#[derive(Default)]
struct Stores {
    /// How many were created.
    created: u64,
    stores: BTreeMap<String, (String, Arc<Mutex<Index>>)>,
}

impl InProcessFiles {
    /// Stores that are searched by words, and by meaning if the embedder is instant: another would make each call wait.
    #[must_use]
    pub fn new(embedder: Option<Arc<dyn Embedder>>) -> Self {
        let embedder = embedder.filter(|embedder| embedder.is_instant());
        Self { stores: Arc::default(), embedder }
    }

    fn lock(&self) -> MutexGuard<'_, Stores> {
        lock(&self.stores)
    }

    /// Works on a store beside the async workers.
    async fn on<T: Send + 'static>(
        &self,
        store: &str,
        work: impl FnOnce(&mut Index, Option<&dyn Embedder>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let index = self.lock().stores.get(store).map(|(_, index)| Arc::clone(index));
        let index = index.ok_or_else(|| Error::not_found("there is no such store of files"))?;
        let embedder = self.embedder.clone();
        let done =
            tokio::task::spawn_blocking(move || work(&mut lock(&index), embedder.as_deref()));
        done.await.map_err(|error| {
            Error::internal("searching files ended unexpectedly").with_source(error)
        })?
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

#[async_trait]
impl FileSearch for InProcessFiles {
    fn max_files(&self) -> usize {
        MAX_FILES
    }

    async fn create(&self, label: &str) -> Result<String> {
        check_label(label)?;
        let index = Arc::new(Mutex::new(Index::new()?));
        let mut held = self.lock();
        held.created += 1;
        let id = format!("store-{}", held.created);
        held.stores.insert(id.clone(), (label.to_owned(), index));
        Ok(id)
    }

    async fn add(&self, store: &str, files: Vec<SearchableFile>) -> Result<()> {
        self.on(store, move |index, embedder| index.add(files, embedder)).await
    }

    async fn search(&self, store: &str, question: &str, limit: usize) -> Result<Vec<FileHit>> {
        let question = question.to_owned();
        let limit = limit.clamp(1, MAX_HITS);
        self.on(store, move |index, embedder| index.search(&question, limit, embedder)).await
    }

    async fn delete(&self, store: &str) -> Result<()> {
        let gone = self.lock().stores.remove(store);
        drop(gone);
        Ok(())
    }

    async fn delete_labelled(&self, prefix: &str) -> Result<u64> {
        let mut held = self.lock();
        let before = held.stores.len();
        held.stores.retain(|_, (label, _)| !label.starts_with(prefix));
        Ok((before - held.stores.len()) as u64)
    }
}

/// A store.
struct Index {
    words: Connection,
    files: Vec<SearchableFile>,
    passages: Vec<Passage>,
    /// One vector after another, one for each passage; none without an embedder.
    vectors: Vec<f32>,
}

struct Passage {
    /// Position of its file.
    file: usize,
    bytes: Range<usize>,
}

impl Index {
    fn new() -> Result<Self> {
        let words = Connection::open_in_memory().and_then(|words| {
            words.execute_batch(SCHEMA)?;
            Ok(words)
        });
        let words = mapped(words, "create a store of files")?;
        Ok(Self { words, files: Vec::new(), passages: Vec::new(), vectors: Vec::new() })
    }

    fn add(&mut self, files: Vec<SearchableFile>, embedder: Option<&dyn Embedder>) -> Result<()> {
        let total = self.files.len() + files.len();
        if total > MAX_FILES {
            return Err(Error::invalid(format!(
                "a store has at most {MAX_FILES} files, and this one would have {total}: use another store for the rest"
            )));
        }
        check_files(&files, self.files.iter().map(|file| file.name.as_str()))?;
        let (first, passages) = (self.files.len(), self.passages.len());
        for (file, SearchableFile { text, .. }) in (first..).zip(&files) {
            let cut = passages_of(text);
            self.passages.extend(cut.into_iter().map(|bytes| Passage { file, bytes }));
        }
        self.files.extend(files);
        let written = self
            .embed(passages, embedder)
            .and_then(|()| mapped(self.write_words(passages), "index files"));
        if written.is_err() {
            self.files.truncate(first);
            self.passages.truncate(passages);
            self.vectors.truncate(passages * dimensions(embedder));
        }
        written
    }

    fn text(&self, passage: &Passage) -> &str {
        &self.files[passage.file].text[passage.bytes.clone()]
    }

    /// Adds the terms of the passages from one on.
    fn write_words(&mut self, from: usize) -> rusqlite::Result<()> {
        let transaction = self.words.unchecked_transaction()?;
        let mut insert = transaction
            .prepare_cached("INSERT INTO passage (rowid, name, text) VALUES (?1, ?2, ?3)")?;
        let (mut name, mut of) = (String::new(), None);
        for (position, passage) in self.passages.iter().enumerate().skip(from) {
            if of != Some(passage.file) {
                name = hashed(&words_of_name(&self.files[passage.file].name));
                of = Some(passage.file);
            }
            insert.execute(params![position as i64, name, hashed(&terms(self.text(passage)))])?;
        }
        drop(insert);
        transaction.commit()
    }

    /// Adds the vectors of the passages from one on.
    fn embed(&mut self, from: usize, embedder: Option<&dyn Embedder>) -> Result<()> {
        let Some(embedder) = embedder else { return Ok(()) };
        let runtime = Handle::current();
        for batch in from_in_batches(from, self.passages.len()) {
            let texts: Vec<&str> =
                self.passages[batch].iter().map(|passage| self.text(passage)).collect();
            // An instant embedder waits for nothing, so this only runs it.
            let vectors = runtime.block_on(embedder.embed(&texts))?;
            for vector in &vectors {
                embedder.space().check(vector)?;
            }
            vectors.iter().for_each(|vector| self.vectors.extend(unit(vector)));
        }
        Ok(())
    }

    fn search(
        &self,
        question: &str,
        limit: usize,
        embedder: Option<&dyn Embedder>,
    ) -> Result<Vec<FileHit>> {
        let mut lists = vec![mapped(self.by_words(question), "search files")?];
        if let Some(embedder) = embedder {
            lists.push(self.by_meaning(question, embedder)?);
        }
        let best = fuse(&lists).into_iter().take(limit);
        let hits = best.map(|(position, score)| {
            let passage = &self.passages[position];
            let file = self.files[passage.file].name.clone();
            FileHit { file, text: self.text(passage).to_owned(), score }
        });
        Ok(hits.collect())
    }

    fn by_words(&self, question: &str) -> rusqlite::Result<Vec<usize>> {
        let asked = query_terms(question);
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let asked = hashed(&asked).replace(' ', " OR ");
        let mut search = self.words.prepare_cached(SEARCH)?;
        let found = search.query_map(params![asked, CANDIDATES as i64], |row| row.get(0))?;
        found.collect()
    }

    /// The nearest passages; none that has nothing in common with the question.
    fn by_meaning(&self, question: &str, embedder: &dyn Embedder) -> Result<Vec<usize>> {
        let asked = Handle::current().block_on(embedder.embed(&[question]))?;
        let asked = unit(asked.first().map_or(&[], Vec::as_slice));
        if asked.is_empty() {
            return Ok(Vec::new());
        }
        let near = |vector: &[f32]| -> f32 { vector.iter().zip(&asked).map(|(a, b)| a * b).sum() };
        let cosines = self.vectors.chunks_exact(asked.len()).map(near);
        let mut nearest: Vec<(usize, f32)> =
            cosines.enumerate().filter(|(_, cosine)| *cosine > 0.0).collect();
        nearest.sort_unstable_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        Ok(nearest.into_iter().take(CANDIDATES).map(|(position, _)| position).collect())
    }
}

fn dimensions(embedder: Option<&dyn Embedder>) -> usize {
    embedder.map_or(0, |embedder| embedder.space().dimensions)
}

fn from_in_batches(from: usize, to: usize) -> impl Iterator<Item = Range<usize>> {
    (from..to).step_by(EMBEDDED_AT_ONCE).map(move |at| at..(at + EMBEDDED_AT_ONCE).min(to))
}

/// The vector at length one, or as it is where it has no length.
fn unit(vector: &[f32]) -> Vec<f32> {
    let length = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
    let by = if length > 0.0 && length.is_finite() { length } else { 1.0 };
    vector.iter().map(|value| value / by).collect()
}

/// The terms of a path, whose parts are words.
fn words_of_name(name: &str) -> Vec<String> {
    terms(&name.replace(['/', '\\', '.', '-'], " "))
}

/// Terms as the database has them: words of hexadecimal digits, whatever is in a term.
fn hashed(terms: &[String]) -> String {
    let mut hashed = String::with_capacity(terms.len() * 17);
    for term in terms {
        let between = if hashed.is_empty() { "" } else { " " };
        let _ = write!(hashed, "{between}{:016x}", TermId::of(term).to_bits());
    }
    hashed
}
