//! The ledger of erasures on a server: in a schema that no dump of the store takes along, or on a server
//! of its own.

use async_trait::async_trait;
use sqlx::postgres::{PgConnection, PgPool};
use sqlx::{AssertSqlSafe, Connection, Row};
use throughline_core::ports::{ErasureLedger, LedgerEntry, LedgerIdentity, Recorded};
use throughline_core::time::Timestamp;
use throughline_core::{Error, ErrorKind, Result};

use crate::connection::{PostgresOptions, mapped, parse, pool};
use crate::migrate::connect;
use crate::records::{at, bounded, number};

/// The setting of a server of its own.
const KEY: &str = "postgres.erasures_url";

/// Numbers are given by the one row of `identity`, which whoever records holds: they have no gaps.
const CREATE: &str = "
    CREATE SCHEMA IF NOT EXISTS throughline_erasures;
    CREATE TABLE IF NOT EXISTS throughline_erasures.identity (
      one              boolean PRIMARY KEY DEFAULT true CHECK (one),
      id               uuid NOT NULL,
      key              bytea NOT NULL,
      last             bigint NOT NULL DEFAULT 0
    );
    CREATE TABLE IF NOT EXISTS throughline_erasures.entry (
      number           bigint PRIMARY KEY,
      at               bigint NOT NULL,
      entry            bytea NOT NULL
    );
    INSERT INTO throughline_erasures.identity (id, key) VALUES (gen_random_uuid(),
      decode(replace(gen_random_uuid()::text || gen_random_uuid()::text, '-', ''), 'hex'))
    ON CONFLICT DO NOTHING";

/// A ledger in a schema of a Postgres database.
#[derive(Debug, Clone)]
pub struct PostgresLedger {
    pool: PgPool,
}

impl PostgresLedger {
    /// Opens the ledger at `url`, or in the store's own database. Only with `create` one is made where
    /// none is.
    ///
    /// # Errors
    /// `Conflict` where none is; those of the server.
    pub async fn open(options: &PostgresOptions, url: Option<&str>, create: bool) -> Result<Self> {
        let own = match url {
            Some(url) => PostgresOptions {
                direct_url: None,
                replica_url: None,
                url: url.to_owned(),
                ..options.clone()
            },
            None => options.clone(),
        };
        let mut connection = connect(&own).await?;
        let there =
            sqlx::query_scalar("SELECT to_regclass('throughline_erasures.entry') IS NOT NULL")
                .persistent(false)
                .fetch_one(&mut connection)
                .await;
        match mapped(there, "open_ledger")? {
            true => {}
            false if create => mapped(make(&mut connection, &own).await, "open_ledger")?,
            false => {
                return Err(Error::new(
                    ErrorKind::Conflict,
                    "the ledger of erasures (schema throughline_erasures) is missing, and without \
                     it erased data could come back: restore it, or accept this risk with \
                     `throughline migrate --new-ledger`",
                ));
            }
        }
        let _ = connection.close().await;
        let key = if url.is_some() { KEY } else { "postgres.url" };
        let own = PostgresOptions { connections: 2, ..own };
        Ok(Self { pool: pool(&own, &own.url, key)? })
    }
}

/// Creates the tables, and lets the role of the service use them. Of two that do at once, the second waits.
async fn make(connection: &mut PgConnection, options: &PostgresOptions) -> sqlx::Result<()> {
    let service = match parse(&options.url, KEY, true) {
        Ok(service) => service.get_username().to_owned(),
        Err(_) => return Ok(()),
    };
    let quoted: String = sqlx::query_scalar("SELECT quote_ident($1)")
        .bind(service)
        .persistent(false)
        .fetch_one(&mut *connection)
        .await?;
    // One message is one transaction, with which the lock ends.
    sqlx::raw_sql(AssertSqlSafe(format!(
        "SELECT pg_advisory_xact_lock(hashtext('throughline erasures')); {CREATE};
         GRANT USAGE ON SCHEMA throughline_erasures TO {quoted};
         GRANT SELECT, INSERT ON throughline_erasures.entry TO {quoted};
         GRANT SELECT, UPDATE ON throughline_erasures.identity TO {quoted}"
    )))
    .execute(connection)
    .await
    .map(|_| ())
}

