//! Reads from a replica: they go there, they are never older than the primary, and a replica that is
//! behind, away, silent or cut changes no answer.

#![expect(
    clippy::unwrap_used,
    reason = "test support outside of test functions: a failure is the answer"
)]

use std::time::{Duration, Instant};

use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;
use throughline_core::fact::Fact;
use throughline_core::index::{Namespace, TermId, UnitKey};
use throughline_core::page::PageRequest;
use throughline_core::ports::{
    FactRepo, Ledger, LedgerLimits, LexicalIndex, PostingLists, SessionRepo, Store, VectorHit,
    VectorIndex, VectorItem, VectorSpace,
};
use throughline_core::{ErrorKind, Result, Scope};
use throughline_store_postgres::{PostgresOptions, PostgresStore};
use throughline_testkit::build::{append, at, batch, say, scope, session, slot_fact};
use throughline_testkit::conformance;
use throughline_testkit::proxy::{Fault, Proxy};

use crate::support::fresh::fresh;
use crate::support::standby::Standby;
use crate::support::{Server, execute};

/// A read with a fault on its way takes no longer.
const SOON: Duration = Duration::from_secs(5);
/// A replica that was away is asked again after less.
const RESTED: Duration = Duration::from_secs(20);
/// What reads of the replica need, beside the row of the scope.
const TABLES: &str = "session, message, fact, fact_source, lex_stats, lex_tail, lex_block, \
    vector_state, embedding, vector_space";
const TERM: &str = "lamp";

fn space() -> VectorSpace {
    VectorSpace { id: "test".to_owned(), dimensions: 2 }
}

fn lazy(options: PostgresOptions) -> PostgresStore {
    PostgresStore::connect_lazy(options).unwrap()
}

/// A message with a fact, and its vector.
async fn put(store: &PostgresStore, scope: &Scope, text: &str) -> u64 {
    let fact = slot_fact(text, "is", "known", at(0));
    let said = say(&format!("{TERM} {text}")).external(text).fact(fact).build();
    let applied = store.apply(batch(scope).with(append("s", said))).await.unwrap();
    let seq = applied.messages[0].seq;
    let key = UnitKey::message(1, applied.messages[0].position);
    let items = [VectorItem { key, vector: vec![1.0, seq as f32] }];
    store.upsert(scope, Namespace::Message, &space(), &items, seq).await.unwrap();
    seq
}

/// What every read that may go to the replica gives.
#[derive(Debug, PartialEq)]
struct Seen {
    postings: PostingLists,
    frequencies: Vec<u64>,
    near: Vec<VectorHit>,
    contents: Vec<String>,
    ledger: Ledger,
    active: Vec<Fact>,
}

async fn see(store: &PostgresStore, scope: &Scope) -> Result<Seen> {
    let terms = [TermId::of(TERM)];
    let limits = LedgerLimits { standing: 5, newest: 99, superseded: 5, rejected: 5 };
    let keys: Vec<UnitKey> = (0..99).map(|position| UnitKey::message(1, position)).collect();
    let (message, space) = (Namespace::Message, space());
    let found = store.messages_at(scope, &keys).await?;
    let contents = found.iter().map(|(_, message)| message.content.clone()).collect();
    Ok(Seen {
        postings: store.postings(scope, message, &terms, usize::MAX).await?,
        frequencies: store.frequencies(scope, message, &terms).await?,
        near: store.search(scope, message, &space, &[0.0, 1.0], 99, &[]).await?,
        contents,
        ledger: store.ledger(scope, limits).await?,
        active: store.active_facts(scope, &(1..99).collect::<Vec<u32>>()).await?,
    })
}

/// Every read shows so many messages.
async fn sees(store: &PostgresStore, scope: &Scope, messages: usize) {
    let seen = see(store, scope).await.unwrap();
    let counts = [
        seen.postings.lists[0].len(),
        usize::try_from(seen.frequencies[0]).unwrap(),
        seen.near.len(),
        seen.contents.len(),
        seen.ledger.newest.len(),
        seen.active.len(),
    ];
    assert_eq!(counts, [messages; 6]);
}

/// Whether the reads come from the replica: from a primary that refuses them they cannot.
async fn comes_from_the_replica(
    store: &PostgresStore,
    server: &Server,
    standby: &mut Standby,
) -> bool {
    // What the primary forbids is allowed on the replica as long as that hears nothing of it.
    standby.pause().await;
    let role = "throughline_test";
    execute(&server.admin, format!("REVOKE SELECT ON {TABLES} FROM {role}")).await;
    let seen = see(store, &scope("ana")).await;
    execute(&server.admin, format!("GRANT SELECT ON {TABLES} TO {role}")).await;
    standby.resume().await;
    if let Err(error) = &seen {
        assert_eq!(error.kind(), ErrorKind::ReadOnly, "{error:?}");
    }
    seen.is_ok()
}

