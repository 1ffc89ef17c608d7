//! A text within a number of characters.

use std::ops::Range;

use super::protect::protected_values;
use super::units::Units;

/// The mark for omitted text.
const GAP: &str = " … ";
const GAP_CHARS: usize = 3;

/// At most `max` characters of `text`, with `…` where text is left out.
///
/// What is kept is the beginning, up to a word where one ends near, and protected values (errors, URLs, paths,
/// codes, numbers, quotations) that come after it. These have precedence, and each is kept whole or left out.
#[must_use]
pub fn clip(text: &str, max: usize) -> String {
    if text.char_indices().nth(max).is_none() {
        return text.to_owned();
    }
    let units = Units::of(text);
    let mut left = max.saturating_sub(GAP_CHARS);
    let mut values = protected_values(text);
    let cost = |value: &Range<usize>| text[value.clone()].chars().count() + GAP_CHARS;
    values.retain(|value| {
        let fits = cost(value) <= left;
        left -= if fits { cost(value) } else { 0 };
        fits
    });
    // The longer the beginning, the more values are part of it and need no room of their own.
    for held in (1..=values.len()).rev() {
        let behind = &values[held..];
        let end = beginning(text, room(max, behind.iter().map(cost)), behind.is_empty(), &units);
        if end >= values[held - 1].end {
            return joined(text, end, behind);
        }
    }
    let end = beginning(text, room(max, values.iter().map(cost)), values.is_empty(), &units);
    joined(text, end, &values)
}

/// Characters for the beginning, beside values and the mark at the end.
fn room(max: usize, costs: impl Iterator<Item = usize>) -> usize {
    let costs = costs.sum::<usize>();
    max.saturating_sub(if costs == 0 { 1 } else { costs + GAP_CHARS })
}

/// Where a beginning of at most `room` characters ends: at a word where one ends near, and not within a unit.
fn beginning(text: &str, room: usize, alone: bool, units: &Units) -> usize {
    let keep = text.char_indices().nth(room).map_or(text.len(), |(at, _)| at);
    let is_near = |at: &usize| !alone || *at * 4 > keep * 3;
    let cut = match text[keep..].starts_with(char::is_whitespace) && !alone {
        true => keep,
        false => text[..keep].rfind(char::is_whitespace).filter(is_near).unwrap_or(keep),
    };
    units.around(cut).map_or(cut, |unit| unit.start)
}

/// The text up to `end` and the values behind it, with marks between them.
fn joined(text: &str, end: usize, values: &[Range<usize>]) -> String {
    let mut at = values.first().map_or(end, |value| end.min(value.start));
    let mut clipped = text[..at].trim_end().to_owned();
    at = clipped.len();
    for value in values {
        let between = &text[at..value.start];
        if between.chars().nth(GAP_CHARS).is_none() {
            clipped.push_str(between);
        } else {
            clipped.push_str(if clipped.is_empty() { GAP.trim_start() } else { GAP });
        }
        clipped.push_str(&text[value.clone()]);
        at = value.end;
    }
    let rest = &text[at..];
    if values.is_empty() {
        clipped.push('…');
    } else if rest.chars().nth(GAP_CHARS - 1).is_none() {
        clipped.push_str(rest);
    } else {
        clipped.push_str(GAP.trim_end());
    }
    clipped
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::sentences::tests::tricky;
    use super::*;

    const REPORT: &str = "ERROR: the connection to https://db.example.com:5432/x?y=1&z=2.5 was refused (code \
                          E4711) after 3 retries, see /var/log/app/db.log and then try again with more patience";

    #[test]
    fn plain_text_ends_at_a_word() {
        let table = [
            ("short", 10, "short"),
            ("one two three four", 16, "one two three…"),
            ("incomprehensibilities", 10, "incompreh…"),
            ("one incomprehensibilities", 12, "one incompr…"),
            ("今日は良い天気ですね", 6, "今日は良い…"),
            ("1 2 3 4 5 6 7 8 9 10", 8, "1 2 3 4…"),
            ("anything", 0, "…"),
        ];
        for (text, max, expected) in table {
            assert_eq!(clip(text, max), expected, "{text:?} {max}");
        }
    }

    #[test]
    fn values_have_precedence_and_stay_whole() {
        let table = [
            (
                120,
                "ERROR: the connection to https://db.example.com:5432/x?y=1&z=2.5 was refused \
                 (code E4711) … 3 … /var/log/app/db.log …",
            ),
            (70, "ERROR: the … https://db.example.com:5432/x?y=1&z=2.5 … E4711 … 3 …"),
            (30, "ERROR: the … E4711 … 3 …"),
            (12, "ERROR: the…"),
        ];
        for (max, expected) in table {
            assert_eq!(clip(REPORT, max), expected, "{max}");
        }
        let filler = "it went on and on without any end to it ".repeat(3);
        for value in ["1,000.50 USD", "`a. B`", "\"one. Two\"", r"C:\a\b.txt", "ana@example.org"] {
            let text = format!("{filler}{value} {filler}");
            let clipped = clip(&text, 60);
            assert!(clipped.contains(value) && clipped.starts_with("it went on"), "{clipped}");
        }
    }

    #[test]
    fn no_cut_is_inside_a_value() {
        let values = protected_values(REPORT);
        for max in 1..REPORT.len() {
            let clipped = clip(REPORT, max);
            let mut at = 0;
            for piece in clipped.split('…').map(str::trim).filter(|piece| !piece.is_empty()) {
                let divides = |cut| values.iter().any(|value| value.start < cut && cut < value.end);
                let places = REPORT[at..].match_indices(piece).map(|(place, _)| at + place);
                let whole = places
                    .map(|start| start..start + piece.len())
                    .find(|place| !divides(place.start) && !divides(place.end));
                at = whole.unwrap_or_else(|| panic!("{max}: {clipped}")).end;
            }
        }
    }

    proptest! {
        #[test]
        fn any_text_is_clipped(text in tricky(), max in 1_usize..120) {
            let clipped = clip(&text, max);
            prop_assert!(clipped.chars().count() <= max, "{clipped:?}");
            prop_assert_eq!(clipped == text, text.chars().count() <= max);
        }
    }
}
