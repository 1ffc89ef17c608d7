//! The store when its server is away, goes away, is silent, full or read-only: what is acknowledged is
//! kept, what fails says what to do, and the same store goes on by itself when the server is back.

#![expect(
    clippy::unwrap_used,
    reason = "test support outside of test functions: a failure is the answer"
)]

use std::time::{Duration, Instant};

use sqlx::{ConnectOptions, Connection, Executor};
use throughline_core::ErrorKind;
use throughline_core::ports::{JobRepo, SessionRepo, Store};
use throughline_store_postgres::{PostgresOptions, PostgresStore};
use throughline_testkit::build::{append, at, batch, message, scope};
use throughline_testkit::proxy::Fault;

use crate::support::wire::{CONNECT, SOON, STATEMENT, put, read, stored, turn, unavailable, warm};
use crate::support::{Server, execute};

fn lazy(options: PostgresOptions) -> PostgresStore {
    PostgresStore::connect_lazy(options).unwrap()
}

/// Ends every connection to the database.
async fn terminate(server: &Server) {
    let ended = format!(
        "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname = '{}'",
        server.database
    );
    execute(&server.server, ended).await;
}

async fn problems(store: &PostgresStore) -> Vec<String> {
    tokio::time::timeout(SOON, store.health(false)).await.unwrap().unwrap().problems
}

#[tokio::test]
async fn a_server_that_is_away_is_unavailable_and_the_same_store_goes_on_when_it_is_back() {
    let server = Server::start("away").await;
    let proxy = server.proxy();
    for fault in [Fault::Gone, Fault::Refuse, Fault::Stall] {
        proxy.set(fault);
        let begun = Instant::now();
        unavailable(PostgresStore::open(server.through(&proxy))).await;
        assert!(begun.elapsed() < CONNECT * 3, "{fault:?}: {:?}", begun.elapsed());

        let store = lazy(server.through(&proxy));
        for connected in [false, true] {
            if connected {
                warm(&store).await;
                proxy.set(fault);
                if fault != Fault::Stall {
                    proxy.cut();
                }
            }
            unavailable(read(&store)).await;
            unavailable(put(&store, "never")).await;
            unavailable(store.claim_jobs(&["any"], at(0), CONNECT, 1)).await;
            let told = problems(&store).await;
            assert_eq!(told.len(), 1, "{fault:?}: {told:?}");
            let sentence =
                |told: &str| told.contains("start it") || told.contains("may be unavailable");
            assert!(sentence(&told[0]), "{fault:?}: {told:?}");
            proxy.set(Fault::Pass);
            read(&store).await.unwrap();
            put(&store, &format!("{fault:?} {connected}")).await.unwrap();
            // No vectors, no index that waits for being built.
            assert_eq!(problems(&store).await, Vec::<String>::new());
        }
    }
    let kept = stored(&lazy(server.options())).await;
    assert_eq!(kept.len(), 6, "{kept:?}");
    server.end().await;
}

#[tokio::test]
async fn a_batch_that_is_cut_anywhere_is_whole_or_not_there_and_its_repetition_makes_it_whole() {
    let server = Server::start("cut").await;
    let proxy = server.proxy();
    // One connection, so that what it has prepared is known.
    let store = lazy(PostgresOptions { connections: 1, ..server.through(&proxy) });
    let direct = lazy(server.options());
    let texts = |n: u64| (0..4).map(|m| format!("{n:05} {m}")).collect::<Vec<String>>();
    // What a batch sends, on a connection that has its statements prepared.
    for n in 90_000..90_003 {
        proxy.set(Fault::Pass);
        store.apply(turn(&texts(n))).await.unwrap();
    }
    let bytes = proxy.sent();
    let mut expected = (90_000..90_003).flat_map(texts).collect::<Vec<String>>();
    let (mut failed, mut committed) = (0, 0);
    let first = (0..bytes - 14).step_by(usize::try_from(bytes / 40).unwrap());
    // The last bytes are the commit's.
    for most in first.chain(bytes - 14..=bytes) {
        proxy.set(Fault::CutAfter(most));
        let applied = store.apply(turn(&texts(most))).await;
        // Past its end, the next call is cut.
        assert!(proxy.fault() == Fault::Pass || most + 14 >= bytes, "{most} of {bytes} bytes");
        let there = stored(&direct).await.len() - expected.len();
        assert!([0, 4].contains(&there), "{there} of 4 after {most} bytes");
        committed += u32::from(there == 4);
        if let Err(error) = &applied {
            assert_eq!(error.kind(), ErrorKind::Unavailable, "{error:?}");
            failed += 1;
        } else {
            assert_eq!(there, 4, "what is acknowledged is there");
        }
        proxy.set(Fault::Pass);
        let again = store.apply(turn(&texts(most))).await.unwrap();
        // A commit that was sent may be done by the server only now.
        let replayed = again.messages.iter().filter(|message| message.replayed).count();
        assert!(replayed == 4 || (replayed == 0 && there == 0), "{replayed} after {most} bytes");
        expected.extend(texts(most));
        assert_eq!(stored(&direct).await, expected, "each once, after {most} bytes");
        let seqs: Vec<u64> = again.messages.iter().map(|message| message.seq).collect();
        let last = expected.len() as u64;
        assert_eq!(seqs, (last - 3..=last).collect::<Vec<u64>>(), "no number is lost");
    }
    let totals = direct.totals(&scope("ana")).await.unwrap();
    assert_eq!((totals.messages, totals.facts), (expected.len() as u64, totals.messages));
    println!("a batch of {bytes} bytes: {failed} cuts told, {committed} found committed");
    assert!(failed > 30, "{failed}");
    server.end().await;
}

