//! JSON as values, for the forms that the domain itself writes and reads back: exports and the backups
//! made of them. What an interface sends has its own forms.

use std::fmt::Write;

use crate::error::{Error, Result};

/// Values within values; deeper is refused instead of overflowing the stack.
const MOST_DEPTH: usize = 64;

/// A JSON value. Objects keep the order of their fields, and numbers the digits that they came with.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number, as it is written.
    Number(String),
    /// Text.
    Text(String),
    /// Values in order.
    List(Vec<Self>),
    /// Named values in order.
    Object(Vec<(String, Self)>),
}

impl From<&str> for Json {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<u64> for Json {
    fn from(number: u64) -> Self {
        Self::Number(number.to_string())
    }
}

impl Json {
    /// Reads one value and nothing after it.
    ///
    /// # Errors
    /// `InvalidInput` that says where the text stops being JSON.
    pub fn parse(text: &str) -> Result<Self> {
        let mut reader = Reader { text, at: 0 };
        let value = reader.value(0)?;
        reader.space();
        match reader.at == text.len() {
            true => Ok(value),
            false => Err(reader.wrong("nothing more")),
        }
    }

    /// The field of an object; `None` where there is none, or `null`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Self> {
        let Self::Object(fields) = self else { return None };
        let (_, value) = fields.iter().find(|(field, _)| field == name)?;
        (*value != Self::Null).then_some(value)
    }

    /// The text that it is.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The number that it is, where it is one that `T` can hold.
    #[must_use]
    pub fn as_number<T: std::str::FromStr>(&self) -> Option<T> {
        match self {
            Self::Number(digits) => digits.parse().ok(),
            _ => None,
        }
    }

    /// The truth value that it is.
    #[must_use]
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Self::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// The values of a list.
    #[must_use]
    pub fn as_list(&self) -> Option<&[Self]> {
        match self {
            Self::List(values) => Some(values),
            _ => None,
        }
    }

    /// As text, a field or value a line.
    #[must_use]
    pub fn pretty(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, 0);
        text
    }

    fn write(&self, text: &mut String, depth: usize) {
        match self {
            Self::Null => text.push_str("null"),
            Self::Bool(truth) => text.push_str(if *truth { "true" } else { "false" }),
            Self::Number(digits) => text.push_str(digits),
            Self::Text(content) => quote(text, content),
            Self::List(values) => {
                let write = |text: &mut String, value: &Self| value.write(text, depth + 1);
                lines(text, ('[', ']'), values, depth, write);
            }
            Self::Object(fields) => {
                lines(text, ('{', '}'), fields, depth, |text, (name, value)| {
                    quote(text, name);
                    text.push_str(": ");
                    value.write(text, depth + 1);
                });
            }
        }
    }
}

fn lines<T>(
    text: &mut String,
    (open, close): (char, char),
    items: &[T],
    depth: usize,
    write: impl Fn(&mut String, &T),
) {
    text.push(open);
    for (nth, item) in items.iter().enumerate() {
        text.push_str(if nth == 0 { "\n" } else { ",\n" });
        text.push_str(&"  ".repeat(depth + 1));
        write(text, item);
    }
    if !items.is_empty() {
        text.push('\n');
        text.push_str(&"  ".repeat(depth));
    }
    text.push(close);
}

