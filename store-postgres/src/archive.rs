//! This store as the one that is moved to.
//!
//! Records go in as JSON, a page in one statement, whatever their table: row-level security allows no
//! `COPY`. They are read back through a cursor, so that no statement takes long.

use std::fmt::Write as _;

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use serde_json::{Map, Value as Json};
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Row as _};
use throughline_core::ports::{
    Archive, ArchiveTarget, Holder, Row, Rows, ScopeCounters, Table, Value, ValueKind,
};
use throughline_core::{Error, Result};
use uuid::Uuid;

use crate::connection::mapped;
use crate::records::{bounded, number, scope_parts, tenant_key};
use crate::store::{Bounded, PostgresStore};
use crate::timed::Timed;

/// Records that a cursor gives at once.
const PAGE: usize = 1_000;
/// Records that are removed at once.
const REMOVED: usize = 20_000;

fn type_of(kind: ValueKind) -> &'static str {
    match kind {
        ValueKind::Int => "bigint",
        ValueKind::Real => "double precision",
        ValueKind::Text => "text",
        ValueKind::Bytes => "bytea",
        ValueKind::Id => "uuid",
        ValueKind::Ints => "bigint[]",
    }
}

/// The columns of a table, each in the form that `form` gives it.
fn columns(table: &Table, form: impl Fn(&str, &str) -> String) -> String {
    let columns = table.columns.iter().map(|(name, kind)| form(name, type_of(*kind)));
    columns.collect::<Vec<_>>().join(", ")
}

/// The column that tells whose a row is.
fn owner(of: &Holder) -> &'static str {
    match of {
        Holder::Scope(_) => "scope",
        Holder::Tenant(_) => "tenant",
    }
}

fn insert(of: &Holder, table: &Table) -> String {
    format!(
        "INSERT INTO {name} ({owner}, {columns}) SELECT $1, r.*
         FROM json_to_recordset($2::text::json) AS r ({typed})",
        name = table.name,
        owner = owner(of),
        columns = columns(table, |name, _| name.to_owned()),
        typed = columns(table, |name, of| format!("{name} {of}")),
    )
}

/// The key is made by us, of letters and digits: a cursor takes no values of its own.
fn select(of: &Holder, table: &Table, key: Uuid) -> String {
    let columns = columns(table, |name, of| format!("{name}::{of}"));
    format!("SELECT {columns} FROM {} WHERE {} = '{key}'", table.name, owner(of))
}

/// All rows of a holder lie in one partition, so that a place there is one row.
fn delete(of: &Holder, table: &Table, key: Uuid) -> String {
    let (name, owner) = (table.name, owner(of));
    format!(
        "DELETE FROM {name} WHERE {owner} = '{key}' AND ctid IN (
           SELECT ctid FROM {name} WHERE {owner} = '{key}' LIMIT {REMOVED})"
    )
}

fn to_json(table: &Table, row: &Row) -> Result<Json> {
    let mut record = Map::with_capacity(row.len());
    for ((name, kind), value) in table.columns.iter().zip(row) {
        let json = match value {
            Value::Null => Json::Null,
            Value::Int(number) => (*number).into(),
            Value::Real(number) => (*number).into(),
            Value::Text(text) => text.as_str().into(),
            Value::Bytes(bytes) if *kind == ValueKind::Id => {
                let id = Uuid::from_slice(bytes);
                let id = id.map_err(|_| Error::internal("an id of a record is not a UUID"))?;
                id.to_string().into()
            }
            Value::Bytes(bytes) => {
                let mut hex = String::with_capacity(2 + bytes.len() * 2);
                hex.push_str("\\x");
                for byte in bytes {
                    // A text takes all that is written to it.
                    let _ = write!(hex, "{byte:02x}");
                }
                hex.into()
            }
            Value::Ints(numbers) => numbers.as_slice().into(),
        };
        record.insert((*name).to_owned(), json);
    }
    Ok(Json::Object(record))
}

fn read_row(row: &PgRow, table: &Table) -> sqlx::Result<Row> {
    let value = |(at, (_, kind)): (usize, &(&str, ValueKind))| {
        Ok(match kind {
            ValueKind::Int => row.try_get::<Option<i64>, _>(at)?.map(Value::Int),
            ValueKind::Real => row.try_get::<Option<f64>, _>(at)?.map(Value::Real),
            ValueKind::Text => row.try_get::<Option<String>, _>(at)?.map(Value::Text),
            ValueKind::Bytes => row.try_get::<Option<Vec<u8>>, _>(at)?.map(Value::Bytes),
            ValueKind::Id => {
                let id = row.try_get::<Option<Uuid>, _>(at)?;
                id.map(|id| Value::Bytes(id.as_bytes().to_vec()))
            }
            ValueKind::Ints => row.try_get::<Option<Vec<i64>>, _>(at)?.map(Value::Ints),
        }
        .unwrap_or(Value::Null))
    };
    table.columns.iter().enumerate().map(value).collect()
}

async fn fetch(
    read: &mut Bounded,
    of: &Holder,
    table: &Table,
    first: bool,
) -> sqlx::Result<Vec<Row>> {
    if first {
        let select = select(of, table, read.key);
        let declare = format!("DECLARE records NO SCROLL CURSOR FOR {select}");
        run(read.connection(), declare).await?;
    }
    let fetch = AssertSqlSafe(format!("FETCH {PAGE} FROM records"));
    // Of another table next time, with other columns.
    let rows = sqlx::query(fetch).persistent(false).fetch_all(read.connection()).await?;
    rows.iter().map(|row| read_row(row, table)).collect()
}

