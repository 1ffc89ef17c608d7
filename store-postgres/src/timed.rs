//! A connection of the pool that waits for no answer for ever.
//!
//! A server that lives ends a statement that takes too long (`statement_timeout`). One that was frozen,
//! or is behind a network that swallows packets, sends nothing at all, and the driver would wait as long
//! as the system keeps the connection: for ever, where the other end still acknowledges. Every transaction
//! goes through this type, and so every statement has a deadline.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use futures_util::Stream;
use futures_util::future::BoxFuture;
use futures_util::stream::BoxStream;
use sqlx::error::BoxDynError;
use sqlx::pool::PoolConnection;
use sqlx::postgres::{
    PgArguments, PgConnection, PgPool, PgQueryResult, PgRow, PgStatement, PgTransactionManager,
    PgTypeInfo, Postgres,
};
use sqlx::{AssertSqlSafe, Either, Execute, Executor, SqlSafeStr, SqlStr};
use sqlx_core::transaction::TransactionManager;
use tokio::time::{Sleep, sleep, timeout};

use crate::connection::PostgresOptions;

/// A connection within a transaction. Dropped, it rolls back and returns to the pool.
pub(crate) struct Timed {
    connection: PoolConnection<Postgres>,
    /// How long to wait for a statement's next row.
    patience: Duration,
    /// How long to wait for an answer to nothing.
    check: Duration,
    /// Whether a statement stays prepared under a name.
    prepared: bool,
    /// An answer is owed that nobody waits for any more: the connection is of no use.
    given_up: bool,
}

impl Timed {
    /// Takes a connection and begins a transaction with these statements.
    pub(crate) async fn begin(
        pool: &PgPool,
        options: &PostgresOptions,
        statements: String,
    ) -> sqlx::Result<Self> {
        let mut timed = Self::take(pool, options).await?;
        let statements = AssertSqlSafe(statements).into_sql_str();
        let begun = PgTransactionManager::begin(&mut timed.connection, Some(statements));
        // Nothing to compute, nothing to wait for: as quick as a connection is made.
        within(options.connect_timeout, begun).await?;
        timed.given_up = false;
        Ok(timed)
    }

    /// Sends statements as one message, which the server takes as one transaction; their rows.
    pub(crate) async fn ask(
        pool: &PgPool,
        options: &PostgresOptions,
        statements: String,
    ) -> sqlx::Result<Vec<PgRow>> {
        let mut timed = Self::take(pool, options).await?;
        let asked = sqlx::raw_sql(AssertSqlSafe(statements)).fetch_all(&mut *timed.connection);
        let rows = within(options.connect_timeout, asked).await?;
        timed.given_up = false;
        Ok(rows)
    }

    /// Takes a connection, which is given up until its first answer is there: a caller that stops waiting
    /// leaves a transaction open.
    async fn take(pool: &PgPool, options: &PostgresOptions) -> sqlx::Result<Self> {
        let connection = pool.acquire().await?;
        let (patience, check) = (options.patience(), options.connect_timeout / 2);
        Ok(Self { connection, patience, check, prepared: options.prepared, given_up: true })
    }

    /// Makes what was written durable.
    pub(crate) async fn commit(mut self) -> sqlx::Result<()> {
        self.within(async |connection| PgTransactionManager::commit(connection).await).await
    }

    /// Takes back what was written. A connection that does not answer is closed, which does the same later.
    pub(crate) async fn rollback(mut self) {
        if self.given_up {
            return;
        }
        self.given_up = true;
        let rolled_back = PgTransactionManager::rollback(&mut self.connection);
        self.given_up = within(self.check, rolled_back).await.is_err();
    }

    /// Runs statements with one deadline for all of them, each of which says that it is not to be kept.
    pub(crate) async fn within<T>(
        &mut self,
        statements: impl AsyncFnOnce(&mut PgConnection) -> sqlx::Result<T>,
    ) -> sqlx::Result<T> {
        self.given_up = true;
        let done = timeout(self.patience, statements(&mut self.connection)).await;
        self.given_up = done.is_err();
        done.unwrap_or_else(|_| Err(silent()))
    }
}

impl PostgresOptions {
    /// How long to wait for a statement: what the server gives it, and what the network may take.
    pub(crate) fn patience(&self) -> Duration {
        self.statement_timeout.saturating_add(self.connect_timeout)
    }
}

