//! What a message is found by: one unit of the lexical index for each of its passages.

use crate::index::IndexUnit;
use crate::session::Role;
use crate::text::{
    PassageSizes, QUESTION_TERM, USER_TERM, analyze, date_terms, passages, speaker_terms,
};
use crate::time::Timestamp;

/// One unit a passage. Role, speaker and date are marks of each, so that a question that names one
/// finds it; a passage that asks is marked, because answers follow questions. The same message gives
/// the same units, by which erasure finds its postings.
#[must_use]
pub fn index_units(role: Role, name: Option<&str>, content: &str, at: Timestamp) -> Vec<IndexUnit> {
    let cut = passages(content, PassageSizes::MESSAGE);
    index_passages(role, name, cut.into_iter().map(|range| &content[range]), at)
}

/// As [`index_units`], of a message that is cut already.
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
