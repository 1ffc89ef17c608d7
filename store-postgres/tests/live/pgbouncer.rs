//! The store through PgBouncer in transaction mode: the same answers, and nothing of one transaction is seen by
//! the next one on the server connection that they share.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "test support outside of test functions: a failure is the answer"
)]

use std::collections::BTreeSet;
use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Executor};
use throughline_core::page::PageRequest;
use throughline_core::ports::{SessionRepo, Store};
use throughline_core::{ErrorKind, Scope};
use throughline_store_postgres::{PostgresOptions, PostgresStore};
use throughline_testkit::build::{append, batch, message, scope, session};
use throughline_testkit::conformance;

use crate::support::fresh::fresh;
use crate::support::{Server, execute};

const VARIABLE: &str = "THROUGHLINE_TEST_PGBOUNCER";
/// Of a role and a database, as `cargo xtask services` sets it.
const POOL: usize = 2;

/// As the service through PgBouncer, as the owner past it.
fn bounced(server: &Server, prepared: bool) -> PostgresOptions {
    let url = std::env::var(VARIABLE).unwrap_or_else(|_| {
        panic!(
            "{VARIABLE} is not set: run `cargo xtask services up` and set what it prints, or run \
             `cargo xtask test --all`"
        )
    });
    let bouncer: PgConnectOptions = url.parse().unwrap();
    let at = |host: &str, port: u16| format!("@{host}:{port}/");
    let past = at(server.admin.get_host(), server.admin.get_port());
    let straight = server.options();
    let url = straight.url.replace(&past, &at(bouncer.get_host(), bouncer.get_port()));
    assert_ne!(url, straight.url);
    PostgresOptions { url, prepared, ..straight }
}

async fn connect(options: &PostgresOptions) -> PgConnection {
    let options: PgConnectOptions = options.url.parse().unwrap();
    options.extra_float_digits(None).connect().await.unwrap()
}

/// Server connections of the service's role to the database.
async fn backends(server: &Server) -> i64 {
    let mut admin = server.admin.connect().await.unwrap();
    let counted = "SELECT count(*) FROM pg_stat_activity
        WHERE datname = current_database() AND usename <> current_user";
    sqlx::query_scalar(counted).fetch_one(&mut admin).await.unwrap()
}

#[tokio::test]
async fn the_vector_index_conforms_through_pgbouncer() {
    let server = Server::start("bouncedindex").await;
    conformance::vector_index(async || fresh(&server, bounced(&server, true)).await, &[]).await;
    server.end().await;
}

/// What a scope's session holds.
async fn texts(store: &PostgresStore, scope: &Scope) -> BTreeSet<String> {
    let page = PageRequest::first(500).unwrap();
    let found = store.messages(scope, &session("s"), &page).await.unwrap();
    found.items.into_iter().map(|message| message.content).collect()
}

/// Eight tenants write and read at once through two server connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn tenants_that_share_server_connections_see_nothing_of_each_other() {
    const TENANTS: usize = 8;
    const TURNS: usize = 15;
    let server = Server::start("shared").await;
    for prepared in [true, false] {
        let stores =
            [0, 1].map(|_| PostgresStore::connect_lazy(bounced(&server, prepared)).unwrap());
        let tasks = (0..TENANTS).map(|n| {
            let store = stores[n % 2].clone();
            tokio::spawn(async move {
                let own = Scope::new(&format!("tenant-{prepared}-{n}"), "ana", None).unwrap();
                let mut said = BTreeSet::new();
                for turn in 0..TURNS {
                    let text = format!("of {n}: {turn}");
                    let mut write = batch(&own);
                    write.writes.push(append("s", message(&text)));
                    let applied = store.apply(write).await.unwrap();
                    assert_eq!(applied.messages[0].seq, turn as u64 + 1, "of its own scope");
                    said.insert(text);
                    assert_eq!(texts(&store, &own).await, said);
                }
            })
        });
        for task in tasks.collect::<Vec<_>>() {
            task.await.unwrap();
        }
        let backends = backends(&server).await;
        assert!((1..=POOL as i64).contains(&backends), "{backends} server connections");
    }
    server.end().await;
}

/// What the next transaction on each of the server connections finds: its setting, and how many rows.
async fn left_behind(options: &PostgresOptions) -> BTreeSet<(i32, String, i64)> {
    let mut found = BTreeSet::new();
    // At once, so that each has a server connection of its own.
    let mut connections = [connect(options).await, connect(options).await];
    let [first, second] = &mut connections;
    let mut open = [first.begin().await.unwrap(), second.begin().await.unwrap()];
    for transaction in &mut open {
        let seen =
            "SELECT pg_backend_pid(), coalesce(current_setting('throughline.scope', true), '')
            || coalesce(current_setting('throughline.worker', true), ''),
            (SELECT count(*) FROM message)";
        found.insert(sqlx::query_as(seen).fetch_one(&mut **transaction).await.unwrap());
    }
    for transaction in open {
        transaction.rollback().await.unwrap();
    }
    found
}

