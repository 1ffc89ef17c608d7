//! The standby of the server, which all tests share.

#![expect(
    clippy::expect_used,
    reason = "test support outside of test functions: a failure is the answer"
)]

use std::net::{SocketAddr, ToSocketAddrs};
use std::time::{Duration, Instant};

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor};
use throughline_store_postgres::PostgresOptions;
use throughline_testkit::proxy::Proxy;

use super::{Server, named};

/// A query on a replica may hold its replay up for half a minute (`max_standby_streaming_delay`).
const REPLAYED: Duration = Duration::from_secs(90);

/// The standby, held by one test: it is paused for all.
pub(crate) struct Standby {
    admin: PgConnectOptions,
    /// Of the primary; holds the lock until it is dropped.
    primary: PgConnection,
}

impl Standby {
    /// Waits until no other test has it.
    pub(crate) async fn hold(server: &Server) -> Self {
        let mut primary = server.server.connect().await.expect("the server answers");
        let lock = "SELECT pg_advisory_lock(hashtext('the standby of the tests'))";
        primary.execute(lock).await.expect("the lock is free one day");
        let mut standby = Self { admin: named("THROUGHLINE_TEST_POSTGRES_REPLICA"), primary };
        // A test that failed may have left it paused.
        standby.resume().await;
        standby
    }

    async fn ask(&self, question: &str) -> Option<String> {
        let mut connection = self.admin.connect().await.expect("the standby answers");
        let answer = sqlx::query_scalar(AssertSqlSafe(question.to_owned()))
            .fetch_one(&mut connection)
            .await
            .expect("a statement of the tests");
        connection.close().await.expect("a connection closes");
        answer
    }

    async fn until(&self, question: &str, expected: &str) {
        let begun = Instant::now();
        while self.ask(question).await.as_deref() != Some(expected) {
            assert!(begun.elapsed() < REPLAYED, "{question} is not {expected}");
            // Asked without a pause, the question would take the processor from what is waited for.
            self.ask("SELECT pg_sleep(0.1)::text").await; // tidy: sleep: no event tells how far a standby is
        }
    }

    /// Replays nothing from now on.
    pub(crate) async fn pause(&self) {
        self.ask("SELECT pg_wal_replay_pause()::text").await;
        self.until("SELECT pg_get_wal_replay_pause_state()", "paused").await;
    }

    /// Replays, up to what the primary has now.
    pub(crate) async fn resume(&mut self) {
        self.ask("SELECT pg_wal_replay_resume()::text").await;
        let end: String = sqlx::query_scalar("SELECT pg_current_wal_insert_lsn()::text")
            .fetch_one(&mut self.primary)
            .await
            .expect("a statement of the tests");
        // What is not flushed yet is not sent.
        self.primary.execute("CHECKPOINT").await.expect("a statement of the tests");
        self.until(&format!("SELECT (pg_last_wal_replay_lsn() >= '{end}')::text"), "true").await;
    }

    pub(crate) fn proxy(&self) -> Proxy {
        let mut found = (self.admin.get_host(), self.admin.get_port())
            .to_socket_addrs()
            .expect("the standby has a name");
        Proxy::start(found.next().expect("the standby has an address"))
    }

    /// How to reach the database with the standby as the replica.
    pub(crate) fn options(&self, server: &Server) -> PostgresOptions {
        self.at(server, &format!("{}:{}", self.admin.get_host(), self.admin.get_port()))
    }

    /// As [`Self::options`], through a proxy.
    pub(crate) fn through(&self, server: &Server, proxy: &Proxy) -> PostgresOptions {
        let address: SocketAddr = proxy.address();
        PostgresOptions {
            connections: 3,
            connect_timeout: Duration::from_secs(2),
            statement_timeout: Duration::from_secs(1),
            ..self.at(server, &address.to_string())
        }
    }

    fn at(&self, server: &Server, address: &str) -> PostgresOptions {
        let options = server.options();
        let (host, port) = (server.admin.get_host(), server.admin.get_port());
        let url = options.url.replace(&format!("@{host}:{port}/"), &format!("@{address}/"));
        PostgresOptions { replica_url: Some(url), ..options }
    }
}
