//! Session logs of Claude Code: JSON lines of records, appended to while the session goes on.
//!
//! Records never change, so each message has the id of its record, and importing a log that grew adds what is
//! new. An answer is written block by block, over records of one message id; what stands together is one
//! message, once something follows it or nothing has come for a while.

mod words;

use std::collections::HashMap;
use std::io::BufRead;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use throughline_core::ids::SessionId;
use throughline_core::session::{NewMessage, Role};
use throughline_core::time::Timestamp;

use super::foreign::Foreign;
use super::pieces::{Line, Lines};
use super::{ImportFile, Problem, json as read_json};

/// After this long, the last answer of a log is complete.
const IDLE: Duration = Duration::from_secs(600);

#[derive(Deserialize)]
struct Kind {
    #[serde(default)]
    r#type: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Record {
    #[serde(default)]
    uuid: Option<String>,
    #[serde(default)]
    session_id: Option<String>,
    #[serde(default)]
    cwd: Option<PathBuf>,
    #[serde(default)]
    timestamp: Option<String>,
    #[serde(default)]
    is_sidechain: Option<bool>,
    #[serde(default)]
    is_meta: Option<bool>,
    #[serde(default)]
    is_compact_summary: Option<bool>,
    #[serde(default)]
    is_visible_in_transcript_only: Option<bool>,
    #[serde(default)]
    is_api_error_message: Option<bool>,
    #[serde(default)]
    message: Option<Message>,
    #[serde(default)]
    attachment: Option<Attachment>,
}

#[derive(Deserialize, Default)]
struct Message {
    #[serde(default)]
    id: Option<String>,
    #[serde(default)]
    content: Value,
}

/// The log keeps input that a user typed during an answer as one of these.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Attachment {
    #[serde(default)]
    r#type: String,
    #[serde(default)]
    command_mode: Option<String>,
    #[serde(default)]
    prompt: Value,
}

/// Reads a log. `default` names the session of records that name none; at `now`, an answer at the end may still
/// be going on.
pub(super) fn log(
    source: impl BufRead,
    default: &SessionId,
    now: Option<Timestamp>,
) -> Result<ImportFile, Problem> {
    let mut log = Log::new(default);
    let mut lines = Lines::of(source);
    while let Some(line) = lines.next()? {
        match one(&mut log, &line) {
            Err(_) if !line.has_ended() => log.export.skip("incomplete last line", 1),
            done => done?,
        }
    }
    log.end(now)
}

