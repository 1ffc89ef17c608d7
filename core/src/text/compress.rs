//! Deterministic compression that keeps every protected span.

use super::protect::protected_spans;
use super::sentences::sentences;
use super::units::Units;

/// How hard to compress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Squeeze {
    /// Beginning and end, 150 characters each.
    MiddleCut,
    /// The first sentence, at most 120 characters.
    OneLine,
}

/// The mark for omitted text.
const GAP: &str = " … ";
/// Longer texts are not squeezed: no form of them fits into a turn, and recall quotes passages.
const MAX_BYTES: usize = 64 << 10;
/// A gap shorter than this is kept: the mark would cost as much.
const MIN_GAP: usize = 16;

/// A shorter form of `text` that holds every protected span verbatim and in order, or `None` where
/// that would not save at least a quarter: the text then stays whole or goes.
#[must_use]
pub fn squeeze(text: &str, how: Squeeze) -> Option<String> {
    let text = text.trim();
    if text.len() > MAX_BYTES {
        return None;
    }
    let mut keep = protected_spans(text);
    let units = Units::of(text);
    let head = |chars| {
        let end = word_boundary(text, chars);
        0..units.around(end).map_or(end, |unit| unit.start)
    };
    match how {
        Squeeze::MiddleCut => {
            keep.push(head(150));
            let start = tail_boundary(text, 150);
            keep.push(units.around(start).map_or(start, |unit| unit.end)..text.len());
        }
        Squeeze::OneLine => {
            let first = sentences(text).next().unwrap_or_default();
            keep.push(head(120.min(first.chars().count())));
        }
    }
    keep.retain(|range| !range.is_empty());
    if keep.is_empty() {
        return None;
    }
    keep.sort_by_key(|range| (range.start, range.end));
    let mut squeezed = String::with_capacity(text.len() / 2);
    let mut end = 0;
    for range in keep {
        if range.end <= end {
            continue;
        }
        if range.start > end {
            if range.start - end < MIN_GAP {
                squeezed.push_str(&text[end..range.start]);
            } else {
                squeezed.truncate(squeezed.trim_end().len());
                squeezed.push_str(if squeezed.is_empty() { GAP.trim_start() } else { GAP });
            }
        }
        squeezed.push_str(&text[range.start.max(end)..range.end]);
        end = range.end;
    }
    if text.len() - end >= MIN_GAP {
        squeezed.truncate(squeezed.trim_end().len());
        squeezed.push_str(GAP.trim_end());
    } else {
        squeezed.push_str(&text[end..]);
    }
    if how == Squeeze::OneLine {
        // A protected span has no line break, so this leaves all of them as they are.
        squeezed = squeezed.replace(['\n', '\r'], " ");
    }
    (squeezed.len() * 4 <= text.len() * 3 && !squeezed.is_empty()).then_some(squeezed)
}

/// Byte offset of the last word boundary within the first `chars` characters.
fn word_boundary(text: &str, chars: usize) -> usize {
    let Some((end, _)) = text.char_indices().nth(chars) else {
        return text.len();
    };
    if text[end..].starts_with(char::is_whitespace) {
        return end;
    }
    text[..end].rfind(char::is_whitespace).filter(|at| *at * 2 > end).unwrap_or(end)
}

