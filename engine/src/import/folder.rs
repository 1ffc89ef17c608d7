//! A folder of conversations, such as `~/.claude/projects`.

use std::path::{Path, PathBuf};

use throughline_core::{Error, ErrorKind, Result};

use super::chatgpt::is_conversations;

/// The files of a folder and of those in it that hold conversations, sorted: `*.jsonl`, and
/// `conversations.json` of an export that was unpacked. Empty ones are left out: a log begins as such.
/// Links to folders are not followed, so that every walk ends.
///
/// # Errors
/// `NotFound` when there are none; `Unavailable` for a folder that cannot be read.
pub fn files_in(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let unreadable = |error: std::io::Error| {
            Error::new(ErrorKind::Unavailable, format!("{}: {error}", folder.display()))
        };
        for entry in std::fs::read_dir(&folder).map_err(unreadable)? {
            let entry = entry.map_err(unreadable)?;
            let path = entry.path();
            if entry.file_type().map_err(unreadable)?.is_dir() {
                folders.push(path);
            } else if holds_conversations(&path)
                && path.metadata().is_ok_and(|file| file.is_file() && file.len() > 0)
            {
                files.push(path);
            }
        }
    }
    if files.is_empty() {
        let message =
            format!("{}: contains no *.jsonl and no conversations.json", folder.display());
        return Err(Error::not_found(message));
    }
    files.sort();
    Ok(files)
}

fn holds_conversations(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "jsonl")
        || path.file_name().and_then(|name| name.to_str()).is_some_and(is_conversations)
}
