//! Typed values in a text: times, dates, amounts of money, versions, numbers with their units, and names.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::forms::pattern;

/// What sort of value it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueType {
    Time,
    Date,
    Money,
    /// An address, a version or another code: letters or marks among digits.
    Code,
    Number,
    Name,
}

/// A value where it stands in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TypedValue {
    pub(super) kind: ValueType,
    pub(super) range: Range<usize>,
}

/// Each group is a sort of value, in the order of [`GROUPS`]: of two that fit, the first.
static VALUES: LazyLock<Regex> = LazyLock::new(|| {
    const MONTH: &str = "(?:jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may|june?|july?|\
        aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?)";
    pattern(&format!(
        r"(?xi)
        (?P<code>\S+@\S+\.\w+ | \+?\b\d{{2,5}}(?:[-\ ]\d{{2,}})*-\d{{3,}}\b | https?://[^\s,]+[^\s,.;:!?] | \d+(?:\.\d+){{2,}}\S*[\w] | v\d+(?:\.\d+)*
          | \b[a-z]+(?:-[a-z]+)*-\d[\w-]* | \b[A-Z]{{1,5}}\d[\w.]*\w)
        | (?P<date>\d{{4}}-\d\d-\d\d
          | \b\d{{1,2}}(?:st|nd|rd|th)?(?:\ of)?\ {MONTH}\b(?:,?\ \d{{4}}\b)?
          | \b{MONTH}\ \d{{1,2}}(?:st|nd|rd|th)?\b(?:,?\ \d{{4}}\b)?
          | \b\d{{1,2}}(?:st|nd|rd|th)\b
          | \b(?:mon|tues|wednes|thurs|fri|satur|sun)day\b | \btomorrow\b)
        | (?P<time>\b\d{{1,2}}:\d\d(?:\ ?[ap]m\b)? | \b\d{{1,2}}\ ?[ap]m\b | \bnoon\b | \bmidnight\b)
        | (?P<money>[€$£¥]\ ?\d+(?:[.,]\d+)*(?:k\b|\ ?million\b)?
          | \b\d+(?:[.,]\d+)*\ ?(?:€|£|\$|euros?\b|dollars?\b|pounds?\b|eur\b|usd\b|gbp\b|chf\b|francs?\b))
        | (?P<number>\b\d+(?:[.,]\d+)*\b)"
    ))
});

const GROUPS: [(&str, ValueType); 5] = [
    ("code", ValueType::Code),
    ("date", ValueType::Date),
    ("time", ValueType::Time),
    ("money", ValueType::Money),
    ("number", ValueType::Number),
];

/// Words with a capital that name nothing.
const NO_NAMES: &[&str] = &[
    "I", "I'm", "I've", "I'd", "I'll", "The", "My", "Our", "It", "It's", "Actually", "Sorry", "We",
    "Correction", "Not", "No", "Wait", "That", "This", "And", "But", "So", "He", "She", "They",
    "In", "On", "At", "For", "From", "Please", "Make", "You", "Yes", "OK", "Ok", "Oh",
];

/// The values of a text in order. A number has the word beside it only to compare with, not in its range.
pub(super) fn typed_values(text: &str) -> Vec<TypedValue> {
    let mut found: Vec<TypedValue> = VALUES
        .captures_iter(text)
        .filter_map(|captures| {
            let (kind, range) = GROUPS
                .iter()
                .find_map(|(name, kind)| Some((*kind, captures.name(name)?.range())))?;
            Some(TypedValue { kind, range })
        })
        .collect();
    let mut at = 0;
    let mut name: Option<Range<usize>> = None;
    let mut names = Vec::new();
    for word in text.split_inclusive(char::is_whitespace) {
        let start = at + word.len() - word.trim_start_matches(|c: char| !c.is_alphanumeric()).len();
        let bare = word.trim().trim_matches(|c: char| !c.is_alphanumeric());
        let end = start + bare.len();
        at += word.len();
        let named = bare.starts_with(char::is_uppercase) && !NO_NAMES.contains(&bare);
        let free = !found.iter().any(|value| start < value.range.end && value.range.start < end);
        match &mut name {
            Some(range) if named && free => range.end = end,
            _ if named && free => name = Some(start..end),
            _ => names.extend(name.take()),
        }
        if word.trim_end().ends_with([',', '.', ';', ':', '!', '?']) {
            let abbreviated = matches!(bare, "Dr" | "Mr" | "Mrs" | "Ms" | "Prof" | "St");
            if !abbreviated {
                names.extend(name.take());
            }
        }
    }
    names.extend(name);
    found.extend(names.into_iter().map(|range| TypedValue { kind: ValueType::Name, range }));
    found.sort_by_key(|value| value.range.start);
    found
}

/// Whether a value of one sort may take the place of another's.
pub(super) fn alike(text: &str, value: &TypedValue, other: &str, wanted: &TypedValue) -> bool {
    if value.kind != wanted.kind {
        return false;
    }
    match value.kind {
        ValueType::Number => {
            let (before, wanted_before) = (lead(text, value), lead(other, wanted));
            let (after, wanted_after) = (unit(text, value), unit(other, wanted));
            before.is_some() && before == wanted_before || after == wanted_after
        }
        // A day of the week takes the place of one, and a date of a date.
        ValueType::Date => {
            let counted = |text: &str, value: &TypedValue| {
                text[value.range.clone()].contains(|c: char| c.is_ascii_digit())
            };
            counted(text, value) == counted(other, wanted)
        }
        _ => true,
    }
}

/// The word before a number: "version 2.4", "port 9443".
fn lead<'t>(text: &'t str, value: &TypedValue) -> Option<&'t str> {
    let word = text.get(..value.range.start)?.trim_end().rsplit(' ').next()?;
    let small = ["the", "has", "have", "are", "for", "and", "with", "not", "about", "only", "its"];
    (word.len() > 2 && !small.contains(&word) && word.chars().all(char::is_alphabetic))
        .then_some(word)
}

/// The word after a number.
fn unit<'t>(text: &'t str, value: &TypedValue) -> Option<&'t str> {
    let rest = text.get(value.range.end..)?.strip_prefix(' ')?;
    let word = rest.split(|c: char| !c.is_alphabetic()).next()?;
    const JOINS: [&str; 20] = [
        "now", "and", "not", "in", "on", "at", "from", "for", "with", "behind", "yesterday",
        "today", "or", "as", "since", "after", "instead", "last", "but", "is",
    ];
    (!word.is_empty() && !JOINS.contains(&word)).then_some(word)
}
