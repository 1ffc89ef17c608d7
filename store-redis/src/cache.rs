//! The cache: values that keep the tokens of their tags.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use redis::{Script, Value, cmd};
use throughline_core::ports::{Cache, Health, IdGen, check_cached};
use throughline_core::{Error, Result, Scope};

use crate::health::RedisHealth;
use crate::keys::{HASH, Hash, ScopeKeys, hash};
use crate::link::Link;
use crate::options::RedisOptions;

/// Longest that a value is kept.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// Bytes of a token.
const TOKEN: usize = 16;

/// Puts a value with the tokens that its tags have, or get, and lets no tag expire before it. `KEYS`:
/// the value, the tags. `ARGV`: the TTL, a token that was never used, what stands before the tokens,
/// the value.
///
/// The value is written first: once a script has written anything, if only a TTL, Redis lets it finish
/// without asking whether there is room.
const PUT: &str = "
local tokens = {}
for i = 2, #KEYS do
  tokens[i - 1] = redis.call('GET', KEYS[i]) or ARGV[2]
end
redis.call('SET', KEYS[1], ARGV[3] .. table.concat(tokens) .. ARGV[4], 'PX', ARGV[1])
for i = 2, #KEYS do
  if redis.call('PTTL', KEYS[i]) < tonumber(ARGV[1]) then
    redis.call('SET', KEYS[i], tokens[i - 1], 'PX', ARGV[1])
  end
end
return 1
";

/// A cache and a rate limiter in Redis.
///
/// Cheap to clone; clones share one connection. Any number of processes may use one prefix.
#[derive(Clone)]
pub struct RedisCache {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) link: Link,
    pub(crate) options: RedisOptions,
    ids: Arc<dyn IdGen>,
    put: Script,
    pub(crate) admit: Script,
}

impl RedisCache {
    /// A cache on a server, which need not be there: a service starts without it, each call is
    /// `Unavailable` as long as it is away, and one succeeds when it is back. `ids` makes the tokens
    /// of tags: no two processes that share a prefix may have one twice.
    ///
    /// # Errors
    /// `InvalidInput` when an option cannot be used; the message names its key.
    pub fn open(options: RedisOptions, ids: Arc<dyn IdGen>) -> Result<Self> {
        let link = Link::new(&options)?;
        let (put, admit) = (Script::new(PUT), Script::new(crate::rate_limiter::ADMIT));
        Ok(Self { inner: Arc::new(Inner { link, options, ids, put, admit }) })
    }

    fn keys(&self, scope: &Scope) -> ScopeKeys {
        ScopeKeys::new(&self.inner.options.prefix, scope)
    }
}

impl fmt::Debug for RedisCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisCache").field("options", &self.inner.options).finish_non_exhaustive()
    }
}

#[async_trait]
impl Cache for RedisCache {
    async fn get(&self, scope: &Scope, key: &str) -> Result<Option<Vec<u8>>> {
        let keys = self.keys(scope);
        let asked = self.inner.link.ask(cmd("GET").arg(keys.value(key)), "get").await?;
        let Value::BulkString(mut record) = asked else {
            return Ok(None);
        };
        let Some(parts) = Parts::of(&record) else {
            return Ok(None);
        };
        if !parts.tags.is_empty() {
            let mut ask = cmd("MGET");
            for tag in parts.tags {
                ask.arg(keys.tag(tag));
            }
            // A token that is still there now was there when the value was read: none comes again.
            let tokens = self.inner.link.ask(&ask, "get").await?;
            if !parts.count(&tokens) {
                return Ok(None);
            }
        }
        let start = record.len() - parts.value.len();
        Ok(Some(record.split_off(start)))
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
        let keys = self.keys(scope);
        let ttl = u64::try_from(ttl.min(LONGEST).as_millis()).unwrap_or(u64::MAX);
        if ttl == 0 {
            self.inner.link.ask(cmd("UNLINK").arg(keys.value(key)), "put").await?;
            return Ok(());
        }
        let tags: Vec<Hash> = tags.iter().map(|tag| hash([tag.as_bytes()])).collect();
        let mut command = cmd("EVALSHA");
        command.arg(self.inner.put.get_hash()).arg(1 + tags.len()).arg(keys.value(key));
        for tag in &tags {
            command.arg(keys.tag(tag));
        }
        let token = self.inner.ids.next();
        command.arg(ttl).arg(token.as_bytes()).arg(head(&tags)?).arg(value);
        self.inner.link.run(&self.inner.put, &command, "put").await?;
        Ok(())
    }

