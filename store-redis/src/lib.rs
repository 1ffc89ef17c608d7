//! What replicas share in Redis: a cache whose values can be forgotten by tag, and rate limits.
//!
//! **Tags are tokens.** The record of a tag is a token that was never used before, and a value keeps
//! the tokens of its tags. It counts only while each of its tags still has that token, so that to
//! forget a tag is to delete its record, whatever was put under it and by whom. Redis may evict any
//! record at any time, and every loss falls to the safe side: a lost value is a miss; a lost record of
//! a tag makes its values misses, and the next put makes another token, which brings none of them
//! back. Two other ways do not: a counter for each tag begins again at its start once it was evicted,
//! and old values count again; and a set of the keys under a tag, once it was evicted, forgets what
//! there was to forget.
//!
//! Tokens cannot help where Redis itself goes back: a replica that is promoted may have missed the last
//! deletions, and a server that died comes up with its last snapshot. The port asks of its users to
//! tell stale values by themselves; `save ""` and `appendonly no` in the server's settings leave only
//! the first.
//!
//! **Keys** are hashes within the prefix, so that no text of a tenant is in a list of them. All of one
//! scope share a hash tag, and so a slot of a cluster: no command and no script crosses slots. Every
//! key has a TTL. The files of this crate mirror `core/src/ports`.

mod cache;
mod errors;
mod health;
mod keys;
mod link;
mod options;
mod rate_limiter;
mod session_cache;

pub use cache::RedisCache;
pub use health::RedisHealth;
pub use options::RedisOptions;
