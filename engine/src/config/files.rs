//! Files that are sent to models.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::files::Mode;

/// Files of conversations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct FilesConfig {
    /// Folders below which files may be read; names are relative to the first one. Empty for the folder in which a command
    /// is started; names are then relative to the repository that it is in.
    pub roots: Vec<PathBuf>,
    /// Whether files that a conversation has are sent again.
    pub stable_inline_list: StableInlineList,
    /// Largest file, in bytes; larger ones are left out and named.
    pub max_file_bytes: u64,
    /// Most files of a call, those included that are left out.
    pub max_files: usize,
    /// Where files that do not fit into a prompt, and attachments, are searched while a call runs.
    pub search: FileSearchKind,
    /// Most bytes of files that all calls of a process search at once; what exceeds it is refused before anything is indexed.
    pub max_search_bytes: u64,
}

/// Where the files of a call are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileSearchKind {
    /// In the memory of this process: by words, and by meaning where the embedder is instant.
    InProcess,
    /// In Qdrant (`qdrant.*`), with the configured embedder.
    Qdrant,
    /// In vector stores that OpenAI hosts (`providers.openai.*`), which cost money by the gigabyte and day.
    #[serde(rename = "openai")]
    OpenAi,
}

impl FileSearchKind {
    /// As the setting has it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::InProcess => "in_process",
            Self::Qdrant => "qdrant",
            Self::OpenAi => "openai",
        }
    }
}

/// What the list of files of a session does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StableInlineList {
    /// A file stays where it was put first, and is sent again only when it changed.
    On,
    /// The list is kept and changes nothing: every call sends all files.
    Record,
    /// Every call sends all files, and lists that are there stay as they are.
    Off,
}

impl From<StableInlineList> for Mode {
    fn from(list: StableInlineList) -> Self {
        match list {
            StableInlineList::On => Self::On,
            StableInlineList::Record => Self::Record,
            StableInlineList::Off => Self::Off,
        }
    }
}

impl Default for FilesConfig {
    fn default() -> Self {
        Self {
            roots: Vec::new(),
            stable_inline_list: StableInlineList::On,
            max_file_bytes: 4 << 20,
            max_files: 20_000,
            search: FileSearchKind::InProcess,
            max_search_bytes: 1 << 30,
        }
    }
}
