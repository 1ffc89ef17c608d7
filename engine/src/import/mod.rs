//! Files of conversations: read and checked whole before the first message is written.
//!
//! Formats are detected from the content: JSON lines of messages, samples in the format of
//! `eval` (`[{sample_id, sessions, qa}]`), an OpenAI-style array of messages, exports of ChatGPT, and session
//! logs of Claude Code. docs/IMPORTING.md describes them.

mod chatgpt;
mod claude_code;
mod dataset;
mod evidence;
mod folder;
mod foreign;
mod form;
mod messages;
mod pieces;
mod records;
mod run;

use std::fs::{File, FileType};
use std::io::{BufRead, BufReader, Cursor, Read, Seek};
use std::path::{Path, PathBuf};

use serde::Deserialize;
use throughline_core::ids::SessionId;
use throughline_core::session::NewMessage;
use throughline_core::time::Timestamp;
use throughline_core::{Error, Result};

pub use dataset::{Question, Sample};
pub use evidence::{holds, shows};
pub use folder::files_in;
pub use foreign::Skipped;
pub use form::Format;
pub use records::{DocumentLine, FactLine, ProfileLine, Record};
pub use run::{ImportOptions, ImportReport, import, import_file};

use form::Form;

/// Most bytes that are read from a pipe, which gives them once, so that they are kept.
const LARGEST_PIPE: u64 = 512 << 20;

/// The messages of one session of a file, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportSession {
    /// The session to append to.
    pub id: SessionId,
    /// Its messages.
    pub messages: Vec<NewMessage>,
}

/// A file, read and checked.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ImportFile {
    /// What errors call it.
    pub name: String,
    /// Its sessions, in the order of the file.
    pub sessions: Vec<ImportSession>,
    /// What an export of ours has beside messages, each with its line.
    pub records: Vec<(usize, Record)>,
    /// Its samples, where it is in the format of `eval`.
    pub samples: Vec<Sample>,
    /// Parts that are not messages, in files of other programs.
    pub skipped: Skipped,
    /// The folder of the project that it is about, where it tells.
    pub folder: Option<PathBuf>,
    /// Whether it is the log of an agent: these are full of keys that nobody meant to keep.
    pub is_agent_log: bool,
}

/// How a file is to be read; by default, as its content tells.
#[derive(Debug, Clone, Default)]
pub struct Reading {
    /// Names the session of messages that name none; without it the file's name does.
    pub session: Option<SessionId>,
    /// The form, where the content misleads.
    pub format: Option<Format>,
    /// The time, for logs that are being written; without it they count as ended.
    pub now: Option<Timestamp>,
}

/// Reads a file in any of the forms.
///
/// # Errors
/// `InvalidInput` that names file, line and field; nothing of the file is to be used then.
pub fn read_file(path: &Path, reading: &Reading) -> Result<ImportFile> {
    let missing = |error| Error::not_found(format!("{}: {error}", path.display()));
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("import").to_owned();
    let default = match &reading.session {
        Some(session) => session.clone(),
        None => SessionId::new(stem)?,
    };
    let name = path.display().to_string();
    let kind = std::fs::metadata(path).map_err(missing)?.file_type();
    let read = if kind.is_file() {
        parse(BufReader::new(File::open(path).map_err(missing)?), reading, &default)
    } else if is_pipe(kind) {
        let mut bytes = Vec::new();
        let pipe = File::open(path).map_err(missing)?;
        pipe.take(LARGEST_PIPE + 1).read_to_end(&mut bytes).map_err(missing)?;
        match bytes.len() as u64 > LARGEST_PIPE {
            true => Err(Problem::new(None, "", "more than 512 MiB came: import a file instead")),
            false => parse(Cursor::new(bytes), reading, &default),
        }
    } else {
        Err(Problem::new(None, "", "is neither a file nor a pipe"))
    };
    match read {
        Ok(file) => Ok(ImportFile { name, ..file }),
        Err(problem) => Err(problem.of(&name)),
    }
}

/// Whether what is at a path is a pipe. A device may never end.
fn is_pipe(kind: FileType) -> bool {
    #[cfg(unix)]
    return std::os::unix::fs::FileTypeExt::is_fifo(&kind);
    #[cfg(not(unix))]
    !kind.is_dir()
}

/// Reads bytes that are not a file of the user's; `name` stands for the file.
///
/// # Errors
/// As [`read_file`].
pub fn read_bytes(bytes: &[u8], name: &str) -> Result<ImportFile> {
    let default = SessionId::new("import")?;
    match parse(Cursor::new(bytes), &Reading::default(), &default) {
        Ok(file) => Ok(ImportFile { name: name.to_owned(), ..file }),
        Err(problem) => Err(problem.of(name)),
    }
}

/// A problem of a file, and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Problem {
    line: Option<usize>,
    field: String,
    message: String,
}

impl Problem {
    fn new(line: Option<usize>, field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { line, field: field.into(), message: message.into() }
    }

    fn of(self, file: &str) -> Error {
        let Self { line, field, message } = self;
        let line = line.map_or(String::new(), |line| format!(":{line}"));
        let field = if field.is_empty() { field } else { format!("{field}: ") };
        Error::invalid(format!("{file}{line}: {field}{message}; nothing of this file was imported"))
    }
}

fn parse(
    mut source: impl BufRead + Seek,
    reading: &Reading,
    default: &SessionId,
) -> std::result::Result<ImportFile, Problem> {
    let unreadable = |error| Problem::new(None, "", format!("cannot be read: {error}"));
    let form = form::tell(&mut source, reading.format).map_err(unreadable)?;
    match form {
        Form::ChatgptArchive => chatgpt::archive(source),
        Form::Chatgpt => chatgpt::conversations(source),
        Form::ClaudeCode => {
            let file = claude_code::log(source, default, reading.now)?;
            Ok(ImportFile { is_agent_log: true, ..file })
        }
        Form::Lines => messages::lines(source, default),
        Form::Array => messages::array(&pieces::whole(source)?, default),
        Form::Samples => {
            let samples = pieces::whole(source)?;
            pieces::check_values(samples.as_bytes(), 1)?;
            dataset::samples(&samples)
        }
    }
}

/// Parses JSON; an error names line and field.
fn json<'t, T: Deserialize<'t>>(text: &'t str, before: usize) -> std::result::Result<T, Problem> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader)
        .map_err(|error| problem_at(&error.path().to_string(), error.inner(), before))?;
    reader.end().map_err(|error| {
        Problem::new(Some(before + error.line().max(1)), "", "extra data after the JSON value")
    })?;
    Ok(value)
}

/// The problem of JSON that begins after `before` lines, at a path in it.
fn problem_at(path: &str, error: &serde_json::Error, before: usize) -> Problem {
    let field = if matches!(path, "." | "?") { "" } else { path };
    // serde_json ends its message with the position, which we put in front.
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default().to_owned();
    Problem::new(Some(before + error.line().max(1)), field, message)
}

fn line_of(bytes: &[u8], offset: usize) -> usize {
    1 + bytes[..offset.min(bytes.len())].iter().filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests;
