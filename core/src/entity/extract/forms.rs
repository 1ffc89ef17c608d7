//! Values with a form of their own. Each pattern runs only where a part has what it needs, such as
//! a digit or an `@`, so that plain prose costs one look at its bytes.

use regex::Regex;

use super::Claims;
use super::patterns::{ADDRESS, DATE, EMAIL, ID, MONEY, PHONE, PROJECT, URL, UUID};
use crate::entity::EntityKind;

/// What follows "project" in a title and is no name.
const NO_PROJECTS: &[&str] = &["Budget", "I", "Lead", "Manager", "Owner", "Page", "Plan", "Team"];

/// Prefixes of standards and the like that look like tickets.
const NO_TICKETS: &[&str] = &[
    "AES", "COVID", "GMT", "GPT", "HTTP", "ISO", "MD", "MP", "RFC", "SHA", "TLS", "USB", "UTC",
    "UTF",
];

/// Claims every value that has a form of its own, in order of precedence.
pub(super) fn claim(part: &str, claims: &mut Claims) {
    let mut digits = 0_usize;
    let (mut at_sign, mut slash, mut dot) = (false, false, false);
    for byte in part.bytes() {
        match byte {
            b'0'..=b'9' => digits += 1,
            b'@' => at_sign = true,
            b'/' | b'\\' => slash = true,
            b'.' => dot = true,
            _ => {}
        }
    }
    if slash && part.contains("://") || dot && part.contains("www.") {
        for found in URL.find_iter(part) {
            claims.add(
                found.start()..found.start() + trimmed(found.as_str()),
                EntityKind::Url,
                None,
            );
        }
    }
    let mut all = |pattern: &Regex, kind, holds: &dyn Fn(&str, &str, &str) -> bool| {
        for found in pattern.find_iter(part) {
            let value = found.as_str().trim_end_matches(['.', ',', ' ', '-', '/']);
            let range = found.start()..found.start() + value.len();
            if holds(&part[..range.start], value, &part[range.end..]) {
                claims.add(range, kind, None);
            }
        }
    };
    if at_sign {
        all(&EMAIL, EntityKind::Email, &|_, _, _| true);
    }
    if digits > 6 {
        all(&UUID, EntityKind::Id, &|before, _, after| apart(before, after));
        all(&PHONE, EntityKind::Phone, &is_phone);
    }
    if digits > 0 {
        all(&MONEY, EntityKind::Money, &|before, _, after| apart(before, after));
        all(&DATE, EntityKind::Date, &|before, value, after| is_date(before, value, after));
        all(&ADDRESS, EntityKind::Address, &|before, _, _| {
            !before.ends_with(char::is_alphanumeric)
        });
    } else if has_weekday(part) {
        all(&DATE, EntityKind::Date, &|before, _, after| apart(before, after));
    }
    if digits > 0 || slash || dot || part.contains("ERR") {
        all(&ID, EntityKind::Id, &is_id);
    }
    if part.contains("roject") || part.contains("ode") {
        for found in PROJECT.captures_iter(part) {
            let name =
                found.name("after").or_else(|| found.name("code")).or_else(|| found.name("before"));
            if let (Some(name), Some(whole)) = (name, found.get(0)) {
                let first = name.as_str().split(' ').next().unwrap_or_default();
                if !NO_PROJECTS.contains(&first) {
                    let value = part[name.range()].trim_end_matches('-').len();
                    let value = name.start()..name.start() + value;
                    claims.add(whole.range(), EntityKind::Project, Some(value));
                }
            }
        }
    }
}

/// The length of a URL without the punctuation of the sentence around it.
fn trimmed(url: &str) -> usize {
    let mut end = url.len();
    let count = |mark: char| url.matches(mark).count();
    // A closing bracket that was not opened within the URL closes one around it.
    let mut round = count(')').saturating_sub(count('('));
    let mut square = count(']').saturating_sub(count('['));
    while let Some(last) = url[..end].chars().next_back() {
        match last {
            ')' if round > 0 => round -= 1,
            ']' if square > 0 => square -= 1,
            '.' | ',' | ';' | ':' | '!' | '?' | '}' | '*' | '_' => {}
            _ => break,
        }
        end -= last.len_utf8();
    }
    end
}

