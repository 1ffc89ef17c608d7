//! The cache on Redis.

use std::sync::Arc;
use std::time::Duration;

use throughline_core::Result;
use throughline_store_redis::{RedisCache, RedisOptions};

use super::OptionalBackends;
use crate::adapters::UuidV7;
use crate::config::Config;

pub(super) fn open(config: &Config) -> Result<OptionalBackends> {
    let redis = &config.redis;
    let timeout = Duration::from_millis(redis.timeout_ms);
    let options = RedisOptions {
        prefix: redis.prefix.clone(),
        timeout,
        connect_timeout: timeout,
        ..RedisOptions::new(redis.url.expose())
    };
    let cache = Arc::new(RedisCache::open(options, Arc::new(UuidV7::default()))?);
    Ok(OptionalBackends {
        cache: Some(Arc::clone(&cache) as _),
        limiter: Some(Arc::clone(&cache) as _),
        heads: Some(cache),
        ..OptionalBackends::default()
    })
}
