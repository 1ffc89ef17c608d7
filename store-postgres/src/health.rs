//! What an operator has to know of the database.

use sqlx::Row;
use sqlx::postgres::PgConnection;
use throughline_core::Result;
use throughline_core::ports::Health;

use crate::connection::mapped;
use crate::migrate;
use crate::store::PostgresStore;

/// A database that is away is a problem to tell, not an error.
pub(crate) async fn check(store: &PostgresStore, deep: bool) -> Health {
    match looked(store, deep).await {
        Ok(mut health) => {
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
    let look = async |connection: &mut PgConnection| look(connection, deep).await;
    mapped(work.connection().within(look).await, "health")
}

async fn look(connection: &mut PgConnection, deep: bool) -> sqlx::Result<Health> {
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
        "the server is a replica and takes no writes: point `postgres.url` at the primary",
    );
    tell(row.try_get(2)?, "the database is read-only (default_transaction_read_only)");
    tell(
        row.try_get(4)?,
        "the role of `postgres.url` passes by row-level security: use an ordinary one",
    );
    tell(
        row.try_get::<i64, _>(5)? < 5,
        "row-level security is off for some tables: run `throughline migrate`",
    );
    let schema_version = migrate::applied(connection).await?;
    if schema_version < migrate::latest() {
        problems.push(format!(
            "the schema is {schema_version}, this program needs {}: run `throughline migrate`",
            migrate::latest()
        ));
    } else {
        let waiting = migrate::missing_indexes(connection).await?;
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
        .map(|index| format!("the index `{index}` is not valid: REINDEX INDEX it"))
        .collect())
}
