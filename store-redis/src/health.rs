//! The health of the server.

use redis::{Value, cmd};
use throughline_core::{ErrorKind, Result};

use crate::cache::RedisCache;

/// The state of the server.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RedisHealth {
    /// Version of the server; `None` while it is away.
    pub version: Option<String>,
    /// The problems, in sentences for an operator; empty if there are none.
    pub problems: Vec<String>,
}

impl RedisCache {
    /// Asks the server for its version and state. A server that is away is a problem, not an error.
    ///
    /// # Errors
    /// What Redis refuses for no reason that is known.
    pub async fn health(&self) -> Result<RedisHealth> {
        match self.inner.link.ask(&cmd("INFO"), "ask for health").await {
            Ok(Value::BulkString(info)) => Ok(examine(&String::from_utf8_lossy(&info))),
            Ok(Value::VerbatimString { text, .. }) => Ok(examine(&text)),
            Ok(_) => Ok(examine("")),
            Err(error) if error.kind() == ErrorKind::Internal => Err(error),
            Err(error) => {
                Ok(RedisHealth { version: None, problems: vec![error.message().to_owned()] })
            }
        }
    }
}

fn examine(info: &str) -> RedisHealth {
    let field = |name: &str| {
        info.lines().find_map(|line| line.trim_end().strip_prefix(name)?.strip_prefix(':'))
    };
    let number = |name| field(name).and_then(|value| value.parse::<u64>().ok()).unwrap_or(0);
    let mut problems = Vec::new();
    let mut tell = |wrong: bool, problem: &str| {
        if wrong {
            problems.push(problem.to_owned());
        }
    };
    tell(
        field("role") == Some("slave"),
        "Redis is a replica and accepts no writes: point `redis.url` at the primary",
    );
    tell(
        number("cluster_enabled") == 1,
        "Redis is one node of a cluster, which holds only part of the keys: point `redis.url` at a \
         proxy or an endpoint for the whole cluster",
    );
    let (used, most) = (number("used_memory"), number("maxmemory"));
    tell(
        field("maxmemory_policy") == Some("noeviction") && most > 0 && used > most / 10 * 9,
        "the memory of Redis is full or nearly full, and it may not evict keys: raise its \
         `maxmemory`, or set `maxmemory-policy allkeys-lru`",
    );
    tell(
        field("rdb_last_bgsave_status") == Some("err"),
        "Redis cannot save its snapshot, and may refuse writes because of that: free some disk \
         space, or set `save \"\"`, because a cache needs no snapshots",
    );
    let version = field("valkey_version").or_else(|| field("redis_version"));
    tell(version.is_none(), "the server at `redis.url` does not report a Redis version");
    RedisHealth { version: version.map(str::to_owned), problems }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_problem_is_told() {
        const FINE: &str = "# Server\r\nredis_version:7.0.15\r\nused_memory:90\r\nmaxmemory:100\r\n\
            maxmemory_policy:noeviction\r\nrole:master\r\ncluster_enabled:0\r\n\
            rdb_last_bgsave_status:ok\r\n";
        assert_eq!(
            examine(FINE),
            RedisHealth { version: Some("7.0.15".to_owned()), problems: Vec::new() }
        );
        for (fine, wrong, part) in [
            ("role:master", "role:slave", "primary"),
            ("cluster_enabled:0", "cluster_enabled:1", "cluster"),
            ("used_memory:90", "used_memory:91", "memory"),
            ("status:ok", "status:err", "snapshot"),
            ("redis_version", "version", "version"),
        ] {
            let problems = examine(&FINE.replace(fine, wrong)).problems;
            assert_eq!(problems.len(), 1, "{problems:?}");
            assert!(problems[0].contains(part), "{problems:?}");
        }
        let evicts = FINE.replace(":90", ":99").replace("noeviction", "allkeys-lru");
        assert_eq!(examine(&evicts).problems, [""; 0]);
        let unlimited = FINE.replace("maxmemory:100", "maxmemory:0");
        assert_eq!(examine(&unlimited).problems, [""; 0]);
    }
}
