//! Rust source, line by line, with code and comments apart and the contents of strings left out,
//! so that a rule about code is not broken by a text that speaks of it.

use std::iter::Peekable;
use std::str::Chars;

/// One line of source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line {
    /// What is compiled; string literals are empty.
    pub(crate) code: String,
    /// What is in comments.
    pub(crate) comment: String,
}

/// Splits a file.
pub(crate) fn lines(source: &str) -> Vec<Line> {
    let mut scanner =
        Scanner { chars: source.chars().peekable(), lines: vec![Line::default()], last: ' ' };
    while let Some(char) = scanner.chars.next() {
        scanner.step(char);
    }
    if scanner.lines.last() == Some(&Line::default()) {
        scanner.lines.pop();
    }
    scanner.lines
}

struct Scanner<'a> {
    chars: Peekable<Chars<'a>>,
    lines: Vec<Line>,
    /// The character of code before this one.
    last: char,
}

impl Scanner<'_> {
    fn step(&mut self, char: char) {
        match (char, self.chars.peek()) {
            ('/', Some('/')) => self.line_comment(),
            ('/', Some('*')) => self.block_comment(),
            ('"', _) => self.string(),
            ('r', Some('"' | '#')) if !is_word(self.last) || self.last == 'b' => self.raw_string(),
            ('\'', _) => self.quote(),
            _ => self.code(char),
        }
    }

    fn code(&mut self, char: char) {
        if char == '\n' {
            self.lines.push(Line::default());
        } else if let Some(line) = self.lines.last_mut() {
            line.code.push(char);
        }
        self.last = char;
    }

    fn comment(&mut self, char: char) {
        if char == '\n' {
            self.lines.push(Line::default());
        } else if let Some(line) = self.lines.last_mut() {
            line.comment.push(char);
        }
    }

    fn line_comment(&mut self) {
        self.comment('/');
        while let Some(char) = self.chars.next_if(|char| *char != '\n') {
            self.comment(char);
        }
    }

    fn block_comment(&mut self) {
        let mut depth = 1;
        self.chars.next();
        while let Some(char) = self.chars.next() {
            match (char, self.chars.peek()) {
                ('*', Some('/')) => depth -= 1,
                ('/', Some('*')) => depth += 1,
                _ => {
                    self.comment(char);
                    continue;
                }
            }
            self.chars.next();
            if depth == 0 {
                return;
            }
        }
    }

    fn string(&mut self) {
        self.code('"');
        while let Some(mut char) = self.chars.next().filter(|char| *char != '"') {
            if char == '\\' {
                // Whatever it is, it does not end the string; it may be the end of a line.
                char = self.chars.next().unwrap_or(' ');
            }
            if char == '\n' {
                self.code('\n');
            }
        }
        self.code('"');
    }

    fn raw_string(&mut self) {
        let mut hashes = 0;
        while self.chars.next_if_eq(&'#').is_some() {
            hashes += 1;
        }
        if self.chars.next_if_eq(&'"').is_none() {
            // A raw identifier such as `r#type`.
            self.code('r');
            return;
        }
        self.code('"');
        while let Some(char) = self.chars.next() {
            if char == '\n' {
                self.code('\n');
            } else if char == '"' {
                let mut left = hashes;
                while left > 0 && self.chars.next_if_eq(&'#').is_some() {
                    left -= 1;
                }
                if left == 0 {
                    break;
                }
            }
        }
        self.code('"');
    }

    /// A character literal, or the start of a lifetime.
    fn quote(&mut self) {
        let mut ahead = self.chars.clone();
        let literal = match ahead.next() {
            Some('\\') => true,
            Some(_) => ahead.next() == Some('\''),
            None => false,
        };
        self.code('\'');
        if !literal {
            return;
        }
        while let Some(char) = self.chars.next() {
            match char {
                '\\' => {
                    self.chars.next();
                }
                '\'' => break,
                _ => {}
            }
        }
        self.code('\'');
    }
}

