//! A cache that replicas share and may lose: values that can be computed again, and rate counters.
//! Time is that of the backend's own clock, for clocks of replicas differ by minutes.

use std::time::Duration;

use async_trait::async_trait;

use crate::access::Rate;
use crate::error::{Error, Result};
use crate::ports::Health;
use crate::scope::Scope;
use crate::time::Timestamp;

/// Most bytes of a cached value.
pub const MAX_CACHED_BYTES: usize = 1 << 20;
/// Most tags of a cached value.
pub const MAX_CACHE_TAGS: usize = 256;

/// Whether a cache takes a value with these tags.
///
/// # Errors
/// `InvalidInput` that names the limit.
pub fn check_cached(value: &[u8], tags: &[&str]) -> Result<()> {
    if value.len() > MAX_CACHED_BYTES {
        return Err(Error::invalid(format!(
            "a value of {} bytes is too large for the cache, which allows {MAX_CACHED_BYTES}",
            value.len()
        )));
    }
    if tags.len() > MAX_CACHE_TAGS {
        return Err(Error::invalid(format!(
            "a value with {} tags is too large for the cache, which allows {MAX_CACHE_TAGS}",
            tags.len()
        )));
    }
    Ok(())
}

/// Values of a scope that cost much to make, kept for a while and seen by every replica.
///
/// **Nothing is right only because of the cache.** A value may be gone at any time. One that was
/// invalidated may come back where a server fails over or restarts from an old snapshot, and one that
/// was made before a change may be put after it. So whoever reads a value must be able to tell
/// whether it is still true, such as by a version of what it was made from in its key. To a caller
/// an error is a miss.
///
/// Nothing crosses scopes: a workspace and its user outside of it are two. Keys and tags are any text
/// of any length, and a tag that reads like a key is not that key.
#[async_trait]
pub trait Cache: Send + Sync {
    /// The value that was last put under the key in exactly this scope, whole and unchanged, by
    /// whichever replica. `None` where none was, past its TTL, and after an invalidation.
    async fn get(&self, scope: &Scope, key: &str) -> Result<Option<Vec<u8>>>;

    /// Keeps a value for `ttl` in place of what the key had, with its tags and its TTL. A TTL of zero
    /// keeps nothing, what the key had included; one of years may be cut short. A repeated tag is
    /// one. More than [`MAX_CACHED_BYTES`] or [`MAX_CACHE_TAGS`] is `InvalidInput`, and what the key
    /// had stays.
    async fn put(
        &self,
        scope: &Scope,
        key: &str,
        value: &[u8],
        ttl: Duration,
        tags: &[&str],
    ) -> Result<()>;

    /// Forgets every value of exactly this scope that was put under the tag, whichever replica put
    /// it and whatever other tags it has. An unused tag is not an error. A value that is put
    /// afterwards stays, and so may one whose put finishes after this has returned.
    async fn invalidate(&self, scope: &Scope, tag: &str) -> Result<()>;

    /// The state of the cache. An unavailable one is reported as a problem, not as an error.
    async fn cache_health(&self) -> Result<Health>;
}

/// A bucket of a [`RateLimiter`], for one that keeps it in memory.
///
/// What was taken and not refilled yet is counted in parts, of which one admission takes `per` in
/// microseconds and a microsecond brings back `most`: whole numbers, whatever the rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bucket {
    taken: u64,
    at: Timestamp,
}

impl Bucket {
    /// A full one.
    #[must_use]
    pub const fn full(at: Timestamp) -> Self {
        Self { taken: 0, at }
    }

    /// Admits one more, or refuses it, under a rate that [`Rate::check`] takes.
    pub fn admit(&mut self, rate: Rate, now: Timestamp) -> Admission {
        let most = u64::from(rate.most);
        let cost = u64::try_from(rate.per.as_micros()).unwrap_or(u64::MAX);
        // A clock that was set back refills nothing.
        let passed = now.as_micros().saturating_sub(self.at.as_micros()).max(0).unsigned_abs();
        self.taken = self.taken.saturating_sub(passed.saturating_mul(most));
        self.at = now;
        let room = most.saturating_mul(cost).saturating_sub(self.taken);
        if room < cost {
            let retry_after = Duration::from_micros((cost - room).div_ceil(most));
            return Admission::Refused { retry_after };
        }
        self.taken += cost;
        let left = u32::try_from((room - cost) / cost.max(1)).unwrap_or(u32::MAX);
        Admission::Admitted { left }
    }
}

/// The decision of a limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It may be done, and is counted.
    Admitted {
        /// How many more would be admitted right after it.
        left: u32,
    },
    /// It may not be done now, and nothing is counted.
    Refused {
        /// When the next one would be admitted; more than zero. Who waits so long is admitted if
        /// nobody else comes.
        retry_after: Duration,
    },
}

/// Counts what all replicas do.
#[async_trait]
pub trait RateLimiter: Send + Sync {
    /// Admits one more under the key, or refuses it: a bucket that holds [`Rate::most`], is full at
    /// first, gives one for each admission, and is refilled evenly, all of it within [`Rate::per`]
    /// and never above its size. All replicas share it. Calls at once are never given more than it
    /// holds.
    ///
    /// A key is any text; no two share a bucket, nor do two rates of one key. A rate that
    /// [`Rate::check`] refuses is `InvalidInput`. A limiter that has lost its record begins with a
    /// full bucket; one that cannot be reached is an error, and whether to go on then is the caller's
    /// decision.
    async fn admit(&self, key: &str, rate: Rate) -> Result<Admission>;
}
