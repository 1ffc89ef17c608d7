//! What compression must hold verbatim: errors, security warnings, ids, URLs, numbers and quoted
//! values (seed 002, 12.2).

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

#[expect(clippy::expect_used, reason = "a constant pattern; the test below compiles it")]
static SPANS: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(concat!(
        // A line that reports an error or a security matter is kept whole.
        r"(?im)^.*(?:\b(?:error|exception|panic(?:ked)?|fatal|fail(?:ed|ure)|traceback|denied|security|vulnerab\w*|warning)\b|\bCVE-\d).*$",
        r#"|(?:https?|ftp|wss?)://[^\s<>"']+"#,
        r"|[\w.+-]+@[\w-]+\.[\w.-]+",
        // Quoted values and code.
        r#"|`[^`\n]{1,200}`|"[^"\n]{1,200}"|“[^”\n]{1,200}”"#,
        // Paths, ids with digits, hashes, UUIDs, versions, numbers with sign, unit or currency.
        r"|(?:[~.]{0,2}/)?(?:[\w.-]+/)+[\w.-]+",
        r"|[$€£¥+-]?\w*\d(?:[\w.,:/%°-]*[\w%°])?(?:\s?[$€£¥%])?",
    ))
    .expect("the pattern is valid")
});

/// Ranges of `text` that a compressed form must hold, in order, not overlapping.
#[must_use]
pub fn protected_spans(text: &str) -> Vec<Range<usize>> {
    SPANS.find_iter(text).map(|found| found.range()).filter(|range| !range.is_empty()).collect()
}

/// Whether `compressed` holds every protected span of `original` verbatim.
#[must_use]
pub fn holds_all(original: &str, compressed: &str) -> bool {
    protected_spans(original).into_iter().all(|span| compressed.contains(original[span].trim()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_must_survive_is_found() {
        let table: &[(&str, &[&str])] = &[
            ("see https://example.org/a?b=1 now", &["https://example.org/a?b=1"]),
            ("ticket OPS-4121 at 8443", &["4121", "8443"]),
            ("set it to `fast mode`", &["`fast mode`"]),
            ("it costs €1,250.50 more", &["€1,250.50"]),
            ("first line\nerror: disk is full\nlast", &["error: disk is full"]),
            ("write to ana@example.org", &["ana@example.org"]),
            (
                "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
                &["9fceb02d0ae598e95dc970b74767f19372d61af8"],
            ),
            ("see /etc/app/config.toml", &["/etc/app/config.toml"]),
            ("nothing here", &[]),
        ];
        for (text, expected) in table {
            let spans = protected_spans(text);
            let found: Vec<&str> = spans.into_iter().map(|span| &text[span]).collect();
            for value in *expected {
                assert!(found.iter().any(|span| span.contains(value)), "{text}: {found:?}");
            }
            assert_eq!(expected.is_empty(), found.is_empty(), "{text}: {found:?}");
        }
    }
}
