//! Numbers of payment cards: 13 to 19 digits whose check digit is right (ISO/IEC 7812, Luhn).

use std::sync::LazyLock;

use regex::Regex;

use super::Secret;
use crate::text::ascii;

pub(super) const RULE: &str = "card-number";

static NUMBER: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(&ascii(r"\b[2-6]\d{3}(?:[ -]?\d{2,6}){2,4}\b")).ok());

pub(super) fn scan(text: &str) -> Vec<Secret> {
    let Some(number) = &*NUMBER else { return Vec::new() };
    let found = number.find_iter(text).filter(|found| is_card(found.as_str()));
    found.map(|found| Secret { range: found.range(), rule: RULE }).collect()
}

fn is_card(text: &str) -> bool {
    let digits: Vec<u32> = text.chars().filter_map(|c| c.to_digit(10)).collect();
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(at, digit)| match (at % 2, digit * 2) {
            (0, _) => *digit,
            (_, double) if double > 9 => double - 9,
            (_, double) => double,
        })
        .sum();
    let varied = digits.iter().any(|digit| Some(digit) != digits.first());
    (13..=19).contains(&digits.len()) && varied && sum.is_multiple_of(10)
}
