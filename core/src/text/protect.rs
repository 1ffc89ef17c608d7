//! The spans that compression must keep verbatim: errors, security warnings, ids, URLs, numbers and
//! quoted values.

use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// What reports an error or a security matter.
const PROBLEM: &str = concat!(
    r"(?i:(?-u:\b)[0-9A-Za-z_]*(?:error|exception)s?(?-u:\b)|(?-u:\b)panic(?:ked|s)?(?-u:\b)|(?-u:\b)fatal(?-u:\b)",
    r"|(?-u:\b)fail(?:s|ed|ing|ures?)?(?-u:\b)|(?-u:\b)traceback(?-u:\b)|(?-u:\b)(?:access|permission) denied(?-u:\b)|(?-u:\b)denied(?-u:\b)",
    r"|(?-u:\b)unauthori[sz]ed(?-u:\b)|(?-u:\b)forbidden(?-u:\b)|(?-u:\b)timed? ?out(?-u:\b)|(?-u:\b)security(?-u:\b)|(?-u:\b)vulnerab[0-9A-Za-z_]*",
    r"|(?-u:\b)warnings?(?-u:\b)|(?-u:\b)CVE-[0-9])",
);

/// Values that are kept letter by letter.
const VALUE: &str = concat!(
    r#"(?:https?|ftp|wss?)://[^\s<>"']+"#,
    r"|[0-9A-Za-z_.+-]+@[0-9A-Za-z_-]+\.[0-9A-Za-z_.-]+",
    // Quoted values and code.
    r#"|`[^`\r\n]{1,400}`|"[^"\r\n]{1,400}"|“[^”\r\n]{1,400}”|«[^»\r\n]{1,400}»"#,
    r"|(?:^|[\s(\[=:])'[^'\r\n]{1,200}'(?:$|[\s.,;:!?)\]])",
    // UUIDs, paths, then ids with digits, hashes, versions, numbers with sign, unit, currency.
    r"|(?-u:\b)[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}(?-u:\b)",
    r"|(?-u:\b)[A-Za-z]:\\[0-9A-Za-z_.$\\-]+",
    r"|(?:[~.]{0,2}/)?(?:[0-9A-Za-z_.-]+/)+[0-9A-Za-z_.-]+",
    r"|(?:(?-u:\b)[A-Z]{2,4}[ \u{a0}])?[$€£¥+-]?(?:[A-Za-z][0-9A-Za-z_]*[-_.:/#])*[0-9A-Za-z_]*[0-9](?:[0-9A-Za-z_.,:/%°-]*[0-9A-Za-z_%°])?",
    r"(?:[ \u{a0}]?[$€£¥%]|[ \u{a0}](?:[A-Z]{3}|[kMGT]i?B|ms|km|kg|cm|mm|[smhgl])(?-u:\b))?",
);

// Letters and word boundaries are ASCII's: with Unicode's, a text with one accent would be searched
// ten times slower.
#[expect(clippy::expect_used, reason = "constant patterns; the tests compile them")]
fn compiled(pattern: &str) -> Regex {
    Regex::new(pattern).expect("the pattern is valid")
}

/// A report is kept with its whole line.
static SPANS: LazyLock<Regex> =
    LazyLock::new(|| compiled(&format!(r"[^\r\n]*{PROBLEM}[^\r\n]*|{VALUE}")));

static VALUES: LazyLock<Regex> = LazyLock::new(|| compiled(&format!("{VALUE}|{PROBLEM}")));

static PROBLEMS: LazyLock<Regex> = LazyLock::new(|| compiled(PROBLEM));

/// Longest stretch that is looked at in at once. Some alternatives look ahead to the end of a run of
/// letters; without a bound, a hostile run would make that quadratic.
const STRETCH_BYTES: usize = 1_024;

/// Ranges of `text` that a compressed form must hold, in order, not overlapping, none over a line
/// break.
#[must_use]
pub fn protected_spans(text: &str) -> Vec<Range<usize>> {
    found(&SPANS, text)
}

/// The protected values of a text by themselves: of a line that reports an error, its values and the word for the
/// error.
pub(super) fn protected_values(text: &str) -> Vec<Range<usize>> {
    found(&VALUES, text)
}

/// Whether a text reports an error or a security matter.
#[must_use]
pub fn reports_problem(text: &str) -> bool {
    PROBLEMS.is_match(text)
}

fn found(pattern: &Regex, text: &str) -> Vec<Range<usize>> {
    let mut spans = Vec::new();
    for stretch in stretches(text) {
        let offset = stretch.start;
        let found = pattern.find_iter(&text[stretch]).map(|found| found.range());
        let shifted = found.map(|range| offset + range.start..offset + range.end);
        spans.extend(shifted.filter(|range| !text[range.clone()].trim().is_empty()));
    }
    spans
}

/// Lines, and longer ones in parts that end at white space where there is any.
fn stretches(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = text.get(start..).filter(|rest| !rest.is_empty())?;
        let limit = rest.floor_char_boundary(STRETCH_BYTES);
        let length = match rest[..limit].find('\n') {
            Some(at) => at + 1,
            None if limit == rest.len() => limit,
            None => rest[..limit].rfind(char::is_whitespace).filter(|at| *at > 0).unwrap_or(limit),
        };
        let stretch = start..start + length;
        start = stretch.end;
        Some(stretch)
    })
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
    fn finds_protected_spans() {
        let table: &[(&str, &[&str])] = &[
            ("see https://example.org/a?b=1 now", &["https://example.org/a?b=1"]),
            ("ticket OPS-4121 at 8443", &["OPS-4121", "8443"]),
            ("the model gpt-4o as well", &["gpt-4o"]),
            ("set it to `fast mode`", &["`fast mode`"]),
            ("he said 'never again' and left", &["'never again'"]),
            ("it's what we don't do", &[]),
            ("it costs €1,250.50 more, or USD 1,300", &["€1,250.50", "USD 1,300"]),
            ("wait 250 ms or 3 kg", &["250 ms", "3 kg"]),
            ("first line\nerror: disk is full\nlast", &["error: disk is full"]),
            ("then a ValueError: bad port was seen", &["ValueError: bad port"]),
            ("two failures, unauthorized", &["two failures, unauthorized"]),
            ("write to ana@example.org", &["ana@example.org"]),
            (
                "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
                &["9fceb02d0ae598e95dc970b74767f19372d61af8"],
            ),
            ("id abcdefab-cdef-4abc-8def-abcdefabcdef", &["abcdefab-cdef-4abc-8def-abcdefabcdef"]),
            ("see /etc/app/config.toml", &["/etc/app/config.toml"]),
            (r"see C:\Users\ana\notes.txt", &[r"C:\Users\ana\notes.txt"]),
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
