//! Counts of labels that were found, shared by the commands that compare finds with labels.

use serde::Serialize;

/// Matches, misses and false finds.
#[derive(Debug, Clone, Copy, Default, Serialize)]
pub(crate) struct MatchScore {
    /// Values labelled.
    pub labelled: usize,
    /// Values found.
    pub found: usize,
    /// Values found that were labelled.
    pub matched: usize,
    /// Matched ÷ found; 1 where nothing was found.
    pub precision: f64,
    /// Matched ÷ labelled; 1 where nothing was labelled.
    pub recall: f64,
    /// Harmonic mean of the two.
    pub f1: f64,
}

/// A value that was missed, or found where none is.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct MatchCase {
    /// The record.
    pub id: String,
    /// The kind.
    pub kind: String,
    /// The value, or the sentence where a fact has none.
    pub value: String,
    /// The message.
    pub text: String,
}

impl MatchScore {
    /// Sets the shares from the counts.
    pub(crate) fn rate(&mut self) {
        let share = |of: usize| if of == 0 { 1.0 } else { self.matched as f64 / of as f64 };
        (self.precision, self.recall) = (share(self.found), share(self.labelled));
        let sum = self.precision + self.recall;
        self.f1 = if sum > 0.0 { 2.0 * self.precision * self.recall / sum } else { 0.0 };
    }
}
