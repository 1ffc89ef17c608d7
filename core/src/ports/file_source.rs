//! Files that may be sent: those below the allowed roots.

use async_trait::async_trait;

use crate::error::Result;
use crate::files::{FileStat, FileText, SkipReason, SkippedFile};

/// What is found at and below some paths.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FileWalk {
    /// The names of the paths that were asked for, each once, also of those where nothing is.
    pub given: Vec<String>,
    /// The files, sorted by name.
    pub files: Vec<FileStat>,
    /// What was left out, sorted by name; ignored and hidden files are not named.
    pub skipped: Vec<SkippedFile>,
}

/// What reading a file gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileRead {
    /// Its text, with the size and the time of the bytes that were read.
    Text(FileText),
    /// It is left out.
    Skipped(SkipReason),
}

/// Reads the files below the allowed roots, and nothing else.
///
/// A *name* is how a file is called in lists and prompts. It is relative to one folder of the source (`.` is that folder),
/// such as the first root or the repository that it is in, or absolute for files elsewhere, with `/` between its parts, and
/// does not depend on how the file was found: a file that several paths or links lead to has one name.
#[async_trait]
pub trait FileSource: Send + Sync {
    /// Finds the files at and below paths, without reading them. A path that is relative starts at the first root. A file
    /// is found once, however many of the paths lead to it. What cannot be sent is named with its reason: a path where
    /// nothing is, or that is outside the roots, and what is no regular file. No paths find nothing. `Unavailable` where a
    /// root itself cannot be read, so that its files are not taken for removed.
    async fn walk(&self, paths: &[String]) -> Result<FileWalk>;

    /// Reads a file by its name. Text is given byte by byte, an empty file as an empty text. A file that is binary, not
    /// UTF-8, too large, gone, outside the roots or not a file any more is skipped with that reason.
    async fn read(&self, name: &str) -> Result<FileRead>;
}
