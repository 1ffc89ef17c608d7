//! Rolling summaries: every 20 messages a new one is built on the previous one.
//!
//! Without a model a summary is extractive: sentences as they were said, each with its message, so
//! that nothing in it is invented and erasure can follow every line.

mod roll;

use crate::ids::{MessageId, SessionId, SummaryId};
use crate::time::Timestamp;

pub use roll::{MAX_SUMMARY_TOKENS, RolledFrom, roll};

/// Messages between two summaries of a session.
pub const ROLL_EVERY: u64 = 20;

/// One sentence of a summary and where it was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SummaryLine {
    /// The message that says it.
    pub source: MessageId,
    /// The sentence, white space folded, with its speaker.
    pub text: String,
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
