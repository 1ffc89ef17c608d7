//! Typed values in a message, found by patterns: addresses, names, dates, ids and the like.
//!
//! Linear in the message. Values do not overlap: a URL, an e-mail address or an id is read before
//! the phone number, the date or the name that its parts look like.

mod addresses;
mod forms;
mod names;
mod patterns;
mod persons;
mod projects;
#[cfg(test)]
mod sentences;
#[cfg(test)]
mod tests;

use std::ops::Range;

use super::EntityKind;
use crate::text::fold_spaces;

/// Values of one message at most; what has more is data.
const MAX_VALUES: usize = 40;

/// Longest part of a message that is read at once, so that the work for a value has a bound.
const MAX_PART: usize = 4_096;

/// Longest value, in bytes.
const MAX_VALUE: usize = 300;

/// The typed values of `content` in order of first appearance, white space folded, each once, at
/// most 40.
#[must_use]
pub fn extract(content: &str) -> Vec<(EntityKind, String)> {
    let mut found: Vec<(EntityKind, String)> = Vec::new();
    let mut lines = Lines::default();
    for (part, place) in content.lines().flat_map(|line| lines.parts(line)) {
        let mut claims = Claims::default();
        forms::claim(part, &mut claims);
        match place {
            Place::Prose => names::claim(part, &mut claims),
            Place::Signature => claims.add(trimmed(part), EntityKind::Name, None),
            // Addresses, names and projects in code are examples.
            Place::Code => claims.0.retain(|(_, kind, _)| !is_prose(*kind)),
        }
        for (range, kind, value) in claims.0 {
            let mut value = fold_spaces(&part[value.unwrap_or(range)]);
            if kind == EntityKind::Email {
                // One key, however it is written.
                value.make_ascii_lowercase();
            }
            if value.len() > MAX_VALUE || found.iter().any(|old| old.0 == kind && old.1 == value) {
                continue;
            }
            found.push((kind, value));
            if found.len() == MAX_VALUES {
                return found;
            }
        }
    }
    found
}

fn is_prose(kind: EntityKind) -> bool {
    matches!(kind, EntityKind::Address | EntityKind::Name | EntityKind::Project)
}

/// The range of a line without the white space around it.
fn trimmed(line: &str) -> Range<usize> {
    let start = line.len() - line.trim_start().len();
    start..start + line.trim().len()
}

/// Where a line stands.
#[derive(Debug, Clone, Copy)]
enum Place {
    Prose,
    /// Between the marks of a block of code.
    Code,
    /// The name under the closing of a letter.
    Signature,
}

/// What earlier lines say about the next.
#[derive(Debug, Default)]
struct Lines {
    code: bool,
    closed: bool,
}

impl Lines {
    fn parts<'l>(&mut self, line: &'l str) -> impl Iterator<Item = (&'l str, Place)> + use<'l> {
        let fence = line.trim_start().starts_with("```");
        let place = if fence || self.code {
            Place::Code
        } else if self.closed && line.len() < MAX_VALUE && names::is_signature(line) {
            Place::Signature
        } else {
            Place::Prose
        };
        self.code ^= fence;
        self.closed = names::is_closing(line) || self.closed && line.trim().is_empty();
        parts(line).map(move |part| (part, place))
    }
}

/// A line in parts of bounded length, cut at white space where there is any.
fn parts(line: &str) -> impl Iterator<Item = &str> {
    let mut rest = line;
    std::iter::from_fn(move || {
        if rest.len() <= MAX_PART {
            return (!rest.is_empty()).then(|| std::mem::take(&mut rest));
        }
        let limit = rest.floor_char_boundary(MAX_PART);
        let cut = rest[..limit].rfind(char::is_whitespace).filter(|at| *at > 0).unwrap_or(limit);
        let (part, tail) = rest.split_at(cut);
        rest = tail;
        Some(part)
    })
}

/// What is found in a part so far: ranges in order, none overlapping, each with its kind and, where
/// that is shorter, the range of its value.
#[derive(Debug, Default)]
struct Claims(Vec<(Range<usize>, EntityKind, Option<Range<usize>>)>);

impl Claims {
    /// Claims a range unless a part of it is taken.
    fn add(&mut self, range: Range<usize>, kind: EntityKind, value: Option<Range<usize>>) {
        let at = self.0.partition_point(|(claimed, ..)| claimed.end <= range.start);
        if !range.is_empty() && self.0.get(at).is_none_or(|(next, ..)| next.start >= range.end) {
            self.0.insert(at, (range, kind, value));
        }
    }

    /// Whether a part of the range is taken.
    fn overlaps(&self, range: &Range<usize>) -> bool {
        let at = self.0.partition_point(|(claimed, ..)| claimed.end <= range.start);
        self.0.get(at).is_some_and(|(next, ..)| next.start < range.end)
    }
}
