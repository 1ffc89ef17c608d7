//! What replicas share: a cache and a limiter whose clock a test moves.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use throughline_core::access::Rate;
use throughline_core::ports::{Admission, Bucket, Cache, Clock, Health, RateLimiter, check_cached};
use throughline_core::time::Timestamp;
use throughline_core::{Result, Scope};

/// A map and the clock of whoever holds it. Clones are replicas: they share both.
struct Shared<K, V> {
    held: Arc<Mutex<BTreeMap<K, V>>>,
    clock: Arc<dyn Clock>,
}

impl<K, V> Shared<K, V> {
    fn new(clock: Arc<dyn Clock>) -> Self {
        Self { held: Arc::default(), clock }
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<K, V>> {
        // No call panics with the lock.
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K, V> Clone for Shared<K, V> {
    fn clone(&self) -> Self {
        Self { held: self.held.clone(), clock: self.clock.clone() }
    }
}

impl<K, V> fmt::Debug for Shared<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Shared").field("held", &self.held().len()).finish_non_exhaustive()
    }
}

/// The `Cache` port in memory. Clones are replicas of one cache.
#[derive(Debug, Clone)]
pub struct MemoryCache(Shared<(Scope, String), Value>);

struct Value {
    bytes: Vec<u8>,
    until: Timestamp,
    tags: Vec<String>,
}

impl MemoryCache {
    /// An empty cache that goes by this clock.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self(Shared::new(clock))
    }
}

#[async_trait]
impl Cache for MemoryCache {
    async fn get(&self, scope: &Scope, key: &str) -> Result<Option<Vec<u8>>> {
        let now = self.0.clock.now();
        let mut held = self.0.held();
        held.retain(|_, value| now < value.until);
        Ok(held.get(&(scope.clone(), key.to_owned())).map(|value| value.bytes.clone()))
    }

    async fn put(
        &self,
        scope: &Scope,
        key: &str,
        value: &[u8],
        ttl: Duration,
        tags: &[&str],
    ) -> Result<()> {
        check_cached(value, tags)?;
        let value = Value {
            bytes: value.to_vec(),
            until: self.0.clock.now().plus(ttl),
            tags: tags.iter().map(ToString::to_string).collect(),
        };
        self.0.held().insert((scope.clone(), key.to_owned()), value);
        Ok(())
    }

    async fn invalidate(&self, scope: &Scope, tag: &str) -> Result<()> {
        self.0.held().retain(|(of, _), value| of != scope || !value.tags.iter().any(|t| t == tag));
        Ok(())
    }

    async fn cache_health(&self) -> Result<Health> {
        Ok(Health { backend: "memory".to_owned(), schema_version: 0, problems: Vec::new() })
    }
}

/// The `RateLimiter` port in memory. Clones are replicas of one limiter.
#[derive(Debug, Clone)]
pub struct MemoryRateLimiter(Shared<(String, u32, Duration), Bucket>);

impl MemoryRateLimiter {
    /// A limiter that has counted nothing yet and goes by this clock.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self(Shared::new(clock))
    }
}

#[async_trait]
impl RateLimiter for MemoryRateLimiter {
    async fn admit(&self, key: &str, rate: Rate) -> Result<Admission> {
        rate.check()?;
        let now = self.0.clock.now();
        let mut held = self.0.held();
        let bucket =
            held.entry((key.to_owned(), rate.most, rate.per)).or_insert_with(|| Bucket::full(now));
        Ok(bucket.admit(rate, now))
    }
}
