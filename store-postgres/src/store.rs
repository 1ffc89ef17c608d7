//! The handle: a pool, and transactions that are bound to a scope.

use std::sync::Arc;

use async_trait::async_trait;
use sqlx::Row;
use sqlx::postgres::{PgPool, PgRow};
use throughline_core::ids::KeyId;
use throughline_core::ports::{Applied, Health, Store, WriteBatch};
use throughline_core::{Error, Result, Scope};
use uuid::Uuid;

use crate::clock::Skew;
use crate::connection::{PostgresOptions, is_broken, mapped, pool};
use crate::listen::Listening;
use crate::migrate::migrate;
use crate::rate_limiter::Admissions;
use crate::records::scope_key;
use crate::replica::Replica;
use crate::tenant::key_bits;
use crate::timed::{Timed, drop_idle};
use crate::{apply, health};

/// Everything in one Postgres database.
///
/// Cheap to clone. Any number of processes may use one database: what must be one after another is
/// ordered by the scope's row there, and no process keeps anything that another's write would change.
#[derive(Debug, Clone)]
pub struct PostgresStore {
    pub(crate) inner: Arc<Inner>,
}

#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) options: PostgresOptions,
    pub(crate) pool: PgPool,
    pub(crate) replica: Option<Replica>,
    pub(crate) listening: Listening,
    pub(crate) skew: Skew,
    pub(crate) admissions: Admissions,
}

/// A snapshot, as a transaction begins one.
pub(crate) const SNAPSHOT: &str = "ISOLATION LEVEL REPEATABLE READ READ ONLY";

/// The rows that a transaction may see.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Bound {
    Scope(Uuid),
    /// Data of a whole tenant.
    Tenant(Uuid),
    /// One key and the name of its tenant: what a caller presented.
    Key(KeyId),
    /// Scopes, tenants and jobs, none of their content.
    Worker,
}

