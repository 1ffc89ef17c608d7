//! The handle: a writer thread and a pool of readers.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use rusqlite::Connection;
use throughline_core::ports::{Applied, Health, Store, WriteBatch};
use throughline_core::{Error, ErrorKind, Result, Scope};
use tokio::sync::{Notify, Semaphore};

use crate::apply::apply;
use crate::connection::{SqliteOptions, open_reader, open_writer};
use crate::health;
use crate::records::{mapped, stored_wrongly};
use crate::vectors::BlockCache;
use crate::writer::Writer;

/// Everything in one SQLite file.
///
/// Cheap to clone; the last clone to be dropped finishes what was accepted. Two processes may open
/// one file: each sees what the other has committed, and writers take turns.
#[derive(Debug, Clone)]
pub struct SqliteStore {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) options: SqliteOptions,
    pub(crate) writer: Writer,
    pub(crate) blocks: BlockCache,
    /// Told of jobs that this process enqueues.
    pub(crate) enqueued: Notify,
    readers: Arc<Readers>,
}

#[derive(Debug)]
struct Readers {
    idle: Mutex<Vec<Connection>>,
    permits: Arc<Semaphore>,
}

impl SqliteStore {
    /// Opens the file, creating or migrating it.
    ///
    /// # Errors
    /// `SchemaTooNew`, `Corrupt`, `ReadOnly`, `Unavailable` (locked by another process) or
    /// `StorageFull`; what was stored is not changed then.
    pub fn open(options: SqliteOptions) -> Result<Self> {
        let writer = Writer::start(open_writer(&options)?)?;
        let count = options.readers.max(1);
        let idle = (0..count).map(|_| open_reader(&options)).collect::<Result<Vec<_>>>()?;
        let readers =
            Arc::new(Readers { idle: Mutex::new(idle), permits: Arc::new(Semaphore::new(count)) });
        let blocks = BlockCache::new(options.vector_cache_bytes);
        let enqueued = Notify::new();
        Ok(Self { inner: Arc::new(Inner { options, writer, blocks, enqueued, readers }) })
    }

    /// The database file.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.inner.options.path
    }

    /// Runs a read on a connection of the pool, off the async threads.
    pub(crate) async fn read<T, F>(&self, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection) -> Result<T> + Send + 'static,
    {
        let readers = Arc::clone(&self.inner.readers);
        let permit = Arc::clone(&readers.permits)
            .acquire_owned()
            .await
            .map_err(|_| Error::new(ErrorKind::Unavailable, "the store is shutting down"))?;
        let pool = Arc::clone(&readers);
        let options = self.inner.options.clone();
        let answer = tokio::task::spawn_blocking(move || {
            // Held until the connection is back, also when nobody waits for the answer any more.
            let _permit = permit;
            let idle = pool.idle.lock().unwrap_or_else(PoisonError::into_inner).pop();
            // A read that panicked took its connection with it: the next one opens another.
            let connection = match idle {
                Some(connection) => connection,
                None => open_reader(&options)?,
            };
            let result = work(&connection);
            pool.idle.lock().unwrap_or_else(PoisonError::into_inner).push(connection);
            result
        });
        answer.await.map_err(|error| Error::internal("a read was aborted").with_source(error))?
    }

    /// Runs a read of one scope; `None` when the store has never seen the scope.
    pub(crate) async fn read_scope<T, F>(&self, scope: &Scope, work: F) -> Result<Option<T>>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, i64) -> rusqlite::Result<T> + Send + 'static,
    {
        let scope = scope.clone();
        self.read(move |connection| {
            let read = || {
                // One snapshot for all statements of the read.
                let transaction = connection.unchecked_transaction()?;
                match scope_id(&transaction, &scope)? {
                    Some(id) => work(&transaction, id).map(Some),
                    None => Ok(None),
                }
            };
            mapped(read(), "read")
        })
        .await
    }
}

/// The row of a scope.
pub(crate) fn scope_id(connection: &Connection, scope: &Scope) -> rusqlite::Result<Option<i64>> {
    use rusqlite::OptionalExtension;
    connection
        .prepare_cached("SELECT id FROM scope WHERE tenant = ?1 AND user = ?2 AND workspace = ?3")?
        .query_row(scope_columns(scope), |row| row.get(0))
        .optional()
}

/// The row of a scope, which is made when there is none.
pub(crate) fn open_scope_id(connection: &Connection, scope: &Scope) -> rusqlite::Result<i64> {
    if let Some(id) = scope_id(connection, scope)? {
        return Ok(id);
    }
    connection
        .prepare_cached("INSERT INTO scope (tenant, user, workspace) VALUES (?1, ?2, ?3)")?
        .execute(scope_columns(scope))?;
    Ok(connection.last_insert_rowid())
}

/// The scope of three columns from `at` on.
pub(crate) fn read_scope_columns(row: &rusqlite::Row<'_>, at: usize) -> rusqlite::Result<Scope> {
    let workspace: String = row.get(at + 2)?;
    let workspace = Some(workspace.as_str()).filter(|name| !name.is_empty());
    Scope::new(row.get_ref(at)?.as_str()?, row.get_ref(at + 1)?.as_str()?, workspace)
        .map_err(stored_wrongly)
}

/// A scope as its three columns; no workspace is the empty text, which no workspace can be named.
pub(crate) fn scope_columns(scope: &Scope) -> (&str, &str, &str) {
    let workspace = scope.workspace.as_ref().map_or("", |workspace| workspace.as_str());
    (scope.tenant.as_str(), scope.user.as_str(), workspace)
}

#[async_trait]
impl Store for SqliteStore {
    async fn apply(&self, batch: WriteBatch) -> Result<Applied> {
        let enqueues = batch.enqueues();
        let units = batch.units().count();
        let apply = move |connection: &_| apply(connection, &batch);
        let applied = self.inner.writer.run_sized(units, apply).await?;
        if enqueues {
            // Those who wait, and the next one who would.
            self.inner.enqueued.notify_waiters();
            self.inner.enqueued.notify_one();
        }
        Ok(applied)
    }

    async fn health(&self, deep: bool) -> Result<Health> {
        self.read(move |connection| health::check(connection, deep)).await
    }
}
