//! Values with a form of their own. Each pattern runs only where a part has what it needs, such as
//! a digit or an `@`, so that plain prose costs one look at its bytes.

use regex::Regex;

use super::Claims;
use super::patterns::{DATE, EMAIL, ID, MONEY, PHONE, URL, UUID};
use super::{addresses, projects};
use crate::entity::EntityKind;

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
    if at_sign {
        for found in EMAIL.find_iter(part) {
            let range = found.start()..found.start() + email_len(found.as_str());
            if is_email(&part[..range.start], &part[range.clone()], &part[range.end..]) {
                claims.add(range, EntityKind::Email, None);
            }
        }
    }
    if digits > 0 {
        addresses::claim(part, claims);
    }
    let mut all = |pattern: &Regex, kind, holds: &dyn Fn(&str, &str, &str) -> bool| {
        for found in pattern.find_iter(part) {
            let mut value = found.as_str();
            // The dot of "4 p.m." is its own.
            if !value.ends_with(".m.") {
                value = value.trim_end_matches(['.', ',', ' ', '-', '/']);
            }
            let range = found.start()..found.start() + value.len();
            if holds(&part[..range.start], value, &part[range.end..]) {
                claims.add(range, kind, None);
            }
        }
    };
    if digits > 6 {
        all(&UUID, EntityKind::Id, &|before, _, after| apart(before, after));
        all(&PHONE, EntityKind::Phone, &is_phone);
    }
    if digits > 0 {
        all(&MONEY, EntityKind::Money, &|before, _, after| apart(before, after));
        all(&DATE, EntityKind::Date, &|before, value, after| is_date(before, value, after));
    } else if has_weekday(part) {
        all(&DATE, EntityKind::Date, &|before, _, after| apart(before, after));
    }
    if digits > 0 || slash || dot || part.contains("ERR") {
        all(&ID, EntityKind::Id, &is_id);
    }
    projects::claim(part, claims);
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

/// The length of an e-mail address without the next sentence: `a@b.org.Call`.
fn email_len(found: &str) -> usize {
    let Some((rest, last)) = found.rsplit_once('.') else { return found.len() };
    let sentence = last.starts_with(char::is_uppercase) && last.contains(char::is_lowercase);
    let domain = rest.split('@').nth(1).unwrap_or_default();
    if sentence && domain.contains('.') && !domain.contains(char::is_uppercase) {
        rest.len()
    } else {
        found.len()
    }
}

/// Whether a text with an `@` is an e-mail address and no other address, file or unit.
fn is_email(before: &str, value: &str, after: &str) -> bool {
    let token = &before[before.rfind(char::is_whitespace).unwrap_or(0)..];
    let mut next = after.chars();
    // `git@host:path`
    let remote = next.next() == Some(':') && next.next().is_some_and(|c| !c.is_whitespace());
    let file = [".gif", ".jpeg", ".jpg", ".png", ".service", ".svg", ".webp"];
    !before.ends_with(|c: char| c.is_alphanumeric() || matches!(c, '@' | '.' | '_' | '/' | '-'))
        && !after.starts_with(|c: char| c.is_alphanumeric() || matches!(c, '@' | '_'))
        && !token.contains("://")
        && !remote
        && !file.iter().any(|ending| value.ends_with(ending))
        && !value.contains("..")
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
