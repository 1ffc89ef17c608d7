//! The context document: one text per memory; every put stores a snapshot.
//!
//! The text is stored as it was given, byte for byte. Everything else is derived from it: sections by their
//! headings ([`sections`]), passages for recall ([`document_passages`]), what changed ([`unified_diff`]).

mod diff;
mod expected;
mod migrate;
mod passages;
mod prompt;
mod sections;
mod text;

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::ids::{ActorId, ContextId, MemoryId, VaultId};
use crate::index::IndexUnit;
use crate::time::Timestamp;

pub use diff::unified_diff;
pub use expected::Expected;
pub(crate) use expected::{check_expected, no_document};
pub use migrate::{Facet, text_of_facets};
pub use passages::{DocumentPassage, document_passages, index_document};
pub use prompt::{GUIDANCE, SECTIONS, guidance};
pub use sections::{MOST_TITLE_BYTES, Section, find_section, sections, short_title, slug};
pub use text::{check_text, text_of_bytes};

/// Bytes that a document may have where nothing else is configured.
pub const DEFAULT_MAX_BYTES: usize = 64 << 10;
/// Most bytes that may be configured.
pub const MOST_BYTES: usize = 1 << 20;
/// Snapshots of a memory that are kept where nothing else is configured.
pub const DEFAULT_KEPT: u32 = 100;

/// The limits of all documents of a deployment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DocumentLimits {
    /// Most bytes of a text.
    pub max_bytes: usize,
    /// Most snapshots of one memory; the oldest go.
    pub kept: u32,
}

impl Default for DocumentLimits {
    fn default() -> Self {
        Self { max_bytes: DEFAULT_MAX_BYTES, kept: DEFAULT_KEPT }
    }
}

/// Tells a text from any other: equal etags, equal bytes.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Etag([u8; 16]);

impl Etag {
    /// Of a text.
    #[must_use]
    pub fn of(text: &str) -> Self {
        let mut hash = [0; 16];
        hash.copy_from_slice(&blake3::hash(text.as_bytes()).as_bytes()[..16]);
        Self(hash)
    }

    /// From what [`Self::as_bytes`] gave.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; 16]) -> Self {
        Self(bytes)
    }

    /// For a store to keep.
    #[must_use]
    pub const fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

/// 32 hexadecimal digits, without the quotes of HTTP.
impl fmt::Display for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Etag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Etag({self})")
    }
}

impl FromStr for Etag {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let digits =
            text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let bits = digits.then(|| u128::from_str_radix(text, 16).ok()).flatten();
        bits.map(|bits| Self(bits.to_be_bytes()))
            .ok_or_else(|| Error::invalid("the etag of a document must have 32 hexadecimal digits"))
    }
}

/// The metadata of a snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotInfo {
    /// The vault of its memory.
    pub vault: VaultId,
    /// Its memory.
    pub memory: MemoryId,
    /// Its id within the memory.
    pub context: ContextId,
    /// Who wrote it.
    pub actor: ActorId,
    /// Its order among all snapshots of the scope, from 1.
    pub number: u32,
    /// Tells its text from any other.
    pub etag: Etag,
    /// Bytes of its text.
    pub bytes: u64,
    /// When it was put.
    pub created_at: Timestamp,
}

/// A document as it was put once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Its metadata.
    pub info: SnapshotInfo,
    /// The whole document, as it was given.
    pub text: String,
}

/// A snapshot with what is derived from it, ready for one atomic write.
#[derive(Debug, Clone, PartialEq)]
pub struct NewSnapshot {
    /// The vault of its memory.
    pub vault: VaultId,
    /// Its memory.
    pub memory: MemoryId,
    /// Its id within the memory.
    pub context: ContextId,
    /// Who wrote it.
    pub actor: ActorId,
    /// The whole document.
    pub text: String,
    /// When it is put.
    pub created_at: Timestamp,
    /// Most snapshots that the memory has afterwards, at least 1.
    pub keep: u32,
    /// One index unit for each of [`document_passages`].
    pub units: Vec<IndexUnit>,
}

/// A collection of memories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vault {
    /// The caller's id.
    pub id: VaultId,
    /// Memories that it has.
    pub memories: u64,
    /// When one of its documents was last put.
    pub updated_at: Timestamp,
}

/// A memory: the history of one document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Memory {
    /// Its latest snapshot.
    pub latest: SnapshotInfo,
    /// Snapshots that are kept.
    pub snapshots: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn etags_are_of_bytes_and_round_trip() {
        let etag = Etag::of("# Facts\n");
        assert_eq!(etag.to_string().parse::<Etag>().unwrap(), etag);
        assert_eq!(Etag::from_bytes(*etag.as_bytes()), etag);
        assert_ne!(Etag::of("# Facts"), etag);
        for bad in ["", "W/", "0123", &"G".repeat(32), &"A".repeat(32)] {
            assert!(bad.parse::<Etag>().is_err(), "{bad}");
        }
    }
}