#[tokio::test]
async fn a_transaction_that_was_given_up_leaves_no_scope_on_its_server_connection() {
    let server = Server::start("givenup").await;
    let options = bounced(&server, true);
    let patient =
        PostgresOptions { statement_timeout: Duration::from_millis(600), ..options.clone() };
    let store = PostgresStore::connect_lazy(patient).unwrap();
    let ana = scope("ana");
    let put = async |text: &str| {
        let mut write = batch(&ana);
        write.writes.push(append("s", message(text)));
        store.apply(write).await
    };
    put("before").await.unwrap();
    let key: String = {
        let mut admin = server.admin.connect().await.unwrap();
        sqlx::query_scalar("SELECT key::text FROM scope").fetch_one(&mut admin).await.unwrap()
    };
    let clean = async |after: &str| {
        let left = left_behind(&options).await;
        assert_eq!(left.len(), POOL, "{after}: {left:?}");
        for (_, setting, rows) in left {
            assert_eq!((setting.as_str(), rows), ("", 0), "{after}");
        }
    };
    clean("a batch").await;

    // A program that ends in the middle of its transaction, and one that rolls back.
    for ends in [true, false] {
        let mut connection = connect(&options).await;
        let begin = format!("BEGIN; SET LOCAL throughline.scope = '{key}'");
        connection.execute(AssertSqlSafe(begin)).await.unwrap();
        let rows: i64 = sqlx::query_scalar("SELECT count(*) FROM message")
            .fetch_one(&mut connection)
            .await
            .unwrap();
        assert_eq!(rows, 1, "the scope is set");
        if ends {
            // Without a word: its socket is closed.
            drop(connection);
        } else {
            connection.execute("ROLLBACK").await.unwrap();
            connection.close().await.unwrap();
        }
        clean("a program that ended").await;
    }

    // A caller that stops waiting, and a statement that the server ends.
    let mut holder = server.admin.connect().await.unwrap();
    let mut held = holder.begin().await.unwrap();
    held.execute("SELECT key FROM scope FOR UPDATE").await.unwrap();
    let given_up = tokio::time::timeout(Duration::from_millis(100), put("given up")).await;
    assert!(given_up.is_err(), "it waits for the scope");
    let ended = put("ended").await.unwrap_err();
    assert_eq!(ended.kind(), ErrorKind::Unavailable, "{ended:?}");
    held.rollback().await.unwrap();
    clean("callers that stopped waiting").await;

    put("after").await.unwrap();
    let kept = texts(&store, &ana).await;
    assert_eq!(kept, BTreeSet::from(["before".to_owned(), "after".to_owned()]));
    server.end().await;
}

/// How many statements the server connections of the pool keep under names.
async fn names_kept(options: &PostgresOptions) -> i64 {
    let mut connections = [connect(options).await, connect(options).await];
    let [first, second] = &mut connections;
    let mut open = [first.begin().await.unwrap(), second.begin().await.unwrap()];
    let mut kept = 0;
    for transaction in &mut open {
        // Without a name itself.
        let counted = sqlx::query_scalar::<_, i64>("SELECT count(*) FROM pg_prepared_statements");
        kept += counted.persistent(false).fetch_one(&mut **transaction).await.unwrap();
    }
    kept
}

/// What a PgBouncer before 1.21 needs: to it a name is the server connection's, whoever gave it.
#[tokio::test]
async fn without_prepared_statements_nothing_has_a_name() {
    let server = Server::start("names").await;
    let mut kept = Vec::new();
    for prepared in [false, true] {
        let options = bounced(&server, prepared);
        let store = PostgresStore::connect_lazy(options.clone()).unwrap();
        let mut write = batch(&scope("ana"));
        write.writes.push(append("s", message("one")));
        store.apply(write).await.unwrap();
        assert_eq!(texts(&store, &scope("ana")).await.len(), 1);
        assert_eq!(store.health(true).await.unwrap().problems, Vec::<String>::new());
        kept.push(names_kept(&options).await);
    }
    assert!(kept[0] == 0 && kept[1] > 5, "{kept:?}");
    server.end().await;
}

/// The connections of the pool go with the server that they lead to; those of the store need not.
#[tokio::test]
async fn server_connections_that_ended_are_replaced_within_the_call() {
    let server = Server::start("bouncedended").await;
    let store = PostgresStore::connect_lazy(bounced(&server, true)).unwrap();
    for n in 0..5_u64 {
        let mut write = batch(&scope("ana"));
        write.writes.push(append("s", message(&n.to_string())));
        assert_eq!(store.apply(write).await.unwrap().messages[0].seq, n + 1);
        let ended = format!(
            "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{}'",
            server.database
        );
        execute(&server.server, ended).await;
    }
    assert_eq!(texts(&store, &scope("ana")).await.len(), 5);
    server.end().await;
}

/// What `cargo xtask ci` has no time for.
mod full {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn the_store_conforms_through_pgbouncer_with_prepared_statements() {
        let server = Server::start("bounced").await;
        conformance::store(async || fresh(&server, bounced(&server, true)).await, &[]).await;
        server.end().await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn the_store_conforms_through_pgbouncer_without_prepared_statements() {
        let server = Server::start("unprepared").await;
        conformance::store(async || fresh(&server, bounced(&server, false)).await, &[]).await;
        server.end().await;
    }
}
