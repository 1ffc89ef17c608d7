//! Typed values of a session, so that an address or an id given once is never lost.

mod extract;

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};
use crate::ids::{EntityId, MessageId, SessionId};
use crate::time::Timestamp;

pub use extract::extract;

/// The type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum EntityKind {
    /// A postal address.
    Address,
    /// A person's name.
    Name,
    /// A calendar date or a time.
    Date,
    /// A project, by name.
    Project,
    /// An e-mail address.
    Email,
    /// A URL.
    Url,
    /// An identifier: ticket, hash, version, UUID, path.
    Id,
    /// An amount of money.
    Money,
    /// A telephone number.
    Phone,
}

impl EntityKind {
    /// Every kind.
    pub const ALL: [Self; 9] = [
        Self::Address,
        Self::Name,
        Self::Date,
        Self::Project,
        Self::Email,
        Self::Url,
        Self::Id,
        Self::Money,
        Self::Phone,
    ];

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Address => "address",
            Self::Name => "name",
            Self::Date => "date",
            Self::Project => "project",
            Self::Email => "email",
            Self::Url => "url",
            Self::Id => "id",
            Self::Money => "money",
            Self::Phone => "phone",
        }
    }
}

impl fmt::Display for EntityKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for EntityKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text).ok_or_else(|| {
            let allowed = Self::ALL.map(Self::as_str).join(", ");
            Error::invalid(format!("unknown kind of entity: one of {allowed}"))
        })
    }
}

/// A value found in a message, ready to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewEntity {
    /// Our id, unless the session already holds the value.
    pub id: EntityId,
    /// Its type.
    pub kind: EntityKind,
    /// The value as it was written, white space folded; e-mail addresses in lower case.
    pub value: String,
}

/// A value that a session has seen: one row for each kind and value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entity {
    /// Our id.
    pub id: EntityId,
    /// The session that saw it.
    pub session: SessionId,
    /// Its type.
    pub kind: EntityKind,
    /// The value as it was first written; e-mail addresses in lower case.
    pub value: String,
    /// The messages that have it, in order of their commits: its provenance.
    pub sources: Vec<MessageId>,
    /// When it was last seen.
    pub last_at: Timestamp,
}

impl Entity {
    /// Whether a text holds the value. E-mail addresses are the same in capitals.
    #[must_use]
    pub fn is_in(&self, text: &str) -> bool {
        if self.kind != EntityKind::Email {
            return text.contains(&self.value);
        }
        let value = self.value.as_bytes();
        text.as_bytes().windows(value.len().max(1)).any(|part| part.eq_ignore_ascii_case(value))
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn email_addresses_are_found_in_any_case() {
        let holds = |kind, value: &str, text: &str| {
            let entity = Entity {
                id: EntityId::from_uuid(Uuid::nil()),
                session: SessionId::new("s").unwrap(),
                kind,
                value: value.to_owned(),
                sources: Vec::new(),
                last_at: Timestamp::default(),
            };
            entity.is_in(text)
        };
        assert!(holds(EntityKind::Email, "a@b.org", "Write to A@B.org, é"));
        assert!(!holds(EntityKind::Email, "a@b.org", "a@b.com"));
        assert!(holds(EntityKind::Name, "Rosa", "ask Rosa"));
        assert!(!holds(EntityKind::Name, "Rosa", "the rosa"));
    }
}