fn one(log: &mut Log, line: &Line<'_>) -> Result<(), Problem> {
    let (text, number) = (line.text("the log is damaged at this line")?, line.number);
    if text.is_empty() {
        return Ok(());
    }
    let Kind { r#type } = read_json(text, number - 1)?;
    match r#type.as_str() {
        "user" | "assistant" | "attachment" => {
            let record: Record = read_json(text, number - 1)?;
            log.take(&r#type, record).map_err(|problem| Problem { line: Some(number), ..problem })
        }
        _ => {
            log.export.skip("internal record", 1);
            Ok(())
        }
    }
}

/// Blocks of an answer that may continue.
struct Answer {
    message: Option<String>,
    session: SessionId,
    uuid: String,
    at: Option<Timestamp>,
    /// When its last record was written.
    last: Option<Timestamp>,
    lines: Vec<String>,
    calls: Vec<Value>,
}

struct Log {
    default: SessionId,
    export: Foreign,
    open: Option<Answer>,
    /// Names of tools by the ids of their calls.
    tools: HashMap<String, String>,
    /// The folder in which the agent worked first.
    folder: Option<PathBuf>,
    last: Option<Timestamp>,
}

impl Log {
    fn new(default: &SessionId) -> Self {
        Self {
            default: default.clone(),
            export: Foreign::default(),
            open: None,
            tools: HashMap::new(),
            folder: None,
            last: None,
        }
    }

    fn take(&mut self, kind: &str, mut record: Record) -> Result<(), Problem> {
        self.folder = self.folder.take().or(record.cwd.take());
        if let Some(reason) = aside(&record) {
            self.export.skip(reason, 1);
            return Ok(());
        }
        let Some(uuid) = record.uuid else {
            self.export.skip("record without an id", 1);
            return Ok(());
        };
        let session = match record.session_id {
            Some(id) => SessionId::new(format!("claude-code:{id}"))
                .map_err(|error| Problem::new(None, "sessionId", error.message()))?,
            None => self.default.clone(),
        };
        if let Some(text) = &record.timestamp {
            let at = Timestamp::parse(text)
                .map_err(|error| Problem::new(None, "timestamp", error.message()))?;
            self.last = Some(at);
        }
        let message = record.message.unwrap_or_default();
        match (kind, record.attachment) {
            ("assistant", _) => self.answered(session, uuid, message),
            ("attachment", attached) => match attached.filter(is_typed) {
                Some(attached) => self.said(&session, &uuid, attached.prompt),
                None => {
                    self.export.skip("internal record", 1);
                    Ok(())
                }
            },
            _ => self.said(&session, &uuid, message.content),
        }
    }

    /// What the user said, and what tools returned, in order.
    fn said(&mut self, session: &SessionId, uuid: &str, content: Value) -> Result<(), Problem> {
        self.close()?;
        let mut messages: Vec<NewMessage> = Vec::new();
        for block in blocks(content) {
            match block["type"].as_str() {
                Some("text") => {
                    let text = block["text"].as_str().unwrap_or_default();
                    let Some(words) = words::of_user(text) else {
                        self.export.skip("internal notice", 1);
                        continue;
                    };
                    match messages.last_mut().filter(|last| last.role == Role::User) {
                        Some(last) => last.content = format!("{}\n{words}", last.content),
                        None => messages.push(NewMessage::new(Role::User, words)),
                    }
                }
                Some("tool_result") => {
                    let id = block["tool_use_id"].as_str().unwrap_or_default();
                    let name = self.tools.get(id).cloned();
                    let text = self.result_text(&block["content"]);
                    messages.push(NewMessage { name, ..NewMessage::new(Role::Tool, text) });
                }
                kind => self.skip_block(kind),
            }
        }
        for (ordinal, message) in messages.into_iter().enumerate() {
            let id = match ordinal {
                0 => uuid.to_owned(),
                later => format!("{uuid}#{}", later + 1),
            };
            self.export.add(session, &id, NewMessage { created_at: self.last, ..message })?;
        }
        Ok(())
    }

    fn result_text(&mut self, content: &Value) -> String {
        let mut texts = Vec::new();
        for block in blocks(content.clone()) {
            match (block["type"].as_str(), block["text"].as_str()) {
                (Some("text"), Some(text)) => texts.push(words::without_reminders(text)),
                (kind, _) => self.skip_block(kind),
            }
        }
        texts.join("\n")
    }

    fn skip_block(&mut self, kind: Option<&str>) {
        let reason = match kind {
            Some("thinking" | "redacted_thinking") => "thinking",
            Some("image") => "image",
            _ => "block of an unknown kind",
        };
        self.export.skip(reason, 1);
    }

    /// A part of an answer: the rest of the one before it, or the first of a new one.
    fn answered(
        &mut self,
        session: SessionId,
        uuid: String,
        message: Message,
    ) -> Result<(), Problem> {
        let (mut lines, mut calls) = (Vec::new(), Vec::new());
        for block in blocks(message.content) {
            match block["type"].as_str() {
                Some("text") => lines.extend(block["text"].as_str().map(str::to_owned)),
                Some("tool_use" | "server_tool_use" | "mcp_tool_use") => {
                    let name = block["name"].as_str().unwrap_or("a tool");
                    if let Some(id) = block["id"].as_str() {
                        self.tools.insert(id.to_owned(), name.to_owned());
                    }
                    lines.push(words::of_call(name, &block["input"]));
                    calls.push(json!({
                        "type": "tool_use", "id": block["id"], "name": name, "input": block["input"],
                    }));
                }
                kind => self.skip_block(kind),
            }
        }
        lines.retain(|line| !line.trim().is_empty());
        let goes_on = self.open.as_ref().is_some_and(|open| {
            open.message.is_some() && open.message == message.id && open.session == session
        });
        if !goes_on {
            self.close()?;
        }
        if lines.is_empty() {
            return Ok(());
        }
        let at = self.last;
        let open = self.open.get_or_insert_with(|| Answer {
            message: message.id,
            session,
            uuid,
            at,
            last: at,
            lines: Vec::new(),
            calls: Vec::new(),
        });
        open.last = at;
        open.lines.append(&mut lines);
        open.calls.append(&mut calls);
        Ok(())
    }

    fn close(&mut self) -> Result<(), Problem> {
        let Some(Answer { session, uuid, at, lines, calls, .. }) = self.open.take() else {
            return Ok(());
        };
        let parts = (!calls.is_empty()).then(|| Value::Array(calls).to_string());
        let message = NewMessage::new(Role::Assistant, lines.join("\n"));
        self.export.add(&session, &uuid, NewMessage { created_at: at, parts, ..message })
    }

    fn end(mut self, now: Option<Timestamp>) -> Result<ImportFile, Problem> {
        let last = self.open.as_ref().and_then(|open| open.last);
        if let (Some(now), Some(last)) = (now, last)
            && now < last.plus(IDLE)
        {
            self.export.skip("possibly incomplete last answer", 1);
        } else {
            self.close()?;
        }
        Ok(ImportFile { folder: self.folder, ..self.export.into_file() })
    }
}

/// Why a record is not part of the conversation of the user and the model.
fn aside(record: &Record) -> Option<&'static str> {
    let is = |flag: Option<bool>| flag == Some(true);
    if is(record.is_sidechain) {
        Some("side-chain record")
    } else if is(record.is_compact_summary) || is(record.is_visible_in_transcript_only) {
        Some("generated summary")
    } else if is(record.is_meta) {
        Some("meta record")
    } else if is(record.is_api_error_message) {
        Some("error of the API")
    } else {
        None
    }
}

fn is_typed(attachment: &Attachment) -> bool {
    attachment.r#type == "queued_command"
        && attachment.command_mode.as_deref().is_none_or(|mode| mode == "prompt")
}

/// The blocks of a content, which may be a text alone.
fn blocks(content: Value) -> Vec<Value> {
    match content {
        Value::Array(blocks) => blocks,
        Value::String(text) => vec![json!({ "type": "text", "text": text })],
        _ => Vec::new(),
    }
}

#[cfg(test)]
mod tests;
