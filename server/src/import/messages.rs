//! Messages as JSON lines or as an OpenAI-style array.

use std::collections::HashMap;

use serde::{Deserialize, Deserializer, de};
use serde_json::value::RawValue;
use throughline_core::ids::{ExternalId, SessionId};
use throughline_core::session::{MAX_CONTENT_BYTES, NewMessage, Role};
use throughline_core::time::Timestamp;

use super::{ImportFile, ImportSession, Problem, json};

/// A message as files have it. `content` may be text or, as in OpenAI's format, parts of which the
/// texts are joined; an assistant's `tool_calls` stand for a content that is absent.
#[derive(Debug, Deserialize)]
struct FileMessage {
    #[serde(deserialize_with = "role")]
    role: Role,
    #[serde(default)]
    content: Option<Content>,
    #[serde(default)]
    name: Option<String>,
    #[serde(default, alias = "id", deserialize_with = "external_id")]
    external_id: Option<ExternalId>,
    #[serde(default, alias = "timestamp", deserialize_with = "time")]
    created_at: Option<Timestamp>,
    #[serde(default, alias = "session_id", deserialize_with = "session_id")]
    session: Option<SessionId>,
    #[serde(default)]
    parts: Option<Box<RawValue>>,
    #[serde(default)]
    attachments: Option<Box<RawValue>>,
    #[serde(default)]
    tool_calls: Option<Vec<ToolCall>>,
}

#[derive(Debug)]
enum Content {
    Text(String),
    Parts(String, String),
}

#[derive(Debug, Deserialize)]
struct ToolCall {
    function: ToolFunction,
}

#[derive(Debug, Deserialize)]
struct ToolFunction {
    name: String,
    #[serde(default)]
    arguments: String,
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match serde_json::Value::deserialize(deserializer)? {
            serde_json::Value::String(text) => Ok(Self::Text(text)),
            serde_json::Value::Array(parts) => {
                let texts: Vec<&str> =
                    parts.iter().filter_map(|part| part.get("text")?.as_str()).collect();
                let joined = texts.join("\n");
                let raw = serde_json::to_string(&parts).map_err(de::Error::custom)?;
                Ok(Self::Parts(joined, raw))
            }
            _ => Err(de::Error::custom("must be text, or an array of parts with text")),
        }
    }
}

pub(super) fn role<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Role, D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        // What OpenAI calls developer was called system before.
        "developer" => Ok(Role::System),
        "function" => Ok(Role::Tool),
        text => text.parse().map_err(de::Error::custom),
    }
}

pub(super) fn external_id<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<ExternalId>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(ExternalId::new).transpose().map_err(de::Error::custom)
}

pub(super) fn session_id<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<SessionId>, D::Error> {
    let text = Option::<String>::deserialize(deserializer)?;
    text.map(SessionId::new).transpose().map_err(de::Error::custom)
}

/// A time as text, or as seconds since the Unix epoch.
pub(super) fn time<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<Timestamp>, D::Error> {
    match Option::<serde_json::Value>::deserialize(deserializer)? {
        None | Some(serde_json::Value::Null) => Ok(None),
        Some(serde_json::Value::String(text)) => {
            Timestamp::parse(&text).map(Some).map_err(de::Error::custom)
        }
        Some(value) => {
            let seconds = value.as_f64().filter(|seconds| seconds.abs() < 1e11);
            let seconds =
                seconds.ok_or_else(|| de::Error::custom("must be a time, or Unix seconds"))?;
            Ok(Some(Timestamp::from_micros((seconds * 1e6) as i64)))
        }
    }
}

/// What every message of any form must be: not empty, not too long.
pub(super) fn checked(content: String) -> Result<String, String> {
    if content.trim().is_empty() {
        Err("content is empty: 1 byte to 1 MiB of text is allowed".to_owned())
    } else if content.len() > MAX_CONTENT_BYTES {
        Err(format!("content has {} bytes: at most 1 MiB is allowed", content.len()))
    } else if content.contains('\0') {
        Err("content has a NUL character: only text is allowed".to_owned())
    } else {
        Ok(content)
    }
}

