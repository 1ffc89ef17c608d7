//! One newtype per identity, so that no two can be confused.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

use crate::error::{Error, Result};
use crate::time::Timestamp;

/// Longest caller-chosen identifier, in bytes.
pub const MAX_NAME_BYTES: usize = 200;

/// Longest id of a preset, in bytes.
pub const MAX_PRESET_BYTES: usize = 80;

macro_rules! uuid_id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// Wraps a UUID made by an `IdGen` or read from a store.
            #[must_use]
            pub const fn from_uuid(id: Uuid) -> Self {
                Self(id)
            }

            /// The UUID, for a store to keep.
            #[must_use]
            pub const fn as_uuid(&self) -> Uuid {
                self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = Error;

            fn from_str(text: &str) -> Result<Self> {
                Uuid::try_parse(text).map(Self).map_err(|_| {
                    Error::invalid(concat!("the id of ", $what, " must be a UUID"))
                })
            }
        }
    };
}

/// As `name_id`, of what is a part of a path and of the source of a recalled text.
macro_rules! part_id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        name_id!($(#[$doc])* $name, $what, check_part,
            "`InvalidInput` as for any name, and when it reads as a path: `.`, `..`, or with one of \
             `/`, `\\`, `#`, `?` and `%`.");
    };
}

macro_rules! name_id {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        name_id!($(#[$doc])* $name, $what, check_name,
            "`InvalidInput` when it is empty, longer than [`MAX_NAME_BYTES`], starts or ends \
             with white space, or has a control character.");
    };
    ($(#[$doc:meta])* $name:ident, $what:literal, $check:ident, $errors:literal) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(String);

        impl $name {
            /// Takes a caller-chosen identifier.
            ///
            /// # Errors
            #[doc = $errors]
            pub fn new(value: impl Into<String>) -> Result<Self> {
                let value = value.into();
                $check($what, &value)?;
                Ok(Self(value))
            }

            /// The identifier as the caller chose it.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

uuid_id!(
    /// One message.
    MessageId, "a message"
);
impl MessageId {
    /// When it was made, which is when its message was stored; `None` where it bears no time.
    #[must_use]
    pub fn made_at(&self) -> Option<Timestamp> {
        let (seconds, nanos) = self.0.get_timestamp()?.to_unix();
        let micros = i64::try_from(seconds).ok()?.checked_mul(1_000_000)?;
        Some(Timestamp::from_micros(micros + i64::from(nanos / 1_000)))
            .filter(|at| *at > Timestamp::default())
    }
}

uuid_id!(
    /// One fact of the ledger.
    FactId, "a fact"
);
uuid_id!(
    /// One entity mention.
    EntityId, "an entity"
);
uuid_id!(
    /// One version of a session's rolling summary.
    SummaryId, "a summary"
);
uuid_id!(
    /// One background job.
    JobId, "a job"
);

uuid_id!(
    /// One grant of a session to other users of its tenant.
    ShareId, "a share"
);
uuid_id!(
    /// One reference of a session to a file.
    FileRefId, "a file"
);
uuid_id!(
    /// One persona: a context with a fixed character.
    PersonaId, "a context"
);
uuid_id!(
    /// One backup of a persona.
    BackupId, "a backup"
);

/// A preset: small letters, digits and hyphens, so that it can stand in a path or an address.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PresetId(String);

impl PresetId {
    /// Takes an identifier.
    ///
    /// # Errors
    /// `InvalidInput` for one that has anything but small letters, digits and hyphens.
    pub fn new(value: impl Into<String>) -> Result<Self> {
        let value = value.into();
        let good = |byte: u8| matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'-');
        if value.is_empty() || value.len() > MAX_PRESET_BYTES || !value.bytes().all(good) {
            return Err(Error::invalid(format!(
                "a preset id must have 1 to {MAX_PRESET_BYTES} lower-case letters, digits and \
                 hyphens, such as preset-calm-counselor"
            )));
        }
        Ok(Self(value))
    }

    /// The identifier.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for PresetId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for PresetId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::new(text)
    }
}

/// The public part of an API key: sixteen hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct KeyId(u64);

impl KeyId {
    /// From random bits.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// For a store to keep.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0
    }
}

impl fmt::Display for KeyId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for KeyId {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let digits =
            text.len() == 16 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let bits = digits.then(|| u64::from_str_radix(text, 16).ok()).flatten();
        bits.map(Self).ok_or_else(|| Error::invalid("a key id must have 16 hexadecimal digits"))
    }
}

name_id!(
    /// The tenant that owns everything below it.
    TenantId,
    "tenant"
);
name_id!(
    /// An end user of a tenant.
    UserId,
    "user"
);
name_id!(
    /// An optional partition of a user's memory, such as one project.
    WorkspaceId,
    "workspace"
);
name_id!(
    /// A conversation thread, under an id that the caller chose.
    SessionId,
    "session id"
);
name_id!(
    /// The caller's own id of a message; the key of idempotent appends within a session.
    ExternalId,
    "external_id"
);

part_id!(
    /// A collection of memories, under an id that the caller chose.
    VaultId,
    "vault_id"
);
part_id!(
    /// One memory of a vault: it has one document.
    MemoryId,
    "memory_id"
);
part_id!(
    /// One snapshot of a memory's document.
    ContextId,
    "context_id"
);
name_id!(
    /// Who wrote a snapshot of a document: an agent, a program or a person.
    ActorId,
    "actor_id"
);

fn check_part(what: &str, value: &str) -> Result<()> {
    check_name(what, value)?;
    if matches!(value, "." | "..") || value.contains(['/', '\\', '#', '?', '%']) {
        return Err(Error::invalid(format!(
            "{what} must not look like a path: `.`, `..` and the characters / \\ # ? % are not \
             allowed"
        )));
    }
    Ok(())
}

fn check_name(what: &str, value: &str) -> Result<()> {
    let problem = if value.is_empty() {
        "is empty"
    } else if value.len() > MAX_NAME_BYTES {
        "is too long"
    } else if value.chars().any(is_forbidden) {
        "has a control character"
    } else if value.trim() != value {
        "starts or ends with white space"
    } else {
        return Ok(());
    };
    Err(Error::invalid(format!(
        "{what} {problem}: use 1 to {MAX_NAME_BYTES} bytes of text without control characters, and \
         without white space at the start or end"
    )))
}

/// Control characters, and the invisible marks that reorder the text around them.
pub(crate) fn is_forbidden(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refuses_ids_that_look_like_paths() {
        for good in ["a", "v1.2", "...", "ana@example.org", "日本語", "a b", "a:b"] {
            assert!(VaultId::new(good).is_ok(), "{good:?}");
        }
        for bad in ["", ".", "..", "../x", "a/b", "a\\b", "a#b", "a?b", "%2e%2e", "a\n"] {
            let error = MemoryId::new(bad).unwrap_err();
            assert!(error.message().starts_with("memory_id"), "{bad:?}: {error}");
        }
    }

    #[test]
    fn names_are_checked() {
        for good in ["a", "S1", "user@example.org", "日本語", "a b"] {
            assert!(SessionId::new(good).is_ok(), "{good:?}");
        }
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        for bad in ["", " a", "a ", "a\nb", "a\0", "a\u{202e}b", long.as_str()] {
            let error = SessionId::new(bad).unwrap_err();
            assert!(error.message().contains("use 1 to"), "{bad:?}: {error}");
        }
    }
}
