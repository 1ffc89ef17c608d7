//! A tokenizer whose counts a person can predict, with the traps of a real one.

use throughline_core::tokens::Tokenizer;

/// Counts words, punctuation and white space.
///
/// A word costs a token for each four characters begun, one outside ASCII counting as two; a mark
/// of punctuation costs one, two equal ones in a row cost one together; one white space is free,
/// being part of the word that follows, and a run of more costs one.
///
/// It is deliberately not additive: `"ab" + "cd"` costs less than its parts, since the words merge,
/// and `"a " + " b"` costs more, since the white space becomes a run.
#[derive(Debug, Clone, Copy)]
pub struct WordTokenizer {
    exact: bool,
}

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Word,
    Space,
    Mark(char),
}

impl WordTokenizer {
    /// Counts as the model does: budgets are used in full.
    #[must_use]
    pub const fn exact() -> Self {
        Self { exact: true }
    }

    /// Claims only to be near the model: callers keep a margin free.
    #[must_use]
    pub const fn inexact() -> Self {
        Self { exact: false }
    }
}

impl Tokenizer for WordTokenizer {
    fn name(&self) -> &str {
        if self.exact { "words" } else { "words-inexact" }
    }

    fn is_exact(&self) -> bool {
        self.exact
    }

    fn count(&self, text: &str) -> u32 {
        let mut tokens: u32 = 0;
        let mut run: Option<(Class, u32)> = None;
        for c in text.chars() {
            let (class, weight) = if c.is_whitespace() {
                (Class::Space, 1)
            } else if c.is_alphanumeric() || c == '_' {
                (Class::Word, if c.is_ascii() { 1 } else { 2 })
            } else {
                (Class::Mark(c), 1)
            };
            run = match run {
                Some((held, total)) if held == class => Some((held, total + weight)),
                ended => {
                    tokens += ended.map_or(0, cost);
                    Some((class, weight))
                }
            };
        }
        tokens + run.map_or(0, cost)
    }
}

fn cost((class, weight): (Class, u32)) -> u32 {
    match class {
        Class::Word => weight.div_ceil(4),
        Class::Space => u32::from(weight > 1),
        Class::Mark(_) => weight.div_ceil(2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_predictable() {
        let table = [
            ("", 0),
            ("word", 1),
            ("words", 2),
            ("one two", 2),
            ("one, two.", 4),
            ("a\n\nb", 3),
            ("wait...", 3),
            ("é", 1),
            ("日本語", 2),
        ];
        for (text, expected) in table {
            assert_eq!(WordTokenizer::exact().count(text), expected, "{text:?}");
        }
    }

    #[test]
    fn counts_do_not_add_up() {
        let count = |text| WordTokenizer::exact().count(text);
        assert!(count("abcd") < count("ab") + count("cd"));
        assert!(count("a  b") > count("a ") + count(" b"));
    }
}
