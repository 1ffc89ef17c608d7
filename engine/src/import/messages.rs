//! Messages as JSON lines or as an OpenAI-style array.

use std::collections::HashMap;
use std::io::BufRead;

use serde::{Deserialize, Deserializer, de};
use serde_json::Value;
use serde_json::value::RawValue;
use throughline_core::access::Actor;
use throughline_core::ids::{ExternalId, SessionId};
use throughline_core::secret::{masked, masked_json};
use throughline_core::session::{NewMessage, Role};
use throughline_core::time::Timestamp;

use crate::parts::{text_of_calls, text_of_parts};

use super::pieces::{Lines, check_values};
use super::records::{Record, is_record};
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
    tool_calls: Option<Vec<Value>>,
    /// Our own id, in an export of ours; in any other file it is nothing.
    #[serde(default)]
    throughline_id: Option<String>,
    /// `model` or `guest`, in an export of ours, where it is on the word of one.
    #[serde(default)]
    actor: Option<String>,
}

#[derive(Debug)]
enum Content {
    Text(String),
    Parts(String, String),
}

impl<'de> Deserialize<'de> for Content {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match Value::deserialize(deserializer)? {
            Value::String(text) => Ok(Self::Text(text)),
            Value::Array(parts) => {
                let joined = text_of_parts(&parts);
                let raw = serde_json::to_string(&parts).map_err(de::Error::custom)?;
                Ok(Self::Parts(joined, raw))
            }
            _ => Err(de::Error::custom("must be text, or an array of parts with text")),
        }
    }
}

pub(super) fn role<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Role, D::Error> {
    match String::deserialize(deserializer)?.as_str() {
        // OpenAI's role `developer` was called `system` before.
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
    match Option::<Value>::deserialize(deserializer)? {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Timestamp::parse(&text).map(Some).map_err(de::Error::custom),
        Some(value) => {
            let seconds = value.as_f64().filter(|seconds| seconds.abs() < 1e11);
            let seconds =
                seconds.ok_or_else(|| de::Error::custom("must be a time, or Unix seconds"))?;
            Ok(Some(Timestamp::from_micros((seconds * 1e6) as i64)))
        }
    }
}

impl FileMessage {
    /// The checked message; an error names the field.
    fn into_message(self) -> Result<NewMessage, (&'static str, String)> {
        let (content, raw_parts) = match self.content {
            Some(Content::Text(text)) => (text, None),
            Some(Content::Parts(text, raw)) => (text, Some(raw)),
            None => (String::new(), None),
        };
        let content = if content.trim().is_empty()
            && let Some(calls) = &self.tool_calls
        {
            text_of_calls(calls)
        } else {
            content
        };
        let message = NewMessage {
            name: self.name,
            external_id: self.external_id,
            created_at: self.created_at,
            origin: self.throughline_id.and_then(|id| id.parse().ok()),
            actor: self.actor.and_then(|actor| actor.parse::<Actor>().ok()?.of_export()),
            parts: self.parts.map(|raw| raw.get().to_owned()).or(raw_parts),
            attachments: self.attachments.map(|raw| raw.get().to_owned()),
            ..NewMessage::new(self.role, content)
        };
        match message.problem() {
            Some(problem) => Err(problem),
            None => Ok(message),
        }
    }
}

/// JSON lines: one message or record a line, empty lines between them allowed.
pub(super) fn lines(source: impl BufRead, default: &SessionId) -> Result<ImportFile, Problem> {
    let mut sessions = Sessions::default();
    let mut records = Vec::new();
    let mut lines = Lines::of(source);
    let mut is_empty = true;
    while let Some(line) = lines.next()? {
        let text = line.text("save the file as UTF-8")?;
        if text.is_empty() {
            continue;
        }
        is_empty = false;
        let before = line.number - 1;
        if is_record(text) {
            records.push((line.number, json(text, before)?));
        } else {
            add(&mut sessions, text, default, before, "")?;
        }
    }
    match is_empty {
        true => Err(Problem::new(None, "", "the file is empty")),
        false => sessions.into_file(records),
    }
}

/// An array of messages, alone or under `messages`; all of them are of one session unless they name
/// one.
pub(super) fn array(text: &str, default: &SessionId) -> Result<ImportFile, Problem> {
    #[derive(Deserialize)]
    struct Wrapped<'t> {
        #[serde(borrow)]
        messages: Vec<&'t RawValue>,
    }
    let messages: Vec<&RawValue> = if text.trim_start().starts_with('[') {
        json(text, 0)?
    } else {
        json::<Wrapped<'_>>(text, 0)?.messages
    };
    let mut sessions = Sessions::default();
    for (index, message) in messages.into_iter().enumerate() {
        let message = message.get();
        // The element is a part of the text: what stands before it tells its line.
        let offset = message.as_ptr().addr() - text.as_ptr().addr();
        let before = text[..offset].matches('\n').count();
        check_values(message.as_bytes(), before + 1)?;
        add(&mut sessions, message, default, before, &format!("[{index}]."))?;
    }
    sessions.into_file(Vec::new())
}