    async fn invalidate(&self, scope: &Scope, tag: &str) -> Result<()> {
        let tag = self.keys(scope).tag(&hash([tag.as_bytes()]));
        self.inner.link.ask(cmd("DEL").arg(tag), "invalidate").await?;
        Ok(())
    }

    async fn cache_health(&self) -> Result<Health> {
        let RedisHealth { version, problems } = self.health().await?;
        let backend = version.map_or("Redis".to_owned(), |version| format!("Redis {version}"));
        Ok(Health { backend, schema_version: 0, problems })
    }
}

/// What stands before the tokens: how many tags there are, and which.
fn head(tags: &[Hash]) -> Result<Vec<u8>> {
    let count = u16::try_from(tags.len())
        .map_err(|_| Error::internal("too many tags for a cached value"))?;
    Ok([count.to_le_bytes().as_slice(), tags.as_flattened()].concat())
}

/// What a record is made of.
struct Parts<'a> {
    tags: &'a [Hash],
    tokens: &'a [[u8; TOKEN]],
    value: &'a [u8],
}

impl<'a> Parts<'a> {
    /// `None` for a record that is not ours.
    fn of(record: &'a [u8]) -> Option<Self> {
        let (count, rest) = record.split_first_chunk()?;
        let count = usize::from(u16::from_le_bytes(*count));
        let (tags, rest) = rest.split_at_checked(count * HASH)?;
        let (tokens, value) = rest.split_at_checked(count * TOKEN)?;
        Some(Self { tags: tags.as_chunks().0, tokens: tokens.as_chunks().0, value })
    }

    /// Whether the value counts: whether its tags have these tokens.
    fn count(&self, now: &Value) -> bool {
        let Value::Array(now) = now else {
            return false;
        };
        let is = |(now, token): (&Value, &[u8; TOKEN])| matches!(now, Value::BulkString(now) if now == token);
        now.len() == self.tokens.len() && now.iter().zip(self.tokens).all(is)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record() -> Vec<u8> {
        let tags = [[1; HASH], [2; HASH]];
        let tokens = [[3; TOKEN], [4; TOKEN]];
        [head(&tags).unwrap(), tokens.concat(), b"value".to_vec()].concat()
    }

    fn bulk(token: u8) -> Value {
        Value::BulkString(vec![token; TOKEN])
    }

    #[test]
    fn a_value_counts_while_every_token_is_the_one_it_has() {
        let record = record();
        let parts = Parts::of(&record).unwrap();
        assert_eq!((parts.tags, parts.value), ([[1; HASH], [2; HASH]].as_slice(), &b"value"[..]));
        assert!(parts.count(&Value::Array(vec![bulk(3), bulk(4)])));
        for other in [
            vec![],
            vec![bulk(3)],
            vec![bulk(3), Value::Nil],
            vec![Value::Nil, bulk(4)],
            vec![bulk(4), bulk(3)],
            vec![bulk(3), bulk(4), bulk(4)],
            vec![bulk(3), Value::BulkString(vec![4; TOKEN - 1])],
        ] {
            assert!(!parts.count(&Value::Array(other.clone())), "{other:?}");
        }
        assert!(!parts.count(&Value::Nil));
    }

    #[test]
    fn ignores_records_of_others() {
        let record = record();
        let head_and_tokens = record.len() - b"value".len();
        for length in 0..record.len() {
            let parts = Parts::of(&record[..length]);
            assert_eq!(parts.is_some(), length >= head_and_tokens, "{length}");
        }
        assert!(Parts::of(b"\xff\xff anything").is_none());
        let bare = head(&[]).unwrap();
        assert!(
            Parts::of(&bare).is_some_and(|parts| parts.tags.is_empty() && parts.value.is_empty())
        );
    }
}
