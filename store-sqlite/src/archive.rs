//! The embedded store as the one that is moved away from.

use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use futures_util::{StreamExt, stream};
use rusqlite::types::{Value as SqlValue, ValueRef};
use rusqlite::{Connection, OptionalExtension};
use throughline_core::ids::TenantId;
use throughline_core::ports::{
    Archive, ArchiveSource, Holder, Row, Rows, ScopeCounters, TENANT_TABLES, Table, Value,
    ValueKind,
};
use throughline_core::{Error, Result};
use tokio::sync::mpsc;

use crate::connection::{SqliteOptions, open_writer};
use crate::records::{decode_terms, mapped, stored_wrongly};
use crate::store::{read_scope_columns, scope_id};

/// Records of a page, and about how many bytes of them are enough.
const PAGE: usize = 2_000;
const PAGE_BYTES: usize = 4 << 20;

/// The file, as it is at one moment: who would write to it waits, and gives up in the end, until this is
/// dropped.
#[derive(Debug, Clone)]
pub struct SqliteArchive {
    connection: Arc<Mutex<Connection>>,
}

impl SqliteArchive {
    /// Opens the file, migrating it, and keeps others from writing to it.
    ///
    /// # Errors
    /// `Unavailable` when another process writes; as [`SqliteStore::open`](crate::SqliteStore::open).
    pub fn open(options: &SqliteOptions) -> Result<Self> {
        let connection = open_writer(options)?;
        mapped(connection.execute_batch("BEGIN IMMEDIATE"), "open")?;
        Ok(Self { connection: Arc::new(Mutex::new(connection)) })
    }

    async fn read<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    {
        let connection = Arc::clone(&self.connection);
        let answer = tokio::task::spawn_blocking(move || {
            let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            mapped(work(&connection), "archive")
        });
        answer.await.map_err(|error| Error::internal("a read was aborted").with_source(error))?
    }
}

/// What the rows of a holder bear, as it is bound to a statement; `None` for a scope that is not there.
fn bearing(connection: &Connection, of: &Holder) -> rusqlite::Result<Option<SqlValue>> {
    Ok(match of {
        Holder::Scope(scope) => scope_id(connection, scope)?.map(SqlValue::Integer),
        Holder::Tenant(tenant) => Some(SqlValue::Text(tenant.as_str().to_owned())),
    })
}

/// What is read of a table, and in which order, for the holder `?1`.
fn select(table: &Table) -> String {
    let columns: Vec<&str> = table.columns.iter().map(|(name, _)| *name).collect();
    let key = columns[..table.key].join(", ");
    match table.name {
        // An entity is kept by row here, and told by its id.
        "entity_source" => "SELECT e.id, s.message_seq, s.message_id FROM entity e
             JOIN entity_source s ON s.entity_rowid = e.rowid WHERE e.scope_id = ?1
             ORDER BY e.session_number, e.kind, e.value, s.message_seq"
            .to_owned(),
        // Terms and their counts are one column here.
        "lex_tail" => format!(
            "SELECT namespace, key, length, terms, NULL FROM lex_tail WHERE scope_id = ?1 ORDER BY {key}"
        ),
        // In the order in which they were enqueued.
        "job" => {
            format!("SELECT {} FROM job WHERE scope_id = ?1 ORDER BY rowid", columns.join(", "))
        }
        name => {
            let of_tenant = TENANT_TABLES.iter().any(|table| table.name == name);
            let holder = if of_tenant { "tenant" } else { "scope_id" };
            let order = match name {
                // In the order in which they were made.
                "api_key" | "share" | "audit" => "number",
                _ if key.is_empty() => "1",
                _ => &key,
            };
            format!(
                "SELECT {} FROM {name} WHERE {holder} = ?1 ORDER BY {order}",
                columns.join(", ")
            )
        }
    }
}

fn read_row(row: &rusqlite::Row<'_>, table: &Table) -> rusqlite::Result<Row> {
    let mut values = Vec::with_capacity(table.columns.len());
    for (at, (name, kind)) in table.columns.iter().enumerate() {
        let value = match (kind, row.get_ref(at)?) {
            (ValueKind::Ints, ValueRef::Blob(terms)) => {
                let (terms, counts): (Vec<i64>, Vec<i64>) = decode_terms(terms)
                    .map(|(term, count)| (term.to_bits().cast_signed(), i64::from(count)))
                    .unzip();
                values.extend([Value::Ints(terms), Value::Ints(counts)]);
                return Ok(values);
            }
            (_, ValueRef::Null) => Value::Null,
            (ValueKind::Int, ValueRef::Integer(number)) => Value::Int(number),
            (ValueKind::Real, ValueRef::Real(number)) => Value::Real(number),
            (ValueKind::Text, ValueRef::Text(_)) => Value::Text(row.get(at)?),
            (ValueKind::Bytes | ValueKind::Id, ValueRef::Blob(bytes)) => {
                Value::Bytes(bytes.to_vec())
            }
            _ => return Err(stored_wrongly(format!("`{name}` has an unexpected type"))),
        };
        values.push(value);
    }
    Ok(values)
}

