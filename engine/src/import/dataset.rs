//! The format of `eval`: samples with sessions of messages and questions about them.

use std::collections::HashSet;
use std::time::Duration;

use serde::{Deserialize, Deserializer, de};
use throughline_core::ids::{ExternalId, SessionId};
use throughline_core::session::{NewMessage, Role};
use throughline_core::time::Timestamp;

use super::messages::{Sessions, external_id, role};
use super::{ImportFile, ImportSession, Problem, json};

/// A question about a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// The question.
    pub question: String,
    /// The expected answer, for people; evaluation uses the evidence only.
    pub answer: Option<String>,
    /// `external_id`s of the messages that hold the answer.
    pub evidence: Vec<ExternalId>,
    /// Its sort, such as `multi_hop`.
    pub category: String,
}

/// One conversation over several sessions, with questions.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Its id.
    pub id: String,
    /// Its sessions, in order.
    pub sessions: Vec<ImportSession>,
    /// Questions about it.
    pub questions: Vec<Question>,
}

impl Sample {
    /// The content of a message, or nothing where the sample has no such message.
    #[must_use]
    pub fn content(&self, id: &ExternalId) -> &str {
        self.sessions
            .iter()
            .flat_map(|session| &session.messages)
            .find(|message| message.external_id.as_ref() == Some(id))
            .map_or("", |message| message.content.as_str())
    }
}

#[derive(Deserialize)]
struct FileSample {
    sample_id: String,
    sessions: Vec<FileSession>,
    #[serde(default)]
    qa: Vec<FileQuestion>,
}

#[derive(Deserialize)]
struct FileSession {
    #[serde(deserialize_with = "started_at")]
    started_at: Timestamp,
    #[serde(deserialize_with = "messages")]
    messages: Vec<NewMessage>,
}

#[derive(Deserialize)]
struct FileMessage {
    #[serde(default, deserialize_with = "external_id")]
    id: Option<ExternalId>,
    #[serde(deserialize_with = "role")]
    role: Role,
    #[serde(default)]
    name: Option<String>,
    content: String,
}

#[derive(Deserialize)]
struct FileQuestion {
    question: String,
    #[serde(default)]
    answer: serde_json::Value,
    #[serde(default, deserialize_with = "evidence")]
    evidence: Vec<ExternalId>,
    #[serde(default)]
    category: String,
}

fn started_at<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    Timestamp::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
}

/// Checked while they are read, so that a problem has its line.
fn messages<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<NewMessage>, D::Error> {
    let read: Vec<Checked> = Deserialize::deserialize(deserializer)?;
    Ok(read.into_iter().map(|Checked(message)| message).collect())
}

struct Checked(NewMessage);

impl<'de> Deserialize<'de> for Checked {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let FileMessage { id, role, name, content } = FileMessage::deserialize(deserializer)?;
        let message = NewMessage { name, external_id: id, ..NewMessage::new(role, content) };
        match message.problem() {
            Some((field, what)) => Err(de::Error::custom(format!("{field} {what}"))),
            None => Ok(Self(message)),
        }
    }
}

/// Each id counts once.
fn evidence<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<ExternalId>, D::Error> {
    let mut ids: Vec<ExternalId> = Vec::new();
    for id in Vec::<String>::deserialize(deserializer)? {
        let id = ExternalId::new(id).map_err(de::Error::custom)?;
        if !ids.contains(&id) {
            ids.push(id);
        }
    }
    Ok(ids)
}

/// Reads samples. The sessions of a sample are named after it; its messages are a second apart from
/// the time at which their session started. Ids are unique within a sample: evidence names them.
pub(super) fn samples(text: &str) -> Result<ImportFile, Problem> {
    let parsed: Vec<FileSample> = json(text, 0)?;
    let mut samples: Vec<Sample> = Vec::with_capacity(parsed.len());
    for (index, sample) in parsed.into_iter().enumerate() {
        let sample = read_sample(sample).map_err(|(field, message)| {
            Problem::new(None, format!("[{index}].{field}"), message)
        })?;
        if samples.iter().any(|other| other.id == sample.id) {
            let message = format!("two samples have the id `{}`: give each its own", sample.id);
            return Err(Problem::new(None, format!("[{index}].sample_id"), message));
        }
        samples.push(sample);
    }
    let sessions = samples.iter().flat_map(|sample| sample.sessions.clone()).collect();
    let skipped = super::Skipped::default();
    Ok(ImportFile { sessions, samples, skipped, ..ImportFile::default() })
}

fn read_sample(sample: FileSample) -> Result<Sample, (String, String)> {
    let mut sessions = Sessions::default();
    let mut ids: HashSet<ExternalId> = HashSet::new();
    for (number, session) in sample.sessions.into_iter().enumerate() {
        let id = SessionId::new(format!("{}/{}", sample.sample_id, number + 1))
            .map_err(|error| ("sample_id".to_owned(), error.message().to_owned()))?;
        for (ordinal, mut message) in session.messages.into_iter().enumerate() {
            let at = || format!("sessions[{number}].messages[{ordinal}].id");
            if let Some(id) = &message.external_id
                && !ids.insert(id.clone())
            {
                return Err((at(), format!("two messages of the sample have the id `{id}`")));
            }
            let offset = Duration::from_secs(ordinal as u64);
            message.created_at = Some(session.started_at.plus(offset));
            sessions.add(id.clone(), message).map_err(|error| (at(), error))?;
        }
    }
    let mut questions = Vec::with_capacity(sample.qa.len());
    for (number, asked) in sample.qa.into_iter().enumerate() {
        if let Some(unknown) = asked.evidence.iter().find(|id| !ids.contains(*id)) {
            let message = format!("`{unknown}` is not a message of the sample");
            return Err((format!("qa[{number}].evidence"), message));
        }
        questions.push(Question {
            question: asked.question,
            answer: match asked.answer {
                serde_json::Value::Null => None,
                serde_json::Value::String(text) => Some(text),
                other => Some(other.to_string()),
            },
            evidence: asked.evidence,
            category: asked.category,
        });
    }
    Ok(Sample { id: sample.sample_id, sessions: sessions.sessions(), questions })
}
