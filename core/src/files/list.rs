//! The state of a session and a model: which files are inline, and what the model was last sent of each.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::xxh3_64;

use super::codec;
use super::request::CountedFile;
use super::{FileStat, SkipReason};
use crate::error::Result;

/// Most bytes of the inline part of a list: about 9,500 files with names of 60 bytes. What does not fit is overflow.
pub const MAX_LIST_BYTES: usize = 1 << 20;
/// Most files beside the inline ones that a list remembers, of 17 bytes each at most. Further ones are read by every call,
/// and named as new.
pub const MAX_OVERFLOW_FILES: usize = 20_000;
/// Longest name of an inline file, in bytes.
pub const MAX_PATH_BYTES: usize = 4_096;
/// Longest name of a file that is searched, in bytes.
pub const MAX_SEARCHED_PATH_BYTES: usize = 500;

/// What an inline file takes at most, beside its name.
const ENTRY_BYTES: usize = 52;

/// Which files of a session are inline, for one model. The empty list is that of a session without calls, and that of a
/// reset.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InlineList {
    /// A file did not fit: from then on, what is not inline is overflow.
    pub(super) fixed: bool,
    pub(super) inline: BTreeMap<String, InlineFile>,
    /// Files that are not inline, by a hash of their names.
    pub(super) others: BTreeMap<u64, OtherFile>,
    /// What the inline files take of [`MAX_LIST_BYTES`].
    pub(super) weight: usize,
    pub(super) next_rank: u32,
    /// Tokens of all that models were sent and have, also of what was replaced since.
    pub(super) spent: u64,
}

/// A file that is inline for as long as the session lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct InlineFile {
    /// Its place among the inline files: they are in the order in which they came.
    pub(super) rank: u32,
    /// Whether the model has what was last sent. Not where it was told that the file is gone, or the prompt was begun anew.
    pub(super) held: bool,
    /// What was last sent.
    pub(super) sent: CountedFile,
}

/// A file that is not inline.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct OtherFile {
    /// A hash of its size and time: another one means that it has to be read again.
    pub(super) stamp: u32,
    pub(super) what: Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Other {
    /// It is searched, and takes this many tokens.
    Overflow(u32),
    /// It is left out for its content.
    Skipped(SkipReason),
}

impl InlineList {
    /// Whether no call was planned with it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.inline.is_empty() && self.others.is_empty() && !self.fixed
    }

    /// Whether a file did not fit once, so that new files are overflow.
    #[must_use]
    pub fn is_fixed(&self) -> bool {
        self.fixed
    }

    /// How many files are inline, those included that are gone and may come back.
    #[must_use]
    pub fn len(&self) -> usize {
        self.inline.len()
    }

    /// Whether a file is inline.
    #[must_use]
    pub fn is_inline(&self, path: &str) -> bool {
        self.inline.contains_key(path)
    }

    /// The names of the inline files, in their order in the prompt.
    #[must_use]
    pub fn paths(&self) -> Vec<&str> {
        let mut files: Vec<_> = self.inline.iter().collect();
        files.sort_by_key(|(_, file)| file.rank);
        files.into_iter().map(|(path, _)| path.as_str()).collect()
    }

    /// Tokens of the inline files, as last sent.
    #[must_use]
    pub fn tokens(&self) -> u64 {
        self.inline.values().map(|file| u64::from(file.sent.tokens)).sum()
    }

    /// Tokens of all that models were sent and have: the inline files, and what was replaced of them since.
    #[must_use]
    pub fn spent(&self) -> u64 {
        self.spent
    }

    /// For a store to keep: at most 100 KB for a thousand files with names of 60 bytes, and [`MAX_LIST_BYTES`] and 17
    /// bytes for each of [`MAX_OVERFLOW_FILES`] in any case.
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        codec::encode(self)
    }

    /// From what [`Self::encode`] gave.
    ///
    /// # Errors
    /// `Corrupt` for other bytes, `SchemaTooNew` for those of a later version.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        codec::decode(bytes)
    }

    /// Whether an inline file of this name can be added.
    pub(super) fn has_space(&self, path: &str) -> bool {
        path.len() <= MAX_PATH_BYTES && self.weight + path.len() + ENTRY_BYTES <= MAX_LIST_BYTES
    }

    /// Adds an inline file behind the others.
    pub(super) fn add(&mut self, path: &str, sent: CountedFile) {
        let file = InlineFile { rank: self.next_rank, held: true, sent };
        self.insert(path.to_owned(), file);
        self.others.remove(&path_key(path));
    }

    pub(super) fn insert(&mut self, path: String, file: InlineFile) {
        let weight = path.len() + ENTRY_BYTES;
        self.next_rank = self.next_rank.max(file.rank.saturating_add(1));
        if self.inline.insert(path, file).is_none() {
            self.weight += weight;
        }
    }

    /// Notes what the model now has of an inline file.
    pub(super) fn set_sent(&mut self, path: &str, sent: CountedFile) {
        if let Some(file) = self.inline.get_mut(path) {
            file.sent = sent;
            file.held = true;
        }
    }

    /// Notes that the model does not have an inline file any more.
    pub(super) fn let_go(&mut self, path: &str) {
        if let Some(file) = self.inline.get_mut(path) {
            file.held = false;
        }
    }

    /// Notes that the model has none of the files.
    pub(super) fn let_all_go(&mut self) {
        self.inline.values_mut().for_each(|file| file.held = false);
    }

    /// What is known of a file that is not inline; `None` also where it changed since.
    pub(super) fn other(&self, file: &FileStat) -> Option<Other> {
        let other = self.others.get(&path_key(&file.path))?;
        (other.stamp == stamp(file.size, file.modified_ns)).then_some(other.what)
    }

    /// Whether this file was overflow in an earlier call, whatever its content was.
    pub(super) fn was_overflow(&self, path: &str) -> bool {
        let other = self.others.get(&path_key(path));
        other.is_some_and(|other| matches!(other.what, Other::Overflow(_)))
    }

    /// Notes what is known of a file that is not inline.
    pub(super) fn remember(&mut self, path: &str, size: u64, modified_ns: i64, what: Other) {
        let key = path_key(path);
        if self.others.len() < MAX_OVERFLOW_FILES || self.others.contains_key(&key) {
            self.others.insert(key, OtherFile { stamp: stamp(size, modified_ns), what });
        }
    }
}

/// Names of overflow files are kept as hashes: they only have to be known again.
fn path_key(path: &str) -> u64 {
    xxh3_64(path.as_bytes())
}

fn stamp(size: u64, modified_ns: i64) -> u32 {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&size.to_le_bytes());
    bytes[8..].copy_from_slice(&modified_ns.to_le_bytes());
    xxh3_64(&bytes) as u32
}