fn quote(text: &mut String, content: &str) {
    text.push('"');
    for c in content.chars() {
        match c {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\n' => text.push_str("\\n"),
            '\r' => text.push_str("\\r"),
            '\t' => text.push_str("\\t"),
            // Line separators end a line in some readers of JSON.
            c if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') => {
                // Writing to a `String` does not fail.
                let _ = write!(text, "\\u{:04x}", u32::from(c));
            }
            c => text.push(c),
        }
    }
    text.push('"');
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn wrong(&self, expected: &str) -> Error {
        let before = self.text.get(..self.at).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.len() - before.rfind('\n').map_or(0, |at| at + 1) + 1;
        Error::invalid(format!("no JSON: line {line}, column {column} should have {expected}"))
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn space(&mut self) {
        let rest = self.rest();
        self.at += rest.len() - rest.trim_start_matches([' ', '\t', '\n', '\r']).len();
    }

    fn take(&mut self, token: &str) -> bool {
        let taken = self.rest().starts_with(token);
        self.at += if taken { token.len() } else { 0 };
        taken
    }

    fn value(&mut self, depth: usize) -> Result<Json> {
        if depth > MOST_DEPTH {
            return Err(self.wrong("no more values within values"));
        }
        self.space();
        if self.take("{") {
            return self.object(depth);
        }
        if self.take("[") {
            return self.list(depth);
        }
        if self.take("\"") {
            return self.string().map(Json::Text);
        }
        for (word, value) in
            [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))]
        {
            if self.take(word) {
                return Ok(value);
            }
        }
        self.number()
    }

    fn object(&mut self, depth: usize) -> Result<Json> {
        let mut fields: Vec<(String, Json)> = Vec::new();
        self.space();
        if self.take("}") {
            return Ok(Json::Object(fields));
        }
        loop {
            self.space();
            if !self.take("\"") {
                return Err(self.wrong("the name of a field in quotes"));
            }
            let name = self.string()?;
            self.space();
            if !self.take(":") {
                return Err(self.wrong("`:`"));
            }
            let value = self.value(depth + 1)?;
            fields.push((name, value));
            self.space();
            if self.take("}") {
                return Ok(Json::Object(fields));
            }
            if !self.take(",") {
                return Err(self.wrong("`,` or `}`"));
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Json> {
        let mut values = Vec::new();
        self.space();
        if self.take("]") {
            return Ok(Json::List(values));
        }
        loop {
            values.push(self.value(depth + 1)?);
            self.space();
            if self.take("]") {
                return Ok(Json::List(values));
            }
            if !self.take(",") {
                return Err(self.wrong("`,` or `]`"));
            }
        }
    }

    /// The rest of a string whose opening quote was read.
    fn string(&mut self) -> Result<String> {
        let mut content = String::new();
        loop {
            let rest = self.rest();
            let plain = rest.find(|c: char| c == '"' || c == '\\' || c < ' ');
            let Some(plain) = plain else { return Err(self.wrong("a closing quote")) };
            content.push_str(&rest[..plain]);
            self.at += plain;
            if self.take("\"") {
                return Ok(content);
            }
            if !self.take("\\") {
                return Err(self.wrong("no control character within quotes"));
            }
            content.push(self.escaped()?);
        }
    }

    fn escaped(&mut self) -> Result<char> {
        let plain = [
            ("\"", '"'),
            ("\\", '\\'),
            ("/", '/'),
            ("b", '\u{8}'),
            ("f", '\u{c}'),
            ("n", '\n'),
            ("r", '\r'),
            ("t", '\t'),
        ];
        for (token, c) in plain {
            if self.take(token) {
                return Ok(c);
            }
        }
        if !self.take("u") {
            return Err(self.wrong("an escape of JSON"));
        }
        let high = self.four_digits()?;
        let code = match high {
            0xd800..=0xdbff if self.take("\\u") => {
                let low = self.four_digits()?;
                0x10000 + ((high - 0xd800) << 10) + (low.wrapping_sub(0xdc00) & 0x3ff)
            }
            other => other,
        };
        char::from_u32(code).ok_or_else(|| self.wrong("an escape of a character"))
    }

    fn four_digits(&mut self) -> Result<u32> {
        let digits =
            self.rest().get(..4).filter(|four| four.bytes().all(|b| b.is_ascii_hexdigit()));
        let Some(digits) = digits else { return Err(self.wrong("four hexadecimal digits")) };
        self.at += 4;
        Ok(u32::from_str_radix(digits, 16).unwrap_or_default())
    }

    fn number(&mut self) -> Result<Json> {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !(c.is_ascii_digit() || matches!(c, '-' | '+' | '.' | 'e' | 'E')))
            .unwrap_or(rest.len());
        let digits = &rest[..end];
        let is_number = digits.parse::<f64>().is_ok_and(f64::is_finite)
            && digits.starts_with(|c: char| c == '-' || c.is_ascii_digit())
            && digits.ends_with(|c: char| c.is_ascii_digit());
        if !is_number {
            return Err(self.wrong("a value"));
        }
        self.at += end;
        Ok(Json::Number(digits.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        let value = Json::Object(vec![
            ("text".to_owned(), Json::from("a \"b\" \\ \n\t\u{1}\u{2028} é 😀")),
            ("empty".to_owned(), Json::List(vec![])),
            ("list".to_owned(), Json::List(vec![Json::Null, Json::Bool(true), Json::from(7)])),
            ("number".to_owned(), Json::Number("-1.50e3".to_owned())),
            ("of".to_owned(), Json::Object(vec![("x".to_owned(), Json::Object(vec![]))])),
        ]);
        let text = value.pretty();
        assert!(text.is_ascii() || !text.contains('\u{2028}'), "{text}");
        assert_eq!(Json::parse(&text).unwrap(), value);
    }

    #[test]
    fn other_writers_are_read() {
        let table = [
            (" [1,2.5 , -3e2]\n", "[\n  1,\n  2.5,\n  -3e2\n]"),
            (r#""\u00e9\ud83d\ude00\/\b""#, "\"é😀/\\u0008\""),
            ("{\"a\":{\"b\":[]}}", "{\n  \"a\": {\n    \"b\": []\n  }\n}"),
        ];
        for (text, expected) in table {
            assert_eq!(Json::parse(text).unwrap().pretty(), expected, "{text}");
        }
    }

    #[test]
    fn what_is_no_json_is_told_with_its_place() {
        let deep = "[".repeat(100_000);
        for (text, place) in [
            ("", "line 1, column 1"),
            ("{\"a\" 1}", "column 6"),
            ("[1,\n 2", "line 2, column 3"),
            ("[1] x", "column 5"),
            ("\"a\nb\"", "column 3"),
            ("\"\\ud800\"", "an escape of a character"),
            ("\"\\u12\"", "four hexadecimal digits"),
            ("nul", "a value"),
            ("+1", "a value"),
            ("1e999", "a value"),
            ("{a:1}", "the name of a field"),
            (deep.as_str(), "values within values"),
        ] {
            let error = Json::parse(text).unwrap_err();
            assert!(error.message().contains(place), "{}: {error}", text.len());
        }
    }

    #[test]
    fn parts_are_taken_by_kind() {
        let value = Json::parse(r#"{"n": 3, "t": "x", "b": false, "l": [1], "z": null}"#).unwrap();
        assert_eq!(value.get("n").and_then(Json::as_number::<u32>), Some(3));
        assert_eq!(value.get("t").and_then(Json::as_text), Some("x"));
        assert_eq!(value.get("b").and_then(Json::as_bool), Some(false));
        assert_eq!(value.get("l").and_then(Json::as_list).map(<[Json]>::len), Some(1));
        assert_eq!((value.get("z"), value.get("none"), Json::Null.get("n")), (None, None, None));
        assert_eq!(value.get("t").and_then(Json::as_number::<u32>), None);
    }
}