impl PostgresStore {
    /// A store that connects when it is first used. The schema must be there: see
    /// [`migrate`](crate::migrate()).
    ///
    /// # Errors
    /// `InvalidInput` for an invalid URL.
    pub fn connect_lazy(options: PostgresOptions) -> Result<Self> {
        let pool = pool(&options, &options.url, "postgres.url")?;
        let replica = Replica::of(&options)?;
        let (listening, skew) = (Listening::default(), Skew::default());
        let admissions = Admissions::default();
        let inner = Inner { options, pool, replica, listening, skew, admissions };
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Connects, brings the schema up to date, and makes sure that row-level security binds the role.
    ///
    /// # Errors
    /// `Unavailable`, `NotFound`, `SchemaTooNew`; `InvalidInput` for a role that would see every
    /// tenant's rows.
    pub async fn open(options: PostgresOptions) -> Result<Self> {
        migrate(&options).await?;
        let store = Self::connect_lazy(options)?;
        store.check_role().await?;
        Ok(store)
    }

    /// A superuser's queries pass by row-level security: one that forgets its scope would return
    /// everyone's rows.
    async fn check_role(&self) -> Result<()> {
        let role = sqlx::query(
            "SELECT rolname::text, rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user",
        );
        let row = mapped(role.fetch_one(self.work().await?.connection()).await, "open")?;
        let (name, passes): (String, bool) =
            mapped(row.try_get(0).and_then(|name| Ok((name, row.try_get(1)?))), "open")?;
        if passes {
            return Err(Error::invalid(format!(
                "the role `{name}` of `postgres.url` bypasses row-level security, which separates \
                 tenants: connect as an ordinary role (CREATE ROLE throughline LOGIN PASSWORD \
                 '…'), and name this one in `postgres.direct_url`"
            )));
        }
        Ok(())
    }

    /// Statements that bind a transaction: to what it may see, and to an end. Numbers, a UUID and our own
    /// words: nothing of a caller's. The server ends the transaction of a program that it hears nothing
    /// more of, and with that the lock on the scope. Statements are planned once for any values: for
    /// given ones the server would plan anew each time, with every partition, which takes longer than most
    /// statements do.
    pub(crate) fn bounds(&self, bound: Bound) -> String {
        let timeout = self.inner.options.statement_timeout.as_millis();
        let bound = match bound {
            Bound::Scope(key) => format!("SET LOCAL throughline.scope = '{key}'"),
            Bound::Tenant(key) => format!("SET LOCAL throughline.tenant = '{key}'"),
            Bound::Key(id) => format!("SET LOCAL throughline.key = '{}'", key_bits(id)),
            Bound::Worker => "SET LOCAL throughline.worker = 'on'".to_owned(),
        };
        format!(
            "SET LOCAL plan_cache_mode = force_generic_plan; SET LOCAL statement_timeout = {timeout};
             SET LOCAL idle_in_transaction_session_timeout = {timeout}; {bound}"
        )
    }

    /// Begins a transaction on a server, by one message.
    pub(crate) async fn begin(
        &self,
        pool: &PgPool,
        how: &str,
        bound: Bound,
    ) -> sqlx::Result<Timed> {
        let options = &self.inner.options;
        let begin = format!("BEGIN {how}; {}", self.bounds(bound));
        match Timed::begin(pool, options, begin.clone()).await {
            // The connection was closed while it was idle, as a restart of the server closes all of them,
            // or it leads nowhere any more. Nothing was begun, so begin again, on a new one.
            Err(error) if is_broken(&error) => {
                drop_idle(pool);
                Timed::begin(pool, options, begin).await
            }
            begun => begun,
        }
    }

    /// What the primary answers to statements that are one message, and one transaction by themselves.
    pub(crate) async fn ask(&self, statements: String) -> sqlx::Result<Vec<PgRow>> {
        let Inner { options, pool, .. } = &*self.inner;
        match Timed::ask(pool, options, statements.clone()).await {
            // As above.
            Err(error) if is_broken(&error) => {
                drop_idle(pool);
                Timed::ask(pool, options, statements).await
            }
            answered => answered,
        }
    }

    /// A snapshot of one scope.
    pub(crate) async fn read(&self, scope: &Scope) -> Result<Bounded> {
        let key = scope_key(scope);
        self.read_bound(Bound::Scope(key), key).await
    }

    /// A transaction of one scope that writes.
    pub(crate) async fn write(&self, scope: &Scope) -> Result<Bounded> {
        let key = scope_key(scope);
        self.write_bound(Bound::Scope(key), key).await
    }

    /// A snapshot of what belongs to a tenant as a whole.
    pub(crate) async fn read_tenant(&self, key: Uuid) -> Result<Bounded> {
        self.read_bound(Bound::Tenant(key), key).await
    }

    /// A transaction that writes what belongs to a tenant as a whole.
    pub(crate) async fn write_tenant(&self, key: Uuid) -> Result<Bounded> {
        self.write_bound(Bound::Tenant(key), key).await
    }

    /// A snapshot of one key, whosever it is.
    pub(crate) async fn read_key(&self, id: KeyId) -> Result<Bounded> {
        self.read_bound(Bound::Key(id), Uuid::nil()).await
    }

    async fn read_bound(&self, bound: Bound, key: Uuid) -> Result<Bounded> {
        let begun = self.begin(&self.inner.pool, SNAPSHOT, bound).await;
        Ok(Bounded { connection: mapped(begun, "read")?, key })
    }

    async fn write_bound(&self, bound: Bound, key: Uuid) -> Result<Bounded> {
        let begun = self.begin(&self.inner.pool, "ISOLATION LEVEL READ COMMITTED", bound).await;
        Ok(Bounded { connection: mapped(begun, "write")?, key })
    }

    /// A transaction that sees every scope's jobs, and no content.
    pub(crate) async fn work(&self) -> Result<Bounded> {
        let begun =
            self.begin(&self.inner.pool, "ISOLATION LEVEL READ COMMITTED", Bound::Worker).await;
        Ok(Bounded { connection: mapped(begun, "work")?, key: Uuid::nil() })
    }
}

/// A transaction within which only one scope, or one tenant, is visible. Dropped, it is rolled back.
pub(crate) struct Bounded {
    connection: Timed,
    /// The key of the scope or the tenant.
    pub(crate) key: Uuid,
}

impl Bounded {
    pub(crate) fn connection(&mut self) -> &mut Timed {
        &mut self.connection
    }

    /// Makes what was written durable.
    pub(crate) async fn commit(self) -> Result<()> {
        mapped(self.connection.commit().await, "commit")
    }

    /// Takes back what was written, and returns when its locks are free.
    pub(crate) async fn rollback(self) {
        self.connection.rollback().await;
    }
}

#[async_trait]
impl Store for PostgresStore {
    async fn apply(&self, batch: WriteBatch) -> Result<Applied> {
        apply::apply(self, &batch).await
    }

    async fn health(&self, deep: bool) -> Result<Health> {
        Ok(health::check(self, deep).await)
    }
}
