//! Cutting a text into sentences and a long message into passages.

use std::collections::VecDeque;
use std::ops::Range;

use unicode_segmentation::UnicodeSegmentation;

/// A message up to this size is one passage; a longer one is cut into passages of about half of it.
pub const PASSAGE_BYTES: usize = 1_200;

/// Where a passage is closed once it has this much, at the end of a sentence or line.
const TARGET_BYTES: usize = 600;

/// Longest stretch that sentence boundaries are looked for in at once: one of the rules of UAX #29
/// looks ahead without bound, and a hostile text would make that quadratic.
const STRETCH_BYTES: usize = 2_048;

/// The passages of a message: ranges that follow each other and together hold all of its text. At
/// least one, also of an empty text. Cuts are made between sentences or lines where there are any.
#[must_use]
pub fn passages(content: &str) -> Vec<Range<usize>> {
    if content.len() <= PASSAGE_BYTES {
        return std::iter::once(0..content.len()).collect();
    }
    let mut ranges = Vec::new();
    let mut start = 0;
    for sentence in sentence_ranges(content) {
        if sentence.start - start >= TARGET_BYTES
            || (sentence.start > start && sentence.end - start > PASSAGE_BYTES)
        {
            ranges.push(start..sentence.start);
            start = sentence.start;
        }
        // One endless sentence (a log, a blob) is cut at the last space that fits, else anywhere.
        while sentence.end - start > PASSAGE_BYTES {
            let limit = content.floor_char_boundary(start + PASSAGE_BYTES);
            let window = &content[start..limit];
            let cut = window
                .rfind(char::is_whitespace)
                .filter(|at| *at > TARGET_BYTES)
                .map_or(limit, |at| content.ceil_char_boundary(start + at + 1));
            ranges.push(start..cut);
            start = cut;
        }
    }
    if content.len() > start {
        ranges.push(start..content.len());
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
        for text in texts {
            let ranges = passages(&text);
            let mut at = 0;
            for range in &ranges {
                assert_eq!(range.start, at);
                assert!(range.len() <= PASSAGE_BYTES);
                assert!(text.is_char_boundary(range.end));
                at = range.end;
            }
            assert_eq!(at, text.len());
            if text.len() > PASSAGE_BYTES {
                let short = ranges.iter().filter(|range| range.len() < 160).count();
                assert!(short <= 1, "{short} passages too short to quote");
            }
        }
    }
}
