//! Files that are searched for a while, and then deleted.

use async_trait::async_trait;

use crate::error::Result;

/// A file whose text can be searched.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SearchableFile {
    /// Its name, such as a path: 1 to 500 bytes, unique within a store.
    pub name: String,
    /// Its text.
    pub text: String,
}

/// A passage of a file.
#[derive(Debug, Clone, PartialEq)]
pub struct FileHit {
    /// The name of the file.
    pub file: String,
    /// The passage, as it stands there.
    pub text: String,
    /// In 0.0 to 1.0; higher is nearer. Scores of two stores do not compare.
    pub score: f32,
}

/// A place for stores of files. A store lives until it is deleted; nothing else keeps track of it, so whoever creates one
/// writes its label down first, and after a crash deletes what bears a label that nobody uses any more.
#[async_trait]
pub trait FileSearch: Send + Sync {
    /// Most files of a store.
    fn max_files(&self) -> usize;

    /// Creates an empty store. `label` is 1 to 64 letters, digits and `-`; two stores may have the same. Returns its id.
    async fn create(&self, label: &str) -> Result<String>;

    /// Adds files, which can be searched when this returns. After an error, some of them may be there. `InvalidInput` for
    /// more than [`Self::max_files`] in one store; `NotFound` for a store that is not there.
    async fn add(&self, store: &str, files: Vec<SearchableFile>) -> Result<()>;

    /// The passages that are nearest to a question, best first, at most `limit` (1 to 50). Empty for a store without files.
    /// `NotFound` for a store that is not there.
    async fn search(&self, store: &str, question: &str, limit: usize) -> Result<Vec<FileHit>>;

    /// Deletes a store and the files in it, on the provider's side too. One that is not there is no error.
    async fn delete(&self, store: &str) -> Result<()>;

    /// Deletes every store whose label begins with `prefix`, and what was left of adding to it; returns how many stores.
    async fn delete_labelled(&self, prefix: &str) -> Result<u64>;
}
