//! BERT's uncased normalisation, and its split into words.
//!
//! Not by the `tokenizers` crate, which is right but brings forty crates and a minute of build into
//! the default binary, and is several times slower. Under the feature `local-model`, where it is
//! there anyway, the tests compare the two on random texts.

use std::ops::ControlFlow;

use unicode_categories::UnicodeCategories;
use unicode_normalization::UnicodeNormalization;

/// Words of more characters are unknown.
const LONGEST_WORD: usize = 100;

/// A word of the normalised text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Word<'a> {
    /// One to a hundred characters.
    Plain(&'a str),
    /// More than are looked at.
    TooLong,
}

/// Calls `each` for every word in order, until it breaks.
pub(super) fn words(text: &str, each: impl FnMut(Word<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
    let mut words = Words { word: String::new(), chars: 0, each };
    // Between these bytes lies nothing that normalisation joins: each chunk can go its own way.
    for chunk in text.split([' ', '\t', '\n', '\r']) {
        if chunk.is_ascii() {
            for byte in chunk.bytes() {
                words.ascii(byte)?;
            }
        } else {
            for char in normalised(chunk) {
                words.char(char)?;
            }
        }
        words.end()?;
    }
    ControlFlow::Continue(())
}

/// The reference's four steps in its order: clean, set ideographs apart, strip accents, lower case.
fn normalised(chunk: &str) -> impl Iterator<Item = char> {
    chunk
        .chars()
        .filter(|char| *char != '\u{fffd}' && !char.is_other())
        .map(|char| if char.is_whitespace() { ' ' } else { char })
        .flat_map(|char| {
            let apart = is_ideograph(char).then_some(' ');
            apart.into_iter().chain([char]).chain(apart)
        })
        .nfd()
        .filter(|char| !char.is_mark_nonspacing())
        .flat_map(char::to_lowercase)
}

/// What the reference calls a Chinese character.
fn is_ideograph(char: char) -> bool {
    matches!(
        u32::from(char),
        0x4E00..=0x9FFF
            | 0x3400..=0x4DBF
            | 0x20000..=0x2A6DF
            | 0x2A700..=0x2B73F
            | 0x2B740..=0x2B81F
            | 0x2B920..=0x2CEAF
            | 0xF900..=0xFAFF
            | 0x2F800..=0x2FA1F
    )
}

/// The word that is being read.
struct Words<F> {
    word: String,
    chars: usize,
    each: F,
}

impl<F: FnMut(Word<'_>) -> ControlFlow<()>> Words<F> {
    /// The same as [`Self::char`] after [`normalised`], for most of most texts.
    fn ascii(&mut self, byte: u8) -> ControlFlow<()> {
        if byte.is_ascii_alphanumeric() {
            self.push(byte.to_ascii_lowercase().into());
        } else if byte.is_ascii_punctuation() {
            self.alone(byte.into())?;
        }
        // Other ASCII is control characters, which are no part of a word and do not end it.
        ControlFlow::Continue(())
    }

    fn char(&mut self, char: char) -> ControlFlow<()> {
        if char.is_whitespace() {
            self.end()
        } else if char.is_ascii_punctuation() || char.is_punctuation() {
            self.alone(char)
        } else {
            self.push(char);
            ControlFlow::Continue(())
        }
    }

    fn push(&mut self, char: char) {
        self.chars += 1;
        if self.chars <= LONGEST_WORD {
            self.word.push(char);
        }
    }

    /// Punctuation ends a word and is one.
    fn alone(&mut self, char: char) -> ControlFlow<()> {
        self.end()?;
        self.push(char);
        self.end()
    }

    fn end(&mut self) -> ControlFlow<()> {
        let chars = std::mem::take(&mut self.chars);
        let told = match chars {
            0 => ControlFlow::Continue(()),
            1..=LONGEST_WORD => (self.each)(Word::Plain(&self.word)),
            _ => (self.each)(Word::TooLong),
        };
        self.word.clear();
        told
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(text: &str) -> Vec<String> {
        let mut found = Vec::new();
        let _ = words(text, |word| {
            found.push(match word {
                Word::Plain(word) => word.to_owned(),
                Word::TooLong => "(too long)".to_owned(),
            });
            ControlFlow::Continue(())
        });
        found
    }

    #[test]
    fn texts_are_split() {
        let long = "a".repeat(LONGEST_WORD + 1);
        for (text, expected) in [
            ("", &[][..]),
            (" \t\r\n\u{a0}\u{2028}", &[]),
            ("Hello, World!", &["hello", ",", "world", "!"]),
            ("Café O\u{308}l", &["cafe", "ol"]),
            ("日本語abc", &["日", "本", "語", "abc"]),
            ("a\u{0}b\u{7f}c\u{200b}d e\u{ad}f", &["abcd", "ef"]),
            ("¿qué?", &["¿", "que", "?"]),
            (&long, &["(too long)"]),
        ] {
            assert_eq!(split(text), expected, "{text:?}");
        }
    }

    #[test]
    fn ascii_goes_both_ways_alike() {
        for byte in 0..=0x7f_u8 {
            let char = char::from(byte);
            let text = format!("a{char}B");
            // The accent makes the whole chunk take the long way.
            let (mut fast, slow) = (split(&text), split(&format!("{text}é")));
            if let Some(last) = fast.last_mut() {
                last.push('e');
            }
            assert_eq!(fast, slow, "{char:?}");
        }
    }

    #[test]
    fn reading_stops_when_told() {
        let mut seen = 0;
        let ended = words("a b c", |_| {
            seen += 1;
            if seen == 2 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        assert_eq!((ended, seen), (ControlFlow::Break(()), 2));
    }
}
