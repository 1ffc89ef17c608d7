//! What people are told beside an answer.

use throughline_core::files::{Outcome, Plan};

use super::ChatReply;
use super::stored::stopped;

/// Most files that are named.
const NAMED: usize = 5;

impl ChatReply {
    /// What people should know of an answer beside its text: that it did not end by itself, and which files the model did not
    /// get.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let ended = stopped(&self.answer).map(|reason| format!("the answer ended early: {reason}"));
        let skipped = self.files.as_ref().and_then(skipped);
        ended.into_iter().chain(skipped).collect()
    }
}

fn skipped(plan: &Plan) -> Option<String> {
    let skipped: Vec<_> =
        plan.files.iter().filter(|file| file.outcome == Outcome::Skipped).collect();
    let named = skipped.iter().take(NAMED);
    let named: Vec<_> = named.map(|file| format!("{} ({})", file.path, file.reason)).collect();
    let more = match skipped.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!(", and {more} more"),
    };
    let what = if skipped.len() == 1 { "path is" } else { "paths are" };
    let told =
        format!("{} {what} neither sent nor searched: {}{more}", skipped.len(), named.join(", "));
    (!skipped.is_empty()).then_some(told)
}
