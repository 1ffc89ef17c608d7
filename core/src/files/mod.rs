//! Files of a conversation that stay where they are: which are in the prompt (*inline*), which are only searched
//! (*overflow*), and which have to be sent again.
//!
//! A session keeps an [`InlineList`]. Each call first asks [`files_to_read`] which of the files that a walk found have to be
//! read: none of an unchanged tree. [`plan()`] then says what is sent, skipped and searched, and gives the next list.
//! [`render()`] writes what is sent. Everything here is a value: whoever calls stores the next list once the call has
//! succeeded, so that one that fails leaves the list as it was. A reset is an empty list.

mod codec;
mod fuse;
mod list;
mod passages;
mod place;
mod plan;
mod render;
mod request;
mod skip;

use crate::ids::is_forbidden;

#[cfg(test)]
mod plan_tests;
#[cfg(test)]
mod scenario_tests;
#[cfg(test)]
mod test_tree;

pub use fuse::fuse;
pub use list::{
    InlineList, MAX_LIST_BYTES, MAX_OVERFLOW_FILES, MAX_PATH_BYTES, MAX_SEARCHED_PATH_BYTES,
};
pub use passages::passages;
pub use plan::{Outcome, Plan, PlanTokens, Planned, PlannedFile, files_to_read, plan};
pub use render::{INTRODUCTION, passage, render};
pub use request::{Budget, CountedFile, Mode, PlanRequest, Readings};
pub use skip::SkipReason;

/// A file as a walk sees it, without reading it.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FileStat {
    /// Its name as it is sent: relative to the first root, or absolute; parts are separated by `/`.
    pub path: String,
    /// Bytes on disk.
    pub size: u64,
    /// When it was last written: nanoseconds since the Unix epoch, negative before it.
    pub modified_ns: i64,
}

/// A file, or a folder that could not be walked, with the reason why it is left out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedFile {
    /// Its name, like that of a [`FileStat`]. What cannot be shown in it is escaped.
    pub path: String,
    /// Why.
    pub reason: SkipReason,
}

/// A hash of what is sent of a file: the first half of BLAKE3, so that the list of a thousand files stays small.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ContentHash([u8; 16]);

impl ContentHash {
    /// The hash of a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let hash = blake3::hash(text.as_bytes());
        let mut half = [0; 16];
        half.copy_from_slice(&hash.as_bytes()[..16]);
        Self(half)
    }

    /// From its bytes.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// Its bytes.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// A file that was read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileText {
    /// Size and time of the bytes that were read, which may be newer than those of the walk.
    pub stat: FileStat,
    /// What is sent of it: its text, or what was extracted.
    pub text: String,
    /// The hash of `text`.
    pub hash: ContentHash,
}

impl FileText {
    /// A file with its hash.
    #[must_use]
    pub fn new(stat: FileStat, text: String) -> Self {
        let hash = ContentHash::of(&text);
        Self { stat, text, hash }
    }
}

/// Whether a name can stand in a list and in a prompt as it is: at most [`MAX_PATH_BYTES`], without line breaks, control
/// characters and marks that reorder text.
#[must_use]
pub fn is_plain_path(path: &str) -> bool {
    path.len() <= MAX_PATH_BYTES && !path.chars().any(is_forbidden)
}
