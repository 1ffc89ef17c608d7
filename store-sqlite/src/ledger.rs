//! The ledger of erasures: a small file of its own beside the store, in no backup of it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, OpenFlags, params};
use throughline_core::ports::{ErasureLedger, LedgerEntry, LedgerIdentity, Recorded};
use throughline_core::time::Timestamp;
use throughline_core::{Error, ErrorKind, Result};

use crate::backup::flush_folder;
use crate::connection::{create_private, driver_error, take_turn};
use crate::records::{At, Id, bounded};

/// Marks a file as a ledger ("thle"), so that no store is taken for one.
const APPLICATION_ID: i32 = 0x7468_6c65;
/// The form of the file.
const VERSION: u32 = 1;
/// How long to wait for another process that records.
const BUSY: Duration = Duration::from_secs(10);

/// The key comes from the random numbers of SQLite, which the operating system seeds.
const CREATE: &str = "
    PRAGMA application_id = 0x74686c65;
    PRAGMA user_version = 1;
    CREATE TABLE identity (id BLOB NOT NULL, key BLOB NOT NULL) STRICT;
    CREATE TABLE entry (number INTEGER PRIMARY KEY, at INTEGER NOT NULL, entry BLOB NOT NULL) STRICT;
    INSERT INTO identity (id, key) VALUES (randomblob(16), randomblob(32));";

/// A ledger in a SQLite file of its own. Processes may share it.
#[derive(Debug, Clone)]
pub struct SqliteLedger {
    connection: Arc<Mutex<Connection>>,
}

impl SqliteLedger {
    /// Opens the file, creating it if it is not there.
    ///
    /// # Errors
    /// `Corrupt` for a file that is not a ledger, `SchemaTooNew`; those of the disk.
    pub fn open(path: &Path) -> Result<Self> {
        create_private(path)?;
        let _turn = take_turn(path)?;
        let opened = || -> rusqlite::Result<Connection> {
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            let connection = Connection::open_with_flags(path, flags)?;
            connection.busy_timeout(BUSY)?;
            // One file and nothing beside it: what is copied is all of it.
            connection.pragma_update(None, "journal_mode", "DELETE")?;
            connection.pragma_update(None, "synchronous", "EXTRA")?;
            Ok(connection)
        };
        let damaged = || {
            Error::new(
                ErrorKind::Corrupt,
                format!(
                    "{} is not a ledger of erasures, or is damaged: restore the one that belongs to the store",
                    path.display()
                ),
            )
        };
        let failed = |error| driver_error(error, "open_ledger");
        // What is asked for first is in every file, so that only damage refuses it.
        let unread = |error| match failed(error) {
            error if error.kind() == ErrorKind::Internal => damaged().with_source(error),
            error => error,
        };
        let connection = opened().map_err(unread)?;
        let pragma = |name| connection.pragma_query_value(None, name, |row| row.get(0));
        let tables: i64 = connection
            .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))
            .map_err(unread)?;
        if tables == 0 {
            connection.execute_batch(&format!("BEGIN; {CREATE} COMMIT;")).map_err(failed)?;
            flush_folder(path)?;
        }
        let application: i32 = pragma("application_id").map_err(unread)?;
        let version: i32 = pragma("user_version").map_err(unread)?;
        let version = u32::try_from(version).unwrap_or_default();
        if application != APPLICATION_ID || version == 0 {
            return Err(damaged());
        }
        if version > VERSION {
            return Err(Error::new(
                ErrorKind::SchemaTooNew,
                format!(
                    "{} was written by a newer version of Throughline: use that version",
                    path.display()
                ),
            ));
        }
        Ok(Self { connection: Arc::new(Mutex::new(connection)) })
    }

    async fn run<T, F>(&self, operation: &'static str, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&mut Connection) -> Result<T> + Send + 'static,
    {
        let connection = Arc::clone(&self.connection);
        let answer = tokio::task::spawn_blocking(move || {
            let mut connection = connection.lock().unwrap_or_else(PoisonError::into_inner);
            work(&mut connection).map_err(|error| error.during(operation))
        });
        answer.await.map_err(|error| {
            Error::internal("the task that writes the ledger ended early").with_source(error)
        })?
    }
}

