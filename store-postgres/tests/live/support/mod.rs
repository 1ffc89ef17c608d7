//! A database of its own for each test, on the server that the environment names.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "test support outside of test functions: a failure is the answer"
)]

pub(crate) mod fresh;
pub(crate) mod own;
pub(crate) mod standby;
pub(crate) mod turns;
pub(crate) mod wire;

use std::path::Path;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor};
use throughline_store_postgres::{PostgresOptions, migrate};

/// The role of the service, which row-level security binds.
const ROLE: &str = "throughline_test";
const PASSWORD: &str = "throughline_test";

/// A migrated database of one test.
#[derive(Debug)]
pub(crate) struct Server {
    /// The server's own database, as its superuser.
    pub(crate) server: PgConnectOptions,
    /// This one, as its owner.
    pub(crate) admin: PgConnectOptions,
    pub(crate) database: String,
}

impl Server {
    /// Makes the database; `name` tells tests apart that run at once.
    pub(crate) async fn start(name: &str) -> Self {
        let server = Self::empty(name).await;
        migrate(&server.options()).await.expect("migrations apply");
        server
    }

    /// A database that has no schema yet.
    pub(crate) async fn empty(name: &str) -> Self {
        Self::empty_on(named("THROUGHLINE_TEST_POSTGRES"), name).await
    }

    /// As [`Self::empty`], on a server of the test's own.
    pub(crate) async fn empty_on(server: PgConnectOptions, name: &str) -> Self {
        // Tests that start at once make one role.
        let role = format!(
            "DO $$ BEGIN CREATE ROLE {ROLE} LOGIN PASSWORD '{PASSWORD}';
             EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL; END $$"
        );
        execute(&server, role).await;
        clean(&server, name).await;
        let database = format!("tl_{name}_{}", std::process::id());
        execute(&server, format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)")).await;
        execute(&server, format!("CREATE DATABASE {database}")).await;
        Self { admin: server.clone().database(&database), server, database }
    }

    /// How to reach the database: as the service, and as its owner.
    pub(crate) fn options(&self) -> PostgresOptions {
        let (host, port) = (self.admin.get_host(), self.admin.get_port());
        let url = format!("postgres://{ROLE}:{PASSWORD}@{host}:{port}/{}", self.database);
        let owner = self.admin.to_url_lossy().to_string();
        PostgresOptions { direct_url: Some(owner), ..PostgresOptions::new(url) }
    }

    /// Removes the database. A test that fails does not come so far: the next run finds what it left.
    pub(crate) async fn end(self) {
        execute(&self.server, format!("DROP DATABASE {} WITH (FORCE)", self.database)).await;
    }
}

/// The server that a variable names, as its superuser.
pub(crate) fn named(variable: &str) -> PgConnectOptions {
    let url = std::env::var(variable).unwrap_or_else(|_| {
        panic!(
            "{variable} is not set: run `cargo xtask services up` and set what it prints, or run \
             `cargo xtask test --all`"
        )
    });
    url.parse().unwrap_or_else(|_| panic!("{variable} is a URL"))
}

/// Runs a statement on a connection of its own.
pub(crate) async fn execute(on: &PgConnectOptions, statement: String) {
    let mut connection: PgConnection =
        on.connect().await.expect("the server of THROUGHLINE_TEST_POSTGRES answers");
    connection.execute(AssertSqlSafe(statement)).await.expect("a statement of the tests");
    // Said goodbye to, it no longer counts when the statement returns to its test.
    connection.close().await.expect("a connection closes");
}

/// Removes the databases that this test left in processes which have ended.
async fn clean(server: &PgConnectOptions, name: &str) {
    let mut connection = server.connect().await.expect("the server answers");
    let prefix = format!("tl_{name}_");
    let found: Vec<String> =
        sqlx::query_scalar("SELECT datname::text FROM pg_database WHERE starts_with(datname, $1)")
            .bind(&prefix)
            .fetch_all(&mut connection)
            .await
            .expect("a statement of the tests");
    for database in found {
        let process = database.trim_start_matches(&prefix).parse::<u32>();
        let ended = |id: u32| !Path::new("/proc").join(id.to_string()).exists();
        if Path::new("/proc/self").exists() && process.is_ok_and(ended) {
            // Another process may have the same thought.
            let drop = format!("DROP DATABASE IF EXISTS {database} WITH (FORCE)");
            let _ = connection.execute(AssertSqlSafe(drop)).await;
        }
    }
}
