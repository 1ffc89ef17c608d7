//! Rolling summaries: every 20 messages a new one is built on the previous one.
//!
//! A summary is extractive when it is rolled: sentences as they were said, each with its message, so that nothing in it is
//! invented and erasure can follow every line. Where a model summarizes, it may write the lines anew later, each from one
//! of these messages.

mod rewrite;
mod roll;

use std::str::FromStr;

use crate::error::Error;
use crate::ids::{MessageId, SessionId, SummaryId};
use crate::time::Timestamp;

pub use rewrite::{Draft, Rewriting};
pub use roll::{MAX_SUMMARY_TOKENS, RolledFrom, roll};

/// Messages between two summaries of a session.
pub const ROLL_EVERY: u64 = 20;

/// One sentence of a summary and where it was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryLine {
    /// The message that says it.
    pub source: MessageId,
    /// The sentence, white space folded, with its speaker; or what a model wrote of it.
    pub text: String,
}

/// Who wrote the lines of a summary.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum SummaryWriter {
    /// Nobody: they are sentences as they were said.
    #[default]
    Extract,
    /// Nobody yet: a model is to write them anew.
    AwaitsModel,
    /// A model, by its name and the version of how it is asked, such as `model:openai:gpt-4.1-mini/1`.
    Model(String),
}

impl SummaryWriter {
    /// As it is stored.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::Extract => "extract",
            Self::AwaitsModel => "awaits_model",
            Self::Model(name) => name,
        }
    }
}

impl FromStr for SummaryWriter {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        match text {
            "extract" => Ok(Self::Extract),
            "awaits_model" => Ok(Self::AwaitsModel),
            name if name.starts_with("model:") => Ok(Self::Model(name.to_owned())),
            _ => Err(Error::invalid("unknown writer of a summary")),
        }
    }
}

/// One version of a session's summary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Summary {
    /// Our id.
    pub id: SummaryId,
    /// The session it summarizes.
    pub session: SessionId,
    /// 1 for the first, then one more each.
    pub version: u64,
    /// The version it was built on.
    pub previous: Option<SummaryId>,
    /// Messages covered, from the session's first one.
    pub covered: u64,
    /// Position of the last message covered.
    pub to_position: u32,
    /// When the first covered message was said.
    pub from_at: Timestamp,
    /// When the last covered message was said.
    pub to_at: Timestamp,
    /// The sentences, in the order in which they were said.
    pub lines: Vec<SummaryLine>,
    /// Tokens of the text.
    pub tokens: u32,
    /// Who wrote the lines.
    pub writer: SummaryWriter,
}

impl Summary {
    /// The lines as one text.
    #[must_use]
    pub fn text(&self) -> String {
        join_lines(&self.lines)
    }
}

fn join_lines(lines: &[SummaryLine]) -> String {
    let mut text = String::new();
    for line in lines {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&line.text);
    }
    text
}
