//! Noun phrases and values: whose property a statement speaks of, and what it says of it.

use std::ops::Range;

use super::sentence::{Sentence, Stop};
use super::words::{Class, Classes};

/// Longest value, in words.
const MAX_VALUE_WORDS: usize = 14;

/// The subject of a statement about the speaker.
pub(super) const USER: &str = "user";

/// The subject of a property that names no owner.
pub(super) const PROJECT: &str = "project";

/// A noun phrase that a statement is about, such as `my sister's phone number`.
#[derive(Debug)]
pub(super) struct Noun {
    /// The words after the determiner and after words such as `new`.
    pub(super) words: Range<usize>,
    pub(super) determiner: Determiner,
}

/// What a noun phrase begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Determiner {
    My,
    Our,
    The,
    None,
}

/// The noun phrase that begins at `at` and ends before the first word that `ends` takes.
pub(super) fn noun(s: &Sentence<'_>, at: usize, ends: impl Fn(usize) -> bool) -> Option<Noun> {
    let determiner = match s.lower(at) {
        "my" => Determiner::My,
        "our" => Determiner::Our,
        "the" | "a" | "an" => Determiner::The,
        _ => Determiner::None,
    };
    let start = s.skip(at + usize::from(determiner != Determiner::None), Class::Fresh);
    let limit = if determiner == Determiner::None { 5 } else { 9 };
    let mut end = start;
    // "of" and "for" lead to the owner: "the port of the staging server".
    let mut linked = false;
    while end < s.len() && !ends(end) {
        let word = s.lower(end);
        let preposition = matches!(word, "of" | "for")
            // "The wifi password at the cabin".
            || determiner != Determiner::None
                && matches!(word, "at" | "in" | "on" | "with" | "from" | "to")
                && (matches!(s.lower(end + 1), "the" | "our" | "my") || s.is_name(end + 1))
                && end > start;
        let link = preposition && end > start && !linked;
        let owner_article = linked && matches!(word, "the" | "our" | "my");
        if end - start >= limit
            || !link
                && !owner_article
                && (preposition || s.is(end, Class::NotNouns) || word == "the" || word == "my")
            || s.is_quoted(end)
            || end > start && s.stop(end - 1) != Stop::None
        {
            return None;
        }
        linked |= link;
        end += 1;
    }
    (start < end).then_some(Noun { words: start..end, determiner })
}

/// The noun phrase that is all of `start..end`.
pub(super) fn noun_within(s: &Sentence<'_>, start: usize, end: usize) -> Option<Noun> {
    let whole = noun(s, start, |at| at >= end)?;
    (whole.words.end == end).then_some(whole)
}

impl Noun {
    /// Subject and attribute: "the staging port" is staging's port, "our deadline" the project's
    /// deadline, "my budget" the user's budget.
    pub(super) fn slot(&self, s: &Sentence<'_>) -> Option<(String, String)> {
        let Range { start, end } = self.words.clone();
        if let Some(link) = (start..end).find(|at| is_link(s.lower(*at))) {
            let owner = (link + 1..end).find(|at| !matches!(s.lower(*at), "the" | "our" | "my"))?;
            return Some((subject(s, owner..end), attribute(s, start..link)?));
        }
        if let Some(owner) = (start..end - 1).find(|at| s.lower(*at).ends_with("'s")) {
            return Some((
                subject(s, start..owner + 1),
                attribute(s, s.skip(owner + 1, Class::Fresh)..end)?,
            ));
        }
        if self.determiner == Determiner::My {
            return Some((USER.to_owned(), attribute(s, start..end)?));
        }
        let generic = end - start >= 2 && s.is(end - 1, Class::Generic);
        let head = end - 1 - usize::from(generic);
        if head == start {
            return Some((PROJECT.to_owned(), attribute(s, start..end)?));
        }
        Some((subject(s, start..head), attribute(s, head..end)?))
    }

    /// Whether the phrase speaks of the talk at hand: "the problem", but not "the launch date".
    pub(super) fn is_talk(&self, s: &Sentence<'_>) -> bool {
        let head = self.head(s);
        let named = head > self.words.start
            && (s.is(head, Class::Generic) || matches!(s.lower(head), "code" | "day" | "file"));
        s.is(head, Class::Talk) && !named
    }

    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// The last word before any "of": what the phrase speaks of.
    pub(super) fn head(&self, s: &Sentence<'_>) -> usize {
        let link = self.words.clone().find(|at| is_link(s.lower(*at)));
        link.unwrap_or(self.words.end) - 1
    }
}

/// Leads from a property to its owner.
fn is_link(word: &str) -> bool {
    matches!(word, "of" | "for" | "at" | "in" | "on" | "with" | "from" | "to")
}

/// An owner as it was written, without the possessive and the word "project".
pub(super) fn subject(s: &Sentence<'_>, words: Range<usize>) -> String {
    let Range { mut start, mut end } = words;
    if end - start > 1 {
        if s.lower(start) == "project" {
            start += 1;
        } else if s.lower(end - 1) == "project" {
            end -= 1;
        }
    }
    let text = s.slice(start..end);
    text.strip_suffix("'s").or_else(|| text.strip_suffix('\'')).unwrap_or(text).to_owned()
}

