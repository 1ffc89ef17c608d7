//! A text without one layer of its escapes, as JSON has them: `{\"password\": \"x\"}` is read as
//! `{"password": "x"}`, and a place in the one is found in the other.

use std::ops::Range;

/// Most layers that are taken off. JSON in JSON in a text has two.
pub(super) const MOST_LAYERS: usize = 4;

/// A text without one layer of escapes.
pub(super) struct Unescaped {
    pub(super) text: String,
    /// From a place in `text` on, the place in the text with its escapes.
    places: Vec<(usize, usize)>,
}

impl Unescaped {
    /// `None` where the text has no escapes.
    pub(super) fn of(text: &str) -> Option<Self> {
        let mut escapes = escapes(text).peekable();
        escapes.peek()?;
        let mut unescaped = Self { text: String::with_capacity(text.len()), places: Vec::new() };
        let mut at = 0;
        for (range, meant) in escapes {
            unescaped.text.push_str(&text[at..range.start]);
            unescaped.text.push(meant);
            unescaped.places.push((unescaped.text.len(), range.end));
            at = range.end;
        }
        unescaped.text.push_str(&text[at..]);
        Some(unescaped)
    }

    /// The place in the text with its escapes of a place in `text`.
    fn place(&self, at: usize) -> usize {
        let after = self.places.partition_point(|(from, _)| *from <= at);
        let (from, there) = after.checked_sub(1).map_or((0, 0), |last| self.places[last]);
        there + (at - from)
    }

    pub(super) fn range(&self, range: &Range<usize>) -> Range<usize> {
        // The place after a character that was escaped is the one after its escape.
        self.place(range.start)..self.place(range.end)
    }
}

/// The escapes of a text and what each stands for, in order. A backslash that begins none is a character of its own.
pub(super) fn escapes(text: &str) -> impl Iterator<Item = (Range<usize>, char)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        loop {
            let start = at + text[at..].find('\\')?;
            match escape(&text[start..]) {
                Some((length, meant)) => {
                    at = start + length;
                    return Some((start..at, meant));
                }
                None => at = start + 1,
            }
        }
    })
}

/// The escape that a text begins with: its length, and what it stands for.
fn escape(text: &str) -> Option<(usize, char)> {
    let meant = match text.as_bytes().get(1)? {
        quote @ (b'"' | b'\'' | b'`' | b'/' | b'\\') => char::from(*quote),
        b'n' => '\n',
        b'r' => '\r',
        b't' => '\t',
        b'u' => return unicode(text),
        _ => return None,
    };
    Some((2, meant))
}

/// `\u0041`, or the two of a character beyond the first plane.
fn unicode(text: &str) -> Option<(usize, char)> {
    let unit = |at: usize| {
        let digits = text.get(at..at + 6)?.strip_prefix("\\u")?;
        digits.bytes().all(|byte| byte.is_ascii_hexdigit()).then_some(())?;
        u16::from_str_radix(digits, 16).ok()
    };
    let first = unit(0)?;
    if let Some(meant) = char::from_u32(first.into()) {
        return Some((6, meant));
    }
    let pair = [first, unit(6).unwrap_or_default()];
    Some(match char::decode_utf16(pair).next() {
        Some(Ok(meant)) => (12, meant),
        _ => (6, char::REPLACEMENT_CHARACTER),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_layer_is_taken_off() {
        let table = [
            (r#"{\"a\": \"b\"}"#, Some(r#"{"a": "b"}"#)),
            (r#"\\\"a\\\""#, Some(r#"\"a\""#)),
            (r"a\nb\tc\/d", Some("a\nb\tc/d")),
            (r"\u0041\u00e4\ud83d\ude00\ud83d.", Some("A\u{e4}\u{1f600}\u{fffd}.")),
            (r"\d\w \u12 \", None),
            ("plain", None),
        ];
        for (text, expected) in table {
            assert_eq!(Unescaped::of(text).map(|it| it.text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn a_place_is_found_again() {
        let text = r#"x \"\u00e4b\" \n y"#;
        let unescaped = Unescaped::of(text).unwrap();
        assert_eq!(unescaped.text, "x \"\u{e4}b\" \n y");
        for (part, escaped) in
            [("\u{e4}b", r"\u00e4b"), ("\n y", r"\n y"), ("x", "x"), ("\"", "\\\"")]
        {
            let at = unescaped.text.find(part).unwrap();
            assert_eq!(&text[unescaped.range(&(at..at + part.len()))], escaped);
        }
    }
}
