//! Migrations: a fast track under an advisory lock, and a deferred one for indexes that take long.

use std::time::Duration;

use sqlx::migrate::{Migrate, MigrateError, Migration, MigrationType, Migrator};
use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row, SqlSafeStr};
use throughline_core::{Error, ErrorKind, Result};

use crate::connection::{PostgresOptions, driver_error, mapped, parse};
use crate::records::bounded;
use crate::timed::within;

/// Numbered, forward-only; a released file never changes.
const MIGRATIONS: &[(&str, &str)] = &[
    ("initial", include_str!("../migrations/0001_initial.sql")),
    ("extracted by", include_str!("../migrations/0002_extracted_by.sql")),
    ("actors", include_str!("../migrations/0003_actors.sql")),
    ("models", include_str!("../migrations/0004_models.sql")),
    ("ratings", include_str!("../migrations/0005_ratings.sql")),
    ("file_lists", include_str!("../migrations/0006_file_lists.sql")),
];

/// How long who waits for a build waits before it looks again.
const TURN: Duration = Duration::from_millis(500);
/// What the server may use for a build: the graph of 300,000 vectors of 256 values.
const BUILD_MEMORY: &str = "512MB";
/// Partitions of a large table.
const PARTITIONS: i32 = 16;

/// Latest schema that this program knows.
pub(crate) fn latest() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

fn migrator() -> Migrator {
    let migrations = (1..).zip(MIGRATIONS).map(|(version, (name, sql))| {
        let sql = sql.into_sql_str();
        Migration::new(version, (*name).into(), MigrationType::Simple, sql, false)
    });
    Migrator::with_migrations(migrations.collect())
}

/// Brings the schema up to date, and lets the role of the service use it.
///
/// Each migration is one transaction, so that one which is interrupted leaves nothing; of two programs
/// that migrate at once, the second waits and finds it done.
///
/// # Errors
/// `SchemaTooNew`; `Unavailable`, `NotFound` or `ReadOnly` of the server.
pub async fn migrate(options: &PostgresOptions) -> Result<()> {
    let mut connection = connect(options).await?;
    let found = within(options.patience(), applied(&mut connection)).await;
    let found = mapped(found, "migrate")?;
    if found > latest() {
        return Err(too_new(found.into()));
    }
    // Without a role of its own for migrations it is the service's, which may look and change nothing.
    let done = if found == latest() && options.direct_url.is_none() {
        Ok(())
    } else {
        run(&mut connection, options).await
    };
    let _ = connection.close().await;
    done
}

/// Under the lock, the grants too: the server refuses two that change the rights to one table at once.
async fn run(connection: &mut PgConnection, options: &PostgresOptions) -> Result<()> {
    connection.lock().await.map_err(migration_error)?;
    let mut migrator = migrator();
    // The other way to run it makes a future that no task can have.
    migrator
        .set_locking(false)
        .run_direct(None, connection, false)
        .await
        .map_err(migration_error)?;
    mapped(grant(connection, options).await, "migrate")?;
    connection.unlock().await.map_err(migration_error)
}

pub(crate) async fn connect(options: &PostgresOptions) -> Result<PgConnection> {
    let connect: PgConnectOptions = parse(options.direct(), options.direct_key(), true)?;
    let connecting = tokio::time::timeout(options.connect_timeout, connect.connect());
    match connecting.await {
        Ok(connected) => mapped(connected, "migrate"),
        Err(_) => Err(Error::new(
            ErrorKind::Unavailable,
            "the database does not respond: start it, or check `postgres.url`",
        )),
    }
}

fn migration_error(error: MigrateError) -> Error {
    match error {
        MigrateError::Execute(error) | MigrateError::ExecuteMigration(error, _) => {
            driver_error(error, "migrate")
        }
        MigrateError::VersionMissing(found) | MigrateError::VersionTooNew(found, _) => {
            too_new(found)
        }
        MigrateError::VersionMismatch(version) => Error::new(
            ErrorKind::Corrupt,
            format!(
                "migration {version} in the database differs from this program's: use the version \
                 of Throughline that created the schema, or restore a backup"
            ),
        ),
        other => Error::internal("a migration failed and was rolled back").with_source(other),
    }
    .during("migrate")
}

fn too_new(found: i64) -> Error {
    Error::new(
        ErrorKind::SchemaTooNew,
        format!(
            "the database has schema version {found}, but this program supports versions up to {}: \
             use a newer program; nothing was changed",
            latest()
        ),
    )
}

/// The grants of the service: it reads and writes rows, and cannot change tables.
async fn grant(connection: &mut PgConnection, options: &PostgresOptions) -> sqlx::Result<()> {
    let Ok(service) = parse(&options.url, "postgres.url", true) else { return Ok(()) };
    let owner: String =
        sqlx::query_scalar("SELECT current_user::text").fetch_one(&mut *connection).await?;
    if service.get_username() == owner {
        return Ok(());
    }
    // The driver binds no names of roles; the server itself quotes this one.
    let quoted: String = sqlx::query_scalar("SELECT quote_ident($1)")
        .bind(service.get_username())
        .fetch_one(&mut *connection)
        .await?;
    sqlx::raw_sql(AssertSqlSafe(format!(
        "GRANT USAGE ON SCHEMA public TO {quoted};
         GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO {quoted};
         GRANT USAGE ON ALL SEQUENCES IN SCHEMA public TO {quoted};
         REVOKE INSERT, UPDATE, DELETE ON _sqlx_migrations FROM {quoted}"
    )))
    .execute(connection)
    .await
    .map(|_| ())
}