/// Whether a value is no part of a longer word or number.
fn apart(before: &str, after: &str) -> bool {
    let inner = |c: char| c.is_alphanumeric() || c == '_';
    let mut next = after.chars();
    let joined = match next.next() {
        Some('.' | ',' | ':' | '-' | '/') => next.next().is_some_and(|c| c.is_ascii_digit()),
        Some(c) => inner(c),
        None => false,
    };
    let mut last = before.chars().rev();
    let continued = match last.next() {
        Some('.' | ',' | ':' | '/' | '-') => last.next().is_some_and(|c| c.is_ascii_digit()),
        Some(c) => inner(c),
        None => false,
    };
    !joined && !continued
}

fn is_phone(before: &str, value: &str, after: &str) -> bool {
    let digits = value.bytes().filter(u8::is_ascii_digit).count();
    let code = before.ends_with(['-', '.', '/', '#', '_', ':', '=', '$', '€', '£', '+']);
    if !(7..=15).contains(&digits) || code || !apart(before, after) || after.starts_with('%') {
        return false;
    }
    // Digits alone are a phone number only where a word says so.
    if digits == value.len() && !value.starts_with("00") {
        let near = &before[before.floor_char_boundary(before.len().saturating_sub(28))..];
        let near = near.to_ascii_lowercase();
        return ["phone", "call", "tel", "mobile", "whatsapp", "cell", "fax", "dial"]
            .iter()
            .any(|word| near.contains(word));
    }
    let date = value.split(['-', '/', '.']).map(str::len);
    !date.eq([2, 2, 4])
}

fn is_date(before: &str, value: &str, after: &str) -> bool {
    let hour = value.split(':').next().and_then(|hour| hour.parse::<u8>().ok());
    let port = value.contains(':') && !value.contains('-') && before.ends_with(['.', ':', '/']);
    apart(before, after)
        && !before.ends_with(['-', '_', '$', '€'])
        && hour.is_none_or(|h| h < 24)
        && !port
}

fn has_weekday(part: &str) -> bool {
    part.match_indices("day").any(|(at, _)| part[..at].ends_with(['n', 's', 'i', 'r']))
}

fn is_id(before: &str, value: &str, after: &str) -> bool {
    let inner = |c: char| c.is_alphanumeric() || c == '_';
    if before.ends_with(|c: char| inner(c) || matches!(c, '-' | '@' | '#' | '$' | '.' | '/' | '\\'))
        || after.starts_with(inner)
    {
        return false;
    }
    let digit = value.contains(|c: char| c.is_ascii_digit());
    let letter = value.contains(|c: char| c.is_ascii_alphabetic());
    if value.contains(['/', '\\']) {
        let rooted = value.starts_with(['/', '~', '.']) || value[1..].starts_with(":\\");
        let network = value.split(['.', '/']).all(|octet| octet.parse::<u8>().is_ok());
        return letter && (rooted || value.contains('.')) || network && value.contains('.');
    }
    let Some((head, tail)) = value.split_once('-').filter(|_| !value.contains('.')) else {
        if value.bytes().filter(|b| *b == b'.').count() == 3 && !letter {
            let host = value.split(':').next().unwrap_or_default();
            return host.split('.').all(|octet| octet.parse::<u8>().is_ok());
        }
        // "Node.js" is a name.
        let product = value.ends_with(".js") && value.starts_with(|c: char| c.is_ascii_uppercase());
        return !product && (value.contains(['.', '_']) || digit && letter);
    };
    let ticket = !head.is_empty() && !NO_TICKETS.contains(&head);
    ticket && tail.starts_with(|c: char| c.is_ascii_digit()) || value.contains('.')
}