async fn identity(connection: &mut PgConnection) -> sqlx::Result<LedgerIdentity> {
    let row = sqlx::query("SELECT id, key FROM throughline_erasures.identity")
        .persistent(false)
        .fetch_one(connection)
        .await?;
    let key: Vec<u8> = row.try_get(1)?;
    let key =
        <[u8; 32]>::try_from(key).map_err(|_| sqlx::Error::Decode("a key of 32 bytes".into()))?;
    Ok(LedgerIdentity { id: row.try_get(0)?, key })
}

async fn last(connection: &mut PgConnection) -> sqlx::Result<u64> {
    let last = sqlx::query_scalar("SELECT last FROM throughline_erasures.identity FOR UPDATE");
    number(last.persistent(false).fetch_one(connection).await?)
}

async fn put(connection: &mut PgConnection, entry: &[u8], at: Timestamp) -> sqlx::Result<u64> {
    let number_given: i64 = sqlx::query_scalar(
        "WITH n AS (UPDATE throughline_erasures.identity SET last = last + 1 RETURNING last)
         INSERT INTO throughline_erasures.entry (number, at, entry) SELECT last, $1, $2 FROM n
         RETURNING number",
    )
    .bind(at.as_micros())
    .bind(entry)
    .persistent(false)
    .fetch_one(connection)
    .await?;
    number(number_given)
}

#[async_trait]
impl ErasureLedger for PostgresLedger {
    async fn identity(&self) -> Result<LedgerIdentity> {
        let mut connection = mapped(self.pool.acquire().await, "identity")?;
        mapped(identity(&mut connection).await, "identity")
    }

    async fn record(&self, entry: &LedgerEntry, at: Timestamp) -> Result<u64> {
        let mut connection = mapped(self.pool.acquire().await, "record")?;
        mapped(put(&mut connection, &entry.encode(), at).await, "record")
    }

    async fn entries(&self, after: u64, limit: usize) -> Result<Vec<Recorded>> {
        let rows = sqlx::query(
            "SELECT number, at, entry FROM throughline_erasures.entry WHERE number > $1
             ORDER BY number LIMIT $2",
        )
        .bind(bounded(after))
        .bind(bounded(limit))
        .persistent(false)
        .fetch_all(&self.pool)
        .await;
        let read = |row: &sqlx::postgres::PgRow| -> sqlx::Result<(u64, Timestamp, Vec<u8>)> {
            Ok((number(row.try_get(0)?)?, at(row.try_get(1)?), row.try_get(2)?))
        };
        let rows = rows.and_then(|rows| rows.iter().map(read).collect::<sqlx::Result<Vec<_>>>());
        let rows = mapped(rows, "entries")?.into_iter();
        rows.map(|(number, at, entry)| {
            Ok(Recorded { number, at, entry: LedgerEntry::decode(&entry)? })
        })
        .collect()
    }

    async fn last(&self) -> Result<u64> {
        let last: sqlx::Result<i64> =
            sqlx::query_scalar("SELECT last FROM throughline_erasures.identity")
                .persistent(false)
                .fetch_one(&self.pool)
                .await;
        mapped(last.and_then(number), "last")
    }

    async fn adopt(&self, of: &LedgerIdentity, entries: &[Recorded]) -> Result<()> {
        let mut transaction = mapped(self.pool.begin().await, "adopt")?;
        let mut held = mapped(last(&mut transaction).await, "adopt")?;
        let own = mapped(identity(&mut transaction).await, "adopt")?;
        if own.id != of.id {
            if held > 0 {
                return Err(Error::conflict(
                    "the ledger of erasures already has entries: it belongs to another store",
                ));
            }
            let taken = sqlx::query("UPDATE throughline_erasures.identity SET id = $1, key = $2")
                .bind(of.id)
                .bind(of.key.as_slice())
                .persistent(false)
                .execute(&mut *transaction)
                .await;
            mapped(taken, "adopt")?;
        }
        for recorded in entries {
            if recorded.number <= held {
                continue;
            }
            if recorded.number != held + 1 {
                return Err(Error::conflict("entries of the ledger of erasures are missing"));
            }
            let put = put(&mut transaction, &recorded.entry.encode(), recorded.at).await;
            held = mapped(put, "adopt")?;
        }
        mapped(transaction.commit().await, "adopt")
    }
}
