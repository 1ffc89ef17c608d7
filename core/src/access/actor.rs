//! Who said something, or told it.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// On whose word something is there. It follows from the way in, never from what is said: a model that writes in the
/// name of its user is still a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Actor {
    /// The user, in a message that their application appended.
    #[default]
    User,
    /// The user or their backend, directly: over HTTP or by command line.
    Api,
    /// A model, by calling a tool.
    Model,
    /// A file that was imported.
    Import,
    /// A model that reads messages: the words are the user's, and what they mean is the model's guess.
    Extractor,
    /// Another user, in a session that its owner shares with them.
    Guest,
}

impl Actor {
    /// Every actor.
    pub const ALL: [Self; 6] =
        [Self::User, Self::Api, Self::Model, Self::Import, Self::Extractor, Self::Guest];

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Api => "api",
            Self::Model => "model",
            Self::Import => "import",
            Self::Extractor => "extractor",
            Self::Guest => "guest",
        }
    }

    /// On whose word messages are that it appends: an application appends those of its user.
    #[must_use]
    pub fn of_messages(self) -> Self {
        if self == Self::Api { Self::User } else { self }
    }

    /// What an export says of it, and what an import believes: that it is not on the owner's word.
    #[must_use]
    pub fn of_export(self) -> Option<Self> {
        matches!(self, Self::Model | Self::Guest).then_some(self)
    }

    /// Whether it is the user, or acts for the user knowingly: what these reject or correct, nobody else overrides.
    #[must_use]
    pub fn decides(self) -> bool {
        matches!(self, Self::User | Self::Api)
    }

    /// Whether its words are the user's own, where those of the other are not.
    #[must_use]
    pub fn outranks(self, other: Self) -> bool {
        self.speaks_for_the_user() && !other.speaks_for_the_user()
    }

    /// Whether its words are the user's own, as they were said.
    #[must_use]
    pub fn speaks_for_the_user(self) -> bool {
        matches!(self, Self::User | Self::Api | Self::Import)
    }
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Actor {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|actor| actor.as_str() == text).ok_or_else(|| {
            let allowed = Self::ALL.map(Self::as_str).join(", ");
            Error::invalid(format!("unknown actor: use one of {allowed}"))
        })
    }
}
