//! What a message is found by: one unit of the lexical index for each of its passages.

use std::ops::Range;

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
    let mut marks = name.map(speaker_terms).unwrap_or_default();
    if role == Role::User {
        marks.push(USER_TERM.to_owned());
    }
    marks.extend(date_terms(at));
    let index = |range: Range<usize>| {
        let passage = &content[range];
        if passage.contains('?') {
            marks.push(QUESTION_TERM.to_owned());
        }
        let unit = analyze(passage, &marks);
        marks.retain(|mark| mark != QUESTION_TERM);
        unit
    };
    passages(content, PassageSizes::MESSAGE).into_iter().map(index).collect()
}
