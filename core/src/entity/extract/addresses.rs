//! Postal addresses: a street with its number, then the place. The street is a table of patterns; the
//! place is read word by word, because what ends it is the word behind it.

use super::Claims;
use super::names::is_common;
use super::patterns::{CITY, POSTCODE, STATE, STREETS, UNIT};
use crate::entity::EntityKind;

/// Words before a year, as in "in 2008 Wall Street fell".
const BEFORE_YEARS: &[&str] =
    &["after", "before", "by", "during", "from", "in", "of", "since", "until"];

/// Words before a number that counts something else, as in "the 5 Star Court" and "room 12 Park Place".
const BEFORE_NUMBERS: &[&str] = &[
    "chapter", "level", "line", "page", "part", "room", "section", "step", "the", "top", "version",
];

/// Words that may follow a city within the sentence. Anything else, such as a verb, shows that the
/// word before it was no city.
const AFTER_CITIES: &[&str] = &[
    "and", "as", "at", "because", "before", "but", "by", "for", "from", "if", "in", "is", "near",
    "on", "or", "since", "so", "this", "to", "today", "tomorrow", "tonight", "until", "was",
    "when", "where", "which", "with",
];

/// Claims every address of a part.
pub(super) fn claim(part: &str, claims: &mut Claims) {
    for form in STREETS.iter() {
        for found in form.pattern.find_iter(part) {
            let mut end = found.end();
            if let Some(unit) = UNIT.find(&part[end..]) {
                end += unit.end();
            }
            let place = place_len(&part[end..]);
            let (before, after) = (&part[..found.start()], &part[end + place..]);
            let whole = place > 0 || !form.needs_place && is_whole(after, found.as_str());
            if !whole || !is_start(before, found.as_str()) {
                continue;
            }
            let range = found.start()..end + place;
            claims.add(range, EntityKind::Address, None);
        }
    }
}

/// Whether an address can start behind `before`.
fn is_start(before: &str, street: &str) -> bool {
    let last = before.split_whitespace().next_back().unwrap_or_default().to_lowercase();
    let number = street.split(' ').next().unwrap_or_default();
    let year = number.len() == 4 && (number.starts_with("19") || number.starts_with("20"));
    let glued = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '/' | '_' | '$' | '€');
    let numbered = number.starts_with(|c: char| c.is_ascii_digit());
    let dated = year && BEFORE_YEARS.contains(&last.as_str());
    let counted = numbered && BEFORE_NUMBERS.contains(&last.as_str());
    !before.ends_with(glued) && !dated && !counted
}

/// Whether a street without a place ends before `after`: "4 Google Drive accounts" is a count.
fn is_whole(after: &str, street: &str) -> bool {
    if after.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '-' | '\'' | '’' | '_')) {
        return false;
    }
    let next = after.strip_prefix(' ').unwrap_or_default();
    let next = next.split(|c: char| !c.is_alphanumeric()).next().unwrap_or_default();
    let counted = next.len() > 3 && next.ends_with('s');
    let more = street.starts_with(|c: char| c.is_ascii_digit())
        && !street.ends_with('.')
        && next.starts_with(char::is_uppercase);
    !counted && !more
}

/// The length of the place behind a street: postcode and city in either order, then a region or a
/// country.
fn place_len(rest: &str) -> usize {
    let mut end = 0;
    if let Some(postcode) = POSTCODE.find(rest) {
        let city = city_len(&rest[postcode.end()..]);
        if city > 0 {
            end = postcode.end() + city;
        }
    }
    // A district or a town, and what it belongs to.
    for first in [end == 0, false] {
        let Some(city) = rest[end..].strip_prefix(',') else { break };
        let length = city_len(city);
        if length == 0 {
            break;
        }
        let mut next = end + 1 + length;
        next += STATE.find(&rest[next..]).map_or(0, |state| state.end());
        let code =
            POSTCODE.find(&rest[next..]).filter(|code| ends_city(&rest[next + code.end()..]));
        match code {
            Some(code) => next += code.end(),
            None if first && !ends_city(&rest[next..]) => break,
            None if !first && !ends(&rest[next..]) => break,
            None => {}
        }
        end = next;
    }
    end
}

/// The length of a city's name behind a space, without days, months and the like.
fn city_len(rest: &str) -> usize {
    let Some(city) = CITY.find(rest) else { return 0 };
    let mut end = 0;
    for word in city.as_str()[1..].split(' ') {
        // "New York".
        if is_common(word) && word != "New" {
            return end;
        }
        end += 1 + word.len();
    }
    end
}

/// Whether a sentence or a clause ends before `after`.
fn ends(after: &str) -> bool {
    let mut chars = after.chars();
    match chars.next() {
        None => true,
        Some('.' | ',' | ';' | ':' | '!' | '?' | ')' | ']' | '"' | '”' | '*' | '\n') => true,
        Some(' ') => chars.next().is_some_and(|c| matches!(c, '(' | '-' | '–' | '—')),
        Some(_) => false,
    }
}

/// Whether what stood before `after` can be a city.
fn ends_city(after: &str) -> bool {
    let mut words =
        after.split_whitespace().map(|word| word.trim_end_matches(['.', ',', '?', '!', ';']));
    let function = after.starts_with(' ')
        && words.next().is_some_and(|word| AFTER_CITIES.contains(&word))
        // "5 Oak Avenue, Maria and Rui": two names.
        && !(after.starts_with(" and ") && words.next().is_some_and(|w| w.starts_with(char::is_uppercase)));
    function || ends(after)
}