/// The number of the last migration that was applied; 0 for none.
pub(crate) async fn applied(connection: &mut PgConnection) -> sqlx::Result<u32> {
    let there: bool = sqlx::query_scalar("SELECT to_regclass('_sqlx_migrations') IS NOT NULL")
        .persistent(false)
        .fetch_one(&mut *connection)
        .await?;
    if !there {
        return Ok(0);
    }
    let last: Option<i64> =
        sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations WHERE success")
            .persistent(false)
            .fetch_one(connection)
            .await?;
    Ok(last.and_then(|last| u32::try_from(last).ok()).unwrap_or(0))
}

/// An index that takes long to build, made beside the running service.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deferred {
    /// Its name.
    pub index: String,
    table: String,
    space: i64,
    dimensions: i64,
}

/// Indexes that are missing: of each partition in which a scope has more than `exact` vectors of a space.
/// Elsewhere an index would be asked by nobody, and every vector that is written would pay for it.
pub(crate) async fn missing_indexes(
    connection: &mut PgConnection,
    exact: u64,
) -> sqlx::Result<Vec<Deferred>> {
    let wanted = sqlx::query(
        "SELECT DISTINCT p.id, p.dimensions, part FROM vector_state s
         JOIN vector_space p ON p.id = s.space_id CROSS JOIN generate_series(0, $2 - 1) part
         WHERE s.vectors > $1
           AND satisfies_hash_partition('embedding'::regclass, $2, part, s.scope)
         ORDER BY p.id, part",
    )
    .bind(bounded(exact))
    .bind(PARTITIONS)
    .persistent(false)
    .fetch_all(&mut *connection)
    .await?;
    let built: Vec<String> = sqlx::query_scalar(
        "SELECT c.relname::text FROM pg_class c JOIN pg_index i ON i.indexrelid = c.oid
         WHERE c.relname LIKE 'embedding_%_hnsw_%' AND i.indisvalid",
    )
    .persistent(false)
    .fetch_all(connection)
    .await?;
    let mut missing = Vec::new();
    for row in wanted {
        let (space, dimensions, part): (i64, i64, i32) =
            (row.try_get(0)?, row.try_get(1)?, row.try_get(2)?);
        let table = format!("embedding_{part:02}");
        let index = format!("{table}_hnsw_{space}");
        if !built.contains(&index) {
            missing.push(Deferred { index, table, space, dimensions });
        }
    }
    Ok(missing)
}

impl PostgresOptions {
    /// Builds the indexes that are missing, one after the other, while the service goes on; what an
    /// interrupted build left is dropped first. `progress` gets how many are done, and how many there are.
    ///
    /// # Errors
    /// Those of the server; what was built stays.
    pub async fn build_deferred(
        &self,
        mut progress: impl FnMut(usize, usize) + Send,
    ) -> Result<usize> {
        let mut connection = connect(self).await?;
        mapped(take_turn(&mut connection).await, "migrate")?;
        let missing =
            mapped(missing_indexes(&mut connection, self.exact_vectors).await, "migrate")?;
        for (done, deferred) in missing.iter().enumerate() {
            progress(done, missing.len());
            mapped(build(&mut connection, deferred).await, "migrate")?;
        }
        // With its connection, the turn ends.
        let _ = connection.close().await;
        Ok(missing.len())
    }
}

/// One builds at a time. Not under the lock of the fast track, which others must not wait for as long as a
/// build takes; and who waits here asks again and again, for a build waits for every statement that began
/// before it, such as one that waits for a lock.
async fn take_turn(connection: &mut PgConnection) -> sqlx::Result<()> {
    // Row-level security binds an ordinary owner, too.
    sqlx::raw_sql("SET throughline.worker = 'on'").execute(&mut *connection).await?;
    loop {
        let taken =
            sqlx::query_scalar("SELECT pg_try_advisory_lock(hashtext('throughline deferred'))");
        if taken.fetch_one(&mut *connection).await? {
            return Ok(());
        }
        tokio::time::sleep(TURN).await;
    }
}

async fn build(connection: &mut PgConnection, deferred: &Deferred) -> sqlx::Result<()> {
    let Deferred { index, table, space, dimensions } = deferred;
    // Names and numbers of our own. Each is a statement of its own: a transaction may not hold them.
    for statement in [
        "SET statement_timeout = 0".to_owned(),
        // A graph that does not fit is built many times as slowly.
        format!("SET maintenance_work_mem = '{BUILD_MEMORY}'"),
        format!("DROP INDEX CONCURRENTLY IF EXISTS {index}"),
        format!(
            "CREATE INDEX CONCURRENTLY {index} ON {table}
             USING hnsw ((value::halfvec({dimensions})) halfvec_cosine_ops) WHERE space_id = {space}"
        ),
    ] {
        sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut *connection).await?;
    }
    Ok(())
}