/// Adds one message, whose JSON begins after `before` lines.
fn add(
    sessions: &mut Sessions,
    text: &str,
    default: &SessionId,
    before: usize,
    path: &str,
) -> Result<(), Problem> {
    let under = |mut problem: Problem| {
        problem.field.insert_str(0, path);
        problem
    };
    let message: FileMessage = json(text, before).map_err(under)?;
    let session = message.session.clone().unwrap_or_else(|| default.clone());
    let problem = |field: &str, message: String| {
        under(Problem::new(Some(before + 1), field.to_owned(), message))
    };
    let message = message.into_message().map_err(|(field, message)| problem(field, message))?;
    sessions.add(session, message).map_err(|message| problem("external_id", message))
}

/// Messages by session, in order of first appearance.
#[derive(Default)]
pub(super) struct Sessions {
    order: Vec<ImportSession>,
    at: HashMap<SessionId, usize>,
    seen: HashMap<(usize, ExternalId), usize>,
    repeats: HashMap<[u8; 16], usize>,
    bytes: usize,
}

/// Most bytes of the messages of a file, which are in memory together.
const MOST_BYTES: usize = 512 << 20;

impl Sessions {
    /// Adds a message. One without an id gets one from what it says and how often its session has
    /// said that before, so that importing a file again, also when it has grown, adds what is new.
    pub(super) fn add(&mut self, id: SessionId, mut message: NewMessage) -> Result<(), String> {
        let at = match self.at.get(&id) {
            Some(at) => *at,
            None => {
                self.order.push(ImportSession { id: id.clone(), messages: Vec::new() });
                self.at.insert(id, self.order.len() - 1);
                self.order.len() - 1
            }
        };
        let external_id = match &message.external_id {
            Some(given) => given.clone(),
            None => self.id_of_content(at, &message).map_err(|error| error.to_string())?,
        };
        let ordinal = self.order[at].messages.len();
        if let Some(first) = self.seen.insert((at, external_id.clone()), ordinal) {
            return Err(format!(
                "two messages of the session have the id `{external_id}` (the other one is message \
                 {}): give each its own",
                first + 1
            ));
        }
        message.external_id = Some(external_id);
        let json = [&message.parts, &message.attachments];
        let json = json.into_iter().flatten().map(String::len).sum::<usize>();
        self.bytes += message.content.len() + json;
        if self.bytes > MOST_BYTES {
            let most = MOST_BYTES >> 20;
            return Err(format!("more than {most} MiB of messages: divide the file into several"));
        }
        self.order[at].messages.push(message);
        Ok(())
    }

    /// Whether a session has a message of this id.
    pub(super) fn holds(&self, session: &SessionId, id: &ExternalId) -> bool {
        self.at.get(session).is_some_and(|at| self.seen.contains_key(&(*at, id.clone())))
    }

    fn id_of_content(
        &mut self,
        at: usize,
        message: &NewMessage,
    ) -> throughline_core::Result<ExternalId> {
        // Without secrets, so that nobody guesses one by an id that is kept where the secret is not.
        let content = masked(&message.content);
        let in_parts = message.parts.as_deref().map(masked_json);
        let mut hasher = blake3::Hasher::new();
        let parts = [
            Some(self.order[at].id.as_str()),
            Some(message.role.as_str()),
            message.name.as_deref(),
            Some(&content),
            in_parts.as_deref(),
        ];
        for part in parts {
            hasher.update(&part.map_or(u64::MAX, |part| part.len() as u64).to_le_bytes());
            hasher.update(part.unwrap_or_default().as_bytes());
        }
        let mut said = [0; 16];
        said.copy_from_slice(&hasher.finalize().as_bytes()[..16]);
        let before = self.repeats.entry(said).or_default();
        *before += 1;
        let hex: String = said.iter().map(|byte| format!("{byte:02x}")).collect();
        ExternalId::new(format!("import-{hex}-{before}"))
    }

    pub(super) fn sessions(self) -> Vec<ImportSession> {
        self.order
    }

    fn into_file(self, records: Vec<(usize, Record)>) -> Result<ImportFile, Problem> {
        if self.order.is_empty() && records.is_empty() {
            return Err(Problem::new(None, "", "the file has no messages"));
        }
        Ok(ImportFile { sessions: self.order, records, ..ImportFile::default() })
    }
}
