//! The one place that maps the driver's errors. Sentences are constants: what a server or a
//! connection says stays in the source, for logs.

use std::error::Error as StdError;
use std::io;
use std::sync::Arc;

use redis::{ErrorKind as Driver, RedisError};
use throughline_core::{Error, ErrorKind};

type Judged = (ErrorKind, &'static str);

const AWAY: Judged = (
    ErrorKind::Unavailable,
    "Redis does not respond: start it, or check `redis.url` (use rediss:// only for a server with \
     TLS)",
);
const STRANGER: Judged =
    (ErrorKind::Unavailable, "the server at `redis.url` is not Redis: check host and port");
const TLS: Judged = (
    ErrorKind::Unavailable,
    "a TLS connection to Redis cannot be established: check its certificate and the root \
     certificates of this system (SSL_CERT_FILE may name a file of them), and that its port is the \
     one for TLS",
);
const LOGIN: Judged =
    (ErrorKind::Unavailable, "Redis refuses the login: check user and password of `redis.url`");
const MAY_NOT: Judged = (
    ErrorKind::ReadOnly,
    "the user of `redis.url` lacks permission: allow it GET, MGET, SET, PTTL, DEL, UNLINK, \
     TIME, EVALSHA, SCRIPT LOAD and INFO on keys of `redis.prefix`",
);
const REPLICA: Judged = (
    ErrorKind::ReadOnly,
    "this Redis is a replica and accepts no writes: point `redis.url` at the primary",
);
const NO_SNAPSHOT: Judged = (
    ErrorKind::ReadOnly,
    "Redis accepts no writes because it cannot save its snapshot: free some disk space, or set \
     `save \"\"`, because a cache needs no snapshots",
);
const FULL: Judged = (
    ErrorKind::StorageFull,
    "the memory of Redis is full: raise its `maxmemory`, or set `maxmemory-policy allkeys-lru`, so \
     that it evicts old keys",
);
const BUSY: Judged = (
    ErrorKind::Unavailable,
    "Redis is starting, failing over, or out of connections: try again later",
);
const CLUSTER: Judged = (
    ErrorKind::Unavailable,
    "`redis.url` names one node of a Redis Cluster, which holds only part of the keys: name a \
     proxy or an endpoint for the whole cluster",
);
const DATABASE: Judged = (
    ErrorKind::InvalidInput,
    "the server has no database with the number in `redis.url`: leave it out, or raise `databases`",
);
const REFUSED: Judged = (ErrorKind::Internal, "Redis refused a command");

/// Maps a driver error to what a caller can act on.
pub(crate) fn driver_error(error: RedisError, operation: &'static str) -> Error {
    let (kind, sentence) = judge(&error);
    Error::new(kind, sentence).with_source(error).during(operation)
}

fn judge(error: &RedisError) -> Judged {
    match error.kind() {
        // What is wrong with a certificate comes as data that is.
        Driver::Io if io_kind(error) == Some(io::ErrorKind::InvalidData) => TLS,
        Driver::Io => AWAY,
        Driver::Client => TLS,
        Driver::AuthenticationFailed => LOGIN,
        Driver::Parse => STRANGER,
        Driver::Server(_) | Driver::Extension => {
            by_code(error.code().unwrap_or_default(), error.detail().unwrap_or_default())
        }
        _ => REFUSED,
    }
}

fn io_kind(error: &RedisError) -> Option<io::ErrorKind> {
    // The driver shares its sources.
    let shared = error.source()?.downcast_ref::<Arc<dyn StdError + Send + Sync>>()?;
    shared.downcast_ref::<io::Error>().map(io::Error::kind)
}

/// By the first word of what a server says, and the text behind it.
fn by_code(code: &str, text: &str) -> Judged {
    match code {
        "NOAUTH" | "WRONGPASS" | "DENIED" => LOGIN,
        "NOPERM" => MAY_NOT,
        "READONLY" => REPLICA,
        "MISCONF" => NO_SNAPSHOT,
        "OOM" => FULL,
        "BUSY" | "LOADING" | "MASTERDOWN" | "NOREPLICAS" | "TRYAGAIN" | "CLUSTERDOWN" => BUSY,
        "MOVED" | "ASK" | "CROSSSLOT" => CLUSTER,
        "ERR" if text.contains("max number of clients") => BUSY,
        "ERR" if text.contains("DB index") => DATABASE,
        "ERR" if text.contains("user executing the script can't") => MAY_NOT,
        // Before Redis 7, what a command in a script says is told within what the script says.
        "ERR" => match text.split_once(": -").and_then(|(_, inner)| inner.split_once(' ')) {
            Some((inner, rest)) if inner != "ERR" => by_code(inner, rest),
            _ => REFUSED,
        },
        _ => REFUSED,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_server_says_tells_what_to_do() {
        use ErrorKind::{Internal, InvalidInput, ReadOnly, StorageFull, Unavailable};
        for (said, kind, part) in [
            ("NOAUTH Authentication required.", Unavailable, "password"),
            ("WRONGPASS invalid username-password pair", Unavailable, "password"),
            ("DENIED Redis is running in protected mode", Unavailable, "password"),
            ("NOPERM this user has no permissions", ReadOnly, "lacks permission"),
            ("READONLY You can't write against a read only replica.", ReadOnly, "primary"),
            ("MISCONF Redis is configured to save RDB snapshots", ReadOnly, "snapshot"),
            ("OOM command not allowed when used memory > 'maxmemory'.", StorageFull, "maxmemory"),
            ("LOADING Redis is loading the dataset in memory", Unavailable, "later"),
            ("BUSY Redis is busy running a script.", Unavailable, "later"),
            ("CLUSTERDOWN The cluster is down", Unavailable, "later"),
            ("ERR max number of clients reached", Unavailable, "later"),
            ("ERR DB index is out of range", InvalidInput, "database"),
            (
                "ERR The user executing the script can't run this command",
                ReadOnly,
                "lacks permission",
            ),
            ("MOVED 3999 127.0.0.1:6381", Unavailable, "Cluster"),
            ("ERR unknown command 'EVALSHA', with args", Internal, "refused"),
            ("WRONGTYPE Operation against a key", Internal, "refused"),
            (
                "ERR Error running script (call to f_1): @user_script: 5: -OOM command not allowed",
                StorageFull,
                "maxmemory",
            ),
            (
                "ERR Error running script (call to f_1): @user_script:5: -READONLY You can't",
                ReadOnly,
                "primary",
            ),
            ("ERR Error running script: @user_script: 5: -ERR : -ERR what", Internal, "refused"),
        ] {
            let answer = redis::parse_redis_value(format!("-{said}\r\n").as_bytes()).unwrap();
            let error = answer.extract_error().unwrap_err();
            let (judged, sentence) = judge(&error);
            assert_eq!(judged, kind, "{said}");
            assert!(sentence.contains(part), "{said}: {sentence}");
            let ours = driver_error(error, "get");
            assert_eq!((ours.message(), ours.operation()), (sentence, Some("get")));
        }
    }

    #[test]
    fn what_happens_on_the_way_tells_what_to_do() {
        let io = |kind| RedisError::from(io::Error::from(kind));
        for (error, part) in [
            (io(io::ErrorKind::ConnectionRefused), "start it"),
            (io(io::ErrorKind::TimedOut), "start it"),
            (io(io::ErrorKind::BrokenPipe), "start it"),
            (io(io::ErrorKind::InvalidData), "certificate"),
            (redis::parse_redis_value(b"HTTP/1.1 400 Bad Request\r\n").unwrap_err(), "not Redis"),
            ((Driver::AuthenticationFailed, "failed").into(), "password"),
        ] {
            let (kind, sentence) = judge(&error);
            assert_eq!(kind, ErrorKind::Unavailable, "{error}");
            assert!(sentence.contains(part), "{error}: {sentence}");
        }
    }
}
