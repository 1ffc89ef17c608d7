//! The format of `eval`: samples with sessions of messages and questions about them.

use std::time::Duration;

use serde::{Deserialize, Deserializer, de};
use throughline_core::ids::{ExternalId, SessionId};
use throughline_core::session::{NewMessage, Role};
use throughline_core::time::Timestamp;

use super::messages::{Sessions, checked, external_id, role};
use super::{ImportFile, ImportSession, Problem, json};

/// A question about a sample.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Question {
    /// What is asked.
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
    messages: Vec<FileMessage>,
}

#[derive(Deserialize)]
struct FileMessage {
    #[serde(default, deserialize_with = "external_id")]
    id: Option<ExternalId>,
    #[serde(deserialize_with = "role")]
    role: Role,
    #[serde(default)]
    name: Option<String>,
    #[serde(deserialize_with = "content")]
    content: String,
}

#[derive(Deserialize)]
struct FileQuestion {
    question: String,
    #[serde(default)]
    answer: serde_json::Value,
    #[serde(default)]
    evidence: Vec<String>,
    #[serde(default)]
    category: String,
}

fn started_at<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
    Timestamp::parse(&String::deserialize(deserializer)?).map_err(de::Error::custom)
}

fn content<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    checked(String::deserialize(deserializer)?).map_err(de::Error::custom)
}

/// Reads samples. The sessions of a sample are named after it; its messages are a second apart from
/// the time at which their session started.
pub(super) fn samples(text: &str) -> Result<ImportFile, Problem> {
    let parsed: Vec<FileSample> = json(text, 0)?;
    let mut samples = Vec::with_capacity(parsed.len());
    for (index, sample) in parsed.into_iter().enumerate() {
        samples.push(read_sample(index, sample)?);
    }
    let sessions = samples.iter().flat_map(|sample| sample.sessions.clone()).collect();
    Ok(ImportFile { sessions, samples })
}

fn read_sample(index: usize, sample: FileSample) -> Result<Sample, Problem> {
    let field = |rest: String| format!("[{index}].{rest}");
    let mut sessions = Sessions::default();
    for (number, session) in sample.sessions.into_iter().enumerate() {
        let id = SessionId::new(format!("{}/{}", sample.sample_id, number + 1))
            .map_err(|error| Problem::new(None, field("sample_id".into()), error.message()))?;
        let second = |ordinal: usize| Duration::from_secs(ordinal as u64);
        for (ordinal, message) in session.messages.into_iter().enumerate() {
            let fallback = || {
                ExternalId::new(format!("{}:{}", number + 1, ordinal + 1)).map_err(|error| {
                    Problem::new(None, field(format!("sessions[{number}]")), error.message())
                })
            };
            let external_id = message.id.map_or_else(fallback, Ok)?;
            let message = NewMessage {
                name: message.name,
                external_id: Some(external_id),
                created_at: Some(session.started_at.plus(second(ordinal))),
                ..NewMessage::new(message.role, message.content)
            };
            sessions.add(id.clone(), message).map_err(|error| {
                let at = format!("sessions[{number}].messages[{ordinal}].id");
                Problem::new(None, field(at), error)
            })?;
        }
    }
    let known = |id: &str| -> Option<ExternalId> { ExternalId::new(id).ok() };
    let questions = sample
        .qa
        .into_iter()
        .map(|asked| Question {
            question: asked.question,
            answer: match asked.answer {
                serde_json::Value::Null => None,
                serde_json::Value::String(text) => Some(text),
                other => Some(other.to_string()),
            },
            evidence: asked.evidence.iter().filter_map(|id| known(id)).collect(),
            category: asked.category,
        })
        .collect();
    Ok(Sample { id: sample.sample_id, sessions: sessions.into_file().sessions, questions })
}