impl FileMessage {
    fn into_message(
        self,
        fallback_id: impl FnOnce() -> String,
    ) -> Result<NewMessage, (String, String)> {
        let (content, raw_parts) = match self.content {
            Some(Content::Text(text)) => (text, None),
            Some(Content::Parts(text, raw)) => (text, Some(raw)),
            None => (String::new(), None),
        };
        let content = if content.trim().is_empty()
            && let Some(calls) = &self.tool_calls
        {
            let calls: Vec<String> = calls
                .iter()
                .map(|call| format!("called {}({})", call.function.name, call.function.arguments))
                .collect();
            calls.join("\n")
        } else {
            content
        };
        let content = checked(content).map_err(|message| ("content".to_owned(), message))?;
        let external_id = match self.external_id {
            Some(id) => id,
            // The same file imported again is the same messages.
            None => ExternalId::new(fallback_id())
                .map_err(|error| ("id".to_owned(), error.message().to_owned()))?,
        };
        Ok(NewMessage {
            name: self.name,
            external_id: Some(external_id),
            created_at: self.created_at,
            parts: self.parts.map(|raw| raw.get().to_owned()).or(raw_parts),
            attachments: self.attachments.map(|raw| raw.get().to_owned()),
            ..NewMessage::new(self.role, content)
        })
    }
}

/// JSON lines: one message a line, empty lines between them allowed.
pub(super) fn lines(text: &str, default: &SessionId, file: &str) -> Result<ImportFile, Problem> {
    let mut sessions = Sessions::default();
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let message: FileMessage = json(line, index)?;
        let session = message.session.clone().unwrap_or_else(|| default.clone());
        let message = message
            .into_message(|| format!("import-{file}-{}", index + 1))
            .map_err(|(field, message)| Problem::new(Some(index + 1), field, message))?;
        sessions
            .add(session, message)
            .map_err(|message| Problem::new(Some(index + 1), "external_id", message))?;
    }
    Ok(sessions.into_file())
}

/// An array of messages; all of them are of one session unless they name one.
pub(super) fn array(text: &str, default: &SessionId, file: &str) -> Result<ImportFile, Problem> {
    let messages: Vec<FileMessage> = json(text, 0)?;
    let mut sessions = Sessions::default();
    for (index, message) in messages.into_iter().enumerate() {
        let session = message.session.clone().unwrap_or_else(|| default.clone());
        let at = |field: &str| format!("[{index}].{field}");
        let message = message
            .into_message(|| format!("import-{file}-{}", index + 1))
            .map_err(|(field, message)| Problem::new(None, at(&field), message))?;
        sessions
            .add(session, message)
            .map_err(|message| Problem::new(None, at("external_id"), message))?;
    }
    Ok(sessions.into_file())
}

/// Messages by session, in order of first appearance.
#[derive(Default)]
pub(super) struct Sessions {
    order: Vec<ImportSession>,
    at: HashMap<SessionId, usize>,
    seen: HashMap<(usize, ExternalId), usize>,
}

impl Sessions {
    pub(super) fn add(&mut self, id: SessionId, message: NewMessage) -> Result<(), String> {
        let at = *self.at.entry(id.clone()).or_insert_with(|| {
            self.order.push(ImportSession { id, messages: Vec::new() });
            self.order.len() - 1
        });
        let messages = &mut self.order[at].messages;
        if let Some(external_id) = &message.external_id {
            let ordinal = messages.len();
            if let Some(first) = self.seen.insert((at, external_id.clone()), ordinal) {
                return Err(format!(
                    "`{external_id}` stands for two messages of the session (the other one is its \
                     message {}): each needs its own",
                    first + 1
                ));
            }
        }
        messages.push(message);
        Ok(())
    }

    pub(super) fn into_file(self) -> ImportFile {
        ImportFile { sessions: self.order, samples: Vec::new() }
    }
}
