//! Cursors as callers see them. A position may be a number that a store gives to all tenants together, and would tell
//! one of them how much the others do: so it is encrypted, with a key that every server of the store has, and belongs
//! to its list.

use aes_gcm_siv::aead::{Aead, KeyInit, Payload};
use aes_gcm_siv::{Aes256GcmSiv, Key, Nonce};
use throughline_core::page::{Page, PageRequest};
use throughline_core::ports::LedgerIdentity;
use throughline_core::{Error, Result};

use crate::identity::hex;

/// The same position gives the same cursor, which AES-GCM-SIV (RFC 8452) allows: only their equality shows.
const NONCE: [u8; 12] = [0; 12];

/// The cursors of a list.
pub struct Cursors {
    cipher: Aes256GcmSiv,
    list: String,
}

impl Cursors {
    /// Those of the list of this name.
    #[must_use]
    pub fn new(names: &LedgerIdentity, list: &str) -> Self {
        let secret = blake3::derive_key("throughline cursors of lists", &names.key);
        Self {
            cipher: Aes256GcmSiv::new(&Key::<Aes256GcmSiv>::from(secret)),
            list: list.to_owned(),
        }
    }

    /// The page of a list that a caller asks for.
    ///
    /// # Errors
    /// `InvalidInput` for a limit out of bounds, or a cursor that is none of this list.
    pub fn request(&self, limit: usize, cursor: Option<&str>) -> Result<PageRequest> {
        let page = PageRequest::first(limit)?;
        match cursor {
            None => Ok(page),
            Some(cursor) => page.after(&self.open(cursor).ok_or_else(invalid_cursor)?),
        }
    }

    /// What a caller is shown of a page: its items, and the cursor of the next one.
    #[must_use]
    pub fn show<T>(&self, page: Page<T>) -> (Vec<T>, Option<String>) {
        let next = page.next_cursor.and_then(|position| {
            let sealed =
                self.cipher.encrypt(&Nonce::from(NONCE), self.payload(position.as_bytes()));
            // Nothing that short fails to be encrypted; without a cursor a list ends.
            sealed.ok().map(|sealed| hex(&sealed))
        });
        (page.items, next)
    }

    fn open(&self, cursor: &str) -> Option<String> {
        let sealed = bytes(cursor)?;
        let position = self.cipher.decrypt(&Nonce::from(NONCE), self.payload(&sealed)).ok()?;
        String::from_utf8(position).ok()
    }

    fn payload<'p>(&'p self, msg: &'p [u8]) -> Payload<'p, 'p> {
        Payload { msg, aad: self.list.as_bytes() }
    }
}

/// The bytes of hexadecimal digits.
fn bytes(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2).map(|pair| {
        let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
        u8::from_str_radix(pair, 16).ok()
    });
    pairs.collect()
}

/// The error for a cursor that no earlier page of the list gave.
#[must_use]
pub fn invalid_cursor() -> Error {
    Error::invalid("cursor: not valid for this list; pass the next_cursor of its previous page")
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn cursor_is_opaque_and_bound_to_its_list() {
        let names = LedgerIdentity { id: Uuid::nil(), key: [7; 32] };
        let other = LedgerIdentity { key: [8; 32], ..names.clone() };
        let keys = Cursors::new(&names, "/v1/keys");
        for position in ["0", "1", "2", "ff", "ffffffffffffffff"] {
            let page = Page { items: vec![()], next_cursor: Some(position.to_owned()) };
            let (_, cursor) = keys.show(page);
            let cursor = cursor.unwrap();
            assert_eq!(cursor.len(), 2 * (position.len() + 16));
            let page = keys.request(5, Some(&cursor)).unwrap();
            assert_eq!(page.position(), u64::from_str_radix(position, 16).ok());
            for stranger in [Cursors::new(&names, "/v1/audit"), Cursors::new(&other, "/v1/keys")] {
                assert!(stranger.request(5, Some(&cursor)).is_err());
            }
        }
        for broken in ["", "0", "zz", "+1", "\u{e9}\u{e9}"] {
            assert!(keys.request(5, Some(broken)).is_err(), "{broken}");
        }
    }
}