/// Asks until the replica answers again, as it does by itself.
async fn until_it_is_used(store: &PostgresStore, proxy: &Proxy) {
    let begun = Instant::now();
    proxy.set(Fault::Pass);
    while proxy.sent() == 0 {
        see(store, &scope("ana")).await.unwrap();
        assert!(begun.elapsed() < RESTED, "the replica is never asked again");
    }
}

async fn problems(store: &PostgresStore) -> Vec<String> {
    let health = store.health(false).await.unwrap();
    assert!(health.backend.contains("with a replica"), "{}", health.backend);
    // One that tells of indexes which are not built is not about replicas.
    health.problems.into_iter().filter(|problem| problem.contains("replica")).collect()
}

#[tokio::test]
async fn what_a_turn_reads_most_of_comes_from_the_replica() {
    let server = Server::start("replica").await;
    let mut standby = Standby::hold(&server).await;
    let (store, plain) = (lazy(standby.options(&server)), lazy(server.options()));
    for n in 0..5 {
        put(&plain, &scope("ana"), &n.to_string()).await;
    }
    standby.resume().await;
    assert!(comes_from_the_replica(&store, &server, &mut standby).await);
    assert!(!comes_from_the_replica(&plain, &server, &mut standby).await);
    assert_eq!(
        see(&store, &scope("ana")).await.unwrap(),
        see(&plain, &scope("ana")).await.unwrap()
    );
    // Of somebody else's the replica shows nothing either.
    sees(&store, &scope("bo"), 0).await;
    put(&plain, &scope("bo"), "other").await;
    standby.resume().await;
    sees(&store, &scope("bo"), 1).await;
    server.end().await;
}

#[tokio::test]
async fn a_replica_that_is_behind_hides_no_write_and_is_used_again_when_it_caught_up() {
    let server = Server::start("behind").await;
    let mut standby = Standby::hold(&server).await;
    let (store, other) = (lazy(standby.options(&server)), lazy(server.options()));
    let ana = scope("ana");
    put(&store, &ana, "before").await;
    standby.resume().await;
    assert_eq!(problems(&store).await, Vec::<String>::new());
    for round in 0..3 {
        standby.pause().await;
        sees(&store, &ana, 1 + round * 3).await;
        put(&store, &ana, &format!("own {round}")).await;
        sees(&store, &ana, 2 + round * 3).await;
        put(&other, &ana, &format!("another's {round}")).await;
        sees(&store, &ana, 3 + round * 3).await;
        // Vectors alone are a change, too.
        let gone = [UnitKey::message(1, 0)];
        other.remove(&ana, Namespace::Message, &gone).await.unwrap();
        let near = store.search(&ana, Namespace::Message, &space(), &[0.0, 1.0], 99, &[]).await;
        assert!(near.unwrap().iter().all(|hit| hit.key != gone[0]));
        other.forget(&ana).await.unwrap();
        let near = store.search(&ana, Namespace::Message, &space(), &[0.0, 1.0], 99, &[]).await;
        assert_eq!(near.unwrap(), []);
        let told = problems(&store).await;
        assert!(told.len() == 1 && told[0].contains("is paused"), "{told:?}");
        put(&other, &ana, &format!("last {round}")).await;
        let items = (0..4 + u32::try_from(round).unwrap() * 3)
            .map(|n| VectorItem { key: UnitKey::message(1, n), vector: vec![1.0, 1.0] });
        let items = items.collect::<Vec<_>>();
        other.upsert(&ana, Namespace::Message, &space(), &items, 0).await.unwrap();
        sees(&store, &ana, 4 + round * 3).await;
        standby.resume().await;
        assert!(comes_from_the_replica(&store, &server, &mut standby).await, "{round}");
        assert_eq!(problems(&store).await, Vec::<String>::new());
    }
    server.end().await;
}

#[tokio::test]
async fn a_read_is_never_older_than_a_write_of_another_process() {
    let server = Server::start("never").await;
    let standby = Standby::hold(&server).await;
    let (store, other) = (lazy(standby.options(&server)), lazy(server.options()));
    let ana = scope("ana");
    for n in 1..=60 {
        put(&other, &ana, &n.to_string()).await;
        sees(&store, &ana, n).await;
    }
    // The same scope, removed and made anew: its version is lower, and what was is not there.
    execute(&server.admin, format!("DELETE FROM scope; DELETE FROM {}", "lex_stats")).await;
    let terms = [TermId::of(TERM)];
    let read = async || store.frequencies(&ana, Namespace::Message, &terms).await.unwrap();
    execute(&server.admin, "DELETE FROM lex_tail; DELETE FROM lex_block".to_owned()).await;
    assert_eq!(read().await, [0]);
    for table in ["session", "message", "fact", "fact_source", "embedding", "vector_state"] {
        execute(&server.admin, format!("DELETE FROM {table}")).await;
    }
    put(&other, &ana, "anew").await;
    assert_eq!(read().await, [1]);
    drop(standby);
    server.end().await;
}

