//! Reads that go to a replica, and are never older than what the primary had when the call began.
//!
//! Every change of a scope counts its version up in the same transaction. A read asks the primary for the
//! version, which is one small message, and takes a snapshot of the replica: where that shows the version
//! or a later one, it has all that was committed before the call. Else, and wherever the replica fails,
//! the read goes to the primary. Nothing has to be remembered for it: not who wrote, nor when.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use sqlx::Row;
use sqlx::postgres::{PgPool, PgRow};
use throughline_core::{Error, Result, Scope};
use tokio::time::Instant;
use uuid::Uuid;

use crate::connection::{PostgresOptions, is_broken, mapped, parse, pool};
use crate::records::scope_key;
use crate::store::{Bound, PostgresStore, SNAPSHOT};
use crate::timed::{Timed, drop_idle, within};

/// How long a replica that was away is left alone.
const REST: Duration = Duration::from_secs(5);
/// How long a snapshot of the replica is waited for: the primary has one sooner.
const HASTE: Duration = Duration::from_secs(1);

/// The setting that names it.
const KEY: &str = "postgres.replica_url";

/// How new a scope is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Version {
    /// Tells the scope from a removed one of the same key, and mostly from another server's.
    number: i64,
    version: i64,
}

impl Version {
    fn read(row: &PgRow) -> sqlx::Result<Self> {
        Ok(Self { number: row.try_get(0)?, version: row.try_get(1)? })
    }

    /// Whether a snapshot that shows this has all that `wanted` stands for.
    fn reaches(self, wanted: Self) -> bool {
        self.number == wanted.number && self.version >= wanted.version
    }
}

/// The pool of the replica.
#[derive(Debug)]
pub(crate) struct Replica {
    pub(crate) pool: PgPool,
    /// It was away, and is not asked before this.
    rests: Mutex<Option<Instant>>,
}

impl Replica {
    /// That of the options, if they have one. Roles are copied with all else: that of the primary, which
    /// is looked at when the store is opened, is an ordinary one there, too.
    pub(crate) fn of(options: &PostgresOptions) -> Result<Option<Self>> {
        let Some(url) = &options.replica_url else { return Ok(None) };
        let role = |url: &str, key| Ok(parse(url, key, true)?.get_username().to_owned());
        if role(url, KEY)? != role(&options.url, "postgres.url")? {
            return Err(Error::invalid(format!("`{KEY}` must name the role of `postgres.url`")));
        }
        let pool = pool(options, url, KEY)?;
        Ok(Some(Self { pool, rests: Mutex::new(None) }))
    }

    /// Whether to ask it now. After a rest, one call finds out for all.
    fn is_asked(&self) -> bool {
        let mut rests = self.rests.lock().unwrap_or_else(PoisonError::into_inner);
        match *rests {
            None => true,
            Some(until) if Instant::now() < until => false,
            Some(_) => {
                *rests = Some(Instant::now() + REST);
                true
            }
        }
    }

    fn is_here(&self) {
        let rested = self.rests.lock().unwrap_or_else(PoisonError::into_inner).take();
        if rested.is_some() {
            tracing::info!("the replica responds again");
        }
    }

    fn is_away(&self, error: &sqlx::Error) {
        let until = Instant::now() + REST;
        let rested =
            self.rests.lock().unwrap_or_else(PoisonError::into_inner).replace(until).is_some();
        if !rested {
            tracing::warn!(%error, "the replica is unavailable: the primary serves all reads");
        }
        drop_idle(&self.pool);
    }
}

/// Whether the replica took the snapshot back, because what it shows is gone from the primary.
fn is_conflict(error: &sqlx::Error) -> bool {
    let sqlx::Error::Database(error) = error else { return false };
    error.code().as_deref() == Some("40001")
}