/// Runs a statement; how many rows it changed.
async fn run(connection: &mut Timed, statement: String) -> sqlx::Result<u64> {
    let statement = sqlx::query(AssertSqlSafe(statement)).persistent(false);
    Ok(statement.execute(connection).await?.rows_affected())
}

impl PostgresStore {
    async fn read_of(&self, of: &Holder) -> Result<Bounded> {
        match of {
            Holder::Scope(scope) => self.read(scope).await,
            Holder::Tenant(tenant) => self.read_tenant(tenant_key(tenant)).await,
        }
    }

    async fn write_of(&self, of: &Holder) -> Result<Bounded> {
        match of {
            Holder::Scope(scope) => self.write(scope).await,
            Holder::Tenant(tenant) => self.write_tenant(tenant_key(tenant)).await,
        }
    }

    async fn page(
        &self,
        of: &Holder,
        table: &Table,
        read: Option<Bounded>,
    ) -> Result<Option<(Vec<Row>, Bounded)>> {
        let (mut read, first) = match read {
            Some(read) => (read, false),
            None => (self.read_of(of).await?, true),
        };
        let rows = mapped(fetch(&mut read, of, table, first).await, "archive")?;
        Ok((!rows.is_empty()).then_some((rows, read)))
    }
}

#[async_trait]
impl Archive for PostgresStore {
    async fn counters(&self, of: &Holder) -> Result<Option<ScopeCounters>> {
        let mut read = self.read_of(of).await?;
        let select = match of {
            Holder::Scope(_) => {
                "SELECT last_seq, sessions, facts, messages, tokens, documents FROM scope WHERE key = $1"
            }
            Holder::Tenant(_) => {
                "SELECT 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint, 0::bigint FROM tenant
                 WHERE key = $1"
            }
        };
        let row = sqlx::query(select).bind(read.key).fetch_optional(read.connection()).await;
        let counters = |row: PgRow| {
            Ok(ScopeCounters {
                last_seq: number(row.try_get(0)?)?,
                sessions: number(row.try_get(1)?)?,
                facts: number(row.try_get(2)?)?,
                messages: number(row.try_get(3)?)?,
                tokens: number(row.try_get(4)?)?,
                documents: number(row.try_get(5)?)?,
            })
        };
        mapped(row.and_then(|row| row.map(counters).transpose()), "archive")
    }

    async fn count(&self, of: &Holder, table: &'static Table) -> Result<u64> {
        let mut read = self.read_of(of).await?;
        let count = format!("SELECT count(*) FROM {} WHERE {} = $1", table.name, owner(of));
        let count = sqlx::query_scalar::<_, i64>(AssertSqlSafe(count))
            .bind(read.key)
            .fetch_one(read.connection())
            .await;
        mapped(count.and_then(number), "archive")
    }

    fn rows<'a>(&'a self, of: &'a Holder, table: &'static Table) -> Rows<'a> {
        stream::try_unfold(None, move |read| async move {
            let page = self.page(of, table, read).await?;
            Ok(page.map(|(rows, read)| (rows, Some(read))))
        })
        .boxed()
    }
}

#[async_trait]
impl ArchiveTarget for PostgresStore {
    async fn put(&self, of: &Holder, table: &'static Table, rows: &[Row]) -> Result<()> {
        let records = rows.iter().map(|row| to_json(table, row)).collect::<Result<Vec<_>>>()?;
        let mut write = self.write_of(of).await?;
        let key = write.key;
        let put = sqlx::query(AssertSqlSafe(insert(of, table)))
            .bind(key)
            .bind(Json::Array(records).to_string())
            .execute(write.connection())
            .await;
        mapped(put, "archive")?;
        write.commit().await
    }

    async fn clear(&self, of: &Holder) -> Result<()> {
        for table in of.tables() {
            loop {
                let mut write = self.write_of(of).await?;
                let delete = delete(of, table, write.key);
                let removed = mapped(run(write.connection(), delete).await, "archive")?;
                write.commit().await?;
                if removed == 0 {
                    break;
                }
            }
        }
        Ok(())
    }

    async fn open_holder(&self, of: &Holder, counters: &ScopeCounters) -> Result<()> {
        let mut write = self.write_of(of).await?;
        let opened = match of {
            Holder::Scope(scope) => {
                let [tenant, user, workspace] = scope_parts(scope);
                sqlx::query(
                    "INSERT INTO scope (key, tenant, user_id, workspace, last_seq, sessions, facts,
                       messages, tokens, documents)
                     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)",
                )
                .bind(write.key)
                .bind(tenant)
                .bind(user)
                .bind(workspace)
                .bind(bounded(counters.last_seq))
                .bind(bounded(counters.sessions))
                .bind(bounded(counters.facts))
                .bind(bounded(counters.messages))
                .bind(bounded(counters.tokens))
                .bind(bounded(counters.documents))
            }
            Holder::Tenant(tenant) => sqlx::query(
                "INSERT INTO tenant (key, name, keys)
                 VALUES ($1, $2, (SELECT count(*) FROM api_key WHERE tenant = $1))",
            )
            .bind(write.key)
            .bind(tenant.as_str()),
        };
        mapped(opened.execute(write.connection()).await, "archive")?;
        write.commit().await
    }
}