fn is_word(char: char) -> bool {
    char.is_alphanumeric() || char == '_'
}

/// Whether the code holds `needle` where no longer word begins it: `dbg!` but not `my_dbg!`.
pub(crate) fn has_word(code: &str, needle: &str) -> bool {
    code.match_indices(needle).any(|(at, _)| {
        let before = code[..at].chars().next_back();
        let after = code[at + needle.len()..].chars().next();
        let open = |side: Option<char>| !side.is_some_and(is_word);
        open(before) && (open(after) || needle.ends_with(['(', '!', ':']))
    })
}

/// A stretch of lines under `#[cfg(test)]`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TestBlock {
    /// Index of the attribute's line.
    pub(crate) start: usize,
    /// Index after the last line.
    pub(crate) end: usize,
}

/// The items under `#[cfg(test)]`, in order.
pub(crate) fn test_blocks(lines: &[Line]) -> Vec<TestBlock> {
    let mut blocks = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let code = lines[at].code.trim_start();
        if code.starts_with("#[cfg(test)]") || code.starts_with("#[cfg(all(test,") {
            let end = item_end(lines, at);
            blocks.push(TestBlock { start: at, end });
            at = end;
        } else {
            at += 1;
        }
    }
    blocks
}

/// Index after the item that begins at `start`: after its closing brace, or its semicolon.
fn item_end(lines: &[Line], start: usize) -> usize {
    let mut depth = 0_i32;
    for (index, line) in lines.iter().enumerate().skip(start) {
        for char in line.code.chars() {
            match char {
                '{' | '(' | '[' => depth += 1,
                '}' | ')' | ']' => {
                    depth -= 1;
                    if depth == 0 && char == '}' {
                        return index + 1;
                    }
                }
                ';' if depth == 0 => return index + 1,
                _ => {}
            }
        }
    }
    lines.len()
}

/// Whether the whole file is tests or what tests and measurements need.
pub(crate) fn is_test_file(path: &str) -> bool {
    let mut parts = path.split('/').rev();
    parts.next() == Some("tests.rs") || parts.any(|part| matches!(part, "tests" | "benches"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_and_comments_are_not_code() {
        let source = "let a = \"todo!() \\\" // x\"; // why\nlet b = r#\"dbg!(\"\n)\"#; /* c\nd */ let c = '\"';\n";
        let lines = lines(source);
        let code: Vec<_> = lines.iter().map(|line| line.code.as_str()).collect();
        assert_eq!(code, ["let a = \"\"; ", "let b = \"", "\"; ", " let c = '';"]);
        assert!(lines[0].comment.ends_with("why"));
        assert!(lines[2].comment.contains('c') && lines[3].comment.contains('d'));
    }

    #[test]
    fn lifetimes_and_raw_identifiers_are_code() {
        let lines = lines("fn f<'a>(x: &'a str, r#type: char) { x == '\\'' }");
        assert_eq!(lines[0].code, "fn f<'a>(x: &'a str, rtype: char) { x == '' }");
    }

    #[test]
    fn words_have_borders() {
        assert!(has_word("x = dbg!(y)", "dbg!"));
        assert!(!has_word("x = my_dbg!(y)", "dbg!"));
        assert!(!has_word("XXXL", "XXX"));
    }

    #[test]
    fn blocks_of_tests_are_found() {
        let source = "fn a() {}\n#[cfg(test)]\nmod tests;\nfn b() {}\n#[cfg(test)]\nmod more {\n    fn c() {}\n}\nfn d() {}\n";
        let blocks = test_blocks(&lines(source));
        assert_eq!(blocks, [TestBlock { start: 1, end: 3 }, TestBlock { start: 4, end: 8 }]);
    }

    #[test]
    fn files_of_tests_are_known_by_name() {
        for path in ["core/tests/a.rs", "core/src/a/tests.rs", "core/src/tests/a.rs"] {
            assert!(is_test_file(path), "{path}");
        }
        assert!(!is_test_file("core/src/a.rs"));
    }
}
