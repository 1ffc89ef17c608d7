//! From text to terms: folded, without function words, stemmed.

use std::collections::HashSet;

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_segmentation::UnicodeSegmentation;
use xxhash_rust::xxh3::Xxh3;

use super::is_unspaced;
use super::words::{base_form, is_stopword};
use crate::index::{IndexUnit, TermId};
use crate::time::Timestamp;

/// Longest term; what is longer is data (a key, an encoded blob) and is cut.
const MAX_TERM_CHARS: usize = 64;

/// English months, lower case; index 0 is January.
const MONTHS: [&str; 12] = [
    "january", "february", "march", "april", "may", "june", "july", "august", "september",
    "october", "november", "december",
];

/// The terms of a text in order, function words left out.
///
/// Words follow UAX #29; they are folded (NFKD, lower case, accents and possessive `'s` removed)
/// and, where they are ASCII, taken to their base form and stemmed with the Snowball stemmer for
/// English. Contractions keep what is before the apostrophe; negated ones are function words.
/// Scripts without spaces give a term for each pair of neighbouring characters. `snake_case` gives
/// the whole and its parts.
#[must_use]
pub fn terms(text: &str) -> Vec<String> {
    let stemmer = Stemmer::create(Algorithm::English);
    let mut terms = Vec::new();
    let mut previous: Option<(usize, char)> = None;
    for (at, word) in text.unicode_word_indices() {
        let first = word.chars().next().unwrap_or_default();
        if is_unspaced(first) {
            for (offset, c) in word.char_indices() {
                let here = at + offset;
                if let Some((end, before)) = previous.filter(|(end, _)| *end == here) {
                    debug_assert_eq!(end, here);
                    terms.push([before, c].iter().collect());
                } else {
                    terms.push(c.to_string());
                }
                previous = Some((here + c.len_utf8(), c));
            }
            continue;
        }
        previous = None;
        let folded = fold(word);
        if folded.contains('_') {
            let parts = folded.split('_').filter(|part| !part.is_empty());
            terms.extend(parts.filter_map(|part| term(part, &stemmer)));
            terms.push(folded);
        } else {
            terms.extend(term(&folded, &stemmer));
        }
    }
    terms
}

fn term(folded: &str, stemmer: &Stemmer) -> Option<String> {
    if folded.is_empty() || is_stopword(folded) {
        return None;
    }
    if folded.bytes().all(|b| b.is_ascii_lowercase()) {
        Some(stemmer.stem(base_form(folded)).into_owned())
    } else {
        Some(folded.to_owned())
    }
}

/// Case, accents, compatibility forms and the possessive do not count.
fn fold(word: &str) -> String {
    let lower = if word.is_ascii() {
        word.to_ascii_lowercase()
    } else {
        word.nfkd()
            .filter(|c| !is_combining_mark(*c))
            .flat_map(char::to_lowercase)
            .map(|c| if c == '\u{2019}' { '\'' } else { c })
            .take(MAX_TERM_CHARS)
            .collect()
    };
    let mut folded = match lower.split_once('\'') {
        // "didn't" is a function word like "did"; "o'clock" and "we've" keep their head.
        Some((head, "t")) if head.ends_with('n') => return String::new(),
        Some((head, _)) => head.to_owned(),
        None => lower,
    };
    if folded.len() > MAX_TERM_CHARS
        && let Some((end, _)) = folded.char_indices().nth(MAX_TERM_CHARS)
    {
        folded.truncate(end);
    }
    folded
}

/// The index form of a text, with `marks` (speaker, date, question) that do not count for its
/// length.
#[must_use]
pub fn analyze(text: &str, marks: &[String]) -> IndexUnit {
    let own = terms(text);
    let length = u16::try_from(own.len()).unwrap_or(u16::MAX);
    let mut ids: Vec<TermId> = own.iter().chain(marks).map(|term| TermId::of(term)).collect();
    ids.sort_unstable();
    let mut counted: Vec<(TermId, u16)> = Vec::with_capacity(ids.len());
    for id in ids {
        match counted.last_mut() {
            Some((last, count)) if *last == id => *count = count.saturating_add(1),
            _ => counted.push((id, 1)),
        }
    }
    // Terms are kept for as long as the batch of their message.
    counted.shrink_to_fit();
    IndexUnit { terms: counted, length, vector: None }
}

/// The mark of a message that asks something. Marks begin with `@` and cannot collide with words.
pub const QUESTION_TERM: &str = "@?";

/// The mark of what the user said, as against models and tools.
pub const USER_TERM: &str = "@user";

/// The marks of a speaker: one for each word of the name.
#[must_use]
pub fn speaker_terms(name: &str) -> Vec<String> {
    terms(name).iter().map(|term| format!("@by:{term}")).collect()
}

/// The marks of the date of a message: its month, its year, and both together.
#[must_use]
pub fn date_terms(at: Timestamp) -> [String; 3] {
    let (year, month, _) = at.date();
    [format!("@{month:02}"), format!("@{year}"), format!("@{year}-{month:02}")]
}

/// Most dates that a question is taken to name.
const MAX_DATES: usize = 24;