impl PostgresStore {
    /// Runs a read in a snapshot of one scope, on the replica where that is new enough. A read that fails
    /// there is repeated on the primary.
    pub(crate) async fn read_anywhere<T, R>(
        &self,
        scope: &Scope,
        operation: &'static str,
        read: impl Fn(Timed, Uuid) -> R,
    ) -> Result<T>
    where
        R: Future<Output = sqlx::Result<T>>,
    {
        let key = scope_key(scope);
        if let Some(replica) = self.inner.replica.as_ref().filter(|replica| replica.is_asked())
            && let Some(snapshot) = mapped(self.new_enough(replica, key).await, operation)?
        {
            match read(snapshot, key).await {
                Ok(found) => return Ok(found),
                Err(error) if is_broken(&error) => replica.is_away(&error),
                Err(error) => tracing::debug!(%error, "a replica read is retried on the primary"),
            }
        }
        let snapshot = self.begin(&self.inner.pool, SNAPSHOT, Bound::Scope(key)).await;
        mapped(read(mapped(snapshot, "read")?, key).await, operation)
    }

    /// A snapshot of the replica that has all that was committed before; none where it has not. An error
    /// is the primary's.
    async fn new_enough(&self, replica: &Replica, key: Uuid) -> sqlx::Result<Option<Timed>> {
        let begun = self.begin(&replica.pool, SNAPSHOT, Bound::Scope(key));
        let haste = HASTE.min(self.inner.options.connect_timeout);
        let (wanted, begun) = tokio::join!(self.version(key), within(haste, begun));
        // The replica's snapshot is taken by its first question, when the primary has answered.
        let found = match begun {
            Ok(mut snapshot) => {
                let found = within(haste, found(&mut snapshot, key)).await;
                found.map(|found| (snapshot, found))
            }
            Err(error) => Err(error),
        };
        let found = match found {
            Ok(found) => {
                replica.is_here();
                Some(found)
            }
            Err(error) => {
                if !is_conflict(&error) {
                    replica.is_away(&error);
                }
                None
            }
        };
        // A scope that the primary does not have is nowhere.
        let Some(wanted) = wanted? else { return Ok(None) };
        let reaches = |found: Option<Version>| found.is_some_and(|found| found.reaches(wanted));
        Ok(found.filter(|(_, found)| reaches(*found)).map(|(snapshot, _)| snapshot))
    }

    /// The version of a scope on the primary, by one message; none for a scope that was never written to.
    async fn version(&self, key: Uuid) -> sqlx::Result<Option<Version>> {
        let ask = format!(
            "{}; SELECT number, version FROM scope WHERE key = '{key}'",
            self.bounds(Bound::Scope(key))
        );
        self.ask(ask).await?.first().map(Version::read).transpose()
    }
}

/// The version of a scope in a snapshot of the replica; none where the scope is not there yet, and where
/// the server is no replica: what was promoted has a history of its own.
async fn found(snapshot: &mut Timed, key: Uuid) -> sqlx::Result<Option<Version>> {
    let row = sqlx::query(
        "SELECT number, version FROM scope WHERE key = $1 AND (SELECT pg_is_in_recovery())",
    )
    .bind(key)
    .fetch_optional(snapshot)
    .await?;
    row.as_ref().map(Version::read).transpose()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn snapshot_is_new_enough_only_in_the_same_scope() {
        let of = |number, version| Version { number, version };
        for (found, wanted, expected) in [
            (of(3, 7), of(3, 7), true),
            (of(3, 8), of(3, 7), true),
            (of(3, 6), of(3, 7), false),
            (of(2, 9), of(3, 1), false),
            (of(4, 9), of(3, 1), false),
        ] {
            assert_eq!(found.reaches(wanted), expected, "{found:?} {wanted:?}");
        }
    }

    #[tokio::test]
    async fn a_replica_that_was_away_is_left_alone() {
        let url = "postgres://u:p@127.0.0.1:1/db";
        let options =
            PostgresOptions { replica_url: Some(url.to_owned()), ..PostgresOptions::new(url) };
        let replica = Replica::of(&options).unwrap().unwrap();
        assert!(replica.is_asked() && replica.is_asked());
        replica.is_away(&sqlx::Error::PoolTimedOut);
        assert!(!replica.is_asked());
        // Rested: one call finds out, and the others wait for what it finds.
        *replica.rests.lock().unwrap() = Some(Instant::now());
        assert!(replica.is_asked());
        assert!(!replica.is_asked());
        replica.is_here();
        assert!(replica.is_asked() && replica.is_asked());
    }
}
