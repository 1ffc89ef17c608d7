//! Files of conversations: read and checked whole before the first message is written.
//!
//! Three forms are told apart by their content: JSON lines of messages, samples in the format of
//! `eval` (`[{sample_id, sessions, qa}]`), and an OpenAI-style array of messages.

mod dataset;
mod messages;
mod run;

use std::collections::HashMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::value::RawValue;
use throughline_core::ids::SessionId;
use throughline_core::session::NewMessage;
use throughline_core::{Error, Result};

pub use dataset::{Question, Sample};
pub use run::{ImportReport, import};

/// The messages of one session of a file, in order.
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
    let first = text.trim_start();
    if first.is_empty() {
        return Err(Problem::new(None, "", "the file is empty"));
    }
    if first.starts_with('[') {
        // Only the first element's keys tell the form; its values are read by the form.
        let head: Vec<HashMap<&str, &RawValue>> = json(text, 0).unwrap_or_default();
        let is_samples = |sample: &HashMap<&str, &RawValue>| {
            sample.contains_key("sessions") || sample.contains_key("sample_id")
        };
        return match head.first() {
            Some(sample) if is_samples(sample) => dataset::samples(text),
            _ => messages::array(text, default),
        };
    }
    let wrapped = first.lines().next().is_some_and(|line| {
        !line.contains("\"role\"") || line.trim_start().starts_with("{\"messages\"")
    });
    if wrapped && first.contains("\"messages\"") {
        return messages::array(text, default);
    }
    messages::lines(text, default)
}

/// Parses JSON; an error names line and field.
fn json<'t, T: Deserialize<'t>>(text: &'t str, before: usize) -> std::result::Result<T, Problem> {
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
