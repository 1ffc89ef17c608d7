//! Rate limits: a bucket for each key and rate, by the clock of Redis.

use std::time::Duration;

use async_trait::async_trait;
use redis::{Value, cmd};
use throughline_core::access::Rate;
use throughline_core::ports::{Admission, RateLimiter};
use throughline_core::{Error, Result};

use crate::cache::RedisCache;
use crate::keys;

/// Takes one out of a bucket. `KEYS`: the bucket. `ARGV`: what one costs, and what a microsecond brings
/// back. Gives the microseconds to wait, or 0, and how many are left.
///
/// What was taken is counted in parts, of which one costs the microseconds of `per` and a microsecond
/// brings back `most`: whole numbers, all below 2^53, where those of Lua have a gap. `math.fmod` is
/// exact where a quotient is not. A bucket that has become full is the same as none, so that is when
/// its record expires.
pub(crate) const ADMIT: &str = "
local cost, most = tonumber(ARGV[1]), tonumber(ARGV[2])
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local taken, at = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) (%d+)$')
taken, at = tonumber(taken or 0), tonumber(at or now)
taken = math.max(0, taken - math.max(0, now - at) * most)
local size, wait = most * cost, 0
if taken + cost > size then
  local over = taken + cost - size - 1
  wait = (over - math.fmod(over, most)) / most + 1
else
  taken = taken + cost
end
local room = size - taken
local left = (room - math.fmod(room, cost)) / cost
local full = string.format('%.0f', math.ceil(taken / most / 1000) + 1)
redis.call('SET', KEYS[1], string.format('%.0f %.0f', taken, now), 'PX', full)
return {wait, left}
";

#[async_trait]
impl RateLimiter for RedisCache {
    async fn admit(&self, key: &str, rate: Rate) -> Result<Admission> {
        rate.check()?;
        let inner = &self.inner;
        let mut command = cmd("EVALSHA");
        command.arg(inner.admit.get_hash()).arg(1);
        command.arg(keys::bucket(&inner.options.prefix, key, rate));
        command.arg(rate.per.as_micros().to_string()).arg(rate.most);
        let answer = inner.link.run(&inner.admit, &command, "admit").await?;
        admission(&answer).ok_or_else(|| {
            Error::internal("Redis returned an unexpected answer to a rate limit").during("admit")
        })
    }
}

fn admission(answer: &Value) -> Option<Admission> {
    let Value::Array(answer) = answer else {
        return None;
    };
    match answer.as_slice() {
        [Value::Int(0), Value::Int(left)] => {
            Some(Admission::Admitted { left: u32::try_from(*left).ok()? })
        }
        [Value::Int(wait), Value::Int(_)] => {
            let retry_after = Duration::from_micros(u64::try_from(*wait).ok()?);
            Some(Admission::Refused { retry_after })
        }
        _ => None,
    }
}
