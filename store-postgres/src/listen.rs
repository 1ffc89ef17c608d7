//! Waiting for notifications of new jobs, on a connection of its own that stays open between two waits.
//!
//! It goes straight to the server: PgBouncer in transaction mode would give the connection to somebody
//! else. It is made when it is first needed, and again after it broke.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use sqlx::postgres::{PgListener, PgPoolOptions};
use tokio::sync::{Mutex, Notify};
use tokio::time::timeout;

use crate::connection::{PostgresOptions, parse};
use crate::jobs::CHANNEL;
use crate::timed::within;

/// What hears of new jobs. Of those that wait, one listens and wakes the others.
#[derive(Debug, Default)]
pub(crate) struct Listening {
    connection: Mutex<Option<Heard>>,
    woken: Notify,
    /// It could not listen the last time.
    deaf: AtomicBool,
}

/// A connection that listens.
#[derive(Debug)]
struct Heard {
    listener: PgListener,
    /// Nothing came since it was last known to live. What never says anything may lead nowhere.
    quiet: bool,
}

impl Listening {
    /// Returns when a job may have been enqueued since the last call, or when the patience ends.
    pub(crate) async fn wait(&self, options: &PostgresOptions, patience: Duration) {
        let heard = async {
            tokio::select! {
                () = self.woken.notified() => {}
                () = self.hear(options) => self.woken.notify_waiters(),
            }
        };
        let _ = timeout(patience, heard).await;
    }

    /// Returns when something was heard; never, when the server cannot be listened to.
    async fn hear(&self, options: &PostgresOptions) {
        let listened = self.listen(options).await;
        let was_deaf = self.deaf.swap(listened.is_err(), Ordering::Relaxed);
        if let Err(error) = listened {
            if !was_deaf {
                tracing::warn!(%error, "job notifications are interrupted; new jobs are found by \
                     polling");
            }
            // The next wait connects again.
            std::future::pending::<()>().await;
        }
    }

    async fn listen(&self, options: &PostgresOptions) -> sqlx::Result<()> {
        let mut connection = self.connection.lock().await;
        if let Some(mut held) = connection.take_if(|held| held.quiet) {
            // Taken, so that a wait which ends meanwhile leaves no connection with an answer that is owed.
            let asked = sqlx::query("SELECT 1").execute(&mut held.listener);
            if within(options.connect_timeout, asked).await.is_ok() {
                *connection = Some(Heard { quiet: false, ..held });
            }
        }
        let Some(held) = &mut *connection else {
            let listener = within(options.connect_timeout, connect(options)).await?;
            *connection = Some(Heard { listener, quiet: false });
            // Jobs that were enqueued before are unknown here.
            return Ok(());
        };
        held.quiet = true;
        match held.listener.try_recv().await {
            Ok(Some(_)) => {
                held.quiet = false;
                Ok(())
            }
            lost => {
                *connection = None;
                lost.and(Err(sqlx::Error::PoolClosed))
            }
        }
    }
}

async fn connect(options: &PostgresOptions) -> sqlx::Result<PgListener> {
    let connect = parse(options.direct(), options.direct_key(), true);
    let connect = connect.map_err(|error| sqlx::Error::Configuration(error.into()))?;
    // A pool for each: one that was lost may keep its place for a while.
    let pool = PgPoolOptions::new()
        .max_connections(1)
        .idle_timeout(None)
        .max_lifetime(None)
        .acquire_timeout(options.connect_timeout)
        .connect_lazy_with(connect);
    let mut listener = PgListener::connect_with(&pool).await?;
    listener.eager_reconnect(false);
    listener.listen(CHANNEL).await?;
    Ok(listener)
}
