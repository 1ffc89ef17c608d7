//! The size of a context.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// Default token budget of a turn.
pub const DEFAULT_BUDGET: u32 = 3_000;
/// Largest budget that is accepted.
pub const MAX_BUDGET: u32 = 1_000_000;

/// The size of a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Tier {
    /// 10 messages, 800 tokens.
    Light,
    /// 15 messages, 1,500 tokens.
    Standard,
    /// 25 messages, 3,000 tokens.
    Full,
}

impl Tier {
    /// Every tier.
    pub const ALL: [Self; 3] = [Self::Light, Self::Standard, Self::Full];

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Light => "light",
            Self::Standard => "standard",
            Self::Full => "full",
        }
    }

    /// Tokens of the whole payload.
    #[must_use]
    pub fn budget(self) -> u32 {
        match self {
            Self::Light => 800,
            Self::Standard => 1_500,
            Self::Full => DEFAULT_BUDGET,
        }
    }

    /// Most recent messages that it shows.
    #[must_use]
    pub fn messages(self) -> usize {
        match self {
            Self::Light => 10,
            Self::Standard => 15,
            Self::Full => 25,
        }
    }
}

impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Tier {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|tier| tier.as_str() == text)
            .ok_or_else(|| Error::invalid("unknown tier: use light, standard or full"))
    }
}
