//! Full stops that end an abbreviation and not a sentence.

use super::enclosures::LINE_BREAKS;
use super::words::is_stopword;

/// Never the last word of a sentence. Case counts: `ms.` are milliseconds.
const NEVER_LAST: &[&str] = &[
    "Capt", "Col", "Dr", "Drs", "Gen", "Gov", "Hon", "Lt", "Messrs", "Mlle", "Mme", "Mr", "Mrs",
    "Ms", "Mt", "Mx", "Prof", "Rev", "Sen", "Sgt", "Sra", "St", "a.k.a", "approx", "ca", "cf",
    "d.h", "dr", "e.g", "eg", "i.e", "ie", "mr", "mrs", "prof", "resp", "viz", "vs", "z.B",
];

/// Not the last word where a number follows, without case.
const BEFORE_NUMBERS: &[&str] = &[
    "apr", "art", "aug", "ch", "dec", "eq", "feb", "fig", "figs", "jan", "jul", "jun", "mar", "no",
    "nos", "nov", "nr", "oct", "op", "p", "pp", "sec", "sep", "sept", "tab", "vol",
];

/// A single letter after one of these is a label, not an initial: "plan B", "written in C". Without case.
const BEFORE_LABELS: &[&str] = &[
    "a", "an", "answer", "appendix", "are", "case", "class", "column", "exhibit", "figure", "gate",
    "grade", "group", "hepatitis", "in", "is", "item", "level", "model", "option", "part", "phase",
    "plan", "point", "question", "room", "row", "section", "series", "step", "table", "team",
    "type", "variant", "version", "vitamin", "was",
];

/// First words of sentences, beside function words, without case.
const FIRST_WORDS: &[&str] = &[
    "also", "although", "another", "however", "instead", "let", "maybe", "next", "no", "ok",
    "okay", "one", "please", "since", "thanks", "today", "unfortunately", "yes",
];

/// Longest abbreviation, in bytes.
const MAX_BYTES: usize = 12;

/// Whether the full stop at the end of `before` is one of an abbreviation, an initial or the number of a list's
/// item, where `after` follows it behind a space.
pub(super) fn is_abbreviated(before: &str, after: &str) -> bool {
    let Some(before) = before.strip_suffix('.') else { return false };
    let near = &before[before.ceil_char_boundary(before.len().saturating_sub(MAX_BYTES))..];
    let word = match near.rfind(char::is_whitespace) {
        Some(space) => near[space..].trim_start(),
        None if near.len() == before.len() => near,
        None => return false,
    };
    let earlier = &before[..before.len() - word.len()];
    let bare = word.trim_start_matches(|c: char| !c.is_alphanumeric());
    if bare.is_empty() {
        return false;
    }
    if bare.len() == word.len() && is_enumerator(earlier, word) {
        return true;
    }
    if NEVER_LAST.contains(&bare) {
        // "I live in Baker St. It is quiet."
        return bare != "St" || !begins_sentence(after);
    }
    if after.starts_with(|c: char| c.is_ascii_digit()) {
        return BEFORE_NUMBERS.contains(&bare.to_ascii_lowercase().as_str());
    }
    if !after.starts_with(char::is_uppercase) {
        return false;
    }
    // "J", "U.S", "Ph.D".
    let longest = if bare.contains('.') { 2 } else { 1 };
    let initials = bare
        .split('.')
        .all(|part| part.len() <= longest && part.starts_with(|c: char| c.is_ascii_uppercase()));
    initials && bare != "I" && !begins_sentence(after) && !(bare.len() == 1 && labels(earlier))
}

/// `1.` or `a.` at the beginning of a line.
fn is_enumerator(earlier: &str, word: &str) -> bool {
    let number = word.len() <= 3 && word.bytes().all(|b| b.is_ascii_digit());
    let letter = word.len() == 1 && word.bytes().all(|b| b.is_ascii_alphabetic());
    let line = earlier.trim_end_matches([' ', '\t']);
    (number || letter) && (line.is_empty() || line.ends_with(LINE_BREAKS))
}

/// Whether the first word of a text is one that sentences begin with, and no part of a name.
fn begins_sentence(text: &str) -> bool {
    let end = text.find(|c: char| !c.is_alphanumeric()).unwrap_or(text.len());
    if end == 1 && text[end..].starts_with('.') || end > 16 {
        return false;
    }
    let word = text[..end].to_lowercase();
    is_stopword(&word) || FIRST_WORDS.contains(&word.as_str())
}

/// Whether the word before a single letter says that it is a label.
fn labels(earlier: &str) -> bool {
    let earlier = earlier.trim_end();
    let near = &earlier[earlier.ceil_char_boundary(earlier.len().saturating_sub(MAX_BYTES))..];
    let word = near.rsplit(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    BEFORE_LABELS.contains(&word.to_lowercase().as_str())
}
