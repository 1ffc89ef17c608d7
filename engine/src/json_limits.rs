//! Limits on the values of JSON from outside, which are found in its bytes before any value is built: a value takes up to a
//! hundred times the memory of its text.

use throughline_core::session::MAX_PARTS_DEPTH;
use throughline_core::{Error, Result};

/// Deepest nesting: parts of a message are within three levels. One bit of [`JsonLimits::objects`] is for each.
const MAX_DEPTH: usize = 64;
const _: () = assert!(
    MAX_PARTS_DEPTH + 3 < MAX_DEPTH,
    "parts are refused by their own limit, which names them"
);
/// Memory that the values of a small body may take; those of a larger one may take as much as its bytes.
const LEAST_MEMORY: usize = 32 << 20;

// Bytes of `serde_json` values, without their text.
const OBJECT: usize = 704;
const MEMBER: usize = 128;
const ARRAY: usize = 160;
const ITEM: usize = 64;

/// What is known of JSON whose bytes arrive piece by piece.
#[derive(Debug, Default)]
pub struct JsonLimits {
    memory: usize,
    depth: usize,
    /// One bit for each level: whether it is an object.
    objects: u64,
    /// Within a string, and behind a backslash in it.
    in_string: bool,
    is_escaped: bool,
}

impl JsonLimits {
    /// Reads on.
    ///
    /// # Errors
    /// `InvalidInput` where values are nested too deep.
    pub fn read(&mut self, json: &[u8]) -> Result<()> {
        for byte in json {
            if self.in_string {
                self.in_string = *byte != b'"' || self.is_escaped;
                self.is_escaped = *byte == b'\\' && !self.is_escaped;
                continue;
            }
            match byte {
                b'"' => self.in_string = true,
                b'{' => self.open(true, OBJECT)?,
                b'[' => self.open(false, ARRAY)?,
                b'}' | b']' => {
                    self.depth = self.depth.saturating_sub(1);
                    self.objects >>= 1;
                }
                b',' => self.memory += if self.objects & 1 == 1 { MEMBER } else { ITEM },
                _ => {}
            }
        }
        Ok(())
    }

    fn open(&mut self, is_object: bool, memory: usize) -> Result<()> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            let error = format!("JSON is nested deeper than {MAX_DEPTH} levels");
            return Err(Error::invalid(error));
        }
        self.objects = self.objects << 1 | u64::from(is_object);
        self.memory += memory;
        Ok(())
    }

    /// The memory that the values take beside their text.
    #[must_use]
    pub fn values(&self) -> usize {
        self.memory
    }

    /// Counts from here on: what was read before is done with.
    pub fn forget(&mut self) {
        self.memory = 0;
    }

    /// The memory that the values take beside their text, where so many copies of them are made, of a body of this size.
    ///
    /// # Errors
    /// `InvalidInput` where they are too many.
    pub fn memory(&self, copies: usize, size: usize) -> Result<usize> {
        let memory = self.memory.saturating_mul(copies);
        if memory <= size.max(LEAST_MEMORY) {
            return Ok(memory);
        }
        Err(Error::invalid("the body has too many values: send less of it, or several requests"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory(json: &str, copies: usize) -> Result<usize> {
        let mut limits = JsonLimits::default();
        json.bytes().try_for_each(|byte| limits.read(&[byte]))?;
        limits.memory(copies, json.len())
    }

    #[test]
    fn counts_values_and_not_text() {
        let table = [
            ("", 0),
            ("7", 0),
            (r#""[{,\"[,""#, 0),
            ("[1, 2]", ARRAY + ITEM),
            (r#"{"a": [1, "x,y", {}], "b\\": 2}"#, 2 * OBJECT + ARRAY + 2 * ITEM + MEMBER),
            ("]]]],", ITEM),
            (r#"["unclosed, {"#, ARRAY),
        ];
        for (json, expected) in table {
            assert_eq!(memory(json, 1).ok(), Some(expected), "{json}");
            assert_eq!(memory(json, 3).ok(), Some(3 * expected), "{json}");
        }
    }

    #[test]
    fn too_many_values_and_too_deep_ones_are_refused() {
        let deep = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(memory(&deep(64), 1).is_ok());
        let error = memory(&deep(65), 1).unwrap_err();
        assert!(error.message().contains("64 levels"), "{error}");
        let many = |count: usize| format!("[{}0]", r#"{"a":0},"#.repeat(count));
        assert!(memory(&many(40_000), 1).is_ok());
        let error = memory(&many(50_000), 1).unwrap_err();
        assert!(error.message().contains("too many values"), "{error}");
        // A large text has room for as many again.
        let large = format!(r#"["{}", {}]"#, "x".repeat(40 << 20), many(50_000));
        assert!(memory(&large, 1).is_ok());
    }
}