#[tokio::test]
async fn a_replica_that_is_away_or_silent_changes_no_answer_and_comes_back_by_itself() {
    let server = Server::start("repaway").await;
    let mut standby = Standby::hold(&server).await;
    let proxy = standby.proxy();
    let plain = lazy(server.options());
    let ana = scope("ana");
    put(&plain, &ana, "before").await;
    standby.resume().await;
    for fault in [Fault::Gone, Fault::Refuse, Fault::Stall] {
        for used in [false, true] {
            let store = lazy(standby.through(&server, &proxy));
            if used {
                until_it_is_used(&store, &proxy).await;
            }
            proxy.set(fault);
            if fault != Fault::Stall {
                proxy.cut();
            }
            let begun = Instant::now();
            sees(&store, &ana, 1).await;
            assert!(begun.elapsed() < SOON, "{fault:?} {used}: {:?}", begun.elapsed());
            let told = problems(&store).await;
            assert!(told.len() == 1 && told[0].contains("does not respond"), "{told:?}");
            // It is left alone for a while, and then asked again. What stands still would move on.
            proxy.cut();
            sees(&store, &ana, 1).await;
            proxy.set(Fault::Pass);
            sees(&store, &ana, 1).await;
            assert_eq!(proxy.sent(), 0, "{fault:?} {used}: it rests");
            until_it_is_used(&store, &proxy).await;
            assert_eq!(problems(&store).await, Vec::<String>::new());
        }
    }
    server.end().await;
}

#[tokio::test]
async fn a_read_that_is_cut_anywhere_is_repeated_on_the_primary() {
    let server = Server::start("repcut").await;
    let mut standby = Standby::hold(&server).await;
    let proxy = standby.proxy();
    let plain = lazy(server.options());
    let ana = scope("ana");
    for n in 0..3 {
        put(&plain, &ana, &n.to_string()).await;
    }
    standby.resume().await;
    let expected = see(&plain, &ana).await.unwrap();
    let one = || lazy(PostgresOptions { connections: 1, ..standby.through(&server, &proxy) });
    proxy.set(Fault::Pass);
    assert_eq!(see(&one(), &ana).await.unwrap(), expected);
    let bytes = proxy.sent();
    // The last bytes say goodbye.
    for most in (0..bytes - 100).step_by(usize::try_from(bytes / 40).unwrap()) {
        let store = one();
        proxy.set(Fault::CutAfter(most));
        assert_eq!(see(&store, &ana).await.unwrap(), expected, "cut after {most} of {bytes}");
        assert_eq!(proxy.fault(), Fault::Pass, "{most} of {bytes} bytes were sent");
    }
    // What a firewall forgot: the connection is there, and nothing comes.
    let store = one();
    until_it_is_used(&store, &proxy).await;
    proxy.freeze();
    let begun = Instant::now();
    assert_eq!(see(&store, &ana).await.unwrap(), expected);
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    until_it_is_used(&store, &proxy).await;
    server.end().await;
}

#[tokio::test]
async fn a_server_that_is_no_replica_is_told_and_not_read_from() {
    let server = Server::start("norep").await;
    let url = server.options().url;
    let store = lazy(PostgresOptions { replica_url: Some(url), ..server.options() });
    put(&store, &scope("ana"), "before").await;
    sees(&store, &scope("ana"), 1).await;
    let told = problems(&store).await;
    assert!(told.len() == 1 && told[0].contains("not a replica"), "{told:?}");
    // Its role is that of the primary, which is known to be an ordinary one.
    let owner = server.options().direct_url;
    let other = PostgresOptions { replica_url: owner, ..server.options() };
    let refused = PostgresStore::connect_lazy(other).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused:?}");
    assert!(refused.message().contains("`postgres.replica_url`"), "{refused}");
    let page = PageRequest::first(9).unwrap();
    assert_eq!(store.messages(&scope("ana"), &session("s"), &page).await.unwrap().items.len(), 1);
    server.end().await;
}

#[tokio::test]
async fn the_role_of_the_service_may_ask_which_server_it_is_on() {
    let server = Server::start("which").await;
    let mut standby = Standby::hold(&server).await;
    standby.resume().await;
    let options = standby.options(&server);
    let mut found = Vec::new();
    for url in [Some(options.url), options.replica_url].into_iter().flatten() {
        let connect: PgConnectOptions = url.parse().unwrap();
        let mut connection = connect.connect().await.unwrap();
        let which = sqlx::query_scalar("SELECT system_identifier FROM pg_control_system()");
        found.push(which.fetch_one(&mut connection).await.unwrap());
    }
    let found: [i64; 2] = found.try_into().unwrap();
    assert_eq!(found[0], found[1], "a replica is known by what it has in common");
    server.end().await;
}

/// What `cargo xtask ci` has no time for.
mod full {
    use super::*;

    #[tokio::test(flavor = "multi_thread", worker_threads = 4)]
    async fn a_store_with_a_replica_conforms() {
        let server = Server::start("repstore").await;
        let standby = Standby::hold(&server).await;
        let make = async || fresh(&server, standby.options(&server)).await;
        conformance::store(make, &[]).await;
        conformance::vector_index(make, &[]).await;
        conformance::embedded_index(make, &[]).await;
        server.end().await;
    }
}
