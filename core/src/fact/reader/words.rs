//! Messages as the reader takes them: tokens with what their letters look like, in sentences.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use super::table::SHAPES;

/// Line breaks, links, numbers with their separators, words with their apostrophes, and marks.
static TOKEN: LazyLock<Regex> = LazyLock::new(|| {
    #[expect(clippy::unwrap_used, reason = "the pattern is constant and tested")]
    Regex::new(r#"\n|https?://[^\s<>()"']*[^\s<>()"'.,;:!?]|\d[\d.,:/]*\d|\w+(?:['’]\w+)*|[^\w\s]"#)
        .unwrap()
});

/// The tokens of a text, by their places.
pub(super) fn tokens(text: &str) -> impl Iterator<Item = Range<usize>> {
    TOKEN.find_iter(text).map(|found| found.range())
}

/// Where the sentences of a text end, with the white space after them.
pub(super) fn sentence_ends(text: &str) -> Vec<usize> {
    let bytes = text.as_bytes();
    let mut ends = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        let ended = at > 0 && matches!(bytes[at - 1], b'.' | b'!' | b'?');
        if ended {
            let closers = text[at..].trim_start_matches(['"', '\'', ')', ']']);
            let after = closers.trim_start();
            if after.len() < closers.len() {
                at = text.len() - after.len();
                ends.push(at);
                continue;
            }
        }
        if bytes[at] == b'\n' {
            at = text.len() - text[at..].trim_start_matches('\n').len();
            ends.push(at);
            continue;
        }
        at += 1;
        while !text.is_char_boundary(at) {
            at += 1;
        }
    }
    ends
}

/// The word as the table knows it.
pub(super) fn folded(word: &str) -> String {
    word.to_lowercase().replace('’', "'")
}

/// Which of `count` classes the last three letters of a word in lower case fall into: what the ending
/// tells of a word that is not known.
pub(super) fn suffix(lower: &str, count: usize) -> usize {
    let start = lower.char_indices().rev().nth(2).map_or(0, |(at, _)| at);
    // FNV-1a.
    let hash = lower[start..]
        .bytes()
        .fold(2_166_136_261_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(16_777_619));
    hash as usize % count
}

/// What a token looks like.
pub(super) fn shapes(token: &str) -> [bool; SHAPES] {
    let first = token.chars().next().unwrap_or(' ');
    let is = |marks: &str| token.chars().all(|c| marks.contains(c));
    let cased = token.chars().any(|c| c.is_uppercase() || c.is_lowercase());
    [
        first.is_uppercase(),
        cased && !token.chars().any(char::is_lowercase) && token.chars().nth(1).is_some(),
        token.chars().all(char::is_numeric),
        token.chars().any(char::is_numeric),
        !first.is_alphanumeric(),
        is(".!?"),
        is(",;"),
        is(":—–-("),
        is("\"“”«»"),
        is("'’‘`"),
        token.contains("://"),
        token == "\n",
    ]
}