/// Byte offset of the first word boundary within the last `chars` characters.
fn tail_boundary(text: &str, chars: usize) -> usize {
    let Some((start, _)) = text.char_indices().nth_back(chars.saturating_sub(1)) else {
        return 0;
    };
    let tail = &text[start..];
    tail.char_indices()
        .find(|(at, c)| c.is_whitespace() && *at * 2 < tail.len())
        .map_or(start, |(at, c)| start + at + c.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::super::protect::holds_all;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn long_prose_shrinks_and_numbers_stay() {
        let text = format!(
            "We began with a plan. {} The port is 8443. {} That was all of it.",
            "Then came some more words about it. ".repeat(12),
            "And then came even more words. ".repeat(12),
        );
        for how in [Squeeze::MiddleCut, Squeeze::OneLine] {
            let short = squeeze(&text, how).unwrap();
            assert!(short.contains("8443") && short.contains('…'), "{short}");
            assert!(short.starts_with("We began with a plan."), "{short}");
        }
    }

    #[test]
    fn values_of_every_sort_come_out_verbatim() {
        let filler = "and then we went on to talk about something else for quite a while ";
        let values = [
            "ticket OPS-4121",
            "model gpt-4o",
            "€1,250.50",
            "USD 1,300",
            "250 ms",
            "'never again'",
            "\"as is\"",
            "a ValueError: bad port",
            "https://example.org/x",
            "ana@example.org",
            "abcdefab-cdef-4abc-8def-abcdefabcdef",
            "/etc/app/config.toml",
            "v1.2.3-rc.1",
        ];
        for value in values {
            let text = format!("It began well. {}. {value} {filler}. The end.", filler.repeat(6));
            let key = value.rsplit("a ").next().unwrap().trim_start_matches("ticket ");
            let key = key.trim_start_matches("model ");
            for how in [Squeeze::MiddleCut, Squeeze::OneLine] {
                if let Some(short) = squeeze(&text, how) {
                    assert!(short.contains(key), "{how:?} {value}: {short}");
                    assert!(short.len() < text.len());
                }
            }
        }
    }

    #[test]
    fn no_cut_is_inside_a_unit() {
        let filler = "and then we went on to talk about something else for quite a while ";
        let report = "ERROR: connection to https://db.example.com:5432/x?y=1 refused (code E4711) after 3 \
                      retries";
        let units = [
            (report, true),
            ("https://db.example.com:5432/x?y=1&z=2.5", true),
            (r"C:\a\b.txt", true),
            ("./run.sh", true),
            ("\"He said. Then left.\"", true),
            ("`git reset. Now`", true),
            ("1,000.50 USD", true),
            ("(as was said. Before that)", false),
        ];
        let fence = format!("```\n{}```", "let a = b? C. D;\n".repeat(12));
        let units = units.into_iter().chain([(fence.as_str(), false)]);
        for (unit, is_protected) in units {
            // At every place around the cuts, counted from the beginning and from the end.
            for before in (0..200).step_by(3) {
                let head = &filler.repeat(4)[..before];
                let text = format!("{head}\n{unit}\n{}", filler.repeat(9));
                let mirrored = format!("{}\n{unit}\n{head}", filler.repeat(9));
                for text in [text, mirrored] {
                    for how in [Squeeze::MiddleCut, Squeeze::OneLine] {
                        let Some(short) = squeeze(&text, how) else { continue };
                        let flat = |text: &str| text.replace('\n', " ");
                        let whole = flat(&short).contains(&flat(unit));
                        let words: Vec<&str> = unit.split_whitespace().collect();
                        let begun = flat(&short).contains(&words[..2.min(words.len())].join(" "));
                        assert!(whole || !is_protected && !begun, "{how:?} {before}: {short}");
                    }
                }
            }
        }
    }

    #[test]
    fn what_cannot_shrink_stays_whole() {
        let code = format!("```\n{}```", "let a = b;\n".repeat(60));
        assert_eq!(squeeze(&code, Squeeze::OneLine), None);
        for text in ["", "short", "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22"] {
            assert_eq!(squeeze(text, Squeeze::OneLine), None, "{text:?}");
        }
    }

    proptest! {
        #[test]
        fn protected_spans_survive(text in r#"([a-zé ]{1,60}[.\n]|[A-Z]{2}-[0-9]{3} |"[a-z ]{3,9}" |https://example.org/[a-z]{3} ){0,30}"#) {
            for how in [Squeeze::MiddleCut, Squeeze::OneLine] {
                if let Some(short) = squeeze(&text, how) {
                    prop_assert!(holds_all(&text, &short), "{how:?}: {short:?}");
                    prop_assert!(short.len() < text.len());
                }
            }
        }
    }
}
