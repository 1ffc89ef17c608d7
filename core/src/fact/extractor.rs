//! Reading facts out of what a user writes.

use super::Extracted;

/// Finds what a user states in a message: facts, preferences, instructions, corrections and retractions.
///
/// It is asked in the append of every message of a user, and of nobody else's: what a model or a tool wrote, and
/// what a guest says, is never extracted. So it answers at once, without a model or a network; one that needs
/// either reads stored messages in a job, as a [`FactReader`](crate::ports::FactReader). Erasure reads messages that stay
/// anew by [`Forms`](super::Forms).
pub trait FactExtractor: Send + Sync {
    /// Name and version, such as `forms/1`: what is stored as `extracted_by` of every fact that it finds. It
    /// changes whenever the same message may give other facts.
    fn name(&self) -> &str;

    /// Whether the texts of its facts are sentences of the message. Facts that an extractor words itself are not the
    /// user's word: they are recalled, and never stand in the header.
    fn quotes(&self) -> bool {
        true
    }

    /// What the user states in `content` in their own words, in the order in which it stands there: at most 20
    /// facts. The same content always gives the same facts. Empty where nothing is stated, or where it is unclear
    /// who states it: a quotation, pasted text, code and reported speech give none. A fact with a subject and an
    /// attribute has a value; its text is the sentence that states it.
    fn extract(&self, content: &str) -> Vec<Extracted>;
}
