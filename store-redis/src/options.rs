//! How to reach a server, and what of it is ours.

use std::fmt;
use std::time::Duration;

use redis::io::tcp::{TcpSettings, socket2};
use redis::{ConnectionAddr, ConnectionInfo, IntoConnectionInfo};
use throughline_core::{Error, Result};

const MAX_PREFIX_BYTES: usize = 64;

/// A connection on which nobody speaks is asked for after so long whether it still leads somewhere.
const KEEPALIVE: Duration = Duration::from_secs(60);

/// How to reach Redis, and what our keys are called there.
#[derive(Clone)]
pub struct RedisOptions {
    /// `redis://user:password@host:port/database`, or `rediss://` for TLS, or `redis+unix:///path`.
    pub url: String,
    /// What our keys start with: letters, digits, `-` and `_`. Two deployments may share a server
    /// under two prefixes.
    pub prefix: String,
    /// How long an answer may take.
    pub timeout: Duration,
    /// How long a connection may take to be made. No call takes longer than both times together.
    pub connect_timeout: Duration,
}

impl RedisOptions {
    /// The defaults, for a server.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            prefix: "throughline".to_owned(),
            timeout: Duration::from_secs(1),
            connect_timeout: Duration::from_secs(1),
        }
    }

    /// What the driver needs to know of it.
    pub(crate) fn connection(&self) -> Result<ConnectionInfo> {
        let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_');
        if self.prefix.is_empty()
            || self.prefix.len() > MAX_PREFIX_BYTES
            || !self.prefix.bytes().all(allowed)
        {
            return Err(Error::invalid(format!(
                "`redis.prefix` must be 1 to {MAX_PREFIX_BYTES} letters, digits, `-` or `_`"
            )));
        }
        // The driver's own error could quote the URL, and with it a password.
        let info = self.url.as_str().into_connection_info().map_err(|_| wrong_url())?;
        match info.addr() {
            // It could be asked for, and every connection would fail.
            ConnectionAddr::TcpTls { insecure: true, .. } => {
                return Err(Error::invalid(
                    "`redis.url` must not end with #insecure: certificates are always checked",
                ));
            }
            ConnectionAddr::TcpTls { host, .. } | ConnectionAddr::Tcp(host, _)
                if host.is_empty() =>
            {
                return Err(wrong_url());
            }
            _ => {}
        }
        // Without `nodelay`, a request may wait for the answer to another.
        let keepalive = socket2::TcpKeepalive::new().with_time(KEEPALIVE);
        let tcp = TcpSettings::default().set_nodelay(true).set_keepalive(keepalive);
        Ok(info.set_tcp_settings(tcp))
    }
}

fn wrong_url() -> Error {
    Error::invalid("`redis.url` must look like redis://user:password@host:6379/0")
}

/// Without the URL: it may hold a password.
impl fmt::Debug for RedisOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RedisOptions")
            .field("prefix", &self.prefix)
            .field("timeout", &self.timeout)
            .field("connect_timeout", &self.connect_timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use throughline_core::ErrorKind;

    use super::*;

    #[test]
    fn what_is_wrong_is_named_and_no_secret_is_shown() {
        let good = RedisOptions::new("redis://u:s3cret@host:6379/1");
        let url = |url: &str| RedisOptions { url: url.to_owned(), ..good.clone() };
        let prefix = |prefix: &str| RedisOptions { prefix: prefix.to_owned(), ..good.clone() };
        for right in [good.clone(), url("rediss://:s3cret@host"), url("redis+unix:///run/redis")] {
            right.connection().unwrap();
            assert!(!format!("{right:?}").contains("s3cret"));
        }
        for (wrong, named) in [
            (url(""), "redis.url"),
            (url("host:6379"), "redis.url"),
            (url("http://u:s3cret@host"), "redis.url"),
            (url("redis://"), "redis.url"),
            (url("redis://u:s3cret@host:port"), "redis.url"),
            (url("redis://u:s3cret@host/base"), "redis.url"),
            (url("redis://u:s3cret@0.0.0.0"), "redis.url"),
            (url("rediss://u:s3cret@host/#insecure"), "#insecure"),
            (prefix(""), "redis.prefix"),
            (prefix("a:b"), "redis.prefix"),
            (prefix("{a}"), "redis.prefix"),
            (prefix(&"a".repeat(65)), "redis.prefix"),
        ] {
            let error = wrong.connection().unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            let said = format!("{error} {error:?} {wrong:?}");
            assert!(said.contains(named), "{said}");
            assert!(!said.contains("s3cret"), "{said}");
        }
    }
}
