//! Cutting a file into the passages that are searched.

use std::ops::Range;

/// A passage is closed at the next blank line once it has this many bytes: some 200 tokens.
const TARGET_BYTES: usize = 800;
/// No passage has more bytes: some 400 tokens.
const MOST_BYTES: usize = 1_600;

/// The passages of a file: byte ranges that follow each other and together hold all of its text, at most 1,600 bytes each.
/// Cuts are made between lines, after blank ones first; a line that is longer by itself (minified code, a blob) is cut at
/// its last space that fits, else between two characters. None for an empty text.
#[must_use]
pub fn passages(text: &str) -> Vec<Range<usize>> {
    let mut passages = Vec::new();
    let (mut start, mut at) = (0, 0);
    for line in text.split_inclusive('\n') {
        let end = at + line.len();
        if at > start && end - start > MOST_BYTES {
            passages.push(start..at);
            start = at;
        }
        while end - start > MOST_BYTES {
            let cut = cut_line(text, start);
            passages.push(start..cut);
            start = cut;
        }
        if line.trim().is_empty() && end - start >= TARGET_BYTES {
            passages.push(start..end);
            start = end;
        }
        at = end;
    }
    if start < text.len() {
        passages.push(start..text.len());
    }
    passages
}

/// Where a line that begins at `start` and is too long is cut.
fn cut_line(text: &str, start: usize) -> usize {
    let most = text.floor_char_boundary(start + MOST_BYTES);
    let space = text[start..most].rfind(char::is_whitespace).filter(|at| *at >= TARGET_BYTES);
    space.map_or(most, |at| text.ceil_char_boundary(start + at + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str) -> Vec<&str> {
        let ranges = passages(text);
        let parts: Vec<&str> = ranges.into_iter().map(|range| &text[range]).collect();
        assert_eq!(parts.concat(), text);
        assert!(parts.iter().all(|part| !part.is_empty() && part.len() <= MOST_BYTES));
        parts
    }

    #[test]
    fn cuts_between_lines() {
        assert!(check("").is_empty());
        assert_eq!(check("one\n\ntwo\n").len(), 1);
        let lines = "a line of forty bytes, with its newline\n".repeat(100);
        let parts = check(&lines);
        assert_eq!(parts.len(), 3);
        assert!(parts.iter().all(|part| part.ends_with('\n')));
    }

    #[test]
    fn prefers_blank_lines() {
        let block = format!("{}\n", "a line of forty bytes, with its newline\n".repeat(22));
        let parts = check(&block.repeat(4)).iter().map(|part| part.len()).collect::<Vec<_>>();
        assert_eq!(parts, [block.len(); 4]);
    }

    #[test]
    fn cuts_long_lines_between_words_or_characters() {
        let words = check(&"word ".repeat(1_000)).iter().map(|part| part.len()).max();
        assert_eq!(words, Some(1_600));
        assert!(check(&"é".repeat(5_000)).len() >= 7);
        assert_eq!(check(&format!("{}\nshort\n", "x".repeat(1_601))).len(), 2);
    }
}
