//! What a message is found by: one unit of the lexical index for each of its passages.

use crate::index::IndexUnit;
use crate::session::{Cuts, Message, Role};
use crate::text::{QUESTION_TERM, USER_TERM, analyze, date_terms, speaker_terms};
use crate::time::Timestamp;

impl Message {
    /// What it was indexed as, see [`stored_units`].
    #[must_use]
    pub fn index_units(&self) -> Vec<IndexUnit> {
        stored_units(self.role, self.name.as_deref(), &self.content, &self.cuts, self.created_at)
    }
}

/// What a stored message was indexed as, one unit for each passage, by which erasure finds its postings. A later version
/// may cut the same content elsewhere, so this follows the cuts that were stored with the message.
#[must_use]
pub fn stored_units(
    role: Role,
    name: Option<&str>,
    content: &str,
    cuts: &Cuts,
    at: Timestamp,
) -> Vec<IndexUnit> {
    index_passages(role, name, cuts.texts(content), at)
}

/// One unit a passage. Role, speaker and date are marks of each, so that a question that names one
/// finds it; a passage that asks is marked, because answers follow questions.
pub(crate) fn index_passages<'c>(
    role: Role,
    name: Option<&str>,
    passages: impl Iterator<Item = &'c str>,
    at: Timestamp,
) -> Vec<IndexUnit> {
    let mut marks = name.map(speaker_terms).unwrap_or_default();
    if role == Role::User {
        marks.push(USER_TERM.to_owned());
    }
    marks.extend(date_terms(at));
    let index = |passage: &str| {
        if passage.contains('?') {
            marks.push(QUESTION_TERM.to_owned());
        }
        let unit = analyze(passage, &marks);
        marks.retain(|mark| mark != QUESTION_TERM);
        unit
    };
    passages.map(index).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_units_follow_the_stored_cuts() {
        let content = "One sentence follows another here. ".repeat(30);
        let at = Timestamp::from_micros(1);
        let of = |cuts: &[usize]| {
            // Pairs of a length and a number of tokens, as a store keeps them.
            let bytes: Vec<u8> = cuts.iter().flat_map(|length| [*length as u8, 1]).collect();
            stored_units(Role::User, Some("Ana"), &content, &Cuts::decode(&bytes).unwrap(), at)
        };
        let texts = [&content[..100], &content[100..127]];
        let expected = index_passages(Role::User, Some("Ana"), texts.into_iter(), at);
        assert_eq!(of(&[100, 27]), expected);
        assert_eq!(of(&[]).len(), 1);
    }
}
