//! Candidates as a search shows them, outside of a context.

use super::recall::MessageCandidate;

impl MessageCandidate {
    /// The passage with its speaker and its marks, as the recalled block shows it.
    #[must_use]
    pub fn text(&self) -> String {
        let gap = if self.range.len() == self.message.content.len() { "" } else { "…" };
        format!("{}: {gap}{}{gap}", self.message.speaker(), self.marked())
    }
}
