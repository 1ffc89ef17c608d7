//! What a plan is made from.

use std::collections::BTreeMap;

use super::render::fenced;
use super::{ContentHash, FileStat, FileText, SkipReason, SkippedFile};
use crate::tokens::Tokenizer;

/// What the list of a session does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Every call sends all files, as many as fit. A list that exists is kept true and does not grow.
    Off,
    /// Every call sends what it would send without a list, and the list is kept, ready to be used.
    Record,
    /// Files stay where they are, and only what changed is sent.
    #[default]
    On,
}

/// Tokens that files may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Budget {
    /// All inline files of a session together.
    pub session: u64,
    /// What one call adds: the room that the model's window has left for files.
    pub call: u64,
}

impl Budget {
    /// The same budget for the session and for this call.
    #[must_use]
    pub const fn of(tokens: u64) -> Self {
        Self { session: tokens, call: tokens }
    }
}

/// The files of a call, as walks saw them. A file may be named more than once; its strongest role counts: priority, then
/// context, then attachment.
#[derive(Debug, Clone)]
pub struct PlanRequest {
    /// What the list does.
    pub mode: Mode,
    /// How much fits.
    pub budget: Budget,
    /// Whether the prompt is begun anew, without what models were sent so far: what was replaced in the meantime fills the
    /// window, or whoever kept it has lost it.
    pub afresh: bool,
    /// The names of the files and folders that the caller gave, as [`crate::ports::FileWalk`] says. An inline file at or
    /// below one of them that was not found is removed; files elsewhere are left alone.
    pub given: Vec<String>,
    /// Files of the conversation.
    pub context: Vec<FileStat>,
    /// Files of the conversation that are inline in any case.
    pub priority: Vec<FileStat>,
    /// Files that are searched in this call and never inline. The list does not remember them.
    pub attachments: Vec<FileStat>,
    /// What the walks left out.
    pub skipped: Vec<SkippedFile>,
}

impl PlanRequest {
    /// A call without files.
    #[must_use]
    pub const fn new(mode: Mode, budget: Budget) -> Self {
        Self {
            mode,
            budget,
            afresh: false,
            given: Vec::new(),
            context: Vec::new(),
            priority: Vec::new(),
            attachments: Vec::new(),
            skipped: Vec::new(),
        }
    }
}

/// What planning has to know of a file that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CountedFile {
    /// Bytes on disk, of what was read.
    pub size: u64,
    /// Time of what was read; see [`FileStat::modified_ns`].
    pub modified_ns: i64,
    /// Hash of what is sent of it.
    pub hash: ContentHash,
    /// Tokens that it takes in the prompt, with its fence.
    pub tokens: u32,
}

impl CountedFile {
    /// Counts a file as [`super::render()`] writes it.
    #[must_use]
    pub fn of(file: &FileText, tokenizer: &dyn Tokenizer) -> Self {
        Self {
            size: file.stat.size,
            modified_ns: file.stat.modified_ns,
            hash: file.hash,
            // The longer of the two fences, so that the count does not depend on which one is written.
            tokens: tokenizer.count(&fenced(&file.stat.path, true, &file.text)),
        }
    }
}

/// What reading gave, by name.
pub type Readings = BTreeMap<String, Result<CountedFile, SkipReason>>;
