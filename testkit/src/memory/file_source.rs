//! Files in memory, below one root.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;
use throughline_core::Result;
use throughline_core::files::{FileStat, FileText, SkipReason, SkippedFile};
use throughline_core::ports::{FileRead, FileSource, FileWalk};

use crate::conformance::DirectedFiles;

/// Most bytes of a file: few, so that a test can reach it.
const MAX_BYTES: u64 = 1 << 16;
/// When the first file is written, and how long it is until the next one, in nanoseconds.
const START: i64 = 1_700_000_000_000_000_000;
const STEP: i64 = 1_000_000_000;

/// Files in memory. Each write is one second after the one before.
#[derive(Debug, Default)]
pub struct MemoryFiles(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    files: BTreeMap<String, Held>,
    writes: i64,
    reads: Vec<String>,
}

#[derive(Debug, Clone)]
struct Held {
    bytes: Vec<u8>,
    modified_ns: i64,
}

impl MemoryFiles {
    /// The names of the files that were read, in order.
    pub fn reads(&self) -> Vec<String> {
        self.with(|state| state.reads.clone())
    }

    /// Sets the time of a file and leaves its content alone.
    pub fn set_modified(&self, name: &str, modified_ns: i64) {
        self.with(|state| state.files.get_mut(name).unwrap().modified_ns = modified_ns);
    }

    fn with<T>(&self, work: impl FnOnce(&mut State) -> T) -> T {
        work(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The name of a path; `None` outside the root.
fn name_of(path: &str) -> Option<String> {
    if path.starts_with('/') {
        return None;
    }
    let mut parts = Vec::new();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => drop(parts.pop()?),
            part => parts.push(part),
        }
    }
    Some(if parts.is_empty() { ".".to_owned() } else { parts.join("/") })
}

fn is_at_or_below(file: &str, name: &str) -> bool {
    name == "."
        || file.strip_prefix(name).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

#[async_trait]
impl FileSource for MemoryFiles {
    async fn walk(&self, paths: &[String]) -> Result<FileWalk> {
        Ok(self.with(|state| {
            let (mut given, mut skipped) = (BTreeSet::new(), BTreeMap::new());
            let mut found = BTreeMap::new();
            for path in paths {
                let Some(name) = name_of(path) else {
                    skipped.insert(path.clone(), SkipReason::Outside);
                    continue;
                };
                let mut any = name == ".";
                for (file, held) in
                    state.files.iter().filter(|(file, _)| is_at_or_below(file, &name))
                {
                    any = true;
                    let size = held.bytes.len() as u64;
                    if size > MAX_BYTES {
                        skipped.insert(file.clone(), SkipReason::TooLarge { limit: MAX_BYTES });
                    } else {
                        let modified_ns = held.modified_ns;
                        found.insert(
                            file.clone(),
                            FileStat { path: file.clone(), size, modified_ns },
                        );
                    }
                }
                if !any {
                    skipped.insert(name.clone(), SkipReason::Missing);
                }
                given.insert(name);
            }
            let skipped = skipped.into_iter().map(|(path, reason)| SkippedFile { path, reason });
            FileWalk {
                given: given.into_iter().collect(),
                files: found.into_values().collect(),
                skipped: skipped.collect(),
            }
        }))
    }

    async fn read(&self, name: &str) -> Result<FileRead> {
        let Some(name) = name_of(name) else { return Ok(FileRead::Skipped(SkipReason::Outside)) };
        Ok(self.with(|state| {
            state.reads.push(name.clone());
            let Some(held) = state.files.get(&name) else {
                return FileRead::Skipped(SkipReason::Missing);
            };
            let size = held.bytes.len() as u64;
            if size > MAX_BYTES {
                return FileRead::Skipped(SkipReason::TooLarge { limit: MAX_BYTES });
            }
            if held.bytes.contains(&0) {
                return FileRead::Skipped(SkipReason::Binary);
            }
            match String::from_utf8(held.bytes.clone()) {
                Ok(text) => {
                    let stat = FileStat { path: name, size, modified_ns: held.modified_ns };
                    FileRead::Text(FileText::new(stat, text))
                }
                Err(_) => FileRead::Skipped(SkipReason::NotUtf8),
            }
        }))
    }
}

impl DirectedFiles for MemoryFiles {
    fn write(&self, name: &str, bytes: &[u8]) {
        self.with(|state| {
            state.writes += 1;
            let held = Held { bytes: bytes.to_vec(), modified_ns: START + STEP * state.writes };
            state.files.insert(name.to_owned(), held);
        });
    }

    fn remove(&self, name: &str) {
        self.with(|state| state.files.remove(name).unwrap());
    }

    fn max_bytes(&self) -> u64 {
        MAX_BYTES
    }
}