/// Closes the connections that idle: where one was found dead or silent, the others are likely so.
pub(crate) fn drop_idle(pool: &PgPool) {
    while let Some(mut idle) = pool.try_acquire() {
        idle.close_on_drop();
    }
}

/// What the driver would say of a connection whose other end stopped to answer.
fn silent() -> sqlx::Error {
    sqlx::Error::Io(io::Error::new(io::ErrorKind::TimedOut, "no answer in time"))
}

/// A future with a deadline.
pub(crate) async fn within<T>(
    patience: Duration,
    answer: impl Future<Output = sqlx::Result<T>>,
) -> sqlx::Result<T> {
    timeout(patience, answer).await.unwrap_or_else(|_| Err(silent()))
}

impl Drop for Timed {
    fn drop(&mut self) {
        if self.given_up {
            self.connection.close_on_drop();
            return;
        }
        PgTransactionManager::start_rollback(&mut self.connection);
        // The driver asks the server whether all is well before it lends the connection again, and until
        // there is an answer it counts as lent: without an end, the pool would run dry. Who waits for a
        // connection waits longer than this, and so gets a new one.
        tokio::spawn(timeout(self.check, self.connection.return_to_pool()));
    }
}

impl fmt::Debug for Timed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timed").field("patience", &self.patience).finish_non_exhaustive()
    }
}

/// A row, or how many rows a statement changed.
type Answer = Either<PgQueryResult, PgRow>;

/// The answers to a statement, each of which must come in time.
struct Answers<'c> {
    answers: BoxStream<'c, sqlx::Result<Answer>>,
    patience: Duration,
    /// Runs while the next answer is waited for.
    deadline: Option<Pin<Box<Sleep>>>,
    given_up: &'c mut bool,
}

impl Stream for Answers<'_> {
    type Item = sqlx::Result<Answer>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        if let Poll::Ready(answer) = this.answers.as_mut().poll_next(context) {
            this.deadline = None;
            return Poll::Ready(answer);
        }
        let deadline = this.deadline.get_or_insert_with(|| Box::pin(sleep(this.patience)));
        if deadline.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        *this.given_up = true;
        Poll::Ready(Some(Err(silent())))
    }
}

/// A statement that has a name on the server only where statements stay prepared. The driver would give each
/// one a name, kept or not, and a pooler that knows nothing of names hands them to the next client.
struct Named<E> {
    query: E,
    prepared: bool,
}

impl<'q, E: Execute<'q, Postgres>> Execute<'q, Postgres> for Named<E> {
    fn sql(self) -> SqlStr {
        self.query.sql()
    }

    fn statement(&self) -> Option<&PgStatement> {
        self.query.statement()
    }

    fn take_arguments(&mut self) -> Result<Option<PgArguments>, BoxDynError> {
        self.query.take_arguments()
    }

    fn persistent(&self) -> bool {
        self.prepared && self.query.persistent()
    }
}

impl<'c> Executor<'c> for &'c mut Timed {
    type Database = Postgres;

    fn fetch_many<'e, 'q: 'e, E>(self, query: E) -> BoxStream<'e, sqlx::Result<Answer>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let query = Named { query, prepared: self.prepared };
        Box::pin(Answers {
            answers: self.connection.fetch_many(query),
            patience: self.patience,
            deadline: None,
            given_up: &mut self.given_up,
        })
    }

    fn fetch_optional<'e, 'q: 'e, E>(self, query: E) -> BoxFuture<'e, sqlx::Result<Option<PgRow>>>
    where
        'c: 'e,
        E: 'q + Execute<'q, Postgres>,
    {
        let found = self.connection.fetch_optional(Named { query, prepared: self.prepared });
        Box::pin(async {
            let found = timeout(self.patience, found).await;
            found.unwrap_or_else(|_| {
                self.given_up = true;
                Err(silent())
            })
        })
    }

    fn prepare_with<'e>(
        self,
        sql: SqlStr,
        parameters: &'e [PgTypeInfo],
    ) -> BoxFuture<'e, sqlx::Result<PgStatement>>
    where
        'c: 'e,
    {
        self.connection.prepare_with(sql, parameters)
    }
}
