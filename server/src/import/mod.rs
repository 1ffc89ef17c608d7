//! Files of conversations: read and checked whole before the first message is written.
//!
//! Three forms are told apart by their content: JSON lines of messages, samples in the format of
//! `eval` (`[{sample_id, sessions, qa}]`), and an OpenAI-style array of messages.

mod dataset;
mod messages;
mod run;

use std::path::Path;

use serde::de::DeserializeOwned;
use throughline_core::ids::SessionId;
use throughline_core::session::NewMessage;
use throughline_core::{Error, Result};

pub use dataset::{Question, Sample};
pub use run::{ImportReport, import};

/// The messages of one session of a file, in order, each with the line it is from where the form
/// has lines.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportSession {
    /// The session to append to.
    pub id: SessionId,
    /// Its messages.
    pub messages: Vec<NewMessage>,
}

/// A file, read and checked.
#[derive(Debug, Clone, PartialEq)]
pub struct ImportFile {
    /// Its sessions, in the order of the file.
    pub sessions: Vec<ImportSession>,
    /// Its samples, where it is in the format of `eval`.
    pub samples: Vec<Sample>,
}

/// Reads a file in any of the three forms. `session` names the session of messages that name none;
/// without it the file's name does.
///
/// # Errors
/// `InvalidInput` that names file, line and field; nothing of the file is to be used then.
pub fn read_file(path: &Path, session: Option<&SessionId>) -> Result<ImportFile> {
    let bytes = std::fs::read(path)
        .map_err(|error| Error::not_found(format!("{}: {error}", path.display())))?;
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or("import").to_owned();
    let default = match session {
        Some(session) => session.clone(),
        None => SessionId::new(stem)?,
    };
    parse(&bytes, &default).map_err(|problem| problem.of(&path.display().to_string()))
}

/// Reads bytes that are not a file of the user's; `name` stands for the file.
///
/// # Errors
/// As [`read_file`].
pub fn read_bytes(bytes: &[u8], name: &str) -> Result<ImportFile> {
    parse(bytes, &SessionId::new("import")?).map_err(|problem| problem.of(name))
}

/// What is wrong with a file, and where.
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

fn parse(bytes: &[u8], default: &SessionId) -> std::result::Result<ImportFile, Problem> {
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let line = line_of(bytes, error.valid_up_to());
        Problem::new(Some(line), "", "not UTF-8: save the file with that encoding")
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let digest = blake3::hash(bytes).to_hex();
    let file = digest.get(..12).unwrap_or_default();
    let first = text.trim_start();
    if first.is_empty() {
        return Err(Problem::new(None, "", "the file is empty"));
    }
    let is_samples = |value: &serde_json::Value| {
        value.get("sessions").is_some() || value.get("sample_id").is_some()
    };
    if first.starts_with('[') {
        let head: Vec<serde_json::Value> = json(text, 0)?;
        if head.first().is_some_and(is_samples) {
            return dataset::samples(text);
        }
        return messages::array(text, default, file);
    }
    messages::lines(text, default, file)
}

/// Parses JSON; an error names line and field.
fn json<T: DeserializeOwned>(text: &str, before: usize) -> std::result::Result<T, Problem> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let value = serde_path_to_error::deserialize(&mut reader).map_err(|error| {
        let path = error.path().to_string();
        let inner = error.into_inner();
        let field = if matches!(path.as_str(), "." | "?") { String::new() } else { path };
        // serde_json ends its message with the position, which we put in front.
        let message = inner.to_string();
        let message = message.split(" at line ").next().unwrap_or_default().to_owned();
        Problem::new(Some(before + inner.line().max(1)), field, message)
    })?;
    reader.end().map_err(|error| {
        Problem::new(Some(before + error.line().max(1)), "", "something follows the JSON value")
    })?;
    Ok(value)
}

fn line_of(bytes: &[u8], offset: usize) -> usize {
    1 + bytes[..offset.min(bytes.len())].iter().filter(|byte| **byte == b'\n').count()
}

#[cfg(test)]
mod tests;