#[tokio::test]
async fn a_commit_whose_answer_is_lost_is_replayed() {
    let server = Server::start("answer").await;
    let proxy = server.proxy();
    let (store, direct) = (lazy(server.through(&proxy)), lazy(server.options()));
    put(&store, "before").await.unwrap();
    proxy.set(Fault::DropAnswer("COMMIT\0"));
    unavailable(put(&store, "lost")).await;
    assert_eq!(proxy.fault(), Fault::Pass, "the answer was dropped");
    assert_eq!(stored(&direct).await, ["before", "lost"], "the server had committed");
    let again = put(&store, "lost").await.unwrap();
    assert!(again.messages[0].replayed);
    assert_eq!((again.messages[0].seq, stored(&store).await.len()), (2, 2));
    server.end().await;
}

#[tokio::test]
async fn connections_that_the_server_ended_are_replaced_within_the_call() {
    let server = Server::start("ended").await;
    let store = lazy(PostgresOptions { connections: 3, ..server.options() });
    for n in 0..5 {
        warm(&store).await;
        terminate(&server).await;
        read(&store).await.unwrap();
        warm(&store).await;
        terminate(&server).await;
        put(&store, &n.to_string()).await.unwrap();
    }
    assert_eq!(stored(&store).await, ["0", "1", "2", "3", "4"]);
    server.end().await;
}

#[tokio::test]
async fn a_read_only_database_takes_no_write_and_answers_reads() {
    let server = Server::start("readonly").await;
    let store = lazy(server.options());
    let mut with_job = turn(&["before".to_owned()]);
    let job = throughline_testkit::build::job("summarize", "s");
    with_job.writes.push(throughline_core::ports::Write::EnqueueJob(job));
    store.apply(with_job).await.unwrap();
    let database = &server.database;
    let read_only =
        |set: &str| format!("ALTER DATABASE {database} {set} default_transaction_read_only");
    execute(&server.server, read_only("SET") + " = on").await;
    terminate(&server).await;
    let claimed = store.claim_jobs(&["summarize"], at(5), CONNECT, 1).await.unwrap_err();
    assert_eq!(claimed.kind(), ErrorKind::ReadOnly, "{claimed:?}");
    for scope in [scope("ana"), scope("new")] {
        let mut batch = batch(&scope);
        batch.writes.push(append("s", message("never")));
        let refused = store.apply(batch).await.unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::ReadOnly, "{refused:?}");
        assert!(refused.message().contains("accepts no writes"), "{refused}");
    }
    assert_eq!(stored(&store).await, ["before"]);
    assert!(problems(&store).await[0].contains("read-only"));
    execute(&server.server, read_only("RESET")).await;
    terminate(&server).await;
    assert_eq!(put(&store, "after").await.unwrap().messages[0].seq, 2);
    assert_eq!(store.claim_jobs(&["summarize"], at(5), CONNECT, 9).await.unwrap().len(), 1);
    server.end().await;
}

#[tokio::test]
async fn a_pool_that_is_in_use_is_unavailable_until_it_is_not() {
    let server = Server::start("pool").await;
    let proxy = server.proxy();
    let patient = PostgresOptions { connections: 1, ..server.through(&proxy) };
    let store = lazy(PostgresOptions { statement_timeout: 2 * SOON, ..patient });
    put(&store, "before").await.unwrap();
    let mut holder = server.admin.connect().await.unwrap();
    let mut held = holder.begin().await.unwrap();
    held.execute("SELECT key FROM scope FOR UPDATE").await.unwrap();
    let waiting = {
        let store = store.clone();
        tokio::spawn(async move { put(&store, "waited").await })
    };
    // Until the batch has the connection.
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'
        AND datname = current_database()";
    let begun = Instant::now();
    while sqlx::query_scalar::<_, i64>(waits).fetch_one(&mut *held).await.unwrap() == 0 {
        assert!(begun.elapsed() < SOON, "the batch waits for the scope");
    }
    let sentence = unavailable(read(&store)).await;
    assert!(sentence.contains("`postgres.connections` is too low"), "{sentence}");
    assert!(problems(&store).await[0].contains("`postgres.connections` is too low"));
    held.rollback().await.unwrap();
    assert_eq!(waiting.await.unwrap().unwrap().messages[0].seq, 2);
    read(&store).await.unwrap();
    server.end().await;
}