fn told<T>(result: rusqlite::Result<T>) -> Result<T> {
    result.map_err(|error| driver_error(error, "ledger"))
}

fn last(connection: &Connection) -> rusqlite::Result<u64> {
    connection.query_row("SELECT coalesce(max(number), 0) FROM entry", [], |row| row.get(0))
}

fn identity(connection: &Connection) -> rusqlite::Result<LedgerIdentity> {
    connection.query_row("SELECT id, key FROM identity", [], |row| {
        Ok(LedgerIdentity { id: row.get::<_, Id>(0)?.0, key: row.get(1)? })
    })
}

fn put(connection: &Connection, recorded: &Recorded) -> rusqlite::Result<()> {
    connection
        .prepare_cached("INSERT INTO entry (number, at, entry) VALUES (?1, ?2, ?3)")?
        .execute(params![recorded.number, At(recorded.at), recorded.entry.encode()])
        .map(|_| ())
}

/// Adds what another ledger has, in the order of its numbers.
fn adopt(connection: &Connection, of: &LedgerIdentity, entries: &[Recorded]) -> Result<()> {
    let own = told(identity(connection))?;
    let mut held = told(last(connection))?;
    if own.id != of.id {
        if held > 0 {
            return Err(Error::conflict(
                "the ledger of erasures already has entries: it belongs to another store",
            ));
        }
        let put = "UPDATE identity SET id = ?1, key = ?2";
        told(connection.execute(put, params![Id(of.id), of.key]))?;
    }
    for recorded in entries {
        if recorded.number <= held {
            continue;
        }
        if recorded.number != held + 1 {
            return Err(Error::conflict("entries of the ledger of erasures are missing"));
        }
        told(put(connection, recorded))?;
        held = recorded.number;
    }
    Ok(())
}

#[async_trait]
impl ErasureLedger for SqliteLedger {
    async fn identity(&self) -> Result<LedgerIdentity> {
        self.run("identity", |connection| told(identity(connection))).await
    }

    async fn record(&self, entry: &LedgerEntry, at: Timestamp) -> Result<u64> {
        let entry = entry.clone();
        let work = move |connection: &mut Connection| {
            let number = || -> rusqlite::Result<u64> {
                let transaction = connection
                    .transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
                let number = last(&transaction)? + 1;
                put(&transaction, &Recorded { number, at, entry })?;
                transaction.commit()?;
                Ok(number)
            };
            told(number())
        };
        self.run("record", work).await
    }

    async fn entries(&self, after: u64, limit: usize) -> Result<Vec<Recorded>> {
        let read = move |connection: &mut Connection| {
            let rows = || -> rusqlite::Result<Vec<(u64, Timestamp, Vec<u8>)>> {
                connection
                    .prepare_cached(
                        "SELECT number, at, entry FROM entry WHERE number > ?1 ORDER BY number LIMIT ?2",
                    )?
                    .query_map(params![bounded(after), bounded(limit)], |row| {
                        Ok((row.get(0)?, row.get::<_, At>(1)?.0, row.get(2)?))
                    })?
                    .collect()
            };
            let rows = told(rows())?.into_iter();
            rows.map(|(number, at, entry)| {
                Ok(Recorded { number, at, entry: LedgerEntry::decode(&entry)? })
            })
            .collect()
        };
        self.run("entries", read).await
    }

    async fn last(&self) -> Result<u64> {
        self.run("last", |connection| told(last(connection))).await
    }

    async fn adopt(&self, identity: &LedgerIdentity, entries: &[Recorded]) -> Result<()> {
        let (identity, entries) = (identity.clone(), entries.to_vec());
        let work = move |connection: &mut Connection| {
            let begun =
                connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate);
            let transaction = told(begun)?;
            adopt(&transaction, &identity, &entries)?;
            told(transaction.commit())
        };
        self.run("adopt", work).await
    }
}
