//! Patterns over text of any script.

/// A pattern whose `\b`, `\d`, `\s` and `\w` are those of ASCII. With Unicode's, a matcher that sees a letter of another
/// script builds states for thousands of ranges, or falls back to one that is many times slower.
pub(crate) fn ascii(pattern: &str) -> String {
    let mut ascii = String::with_capacity(2 * pattern.len());
    let mut chars = pattern.chars().peekable();
    // Of brackets.
    let mut depth = 0_u32;
    while let Some(char) = chars.next() {
        match char {
            '\\' => push_escape(&mut ascii, chars.next(), depth > 0),
            '[' => {
                depth += 1;
                ascii.push('[');
                ascii.extend(chars.next_if_eq(&'^'));
                // The first one is a character of the class.
                ascii.extend(chars.next_if_eq(&']'));
            }
            ']' => {
                depth = depth.saturating_sub(1);
                ascii.push(']');
            }
            char => ascii.push(char),
        }
    }
    ascii
}

fn push_escape(ascii: &mut String, escaped: Option<char>, in_class: bool) {
    let class = match escaped {
        Some('b') if !in_class => return ascii.push_str(r"(?-u:\b)"),
        Some('d') => "0-9",
        Some('s') => r"\t\n\x0b\x0c\r\x20",
        Some('w') => "0-9A-Za-z_",
        other => {
            ascii.push('\\');
            return ascii.extend(other);
        }
    };
    let [before, after] = if in_class { ["", ""] } else { ["[", "]"] };
    ascii.extend([before, class, after]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_become_those_of_ascii() {
        let table = [
            (r"\bno\b", r"(?-u:\b)no(?-u:\b)"),
            (r"\d{3}\s*\w+", r"[0-9]{3}[\t\n\x0b\x0c\r\x20]*[0-9A-Za-z_]+"),
            (r"[\w.-]\w", r"[0-9A-Za-z_.-][0-9A-Za-z_]"),
            (r"[^\s\]]\d", r"[^\t\n\x0b\x0c\r\x20\]][0-9]"),
            (r"[]\d]\[\d[^]\w]", r"[]0-9]\[[0-9][^]0-9A-Za-z_]"),
            (r"[[:alnum:]\d]\d", r"[[:alnum:]0-9][0-9]"),
            (r"\\b\S\x60", r"\\b\S\x60"),
        ];
        for (pattern, expected) in table {
            assert_eq!(ascii(pattern), expected, "{pattern}");
            assert!(regex::Regex::new(expected).is_ok(), "{expected}");
        }
    }
}
