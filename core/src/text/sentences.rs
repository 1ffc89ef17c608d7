//! The one splitter of sentences. It takes the ends that UAX #29 finds, and leaves out those inside a URL, path,
//! number, piece of code, quotation or parentheses, and those after an abbreviation.

use std::collections::VecDeque;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

use super::abbreviations::is_abbreviated;
use super::enclosures::{Enclosures, LINE_BREAKS};
use super::is_unspaced;

/// Longest stretch that sentence ends are looked for in at once: one of the rules of UAX #29 looks ahead without
/// bound, and a hostile text would make that quadratic.
const STRETCH_BYTES: usize = 2_048;

/// The sentences of a text, trimmed, empty ones left out. A line break ends a sentence, except in a fenced block of
/// code, which is one sentence.
pub fn sentences(text: &str) -> impl Iterator<Item = &str> {
    sentence_ranges(text).map(|range| &text[range])
}

/// The byte ranges of [`sentences`].
pub fn sentence_ranges(text: &str) -> impl Iterator<Item = Range<usize>> {
    split_sentences(text).filter_map(|range| {
        let own = &text[range.clone()];
        let start = range.start + own.len() - own.trim_start().len();
        let end = start + own.trim().len();
        (start < end).then_some(start..end)
    })
}

/// Whether a text ends in a question.
#[must_use]
pub fn is_question(text: &str) -> bool {
    text.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '"' | ')' | '”'))
        .ends_with(['?', '？', '؟'])
}

/// The byte ranges of sentences with the white space that follows them. Together they are the whole text.
pub(super) fn split_sentences(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut candidates = candidates(text);
    let mut ends = Ends { text, enclosures: Enclosures::of(text), token: Token::default() };
    let mut start = 0;
    std::iter::from_fn(move || {
        loop {
            let end = candidates.next()?;
            if end == text.len() || ends.is_end(start, end) {
                return Some(std::mem::replace(&mut start, end)..end);
            }
        }
    })
}

/// Positions at which a sentence may end, in order; the last is the end of the text. A sentence that is longer than
/// a stretch is cut at white space where there is any.
fn candidates(text: &str) -> impl Iterator<Item = usize> {
    let mut start = 0;
    let mut found: VecDeque<usize> = VecDeque::new();
    std::iter::from_fn(move || {
        if found.is_empty() {
            let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
            let limit = rest.floor_char_boundary(STRETCH_BYTES);
            let bounds = rest[..limit].split_sentence_bound_indices();
            found.extend(bounds.map(|(at, part)| start + at + part.len()));
            if limit < rest.len() {
                // The last one may go on: it begins the next stretch.
                found.pop_back();
                if found.is_empty() {
                    let cut = rest[..limit].rfind(char::is_whitespace).unwrap_or(0);
                    let cut = if cut == 0 { limit } else { rest.ceil_char_boundary(cut + 1) };
                    found.push_back(start + cut.min(limit));
                }
            }
            start = found.back().copied().unwrap_or(text.len());
        }
        found.pop_front()
    })
}

/// Decides which candidates are ends. Candidates must come in order.
struct Ends<'t> {
    text: &'t str,
    enclosures: Enclosures<'t>,
    token: Token,
}

/// A run of characters without white space.
#[derive(Default)]
struct Token {
    range: Range<usize>,
    /// Whether it has only letters and punctuation, such as two sentences without a space between them.
    is_prose: bool,
}

impl Ends<'_> {
    /// Whether the sentence that begins at `start` ends at `candidate`.
    fn is_end(&mut self, start: usize, candidate: usize) -> bool {
        if self.enclosures.is_in_fence(candidate) {
            return false;
        }
        let own = &self.text[start..candidate];
        let bare = own.trim_end();
        if bare.is_empty() || own.ends_with(LINE_BREAKS) {
            return true;
        }
        let Some(next) = self.text[candidate..].chars().next() else { return true };
        let spaced = bare.len() < own.len();
        let said = start + bare.len();
        match self.enclosures.at(said, candidate) {
            Some(enclosure) if enclosure.end > said => false,
            // "Did you?" he asked: the sentence goes on after the quotation.
            Some(_) if next.is_lowercase() || !spaced && is_unspaced(next) => false,
            _ if spaced => !is_abbreviated(&self.text[..said], &self.text[candidate..]),
            _ => self.ends_within_token(candidate, next),
        }
    }

    /// Whether a sentence ends where no white space follows. Most such places are in a URL, path, number or code.
    fn ends_within_token(&mut self, candidate: usize, next: char) -> bool {
        let own = &self.text[..candidate];
        let after = &self.text[candidate..];
        let is_letter = next.is_alphabetic() && !is_unspaced(next);
        let last = own.chars().next_back().unwrap_or_default();
        if !last.is_ascii() || !next.is_ascii() && !is_letter {
            return true;
        }
        let behind_emphasis = after.trim_start_matches(['*', '_', '~']);
        if behind_emphasis.len() < after.len() && !behind_emphasis.starts_with(is_printed) {
            return true;
        }
        let token = self.token_at(candidate);
        if last == '.' && !own.ends_with("...") {
            return false;
        }
        token.is_prose && (is_letter || next == '"')
    }

    fn token_at(&mut self, at: usize) -> &Token {
        if at >= self.token.range.end {
            let is_outer = |c: char| c.is_whitespace() || is_unspaced(c) || is_cjk_mark(c);
            let text = self.text;
            let earlier = self.token.range.end;
            let begin = text[earlier..at]
                .rfind(is_outer)
                .map_or(earlier, |outer| text.ceil_char_boundary(earlier + outer + 1));
            let end = text[at..].find(is_outer).map_or(text.len(), |outer| at + outer);
            self.token = Token { range: begin..end, is_prose: is_prose(&text[begin..end]) };
        }
        &self.token
    }
}

fn is_printed(c: char) -> bool {
    !c.is_whitespace()
}

/// Punctuation of scripts that write words without spaces.
fn is_cjk_mark(c: char) -> bool {
    matches!(c, '\u{3000}'..='\u{303f}' | '\u{ff00}'..='\u{ff65}')
}

fn is_prose(token: &str) -> bool {
    let plain = |c: char| !c.is_ascii() || c.is_ascii_alphabetic() || "'-,;.?!\"".contains(c);
    let bytes = token.as_bytes();
    // A dot before a small letter belongs to the name of a file, host or method.
    let dotted = |three: &[u8]| {
        three[0].is_ascii_alphanumeric() && three[1] == b'.' && three[2].is_ascii_lowercase()
    };
    token.chars().all(plain) && !bytes.windows(3).any(dotted)
}

#[cfg(test)]
#[path = "sentences_tests.rs"]
pub(super) mod tests;