fn attribute(s: &Sentence<'_>, words: Range<usize>) -> Option<String> {
    let text = s.slice(words).to_lowercase();
    (!text.is_empty() && text.len() <= 80).then_some(text)
}

/// The value that begins at `start` and is over before `end`; empty where there is none.
pub(super) fn value(s: &Sentence<'_>, start: usize, end: usize, place: bool) -> Range<usize> {
    let mut at = start;
    while at < end && at < start + MAX_VALUE_WORDS {
        let quoted = s.is_quoted(at);
        let over = s.is(at, Class::ValueEnds) || place && s.is(at, Class::PlaceEnds);
        let idle = s.has(at, "at the moment")
            || s.has(at, "these days")
            || s.has(at, "right now")
            || s.has(at, "as of")
            || s.lower(at) == "not" && at > start
            // "Rust 1.79 and no async", "7 and reads at a high level".
            || s.lower(at) == "and" && at > start && (s.lower(at + 1) == "no" || s.lower(at + 1) == "it's" || is_habit(s.lower(at + 1)))
            || s.lower(at) == "on" && at > start && s.lower(at + 1) == "a"
            || s.has(at, "under load")
            || matches!(s.lower(at), "today" | "last") && at > start
            || place
                && s.lower(at) == "in"
                && s.word(at + 1).starts_with(|c: char| c.is_ascii_digit());
        if !quoted && (over || idle) {
            break;
        }
        at += 1;
        let more = at < end
            && (s.is_name(at) || s.word(at).starts_with(|c: char| c.is_ascii_digit()))
            && !s.is(at, Class::ClauseStarts);
        match s.stop(at - 1) {
            Stop::Comma if !more && !s.is_quoted(at) => break,
            Stop::Break | Stop::Colon => break,
            _ => {}
        }
    }
    start..at
}

/// A verb of the third person that goes on about the same subject.
fn is_habit(word: &str) -> bool {
    matches!(
        word,
        "goes"
            | "has"
            | "is"
            | "lives"
            | "loves"
            | "needs"
            | "plays"
            | "reads"
            | "runs"
            | "speaks"
            | "uses"
            | "works"
    )
}

/// Whether a value says something that can be remembered: not "it", "so tired", "not sure".
pub(super) fn is_value(s: &Sentence<'_>, range: &Range<usize>) -> bool {
    !range.is_empty()
        && (s.is_quoted(range.start) || !s.is(range.start, Class::PronounValues))
        && !s.is(range.start, Class::Hedges)
        && s.slice(range.clone()).len() <= 240
}

/// Whether a value is specific in itself: it has a digit, a name, a quotation or a URL.
pub(super) fn is_specific(s: &Sentence<'_>, range: Range<usize>) -> bool {
    range.into_iter().any(|at| {
        s.is_quoted(at)
            || s.word(at).contains(|c: char| c.is_ascii_digit() || matches!(c, '@' | '/'))
            || s.is_capital(at) && !s.lower(at).starts_with("i'") && s.lower(at) != "i"
    })
}

/// The words of a number with its unit at `at`: "45 ms", "12%", "about 3 million rows".
pub(super) fn quantity(s: &Sentence<'_>, at: usize, end: usize) -> Option<Range<usize>> {
    let number = s.skip(at, Class::Abouts);
    let word = s.lower(number);
    let digits = word.trim_start_matches(['~', '+', '-', '±', '<', '>', '≈']);
    if number >= end || !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let rest = digits.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ','));
    let attached = !rest.is_empty() && (Classes::of(rest).has(Class::Units) || rest == "x");
    if !rest.is_empty() && !attached && !Classes::of(rest).has(Class::NumberWords) {
        return None;
    }
    if attached {
        return Some(number..number + 1);
    }
    let mut unit = s.skip(number + 1, Class::NumberWords);
    // "4,000 daily users".
    unit += usize::from(
        ["active", "concurrent", "daily", "monthly", "paying", "registered", "unique", "weekly"]
            .contains(&s.lower(unit)),
    );
    if unit >= end || s.stop(unit - 1) != Stop::None {
        return None;
    }
    let noun = s.lower(unit);
    let plural = noun.len() > 3
        && noun.ends_with('s')
        && !noun.ends_with("ss")
        && noun.bytes().all(|b| b.is_ascii_alphabetic())
        && !s.is(unit, Class::NotNouns)
        && !s.is_capital(unit);
    if !s.is(unit, Class::Units) && !plural {
        return None;
    }
    // "100 requests per minute", "3 hours a day".
    let rate = matches!(s.lower(unit + 1), "per" | "a" | "an" | "each") && unit + 2 < end;
    Some(number..unit + if rate && s.stop(unit) == Stop::None { 3 } else { 1 })
}
