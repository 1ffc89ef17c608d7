//! The health of the database.

use std::time::Duration;

use sqlx::Row;
use sqlx::postgres::{PgConnection, PgPool};
use throughline_core::Result;
use throughline_core::ports::Health;
use tokio::time::{Instant, sleep};

use crate::connection::mapped;
use crate::migrate;
use crate::replica::Replica;
use crate::store::{Bound, PostgresStore};

/// How long a replica may take to replay what the primary has: one that lives takes milliseconds.
const CATCH_UP: Duration = Duration::from_secs(1);
/// So many bytes are always there that a replica cannot replay yet: what nobody waits for is written page
/// by page, and records end where they end.
const NEAR: i64 = 64 << 10;
/// So many seconds old is what a replica has that does not keep up; a busy one may be a few behind.
const LATE: i64 = 10;
const AWAY: &str = "the replica does not respond, so the primary serves all reads: start it, or \
     check `postgres.replica_url`";
const NO_REPLICA: &str = "`postgres.replica_url` names a server that is not a replica, so the \
     primary serves all reads: name a standby of the primary, or leave it empty";
const ANOTHERS: &str = "`postgres.replica_url` names a replica of another server: name a replica \
     of the server of `postgres.url`, or leave it empty";
/// How a transaction begins that looks at a server.
const READ: &str = "READ ONLY";

/// A database that is away is a problem to tell, not an error.
pub(crate) async fn check(store: &PostgresStore, deep: bool) -> Health {
    match looked(store, deep).await {
        Ok(mut health) => {
            if let Some(replica) = &store.inner.replica {
                health.backend = format!("{}, with a replica", health.backend);
                health.problems.extend(replica_problem(store, replica).await);
            }
            if let Some(told) = store.inner.skew.told() {
                health.backend = format!("{}; {told}", health.backend);
            }
            health
        }
        Err(error) => Health {
            backend: "Postgres".to_owned(),
            schema_version: 0,
            problems: vec![error.message().to_owned()],
        },
    }
}

async fn looked(store: &PostgresStore, deep: bool) -> Result<Health> {
    let mut work = store.work().await?;
    let exact = store.inner.options.exact_vectors;
    let look = async |connection: &mut PgConnection| look(connection, exact, deep).await;
    mapped(work.connection().within(look).await, "health")
}

async fn look(connection: &mut PgConnection, exact: u64, deep: bool) -> sqlx::Result<Health> {
    let row = sqlx::query(
        "SELECT current_setting('server_version'), pg_is_in_recovery(),
           current_setting('default_transaction_read_only') = 'on',
           (SELECT extversion FROM pg_extension WHERE extname = 'vector'),
           (SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user),
           (SELECT count(*) FROM pg_class WHERE relrowsecurity AND relforcerowsecurity
              AND relname IN ('scope', 'message', 'fact', 'job', 'embedding'))",
    )
    .persistent(false)
    .fetch_one(&mut *connection)
    .await?;
    let (server, pgvector): (String, Option<String>) = (row.try_get(0)?, row.try_get(3)?);
    let mut problems = Vec::new();
    let mut tell = |wrong: bool, problem: &str| {
        if wrong {
            problems.push(problem.to_owned());
        }
    };
    tell(
        row.try_get(1)?,
        "the server is a replica and accepts no writes: point `postgres.url` at the primary",
    );
    tell(row.try_get(2)?, "the database is read-only (default_transaction_read_only)");
    tell(
        row.try_get(4)?,
        "the role of `postgres.url` bypasses row-level security: use an ordinary role",
    );
    tell(
        row.try_get::<i64, _>(5)? < 5,
        "row-level security is off for some tables: run `throughline migrate`",
    );
    let schema_version = migrate::applied(connection).await?;
    if schema_version < migrate::latest() {
        problems.push(format!(
            "the schema has version {schema_version}, but this program needs {}: run `throughline \
             migrate`",
            migrate::latest()
        ));
    } else {
        let waiting = migrate::missing_indexes(connection, exact).await?;
        if !waiting.is_empty() {
            problems.push(format!(
                "{} vector indexes are not built yet, so large scopes are compared in full: run \
                 `throughline migrate`",
                waiting.len()
            ));
        }
        if deep {
            problems.extend(compare(connection).await?);
        }
    }
    let pgvector = pgvector.unwrap_or_else(|| "none".to_owned());
    Ok(Health {
        backend: format!("Postgres {server}, pgvector {pgvector}"),
        schema_version,
        problems,
    })
}

