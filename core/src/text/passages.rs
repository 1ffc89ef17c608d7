//! Cutting a long text into passages.

use std::ops::Range;

use super::sentences::split_sentences;
use super::units::Units;

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
    for sentence in split_sentences(content).flat_map(|range| parts(content, range)) {
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
        if sentence.end - start > sizes.most {
            start = cut_sentence(content, start, sentence.end, sizes.most, &mut ranges);
        }
    }
    match ranges.last_mut() {
        Some(last) if content.len() - start < LEAST_BYTES => last.end = content.len(),
        _ => ranges.push(start..content.len()),
    }
    ranges
}

/// Where a passage may end within a sentence: between the lines of a fenced block of code, which is one sentence,
/// and between the sentences of a long line of it, which is prose.
fn parts(content: &str, sentence: Range<usize>) -> Vec<Range<usize>> {
    let block = &content[sentence.clone()];
    if !block.trim_end().contains('\n') {
        return vec![sentence];
    }
    let mut parts = Vec::new();
    let mut start = sentence.start;
    for line in block.split_inclusive('\n') {
        if line.len() > LEAST_BYTES {
            let own = split_sentences(line);
            parts.extend(own.map(|range| start + range.start..start + range.end));
        } else {
            parts.push(start..start + line.len());
        }
        start += line.len();
    }
    parts
}

/// Cuts a sentence that is too long (a log, a blob) at the last space that fits and is not inside a unit, else at
/// the last space, else anywhere. Returns where the rest begins.
fn cut_sentence(
    content: &str,
    mut start: usize,
    end: usize,
    most: usize,
    ranges: &mut Vec<Range<usize>>,
) -> usize {
    let first = start;
    let units = Units::of(&content[first..end]);
    while end - start > most {
        let limit = content.floor_char_boundary(start + most);
        let spaces = || {
            let spaces = content[start..limit].rmatch_indices(char::is_whitespace);
            spaces.map(|(at, _)| start + at).take_while(|at| at - start > LEAST_BYTES)
        };
        let outside = spaces().find(|at| units.around(at - first).is_none());
        let cut = outside
            .or_else(|| spaces().next())
            .map_or(limit, |at| content.ceil_char_boundary(at + 1));
        ranges.push(start..cut);
        start = cut;
    }
    start
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
    fn keeps_units_in_one_passage() {
        let words = "and then some more words without any end ".repeat(5);
        let url = "https://db.example.com:5432/x?Y=1&z=2";
        let fence = format!("```\n{}```\n", "let a = b? C. D;\n".repeat(4));
        for unit in
            [url, "\"He said. Then he left.\"", "`git reset. Now`", "250 ms", fence.as_str()]
        {
            for shift in 0..120 {
                let text = format!("{} {words} {unit} {words}", "x".repeat(shift + 180));
                let found = passages(&text, PassageSizes::MESSAGE);
                let whole = found.iter().any(|range| text[range.clone()].contains(unit));
                assert!(whole || unit == fence, "{unit:?} {shift}: {found:?}");
                let ends = found.iter().map(|range| &text[..range.end]);
                let broken = ends.filter(|before| before.ends_with(['?', '.'])).count();
                assert_eq!(broken, 0, "{unit:?} {shift}: {found:?}");
            }
        }
    }

    #[test]
    fn prose_in_a_fence_is_cut_between_sentences() {
        let letter =
            "We met in Porto last year. It was a long day, and all of us liked it. ".repeat(9);
        let text = format!("```text\nDear Ana,\n{letter}\nBest regards\n```\n");
        let found = passages(&text, PassageSizes::MESSAGE);
        assert!(found.len() > 1, "{found:?}");
        for range in &found[..found.len() - 1] {
            assert!(text[range.clone()].ends_with(". "), "{:?}", &text[range.clone()]);
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
