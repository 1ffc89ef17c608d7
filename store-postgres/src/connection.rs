//! Reaching the server, and the one place that maps driver errors.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use throughline_core::{Error, ErrorKind, Result};

/// Statements that a connection keeps prepared: more than this crate has.
const STATEMENTS: usize = 256;

/// How to reach and use a database.
#[derive(Clone)]
pub struct PostgresOptions {
    /// `postgres://user:password@host:port/database`, of a role that row-level security binds. It may
    /// lead through PgBouncer in transaction mode.
    pub url: String,
    /// Of the role that owns the tables, straight to the server: for migrations and for waiting on
    /// notifications. `None` where `url` is both.
    pub direct_url: Option<String>,
    /// A replica of the server, for the role of `url`: what a turn reads most of comes from there, as long
    /// as that is not older than what the server has. `None` for no replica.
    pub replica_url: Option<String>,
    /// Most connections of this process, to each of the two.
    pub connections: u32,
    /// How long to wait for a connection, and for the first answer on one that idled.
    pub connect_timeout: Duration,
    /// How long one statement may take, and how long the server keeps a transaction that stands still. A
    /// server that says nothing at all is given up on after both times together.
    pub statement_timeout: Duration,
    /// Whether statements stay prepared between transactions; off for a PgBouncer before 1.21.
    pub prepared: bool,
    /// Vectors of a scope that are all compared with a question; of more, the index is asked.
    pub exact_vectors: u64,
}

impl PostgresOptions {
    /// The defaults, for a URL.
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            direct_url: None,
            replica_url: None,
            connections: 16,
            connect_timeout: Duration::from_secs(5),
            statement_timeout: Duration::from_secs(30),
            prepared: true,
            exact_vectors: 20_000,
        }
    }

    /// Where migrations go.
    pub(crate) fn direct(&self) -> &str {
        self.direct_url.as_deref().unwrap_or(&self.url)
    }

    /// The setting that [`Self::direct`] is from.
    pub(crate) fn direct_key(&self) -> &'static str {
        if self.direct_url.is_some() { "postgres.direct_url" } else { "postgres.url" }
    }
}

/// Without the URLs: they hold passwords.
impl fmt::Debug for PostgresOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PostgresOptions")
            .field("connections", &self.connections)
            .field("connect_timeout", &self.connect_timeout)
            .field("statement_timeout", &self.statement_timeout)
            .field("prepared", &self.prepared)
            .field("exact_vectors", &self.exact_vectors)
            .finish_non_exhaustive()
    }
}

/// A URL as the driver takes it.
pub(crate) fn parse(url: &str, key: &str, prepared: bool) -> Result<PgConnectOptions> {
    // The driver's own error could quote the URL, and with it a password.
    let options = PgConnectOptions::from_str(url).map_err(|_| {
        Error::invalid(format!(
            "`{key}` must look like postgres://user:password@host:5432/database"
        ))
    })?;
    let statements = if prepared { STATEMENTS } else { 0 };
    Ok(options
        .application_name("throughline")
        .statement_cache_capacity(statements)
        // A PgBouncer that was not told to ignore it refuses the connection, and every server that we
        // run on sends floats whole anyway.
        .extra_float_digits(None))
}

/// A pool that connects when it is first used: the service starts while the server is away.
pub(crate) fn pool(options: &PostgresOptions, url: &str, key: &str) -> Result<PgPool> {
    let connect = parse(url, key, options.prepared)?;
    Ok(PgPoolOptions::new()
        .max_connections(options.connections.max(1))
        .acquire_timeout(options.connect_timeout)
        // A dead connection is found by the first statement, which is repeated on another.
        .test_before_acquire(false)
        .connect_lazy_with(connect))
}

/// Whether the connection, not the statement, is at fault.
pub(crate) fn is_broken(error: &sqlx::Error) -> bool {
    match error {
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) => true,
        sqlx::Error::Database(error) => {
            matches!(
                error.code().as_deref(),
                Some("57P01" | "57P02" | "57P03" | "57P05" | "08003" | "08006")
            )
        }
        _ => false,
    }
}

