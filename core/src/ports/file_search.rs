//! Files that are searched for a while, and then deleted.

use std::collections::BTreeSet;

use async_trait::async_trait;

use crate::error::{Error, Result};
use crate::files::MAX_SEARCHED_PATH_BYTES;

/// Longest label of a store.
const MAX_LABEL_BYTES: usize = 64;

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

/// Whether a label may be that of a store.
///
/// # Errors
/// `InvalidInput` unless it is 1 to 64 letters, digits and `-`.
pub fn check_label(label: &str) -> Result<()> {
    let allowed = |char: u8| char.is_ascii_alphanumeric() || char == b'-';
    if (1..=MAX_LABEL_BYTES).contains(&label.len()) && label.bytes().all(allowed) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "the label of a store of files must be 1 to {MAX_LABEL_BYTES} letters, digits and `-`"
    )))
}

/// Whether files may be added to a store that has files of these names.
///
/// # Errors
/// `InvalidInput` for a name that is empty, too long, or there twice.
pub fn check_files<'a>(
    files: &'a [SearchableFile],
    held: impl IntoIterator<Item = &'a str>,
) -> Result<()> {
    let mut names: BTreeSet<&str> = held.into_iter().collect();
    for SearchableFile { name, .. } in files {
        if !(1..=MAX_SEARCHED_PATH_BYTES).contains(&name.len()) {
            return Err(Error::invalid(format!(
                "the name of a file that is searched must have 1 to {MAX_SEARCHED_PATH_BYTES} bytes"
            )));
        }
        if !names.insert(name) {
            return Err(Error::invalid(format!(
                "the store has a file `{name}` already: names are unique within a store"
            )));
        }
    }
    Ok(())
}

/// A place for stores of files. A store lives until it is deleted; nothing else keeps track of it, so whoever creates one
/// writes its label down first, and after a crash deletes what bears a label that nobody uses any more.
#[async_trait]
pub trait FileSearch: Send + Sync {
    /// Most files of a store.
    fn max_files(&self) -> usize;

    /// Creates an empty store. `label` is 1 to 64 letters, digits and `-`, else `InvalidInput`; two stores may have the
    /// same. Returns its id, which no other store has or had.
    async fn create(&self, label: &str) -> Result<String>;

    /// Adds files, which can be searched when this returns. `InvalidInput` for more than [`Self::max_files`] in one store,
    /// or a name that [`SearchableFile::name`] does not allow or the store has already; then none is added. `NotFound`
    /// for a store that is not there. After another error, some of them may be there.
    async fn add(&self, store: &str, files: Vec<SearchableFile>) -> Result<()>;

    /// The passages that are nearest to a question, best first, at most `limit` (1 to 50). Empty for a store without files.
    /// `NotFound` for a store that is not there.
    async fn search(&self, store: &str, question: &str, limit: usize) -> Result<Vec<FileHit>>;

    /// Deletes a store and the files in it, on the provider's side too. One that is not there is no error.
    async fn delete(&self, store: &str) -> Result<()>;

    /// Deletes every store whose label begins with `prefix`, and what was left of adding to it; returns how many stores.
    async fn delete_labelled(&self, prefix: &str) -> Result<u64>;
}
