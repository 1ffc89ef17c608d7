//! How history is shortened with age.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// How the messages of a session are shortened as they get older.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Fading {
    /// Ages count from the last whole step of messages, a third of what the tier shows: newer ones and the four before are
    /// whole, six more are cut in the middle, older ones are one line. Between steps no byte moves, so a prompt
    /// cache keeps what it has.
    #[default]
    Steps,
    /// Ages count from the newest message: two are whole, three are cut in the middle, older ones are one line. More
    /// messages fit, and every message that is appended changes the form of others.
    ByAge,
}

impl Fading {
    /// Every form.
    pub const ALL: [Self; 2] = [Self::Steps, Self::ByAge];

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Steps => "steps",
            Self::ByAge => "by_age",
        }
    }

    /// Messages that stay whole, of those whose age counts.
    pub(crate) fn whole(self) -> u64 {
        match self {
            Self::Steps => 4,
            Self::ByAge => 2,
        }
    }

    /// Messages that are whole or cut in the middle; older ones become a line.
    pub(crate) fn cut(self) -> u64 {
        match self {
            Self::Steps => 10,
            Self::ByAge => 5,
        }
    }
}

impl fmt::Display for Fading {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for Fading {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL
            .into_iter()
            .find(|fading| fading.as_str() == text)
            .ok_or_else(|| Error::invalid("unknown fading: use steps or by_age"))
    }
}