/// Maps a driver error to what a caller can act on; SQL, values and URLs never reach the message.
pub(crate) fn driver_error(error: sqlx::Error, operation: &'static str) -> Error {
    let code = match &error {
        sqlx::Error::Database(error) => error.code().map(String::from),
        _ => None,
    };
    let (kind, sentence) = match &error {
        sqlx::Error::Database(_) => by_code(code.as_deref().unwrap_or_default()),
        sqlx::Error::Decode(_) | sqlx::Error::ColumnDecode { .. } => (
            ErrorKind::Corrupt,
            "a stored value is damaged: run `throughline migrate --check`, or restore a backup",
        ),
        sqlx::Error::PoolTimedOut => (
            ErrorKind::Unavailable,
            "no connection to the database became free in time: the database may be unavailable, \
             or `postgres.connections` is too low",
        ),
        sqlx::Error::Tls(_) => (
            ErrorKind::Unavailable,
            "a TLS connection to the database cannot be established: check its certificate",
        ),
        sqlx::Error::PoolClosed => (ErrorKind::Unavailable, "the store is shutting down"),
        sqlx::Error::Io(_) | sqlx::Error::Protocol(_) | sqlx::Error::BeginFailed => (
            ErrorKind::Unavailable,
            "the database does not respond: start it, or check `postgres.url`",
        ),
        _ => (ErrorKind::Internal, "the database refused a statement"),
    };
    let error = match code.as_deref() {
        Some("40001" | "40P01" | "23505") => {
            Error::lost_race("another writer changed this first: try again").with_source(error)
        }
        _ => Error::new(kind, sentence).with_source(error),
    };
    error.during(operation)
}

/// By SQLSTATE.
fn by_code(code: &str) -> (ErrorKind, &'static str) {
    match code {
        "25006" => (
            ErrorKind::ReadOnly,
            "the database accepts no writes: it may be a replica, or its disk was full; point \
             `postgres.url` at the primary",
        ),
        "53100" => (ErrorKind::StorageFull, "the disk of the database is full: free some space"),
        "53300" | "53400" => (
            ErrorKind::Unavailable,
            "the database has no free connections: lower `postgres.connections`, or raise the \
             server's limit",
        ),
        "55000" => {
            (ErrorKind::Unavailable, "the database accepts no connections at the moment: try again")
        }
        "53200" => (ErrorKind::Unavailable, "the database is out of memory: try again"),
        "57014" => (
            ErrorKind::Unavailable,
            "the database took longer than `postgres.statement_timeout_ms`: try again",
        ),
        "25P03" | "25P04" => {
            (ErrorKind::Unavailable, "the database ended an idle transaction: try again")
        }
        "42P05" | "26000" => (
            ErrorKind::Unavailable,
            "the connection pooler does not keep prepared statements: set `postgres.prepared = \
             false`, or use PgBouncer 1.21 or newer",
        ),
        "55P03" => (ErrorKind::Unavailable, "waiting for a lock timed out: try again"),
        "28000" | "28P01" => (
            ErrorKind::Unavailable,
            "the database refused the login: check user and password of `postgres.url`",
        ),
        "3D000" => (
            ErrorKind::NotFound,
            "the database of `postgres.url` does not exist: create it, then run `throughline migrate`",
        ),
        "42501" => (
            ErrorKind::ReadOnly,
            "the role of `postgres.url` does not have the rights for this: run `throughline \
             migrate` with the owner in `postgres.direct_url`, which grants them",
        ),
        "42P01" | "42883" | "42703" => (
            ErrorKind::Unavailable,
            "the database has no Throughline schema, or an older one: run `throughline migrate`",
        ),
        "XX001" | "XX002" => {
            (ErrorKind::Corrupt, "the database is damaged: restore a backup of the server")
        }
        code if code.starts_with("08") || code.starts_with("57P") => {
            (ErrorKind::Unavailable, "the database is starting, stopping or unavailable: try again")
        }
        _ => (ErrorKind::Internal, "the database refused a statement"),
    }
}

/// A driver's result with its error mapped.
pub(crate) fn mapped<T>(result: sqlx::Result<T>, operation: &'static str) -> Result<T> {
    result.map_err(|error| driver_error(error, operation))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_reaches_no_debug_form_and_no_error() {
        let options = PostgresOptions::new("postgres://u:s3cret@host/db");
        assert!(!format!("{options:?}").contains("s3cret"));
        let error =
            parse("postgres://u:s3cret@host:notaport/db", "postgres.url", true).unwrap_err();
        assert!(!format!("{error:?}").contains("s3cret"), "{error:?}");
    }

    #[test]
    fn sql_states_map_to_errors_with_advice() {
        let table = [
            ("25006", ErrorKind::ReadOnly),
            ("53100", ErrorKind::StorageFull),
            ("53300", ErrorKind::Unavailable),
            ("55000", ErrorKind::Unavailable),
            ("25P03", ErrorKind::Unavailable),
            ("57P03", ErrorKind::Unavailable),
            ("08006", ErrorKind::Unavailable),
            ("42P01", ErrorKind::Unavailable),
            ("42P05", ErrorKind::Unavailable),
            ("XX001", ErrorKind::Corrupt),
            ("22012", ErrorKind::Internal),
        ];
        for (code, kind) in table {
            assert_eq!(by_code(code).0, kind, "{code}");
        }
    }
}