#[tokio::test]
async fn a_server_that_takes_no_connection_is_unavailable_until_it_does() {
    let server = Server::start("full").await;
    let proxy = server.proxy();
    let store = lazy(server.through(&proxy));
    warm(&store).await;
    let database = &server.database;
    for (shut, open) in [
        ("CONNECTION LIMIT 0", "CONNECTION LIMIT -1"),
        ("ALLOW_CONNECTIONS false", "ALLOW_CONNECTIONS true"),
    ] {
        execute(&server.server, format!("ALTER DATABASE {database} WITH {shut}")).await;
        terminate(&server).await;
        let sentence = unavailable(read(&store)).await;
        assert!(sentence.contains("connection"), "{sentence}");
        unavailable(put(&store, "never")).await;
        assert_eq!(problems(&store).await.len(), 1);
        execute(&server.server, format!("ALTER DATABASE {database} WITH {open}")).await;
        read(&store).await.unwrap();
        put(&store, shut).await.unwrap();
    }
    let admin = server.server.clone();
    execute(&admin, format!("DROP DATABASE {database} WITH (FORCE)")).await;
    let gone = read(&store).await.unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound, "{gone:?}");
    assert!(gone.message().contains("throughline migrate"), "{gone}");
}

#[tokio::test]
async fn a_server_that_falls_silent_blocks_nobody_for_ever() {
    let server = Server::start("silent").await;
    let proxy = server.proxy();
    let store = lazy(server.through(&proxy));
    put(&store, "before").await.unwrap();
    warm(&store).await;
    proxy.set(Fault::Stall);
    // More calls than there are connections, of which some are given up by their callers.
    let calls = (0..12).map(|n| {
        let store = store.clone();
        tokio::spawn(async move {
            let patience = if n % 3 == 0 { Duration::from_millis(50) } else { SOON };
            tokio::time::timeout(patience, put(&store, "silent")).await
        })
    });
    for (n, call) in calls.collect::<Vec<_>>().into_iter().enumerate() {
        match call.await.unwrap() {
            Ok(answer) => assert_eq!(answer.unwrap_err().kind(), ErrorKind::Unavailable),
            Err(_) => assert_eq!(n % 3, 0, "a call goes on for ever"),
        }
    }
    proxy.set(Fault::Pass);
    let begun = Instant::now();
    warm(&store).await;
    assert!(begun.elapsed() < SOON, "every connection is to be had again: {:?}", begun.elapsed());
    put(&store, "after").await.unwrap();
    server.end().await;
}

#[tokio::test]
async fn a_statement_whose_answer_never_comes_ends() {
    let server = Server::start("middle").await;
    let proxy = server.proxy();
    let store = lazy(server.through(&proxy));
    put(&store, "before").await.unwrap();
    // A batch that is under way when the wire falls silent: it waits for its scope.
    let mut holder = server.admin.connect().await.unwrap();
    let mut held = holder.begin().await.unwrap();
    held.execute("SELECT key FROM scope FOR UPDATE").await.unwrap();
    let waiting = {
        let store = store.clone();
        tokio::spawn(async move { unavailable(put(&store, "silent")).await })
    };
    let waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'
        AND datname = current_database()";
    let begun = Instant::now();
    while sqlx::query_scalar::<_, i64>(waits).fetch_one(&mut *held).await.unwrap() == 0 {
        assert!(begun.elapsed() < SOON, "the batch waits for the scope");
    }
    proxy.freeze();
    held.rollback().await.unwrap();
    let sentence = waiting.await.unwrap();
    assert!(sentence.contains("does not respond"), "{sentence}");
    put(&store, "after").await.unwrap();
    assert_eq!(stored(&store).await, ["before", "after"], "what was not committed is not there");
    server.end().await;
}

#[tokio::test]
async fn connections_that_a_firewall_forgot_are_replaced_within_the_call() {
    let server = Server::start("firewall").await;
    let proxy = server.proxy();
    let store = lazy(server.through(&proxy));
    for n in 0..3 {
        warm(&store).await;
        proxy.freeze();
        let begun = Instant::now();
        put(&store, &n.to_string()).await.unwrap();
        assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
        let begun = Instant::now();
        warm(&store).await;
        assert!(begun.elapsed() < CONNECT, "the others were replaced too: {:?}", begun.elapsed());
    }
    server.end().await;
}

#[tokio::test]
async fn a_statement_that_takes_too_long_is_ended_by_the_server() {
    let server = Server::start("long").await;
    let proxy = server.proxy();
    let store = lazy(server.through(&proxy));
    put(&store, "before").await.unwrap();
    let mut holder = server.admin.connect().await.unwrap();
    let mut held = holder.begin().await.unwrap();
    held.execute("SELECT key FROM scope FOR UPDATE").await.unwrap();
    let begun = Instant::now();
    let sentence = unavailable(put(&store, "late")).await;
    assert!(sentence.contains("`postgres.statement_timeout_ms`"), "{sentence}");
    assert!(begun.elapsed() >= STATEMENT);
    held.rollback().await.unwrap();
    // A slow wire is no fault.
    proxy.set(Fault::Slow(Duration::from_millis(15)));
    put(&store, "after").await.unwrap();
    assert_eq!(stored(&store).await, ["before", "after"]);
    server.end().await;
}
