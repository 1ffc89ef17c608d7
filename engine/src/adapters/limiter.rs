//! Rate limits of a single process, which shares them with no other.

use std::convert::Infallible;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use quick_cache::sync::Cache;
use throughline_core::Result;
use throughline_core::access::Rate;
use throughline_core::ports::{Admission, Bucket, Clock, RateLimiter};

/// Buckets that are kept: about 10 MB. Of more, those that were asked for least begin anew.
const BUCKETS: usize = 65_536;

/// A hash of key and rate: no key takes more room than another.
type Key = [u8; 16];

/// The limiter where nothing is shared. Clones share their buckets.
#[derive(Clone)]
pub struct InProcessLimiter {
    buckets: Arc<Cache<Key, Arc<Mutex<Bucket>>>>,
    clock: Arc<dyn Clock>,
}

impl InProcessLimiter {
    /// A limiter that has counted nothing yet and goes by this clock.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { buckets: Arc::new(Cache::new(BUCKETS)), clock }
    }
}

impl fmt::Debug for InProcessLimiter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("InProcessLimiter")
            .field("buckets", &self.buckets.len())
            .finish_non_exhaustive()
    }
}

fn key_of(key: &str, rate: Rate) -> Key {
    let mut hasher = blake3::Hasher::new();
    hasher.update(&rate.most.to_le_bytes());
    hasher.update(&rate.per.as_nanos().to_le_bytes());
    hasher.update(key.as_bytes());
    let mut hash = Key::default();
    hasher.finalize_xof().fill(&mut hash);
    hash
}

#[async_trait]
impl RateLimiter for InProcessLimiter {
    async fn admit(&self, key: &str, rate: Rate) -> Result<Admission> {
        rate.check()?;
        let new = || Ok::<_, Infallible>(Arc::new(Mutex::new(Bucket::full(self.clock.now()))));
        let Ok(bucket) = self.buckets.get_or_insert_with(&key_of(key, rate), new);
        let mut bucket = bucket.lock().unwrap_or_else(PoisonError::into_inner);
        // Read under the lock: of calls at once, none sees a later time before an earlier one.
        Ok(bucket.admit(rate, self.clock.now()))
    }
}
