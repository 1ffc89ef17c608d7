//! Which texts are sent, how much of them, and how many at once.

use throughline_core::tokens::Tokenizer;

/// How much one request may hold.
#[derive(Debug, Clone, Copy)]
pub struct BatchLimits {
    /// Most texts.
    pub texts: usize,
    /// Most tokens.
    pub tokens: u64,
    /// Most tokens of a text; what is longer is cut. It is less than models take, because counts are not exact.
    pub text_tokens: u32,
}

/// A text and its tokens.
pub(super) type Counted<'a> = (&'a str, u32);

/// Whether a text has nothing to see in it.
pub(super) fn is_blank(text: &str) -> bool {
    let is_invisible = |char: char| {
        char.is_whitespace()
            || char.is_control()
            || matches!(char, '\u{ad}' | '\u{200b}'..='\u{200f}' | '\u{2060}'..='\u{2064}' | '\u{feff}')
    };
    text.chars().all(is_invisible)
}

/// The beginning of `text` that has at most `limit` tokens, and how many it has. Cut between characters, and found by
/// halves, because a text's tokens are not those of its parts.
pub(super) fn clip<'a>(text: &'a str, limit: u32, tokenizer: &dyn Tokenizer) -> Counted<'a> {
    // No token of a tokenizer in use stands for more bytes; counting what is far too long would take long.
    const MAX_BYTES_OF_A_TOKEN: usize = 128;
    let most = usize::try_from(limit).unwrap_or(usize::MAX).saturating_mul(MAX_BYTES_OF_A_TOKEN);
    let mut text = &text[..text.floor_char_boundary(most)];
    loop {
        let tokens = tokenizer.count(text);
        if tokens <= limit {
            return (text, tokens);
        }
        // In proportion, and at least a tenth less, so that it ends soon.
        let share = f64::from(limit) / f64::from(tokens);
        let keep = (text.len() as f64 * share.min(0.9)) as usize;
        text = &text[..text.floor_char_boundary(keep)];
    }
}

/// Cuts the texts into requests that keep the limits. A text that is larger than a request goes alone.
pub(super) fn batches<'a, 'b>(
    texts: &'b [Counted<'a>],
    limits: BatchLimits,
) -> impl Iterator<Item = &'b [Counted<'a>]> {
    let mut rest = texts;
    std::iter::from_fn(move || {
        let mut tokens = 0;
        let fits = |(_, count): &&Counted<'_>| {
            tokens += u64::from(*count);
            tokens <= limits.tokens
        };
        let size = rest.iter().take(limits.texts).take_while(fits).count().max(1);
        let (batch, others) = rest.split_at_checked(size)?;
        rest = others;
        Some(batch)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A token for each three bytes.
    struct Thirds;

    impl Tokenizer for Thirds {
        fn name(&self) -> &str {
            "thirds"
        }

        fn is_exact(&self) -> bool {
            true
        }

        fn count(&self, text: &str) -> u32 {
            u32::try_from(text.len().div_ceil(3)).unwrap()
        }
    }

    #[test]
    fn cuts_long_texts_between_characters() {
        let long = "é".repeat(10_000);
        for (text, limit, most) in
            [("", 5, 0), ("short", 5, 5), ("é".repeat(9).as_str(), 5, 15), (&long, 7, 21)]
        {
            let (cut, tokens) = clip(text, limit, &Thirds);
            assert!(text.starts_with(cut) && cut.len() <= most, "{cut}");
            assert_eq!(tokens, Thirds.count(cut));
            assert!(text.is_empty() || cut.len() * 2 > most.min(text.len()), "most of it stays");
        }
    }

    #[test]
    fn batches_keep_both_limits_and_the_order() {
        let sizes = |tokens: &[u32], limits: BatchLimits| -> Vec<Vec<u32>> {
            let texts: Vec<_> = tokens.iter().map(|tokens| ("", *tokens)).collect();
            let batches = batches(&texts, limits);
            batches.map(|batch| batch.iter().map(|(_, tokens)| *tokens).collect()).collect()
        };
        let limits = BatchLimits { texts: 3, tokens: 10, text_tokens: 10 };
        assert!(sizes(&[], limits).is_empty());
        assert_eq!(sizes(&[1, 2, 3, 4], limits), [vec![1, 2, 3], vec![4]]);
        assert_eq!(sizes(&[6, 5, 4, 20, 1], limits), [vec![6], vec![5, 4], vec![20], vec![1]]);
        assert_eq!(sizes(&[0, 0, 0, 0], limits), [vec![0, 0, 0], vec![0]]);
    }

    #[test]
    fn recognizes_blank_texts() {
        for text in ["", " ", "\n\t", "\u{200b}", "\u{feff} \0"] {
            assert!(is_blank(text), "{text:?}");
        }
        for text in ["a", "👍", "日", ".", "\u{fffd}"] {
            assert!(!is_blank(text), "{text:?}");
        }
    }
}
