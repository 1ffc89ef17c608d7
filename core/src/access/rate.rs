//! How often something may be done.

use std::time::Duration;

use crate::error::{Error, Result};

/// How often something may be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rate {
    /// So many at once, and within `per` on average.
    pub most: u32,
    /// The time in which as many come free again.
    pub per: Duration,
}

impl Rate {
    /// Most that [`Self::most`] can be.
    pub const MAX: u32 = 100_000;
    /// Shortest that [`Self::per`] can be.
    pub const SHORTEST: Duration = Duration::from_millis(1);
    /// Longest that [`Self::per`] can be. With [`Self::MAX`] it is what a limiter can count exactly
    /// in microseconds and floating point, which is all that Redis has.
    pub const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

    /// Whether a limiter takes it.
    ///
    /// # Errors
    /// `InvalidInput` that names the limits.
    pub fn check(self) -> Result<()> {
        if (1..=Self::MAX).contains(&self.most)
            && (Self::SHORTEST..=Self::LONGEST).contains(&self.per)
        {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "a rate of {} per {:?} is not supported: it must be 1 to {} per {:?} to {:?}",
            self.most,
            self.per,
            Self::MAX,
            Self::SHORTEST,
            Self::LONGEST
        )))
    }
}
