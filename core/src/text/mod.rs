//! Text as the domain sees it: terms, sentences, passages, and what compression must not touch.
//! Everything here is pure and runs in time linear in its input.

mod abbreviations;
mod analyze;
mod clip;
mod compress;
mod enclosures;
mod fences;
mod look_alikes;
mod passages;
mod patterns;
mod postings;
mod protect;
mod sentences;
mod units;
mod words;

pub use analyze::{
    QUESTION_TERM, USER_TERM, analyze, asked_dates, date_terms, fold_key, query_terms,
    speaker_terms, terms, value_key,
};
pub use clip::clip;
pub use compress::{Squeeze, squeeze};
pub use fences::{guarded, guarded_file, guarded_speech, guarded_whole, without_fenced};
pub(crate) use look_alikes::letters;
pub use passages::{PassageSizes, passages};
pub(crate) use patterns::ascii;
pub use postings::{
    FOLD_AT, PostingBlock, PostingsError, SETTLED_POSTINGS, Thinned, decode_postings,
    encode_postings, extend_postings, remove_postings,
};
pub(crate) use postings::{put_number, take_number};
pub use protect::{holds_all, protected_spans, reports_problem};
pub use sentences::{is_question, sentence_ranges, sentences};

/// Characters that end a line for any reader, also those that do not end one for ours.
pub(crate) const ANY_LINE_BREAK: [char; 10] =
    ['\n', '\r', '\u{b}', '\u{c}', '\u{1c}', '\u{1d}', '\u{1e}', '\u{85}', '\u{2028}', '\u{2029}'];

/// White space folded to single spaces, none at the ends.
#[must_use]
pub fn fold_spaces(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.push_str(word);
    }
    folded
}

/// Whether the scripts of `text` write words without spaces, so that its characters are its terms.
pub(crate) fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{0e00}'..='\u{0eff}' | '\u{1780}'..='\u{17ff}' | '\u{20000}'..='\u{2fa1f}')
}