/// How far the replica is.
struct Progress {
    recovers: bool,
    paused: bool,
    /// Bytes that it has not replayed of what the primary had.
    behind: i64,
    /// Age of what it replayed last, in seconds.
    age: i64,
}

impl Progress {
    /// Of the replica, against the end of the primary's log.
    async fn of(store: &PostgresStore, replica: &Replica, end: &str) -> sqlx::Result<Self> {
        let mut work = store.begin(&replica.pool, READ, Bound::Worker).await?;
        let asked = sqlx::query(
            "SELECT pg_is_in_recovery(),
               CASE WHEN pg_is_in_recovery() THEN pg_is_wal_replay_paused() ELSE false END,
               coalesce(pg_wal_lsn_diff($1::pg_lsn, pg_last_wal_replay_lsn()), 0)::bigint,
               coalesce(extract(epoch FROM
                 clock_timestamp() - pg_last_xact_replay_timestamp()), 0)::bigint",
        );
        let row = asked.bind(end).fetch_one(&mut work).await?;
        Ok(Self {
            recovers: row.try_get(0)?,
            paused: row.try_get(1)?,
            behind: row.try_get(2)?,
            age: row.try_get(3)?,
        })
    }

    fn problem(&self) -> Option<String> {
        let Self { recovers, paused, behind, age } = self;
        if !recovers {
            return Some(NO_REPLICA.to_owned());
        }
        let why = if *paused { "its replay is paused" } else { "it cannot keep up" };
        (*paused || (*behind > NEAR && *age > LATE)).then(|| {
            format!(
                "the replica is {behind} bytes and {age} s behind, because {why}: the primary \
                 serves reads of newer data"
            )
        })
    }
}

/// What a server has in common with its replicas alone, where it may be asked.
async fn identity(store: &PostgresStore, pool: &PgPool) -> Option<i64> {
    let mut work = store.begin(pool, READ, Bound::Worker).await.ok()?;
    let asked = sqlx::query_scalar("SELECT system_identifier FROM pg_control_system()");
    asked.fetch_one(&mut work).await.ok()
}

/// The problem of the replica. Reads are correct without it.
async fn replica_problem(store: &PostgresStore, replica: &Replica) -> Option<String> {
    let asked = async {
        let mut work = store.begin(&store.inner.pool, READ, Bound::Worker).await?;
        let end = sqlx::query_scalar("SELECT pg_current_wal_flush_lsn()::text");
        end.fetch_one(&mut work).await
    };
    // An unavailable primary is reported separately.
    let end: String = asked.await.ok()?;
    let begun = Instant::now();
    let problem = loop {
        let Ok(progress) = Progress::of(store, replica, &end).await else {
            return Some(AWAY.to_owned());
        };
        let problem = progress.problem();
        let may_pass = progress.recovers && !progress.paused && begun.elapsed() < CATCH_UP;
        if problem.is_none() || !may_pass {
            break problem;
        }
        sleep(CATCH_UP / 20).await;
    };
    match (identity(store, &replica.pool).await, identity(store, &store.inner.pool).await) {
        (Some(its), Some(ours)) if its != ours => Some(ANOTHERS.to_owned()),
        _ => problem,
    }
}

/// Indexes that a crash of the server or an interrupted build left unusable.
async fn compare(connection: &mut PgConnection) -> sqlx::Result<Vec<String>> {
    let broken: Vec<String> = sqlx::query_scalar(
        "SELECT c.relname::text FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid
         JOIN pg_class t ON t.oid = i.indrelid
         WHERE NOT i.indisvalid AND t.relnamespace = current_schema()::regnamespace",
    )
    .persistent(false)
    .fetch_all(connection)
    .await?;
    Ok(broken
        .into_iter()
        .map(|index| format!("the index `{index}` is invalid: run `REINDEX INDEX` on it"))
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_replica_that_is_not_one_paused_or_behind() {
        for (recovers, paused, behind, age, expected) in [
            (true, false, 0, 99, None),
            (true, false, NEAR, 99, None),
            (true, false, 1 << 40, LATE, None),
            (true, false, NEAR + 1, LATE + 1, Some("65537 bytes")),
            (true, false, 1 << 40, 99, Some("cannot keep up")),
            (true, true, 0, 0, Some("paused")),
            (false, false, 0, 0, Some("not a replica")),
        ] {
            let told = Progress { recovers, paused, behind, age }.problem();
            assert_eq!(told.is_some(), expected.is_some(), "{told:?}");
            assert!(told.unwrap_or_default().contains(expected.unwrap_or_default()));
        }
    }
}