fn size(row: &Row) -> usize {
    row.iter()
        .map(|value| match value {
            Value::Text(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            Value::Ints(numbers) => numbers.len() * 8,
            Value::Null | Value::Int(_) | Value::Real(_) => 8,
        })
        .sum()
}

/// Sends the records of a table page by page, until the other end wants no more.
fn send_rows(
    connection: &Connection,
    of: &Holder,
    table: &Table,
    pages: &mpsc::Sender<Result<Vec<Row>>>,
) -> rusqlite::Result<()> {
    let Some(bearing) = bearing(connection, of)? else { return Ok(()) };
    let mut statement = connection.prepare_cached(&select(table))?;
    let mut rows = statement.query([bearing])?;
    let (mut page, mut bytes) = (Vec::new(), 0);
    while let Some(row) = rows.next()? {
        let row = read_row(row, table)?;
        bytes += size(&row);
        page.push(row);
        if page.len() >= PAGE || bytes >= PAGE_BYTES {
            bytes = 0;
            if pages.blocking_send(Ok(std::mem::take(&mut page))).is_err() {
                return Ok(());
            }
        }
    }
    if !page.is_empty() {
        let _ = pages.blocking_send(Ok(page));
    }
    Ok(())
}

#[async_trait]
impl Archive for SqliteArchive {
    async fn counters(&self, of: &Holder) -> Result<Option<ScopeCounters>> {
        let Holder::Scope(scope) = of else { return Ok(Some(ScopeCounters::default())) };
        let scope = scope.clone();
        self.read(move |connection| {
            let Some(id) = scope_id(connection, &scope)? else { return Ok(None) };
            connection
                .prepare_cached(
                    "SELECT last_seq, sessions, facts, messages, tokens, documents FROM scope
                     WHERE id = ?1",
                )?
                .query_row([id], |row| {
                    Ok(ScopeCounters {
                        last_seq: row.get(0)?,
                        sessions: row.get(1)?,
                        facts: row.get(2)?,
                        messages: row.get(3)?,
                        tokens: row.get(4)?,
                        documents: row.get(5)?,
                    })
                })
                .optional()
        })
        .await
    }

    async fn count(&self, of: &Holder, table: &'static Table) -> Result<u64> {
        let of = of.clone();
        self.read(move |connection| {
            let Some(bearing) = bearing(connection, &of)? else { return Ok(0) };
            connection
                .prepare_cached(&format!("SELECT count(*) FROM ({})", select(table)))?
                .query_row([bearing], |row| row.get(0))
        })
        .await
    }

    fn rows<'a>(&'a self, of: &'a Holder, table: &'static Table) -> Rows<'a> {
        // Read ahead by a page, on a thread of its own.
        let (sender, receiver) = mpsc::channel(1);
        let (connection, of) = (Arc::clone(&self.connection), of.clone());
        tokio::task::spawn_blocking(move || {
            let connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = mapped(send_rows(&connection, &of, table, &sender), "archive") {
                let _ = sender.blocking_send(Err(error));
            }
        });
        let next = |mut receiver: mpsc::Receiver<_>| async move {
            let page = receiver.recv().await?;
            Some((page, receiver))
        };
        stream::unfold(receiver, next).boxed()
    }
}

#[async_trait]
impl ArchiveSource for SqliteArchive {
    async fn holders(&self) -> Result<Vec<Holder>> {
        self.read(|connection| {
            let mut scopes =
                connection.prepare("SELECT tenant, user, workspace FROM scope ORDER BY id")?;
            let scopes =
                scopes.query_map([], |row| read_scope_columns(row, 0).map(Holder::Scope))?;
            let named =
                TENANT_TABLES.iter().map(|table| format!("SELECT tenant FROM {}", table.name));
            let named = named.collect::<Vec<_>>().join(" UNION ");
            let mut tenants = connection.prepare(&named)?;
            let tenants = tenants.query_map([], |row| {
                let tenant = TenantId::new(row.get_ref(0)?.as_str()?).map_err(stored_wrongly)?;
                Ok(Holder::Tenant(tenant))
            })?;
            scopes.chain(tenants).collect()
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use throughline_core::ports::{TABLES, TENANT_TABLES};

    use super::*;

    /// Tables that do not move as such: scopes and erasures have calls of their own, vectors are made again, and
    /// refusals are counted by who served this store.
    const STAY: [&str; 9] = [
        "scope", "vector_space", "vector_state", "vector_tail", "vector_block", "vector_chunk",
        "erasure_ledger", "erasure_applied", "refusal",
    ];

    /// What a later migration adds has to be told here, or it would be left behind.
    #[test]
    fn every_column_moves() {
        let folder = tempfile::tempdir().unwrap();
        let archive =
            SqliteArchive::open(&SqliteOptions::new(folder.path().join("store.db"))).unwrap();
        let connection = archive.connection.lock().unwrap();
        let names = |sql: &str| -> BTreeSet<String> {
            let mut statement = connection.prepare(sql).unwrap();
            let names = statement.query_map([], |row| row.get(0)).unwrap();
            names.collect::<rusqlite::Result<_>>().unwrap()
        };
        let tables = names("SELECT name FROM sqlite_schema WHERE type = 'table'");
        let moved = tables
            .iter()
            .filter(|name| !STAY.contains(&name.as_str()) && !name.starts_with("sqlite_"));
        let all = || TABLES.iter().chain(TENANT_TABLES);
        let told: BTreeSet<&str> = all().map(|table| table.name).collect();
        assert_eq!(moved.map(String::as_str).collect::<BTreeSet<_>>(), told);
        for table in all() {
            let mut columns =
                names(&format!("SELECT name FROM pragma_table_info('{}')", table.name));
            for own in ["rowid", "number", "scope_id", "tenant"] {
                // The number of a session or a fact is its identity, and moves.
                if !table.columns.iter().any(|(name, _)| *name == own) {
                    columns.remove(own);
                }
            }
            let mut told: BTreeSet<String> =
                table.columns.iter().map(|(name, _)| (*name).to_owned()).collect();
            match table.name {
                "entity_source" => {
                    assert!(columns.remove("entity_rowid") && told.remove("entity_id"));
                }
                "lex_tail" => assert!(told.remove("counts")),
                _ => {}
            }
            assert_eq!(columns, told, "{}", table.name);
        }
    }
}
