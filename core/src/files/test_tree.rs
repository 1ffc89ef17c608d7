//! A tree of files for tests of planning: each has as many tokens as a test says.

use std::collections::BTreeMap;

use super::{
    Budget, ContentHash, CountedFile, FileStat, InlineList, Mode, Outcome, Plan, PlanRequest,
    Planned, Readings, SkipReason, files_to_read, plan,
};
use crate::error::Result;

/// Files by name.
#[derive(Debug, Clone, Default)]
pub(super) struct Tree {
    files: BTreeMap<String, Held>,
    clock: i64,
    /// What reading fails with.
    pub(super) failures: BTreeMap<String, SkipReason>,
}

#[derive(Debug, Clone)]
struct Held {
    tokens: u32,
    content: String,
    modified_ns: i64,
}

/// What a call did.
#[derive(Debug)]
pub(super) struct Turn {
    pub(super) plan: Plan,
    pub(super) next: InlineList,
    /// What it read.
    pub(super) read: Vec<String>,
}

impl Tree {
    /// Files of one folder with these tokens each: `src/000.rs` and so on.
    pub(super) fn of(folder: &str, tokens: impl IntoIterator<Item = u32>) -> Self {
        let mut tree = Self::default();
        tree.add(folder, tokens);
        tree
    }

    pub(super) fn add(&mut self, folder: &str, tokens: impl IntoIterator<Item = u32>) {
        for (nth, tokens) in tokens.into_iter().enumerate() {
            self.write(&format!("{folder}/{nth:03}.rs"), tokens, "first");
        }
    }

    pub(super) fn write(&mut self, path: &str, tokens: u32, content: &str) {
        self.clock += 1_000;
        let held = Held { tokens, content: content.to_owned(), modified_ns: self.clock };
        self.files.insert(path.to_owned(), held);
    }

    pub(super) fn edit(&mut self, path: &str) {
        let Held { tokens, content, .. } = self.files[path].clone();
        self.write(path, tokens, &format!("{content}, edited"));
    }

    pub(super) fn set_modified(&mut self, path: &str, modified_ns: i64) {
        self.files.get_mut(path).unwrap().modified_ns = modified_ns;
    }

    pub(super) fn remove(&mut self, path: &str) {
        self.files.remove(path).unwrap();
    }

    pub(super) fn below(&self, folder: &str) -> Vec<FileStat> {
        let is_below =
            |path: &str| folder == "." || path == folder || path.starts_with(&format!("{folder}/"));
        let files = self.files.iter().filter(|(path, _)| is_below(path));
        files.map(|(path, held)| held.stat(path)).collect()
    }

    /// A request for everything below these folders.
    pub(super) fn request(&self, folders: &[&str], budget: u64) -> PlanRequest {
        PlanRequest {
            given: folders.iter().map(|folder| (*folder).to_owned()).collect(),
            context: folders.iter().flat_map(|folder| self.below(folder)).collect(),
            ..PlanRequest::new(Mode::On, Budget::of(budget))
        }
    }

    pub(super) fn plan(&self, list: &InlineList, request: &PlanRequest) -> Result<Turn> {
        let read: Vec<String> =
            files_to_read(list, request).into_iter().map(|file| file.path.clone()).collect();
        let reading = |path: &String| match (self.failures.get(path), self.files.get(path)) {
            (Some(reason), _) => Err(*reason),
            (None, Some(held)) => Ok(held.counted(path)),
            (None, None) => Err(SkipReason::Missing),
        };
        let readings: Readings = read.iter().map(|path| (path.clone(), reading(path))).collect();
        let Planned { plan, next } = plan(list, request, &readings)?;
        // What is kept survives being stored.
        assert_eq!(InlineList::decode(&next.encode()).unwrap(), next);
        Ok(Turn { plan, next, read })
    }

    /// A call for everything below these folders.
    pub(super) fn call(&self, list: &InlineList, folders: &[&str], budget: u64) -> Turn {
        self.plan(list, &self.request(folders, budget)).unwrap()
    }
}

impl Held {
    fn size(&self) -> u64 {
        self.content.len() as u64
    }

    fn stat(&self, path: &str) -> FileStat {
        FileStat { path: path.to_owned(), size: self.size(), modified_ns: self.modified_ns }
    }

    fn counted(&self, path: &str) -> CountedFile {
        CountedFile {
            size: self.size(),
            modified_ns: self.modified_ns,
            hash: ContentHash::of(&format!("{path}: {}", self.content)),
            tokens: self.tokens,
        }
    }
}

impl Turn {
    /// The names with this outcome, in the order of the plan.
    pub(super) fn with(&self, outcome: Outcome) -> Vec<&str> {
        let files = self.plan.files.iter().filter(|file| file.outcome == outcome);
        files.map(|file| file.path.as_str()).collect()
    }

    pub(super) fn count(&self, outcome: Outcome) -> usize {
        self.with(outcome).len()
    }

    pub(super) fn of(&self, path: &str) -> Option<Outcome> {
        self.plan.files.iter().find(|file| file.path == path).map(|file| file.outcome)
    }

    pub(super) fn reason(&self, path: &str) -> &str {
        &self.plan.files.iter().find(|file| file.path == path).unwrap().reason
    }
}
