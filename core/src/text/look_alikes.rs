//! Characters that pass for others, or for nothing: one normal form decides what a reader takes a text for.

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_security::skeleton;

/// The Latin letters that a character passes for in any case: a capital Cyrillic `Ve` for a `B`, the small
/// one only by its capital. What passes for none stays itself.
pub(crate) fn letters(c: char) -> Vec<char> {
    if c.is_ascii() {
        return vec![c.to_ascii_lowercase()];
    }
    let (same, upper, lower) = (c.to_string(), c.to_uppercase().collect(), c.to_lowercase());
    let lower: String = lower.collect();
    [same, upper, lower.clone()]
        .iter()
        .map(|form| skeleton(form).collect::<String>())
        .find(|like| like.is_ascii())
        .unwrap_or(lower)
        .to_lowercase()
        .chars()
        .collect()
}

/// The small letters, digits and signs that a character is read as: nothing for what is not seen, such as zero-width
/// and control characters and accents. A capital `I` passes for an `l`, so both are one.
pub(super) fn read_as(c: char) -> Vec<char> {
    let read: Vec<char> = match c {
        _ if is_hidden(c) => Vec::new(),
        _ if c.is_ascii() => vec![c.to_ascii_lowercase()],
        _ if let Some(letter) = styled(c) => vec![letter],
        _ => c.nfkd().filter(|c| !is_combining_mark(*c)).flat_map(letters).collect(),
    };
    read.into_iter().map(|c| if c == 'i' { 'l' } else { c }).collect()
}

/// The letter that a small capital, or a letter in a filled circle or square, is: Unicode does not decompose them.
fn styled(c: char) -> Option<char> {
    const SMALL_CAPITALS: [(char, &str); 2] = [
        (
            'a',
            "\u{1d00}\u{299}\u{1d04}\u{1d05}\u{1d07}\u{a730}\u{262}\u{29c}\u{26a}\u{1d0a}\u{1d0b}\u{29f}\u{1d0d}",
        ),
        (
            'n',
            "\u{274}\u{1d0f}\u{1d18}\u{a7af}\u{280}\u{a731}\u{1d1b}\u{1d1c}\u{1d20}\u{1d21}\u{2e3}\u{28f}\u{1d22}",
        ),
    ];
    let letter = |first: u8, nth: u32| u8::try_from(nth).ok().map(|nth| char::from(first + nth));
    let code = u32::from(c);
    match c {
        '\u{1f150}'..='\u{1f169}' => letter(b'a', code - 0x1f150),
        '\u{1f170}'..='\u{1f189}' => letter(b'a', code - 0x1f170),
        '\u{1f1e6}'..='\u{1f1ff}' => letter(b'a', code - 0x1f1e6),
        _ => SMALL_CAPITALS.iter().find_map(|(first, capitals)| {
            let nth = capitals.chars().position(|capital| capital == c)?;
            letter(u8::try_from(*first).ok()?, u32::try_from(nth).ok()?)
        }),
    }
}

/// Whether nothing of a character is seen: controls that are no white space, what Unicode calls default ignorable,
/// blanks of other scripts, and what stands for an object.
pub(super) fn is_hidden(c: char) -> bool {
    c.is_control() && !c.is_whitespace()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fffc}' | '\u{2800}' | '\u{1d159}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}')
}

/// Whether a character passes for a `<`.
pub(super) fn is_opening(c: char) -> bool {
    is_quotation_mark(c)
        || matches!(
            c,
            '<' | '\u{2c2}'
                | '\u{1438}'
                | '\u{16b2}'
                | '\u{226e}'
                | '\u{227a}'
                | '\u{22d8}'
                | '\u{2a79}'
                | '\u{2aa1}'
                | '\u{22d6}'
                | '\u{fe64}'
                | '\u{ff1c}'
                | '\u{1d236}'
        )
}

/// Whether a character that passes for a `<` begins a quotation, or is a bracket of its own.
pub(super) fn is_quotation_mark(c: char) -> bool {
    matches!(
        c,
        '\u{ab}'
            | '\u{2039}'
            | '\u{226a}'
            | '\u{2329}'
            | '\u{276c}'
            | '\u{276e}'
            | '\u{2770}'
            | '\u{27e8}'
            | '\u{27ea}'
            | '\u{2991}'
            | '\u{29fc}'
            | '\u{3008}'
            | '\u{300a}'
            | '\u{fe3d}'
            | '\u{fe3f}'
    )
}

/// Whether a character passes for a `>`.
pub(super) fn is_closing(c: char) -> bool {
    matches!(
        c,
        '>' | '\u{bb}'
            | '\u{2c3}'
            | '\u{1433}'
            | '\u{203a}'
            | '\u{226b}'
            | '\u{226f}'
            | '\u{227b}'
            | '\u{22d9}'
            | '\u{2a7a}'
            | '\u{2aa2}'
            | '\u{22d7}'
            | '\u{232a}'
            | '\u{276d}'
            | '\u{276f}'
            | '\u{2771}'
            | '\u{27e9}'
            | '\u{27eb}'
            | '\u{2992}'
            | '\u{29fd}'
            | '\u{3009}'
            | '\u{300b}'
            | '\u{fe3e}'
            | '\u{fe40}'
            | '\u{fe65}'
            | '\u{ff1e}'
            | '\u{1d237}'
    )
}

/// Whether a character passes for a `|`.
pub(super) fn is_bar(c: char) -> bool {
    matches!(
        c,
        '|' | '\u{a6}'
            | '\u{1c0}'
            | '\u{5c0}'
            | '\u{2223}'
            | '\u{23d0}'
            | '\u{2502}'
            | '\u{2503}'
            | '\u{2758}'
            | '\u{ff5c}'
            | '\u{ffe8}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn characters_are_read_as_what_they_pass_for() {
        let read = |text: &str| text.chars().flat_map(read_as).collect::<String>();
        let table = [
            ("Recalled", "recalled"),
            ("re\u{200b}cal\u{ad}l\u{1}ed\u{feff}", "recalled"),
            ("\u{ff52}\u{ff45}called", "recalled"),
            ("r\u{435}c\u{430}lled", "recalled"),
            ("\u{1d42b}\u{1d41e}called", "recalled"),
            ("r\u{e9}calle\u{301}d", "recalled"),
            ("\u{2044}\u{2215}\u{ff0f}", "///"),
            ("sa\u{456}d SAID", "sald sald"),
            ("\u{a731}\u{1d00}\u{26a}\u{1d05}", "sald"),
            ("\u{1f182}\u{1f150}\u{1f1ee}\u{24d3}", "sald"),
            ("s\u{2800}a\u{fffc}id", "sald"),
            ("柏林", "柏林"),
        ];
        for (text, expected) in table {
            assert_eq!(read(text), expected, "{text:?}");
        }
    }
}
