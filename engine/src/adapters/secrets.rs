//! Secrets, from the random numbers of the operating system.

use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};

use throughline_core::ports::SecretGen;
use throughline_core::{Error, ErrorKind, Result};

/// Secrets that nobody can foresee: of what the operating system gave at the start and gives each time,
/// and of a count. The first alone is enough, so that none fails later.
pub struct OsSecrets {
    seed: [u8; 32],
    made: AtomicU64,
}

impl OsSecrets {
    /// Asks the operating system for its random numbers.
    ///
    /// # Errors
    /// `Unavailable` where it has none.
    pub fn open() -> Result<Self> {
        let mut seed = [0; 32];
        getrandom::fill(&mut seed).map_err(|error| {
            Error::new(
                ErrorKind::Unavailable,
                format!("the operating system's random number generator failed: {error}"),
            )
        })?;
        Ok(Self { seed, made: AtomicU64::new(0) })
    }
}

impl SecretGen for OsSecrets {
    fn secret(&self) -> [u8; 32] {
        let mut fresh = [0; 32];
        // Where this fails, the seed and the count still make another secret each time.
        let _ = getrandom::fill(&mut fresh);
        let mut hasher = blake3::Hasher::new_keyed(&self.seed);
        hasher.update(&self.made.fetch_add(1, Ordering::Relaxed).to_le_bytes());
        hasher.update(&fresh);
        hasher.finalize().into()
    }
}

impl fmt::Debug for OsSecrets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OsSecrets(redacted)")
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn no_secret_comes_twice_and_none_is_shown() {
        let (one, other) = (OsSecrets::open().unwrap(), OsSecrets::open().unwrap());
        let all: HashSet<_> = (0..500).flat_map(|_| [one.secret(), other.secret()]).collect();
        assert_eq!(all.len(), 1_000);
        assert_eq!(format!("{one:?}"), "OsSecrets(redacted)");
    }
}
