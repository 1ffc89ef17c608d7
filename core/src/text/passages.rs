//! Cutting a text into sentences and a long message into passages.

use std::collections::VecDeque;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

/// How a text is cut, in bytes: passages are what is indexed, scored and quoted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PassageSizes {
    /// A text up to this size is one passage.
    pub whole: usize,
    /// A passage is closed at the next boundary once it has this much.
    pub target: usize,
    /// No passage of a longer text is larger, except for a short rest at its end.
    pub most: usize,
    /// A heading or code fence closes a passage that has this much.
    pub part: usize,
}

impl PassageSizes {
    /// Messages: small enough that a context holds some thirty statements, large enough that a chat
    /// message is one passage.
    pub const MESSAGE: Self = Self { whole: 480, target: 280, most: 480, part: LEAST_BYTES };
    /// Documents, which were written to be read in longer stretches.
    pub const DOCUMENT: Self = Self { whole: 1_200, target: 600, most: 1_200, part: 600 };
}

/// A shorter passage says too little to be quoted: a boundary does not close it, and a shorter rest
/// belongs to the passage before it.
const LEAST_BYTES: usize = 160;

/// Longest stretch that sentence boundaries are looked for in at once: one of the rules of UAX #29
/// looks ahead without bound, and a hostile text would make that quadratic.
const STRETCH_BYTES: usize = 2_048;

/// The passages of a text: ranges that follow each other and together hold all of it. At least one,
/// also of an empty text. Cuts are made at headings and code fences first, then between list items,
/// lines and sentences, and inside a sentence only where it is too long by itself.
#[must_use]
pub fn passages(content: &str, sizes: PassageSizes) -> Vec<Range<usize>> {
    if content.len() <= sizes.whole {
        return std::iter::once(0..content.len()).collect();
    }
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut start = 0;
    let (mut fenced, mut after_fence) = (false, false);
    for sentence in sentence_ranges(content) {
        let line = content[sentence.clone()].trim_start();
        let begins_line = sentence.start == 0 || content[..sentence.start].ends_with('\n');
        let is_fence = begins_line && line.starts_with("```");
        let begins_part =
            begins_line && !fenced && (is_fence || after_fence || line.starts_with('#'));
        after_fence = is_fence && fenced;
        fenced ^= is_fence;
        let held = sentence.start - start;
        let would_hold = sentence.end - start;
        let close = held >= sizes.target
            || held >= sizes.part && begins_part
            || held >= LEAST_BYTES && would_hold > sizes.most;
        if close {
            ranges.push(start..sentence.start);
            start = sentence.start;
        }
        // One endless sentence (a log, a blob) is cut at the last space that fits, else anywhere.
        while sentence.end - start > sizes.most {
            let limit = content.floor_char_boundary(start + sizes.most);
            let window = &content[start..limit];
            let cut = window
                .rfind(char::is_whitespace)
                .filter(|at| *at > LEAST_BYTES)
                .map_or(limit, |at| content.ceil_char_boundary(start + at + 1));
            ranges.push(start..cut);
            start = cut;
        }
    }
    match ranges.last_mut() {
        Some(last) if content.len() - start < LEAST_BYTES => last.end = content.len(),
        _ => ranges.push(start..content.len()),
    }
    ranges
}

/// The sentences of a text, trimmed, empty ones left out. A line break ends a sentence.
pub fn sentences(text: &str) -> impl Iterator<Item = &str> {
    sentence_ranges(text).map(|range| text[range].trim()).filter(|sentence| !sentence.is_empty())
}

/// Sentences with the white space that follows them; together they are the whole text. A sentence
/// that is longer than a stretch is cut at white space where there is any.
fn sentence_ranges(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    let mut found: VecDeque<Range<usize>> = VecDeque::new();
    std::iter::from_fn(move || {
        if found.is_empty() {
            let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
            let limit = rest.floor_char_boundary(STRETCH_BYTES);
            let bounds = rest[..limit].split_sentence_bound_indices();
            found.extend(bounds.map(|(at, part)| start + at..start + at + part.len()));
            if limit < rest.len() {
                match found.pop_back() {
                    // The last one may go on: it begins the next stretch.
                    Some(_) if !found.is_empty() => {}
                    _ => {
                        let cut = rest[..limit].rfind(char::is_whitespace).unwrap_or(0);
                        let cut = if cut == 0 { limit } else { rest.ceil_char_boundary(cut + 1) };
                        found.push_back(start..start + cut.min(limit));
                    }
                }
            }
            start = found.back().map_or(text.len(), |last| last.end);
        }
        found.pop_front()
    })
}

/// Whether a text ends in a question.
#[must_use]
pub fn is_question(text: &str) -> bool {
    text.trim_end_matches(|c: char| c.is_whitespace() || matches!(c, '"' | ')' | '”'))
        .ends_with(['?', '？', '؟'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passages_cover_every_byte() {
        let texts = [
            String::new(),
            "short".to_owned(),
            "A sentence of some length here. ".repeat(200),
            "x".repeat(10_000),
            "ключ ".repeat(3_000),
            format!("{}\n{}", "word ".repeat(500), "é".repeat(5_000)),
            format!("a.{}", ")".repeat(1 << 20)),
        ];
        for (text, sizes) in texts
            .iter()
            .flat_map(|text| [PassageSizes::MESSAGE, PassageSizes::DOCUMENT].map(|s| (text, s)))
        {
            let ranges = passages(text, sizes);
            let mut at = 0;
            for range in &ranges {
                assert_eq!(range.start, at);
                assert!(range.len() < sizes.most + LEAST_BYTES);
                assert!(text.is_char_boundary(range.end));
                at = range.end;
            }
            assert_eq!(at, text.len());
            if text.len() > sizes.whole {
                assert!(ranges.iter().all(|range| range.len() >= LEAST_BYTES), "{ranges:?}");
            }
        }
    }

    #[test]
    fn cuts_are_made_at_headings_fences_and_lines() {
        let prose =
            "The cache is warmed at start, and every entry lives for ten minutes. ".repeat(3);
        let code = "    let entry = cache.get(key).await?;\n".repeat(6);
        let text = format!("{prose}\n\n## Code\n{prose}\n```rust\n{code}```\n{prose}");
        let found = passages(&text, PassageSizes::MESSAGE);
        let starts: Vec<&str> = found
            .iter()
            .map(|range| text[range.clone()].trim_start().split(['\n', ' ']).next().unwrap())
            .collect();
        assert_eq!(starts, ["The", "##", "```rust", "The"], "{found:?}");
    }
}