/// The date marks that a question names: any of its months, in any of its years. `May 2023` gives
/// the pair, `May` alone the month of any year; empty when it names neither.
#[must_use]
pub fn asked_dates(question: &str) -> Vec<String> {
    let mut months: Vec<usize> = Vec::new();
    let mut years: Vec<&str> = Vec::new();
    for (_, word) in question.unicode_word_indices() {
        let lower = word.to_lowercase();
        let capital = word.starts_with(char::is_uppercase);
        // "may", "march" and short forms are words of their own: as months they are capitalized.
        let must_be_capital = lower.len() == 3 || lower == "march";
        let month = MONTHS.iter().position(|name| {
            *name == lower || lower.len() == 3 && name.starts_with(lower.as_str())
        });
        if let Some(month) = month
            && (capital || !must_be_capital)
        {
            months.push(month + 1);
        }
        let is_year = word.len() == 4
            && word.bytes().all(|b| b.is_ascii_digit())
            && (word.starts_with("19") || word.starts_with("20"));
        if is_year {
            years.push(word);
        }
    }
    months.sort_unstable();
    months.dedup();
    years.sort_unstable();
    years.dedup();
    let mut marks: Vec<String> = match (months.is_empty(), years.is_empty()) {
        (false, true) => months.iter().map(|month| format!("@{month:02}")).collect(),
        (true, _) => years.iter().map(|year| format!("@{year}")).collect(),
        (false, false) => years
            .iter()
            .flat_map(|year| months.iter().map(move |month| format!("@{year}-{month:02}")))
            .collect(),
    };
    marks.truncate(MAX_DATES);
    marks
}

/// The distinct terms of a question, in order of first appearance.
#[must_use]
pub fn query_terms(question: &str) -> Vec<String> {
    let mut seen = HashSet::new();
    let mut distinct = terms(question);
    distinct.retain(|term| seen.insert(term.clone()));
    distinct
}

/// A hash of some texts by their letters and digits: case, accents, punctuation and spacing do
/// not count, nor do articles.
#[must_use]
pub fn fold_key(parts: &[&str]) -> u64 {
    let mut hasher = Xxh3::new();
    for part in parts {
        for (_, word) in part.unicode_word_indices() {
            let folded = fold(word);
            if !matches!(folded.as_str(), "the" | "a" | "an") {
                hasher.update(folded.as_bytes());
                hasher.update(b" ");
            }
        }
        hasher.update(b"\0");
    }
    hasher.digest()
}

/// A hash of a value as it was stated: case, accents, spacing, and punctuation or quotation marks at
/// its ends do not count; everything else does (`$900` is not `€900`, `C++` is not `C#`).
#[must_use]
pub fn value_key(value: &str) -> u64 {
    let around = |c: char| c.is_whitespace() || ".,;:!?\"'`“”‘’".contains(c);
    let mut hasher = Xxh3::new();
    for word in value.trim_matches(around).split_whitespace() {
        let folded: String =
            word.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(char::to_lowercase).collect();
        hasher.update(folded.as_bytes());
        hasher.update(b" ");
    }
    hasher.digest()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_become_terms() {
        let table: &[(&str, &[&str])] = &[
            ("What did Caroline's friends paint?", &["carolin", "friend", "paint"]),
            ("Ticket OPS-4121 failed", &["ticket", "op", "4121", "fail"]),
            ("max_retry_count = 3.5", &["max", "retri", "count", "max_retry_count", "3.5"]),
            ("Café déjà", &["cafe", "deja"]),
            ("今日は", &["今", "今日", "日は"]),
            ("the of and", &[]),
            ("I don't know that she's gone", &["know", "go"]),
            ("The children wrote to us", &["child", "write"]),
        ];
        for (text, expected) in table {
            assert_eq!(terms(text), *expected, "{text}");
        }
    }

    #[test]
    fn questions_name_months_and_years() {
        let table: &[(&str, &[&str])] = &[
            ("What happened in May 2023?", &["@2023-05"]),
            ("Where may I go?", &[]),
            ("in december", &["@12"]),
            ("plans for 2024", &["@2024"]),
            ("between June and July 2022", &["@2022-06", "@2022-07"]),
            ("we march on, port 8080", &[]),
            ("May 2023, again May 2023", &["@2023-05"]),
        ];
        for (text, expected) in table {
            assert_eq!(asked_dates(text), *expected, "{text}");
        }
    }

    #[test]
    fn keys_ignore_how_a_value_is_written() {
        assert_eq!(fold_key(&["The Harbor, Kitchen"]), fold_key(&["harbor  kitchen"]));
        assert_ne!(fold_key(&["a", "b c"]), fold_key(&["a b", "c"]));
        assert_ne!(fold_key(&["8443"]), fold_key(&["8444"]));
    }

    #[test]
    fn values_differ_by_their_signs() {
        assert_eq!(value_key(" Café  8443."), value_key("cafe 8443"));
        for (one, other) in [("$900", "€900"), ("C++", "C#"), ("-5", "5"), ("50%", "50")] {
            assert_ne!(value_key(one), value_key(other), "{one} {other}");
        }
    }

    #[test]
    fn repeated_terms_are_counted() {
        let unit = analyze("port port PORT", &["@2023".into()]);
        assert_eq!(unit.length, 3);
        let counts: Vec<u16> = unit.terms.iter().map(|(_, count)| *count).collect();
        assert_eq!(counts.iter().sum::<u16>(), 4);
        assert_eq!(counts.len(), 2);
    }
}
