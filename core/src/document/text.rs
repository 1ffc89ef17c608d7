//! Validation of a document's text.

use crate::error::{Error, Result};

/// Whether a text can be a document of at most `max_bytes`.
///
/// # Errors
/// `InvalidInput` that says what is wrong and what is allowed.
pub fn check_text(text: &str, max_bytes: usize) -> Result<()> {
    if text.trim().is_empty() {
        return Err(Error::invalid(
            "the document is empty: put the whole text; to remove a memory, delete it",
        ));
    }
    if text.len() > max_bytes {
        return Err(Error::invalid(format!(
            "the document has {} bytes: at most {max_bytes} are allowed; shorten it, for example \
             its timeline",
            text.len()
        )));
    }
    if text.contains('\0') {
        return Err(Error::invalid("the document has a NUL character: only text is allowed"));
    }
    Ok(())
}

/// The text that bytes are.
///
/// # Errors
/// `InvalidInput` that names the first byte that is not UTF-8.
pub fn text_of_bytes(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| {
        let at = error.utf8_error().valid_up_to();
        Error::invalid(format!(
            "the document is not valid UTF-8 at byte {at}: send it as `text/plain; charset=utf-8`"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_empty_large_and_binary_texts() {
        for good in ["x", " # Facts\r\n", "日本語", "12345678"] {
            assert!(check_text(good, 12).is_ok(), "{good:?}");
        }
        let table = [
            ("", "empty"),
            (" \r\n\t", "empty"),
            ("1234567890123", "has 13 bytes: at most 12"),
            ("a\0b", "NUL"),
        ];
        for (bad, expected) in table {
            let error = check_text(bad, 12).unwrap_err();
            assert!(error.message().contains(expected), "{bad:?}: {error}");
        }
        assert_eq!(text_of_bytes("é".into()).unwrap(), "é");
        let error = text_of_bytes(vec![b'a', b'b', 0xff]).unwrap_err();
        assert!(error.message().contains("at byte 2"), "{error}");
    }
}
