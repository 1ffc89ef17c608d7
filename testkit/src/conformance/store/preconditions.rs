//! What must hold when a batch is applied.

use std::collections::BTreeSet;

use throughline_core::ports::{Erasure, Precondition, RecordKey, Store, Write, WriteBatch};
use throughline_core::scope::Profile;
use throughline_core::{Error, ErrorKind, Scope};

use super::super::runner::Scenario;
use super::scenarios;
use super::support::{Port, Snapshot, head, put_one};
use crate::build::{append, at, batch, id, message, scope, session, summary};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["preconditions":
    if_absent_holds_until_the_session_exists,
    if_version_holds_for_exactly_that_version_of_a_session,
    if_version_fails_for_a_session_that_does_not_exist,
    a_profile_has_preconditions_too,
    every_precondition_must_hold,
    a_version_increases_with_every_batch_that_writes_to_the_session,
    a_version_ignores_batches_that_do_not_write_to_the_session,
    a_precondition_alone_writes_nothing,
    erasures_hold_until_something_is_erased,
    erasures_never_come_again,
];

fn of_session() -> RecordKey {
    RecordKey::Session(session("s1"))
}

fn profile(version: u64) -> Write {
    Write::PutProfile(Profile {
        rules: format!("rules of {version}"),
        card: String::new(),
        version,
        updated_at: at(1),
    })
}

fn lost(error: &Error) {
    assert!(error.is_lost_race(), "{error:?}");
    assert_eq!(error.kind(), ErrorKind::Conflict);
}

fn one_more(scope: &Scope) -> WriteBatch {
    batch(scope).with(append("s1", message("one more")))
}

async fn refused(store: &Port, scope: &Scope, batch: WriteBatch) {
    let before = Snapshot::of(store, scope).await;
    lost(&store.apply(batch).await.unwrap_err());
    assert_eq!(Snapshot::of(store, scope).await, before);
}

async fn if_absent_holds_until_the_session_exists(store: Port) {
    let scope = scope("a");
    let first = || one_more(&scope).with_precondition(Precondition::IfAbsent(of_session()));
    store.apply(first()).await.unwrap();
    refused(&store, &scope, first()).await;
    let other = Precondition::IfAbsent(RecordKey::Session(session("s2")));
    store.apply(one_more(&scope).with_precondition(other)).await.unwrap();
}

async fn if_version_holds_for_exactly_that_version_of_a_session(store: Port) {
    let scope = scope("a");
    put_one(&store, &scope, "s1", message("one")).await;
    let version = head(&store, &scope, "s1").await.version;
    let at = |version| {
        one_more(&scope).with_precondition(Precondition::IfVersion(of_session(), version))
    };
    refused(&store, &scope, at(version + 1)).await;
    refused(&store, &scope, at(0)).await;
    store.apply(at(version)).await.unwrap();
    refused(&store, &scope, at(version)).await;
    assert_eq!(head(&store, &scope, "s1").await.messages, 2);
}

async fn if_version_fails_for_a_session_that_does_not_exist(store: Port) {
    let scope = scope("a");
    for version in [0, 1] {
        let held = Precondition::IfVersion(of_session(), version);
        refused(&store, &scope, one_more(&scope).with_precondition(held)).await;
    }
}

async fn a_profile_has_preconditions_too(store: Port) {
    let scope = scope("a");
    let put = |precondition, version| {
        batch(&scope).with_precondition(precondition).with(profile(version))
    };
    let absent = || Precondition::IfAbsent(RecordKey::Profile);
    let at = |version| Precondition::IfVersion(RecordKey::Profile, version);
    refused(&store, &scope, put(at(1), 2)).await;
    store.apply(put(absent(), 1)).await.unwrap();
    refused(&store, &scope, put(absent(), 1)).await;
    refused(&store, &scope, put(at(2), 2)).await;
    store.apply(put(at(1), 2)).await.unwrap();
    let held = store.profile(&scope).await.unwrap().unwrap();
    assert_eq!((held.rules.as_str(), held.version), ("rules of 2", 2));
}

async fn every_precondition_must_hold(store: Port) {
    let scope = scope("a");
    put_one(&store, &scope, "s1", message("one")).await;
    let version = head(&store, &scope, "s1").await.version;
    let holds = || Precondition::IfVersion(of_session(), version);
    let holds_too = || Precondition::IfAbsent(RecordKey::Profile);
    let fails = || Precondition::IfAbsent(of_session());
    let with = |preconditions: Vec<Precondition>| WriteBatch { preconditions, ..one_more(&scope) };
    for preconditions in [
        vec![fails(), holds(), holds_too()],
        vec![holds(), fails(), holds_too()],
        vec![holds(), holds_too(), fails()],
    ] {
        refused(&store, &scope, with(preconditions)).await;
    }
    store.apply(with(vec![holds(), holds_too()])).await.unwrap();
}

async fn a_version_increases_with_every_batch_that_writes_to_the_session(store: Port) {
    let scope = scope("a");
    let said = message("one");
    let source = said.id;
    let batches = [
        batch(&scope).with(append("s1", said)),
        one_more(&scope),
        one_more(&scope).with(append("s1", message("and one"))),
        batch(&scope).with(Write::PutSummary(Box::new(summary("s1", 1, 1, &[source])))),
    ];
    let mut before = 0;
    for batch in batches {
        store.apply(batch).await.unwrap();
        let version = head(&store, &scope, "s1").await.version;
        assert!(version > before, "{version} after {before}");
        before = version;
    }
}

async fn a_version_ignores_batches_that_do_not_write_to_the_session(store: Port) {
    let scope = scope("a");
    put_one(&store, &scope, "s1", message("one")).await;
    let before = head(&store, &scope, "s1").await;
    put_one(&store, &scope, "s2", message("elsewhere")).await;
    store.apply(batch(&scope).with(profile(1))).await.unwrap();
    assert_eq!(head(&store, &scope, "s1").await, before);
}

async fn a_precondition_alone_writes_nothing(store: Port) {
    let scope = scope("a");
    let absent = Precondition::IfAbsent(of_session());
    store.apply(batch(&scope).with_precondition(absent)).await.unwrap();
    assert!(Snapshot::of(&store, &scope).await.is_empty());
}

async fn erasures_hold_until_something_is_erased(store: Port) {
    let (mine, other) = (scope("a"), scope("b"));
    assert_eq!(store.erasures(&mine).await.unwrap(), None);
    let said = put_one(&store, &mine, "s1", message("one")).await;
    put_one(&store, &mine, "s2", message("another")).await;
    put_one(&store, &other, "s1", message("elsewhere")).await;
    let of_other = store.erasures(&other).await.unwrap().unwrap();
    let erasures = [
        Erasure::Messages(vec![said.id]),
        Erasure::Session { id: session("s1"), through: 1 },
        Erasure::Scope { through: 9, documents: 9 },
    ];
    for erasure in erasures {
        let before = store.erasures(&mine).await.unwrap().unwrap();
        let read = || one_more(&mine).with_precondition(Precondition::IfErasures(before));
        store.apply(read()).await.unwrap();
        let write = Write::Erase { erasure, seed: id() };
        store.apply(batch(&mine).with(write)).await.unwrap();
        refused(&store, &mine, read()).await;
        assert!(store.erasures(&mine).await.unwrap().unwrap() > before);
    }
    let unmoved = one_more(&other).with_precondition(Precondition::IfErasures(of_other));
    store.apply(unmoved).await.unwrap();
}

async fn erasures_never_come_again(store: Port) {
    let scope = scope("a");
    let mut seen = BTreeSet::new();
    for _ in 0..5 {
        store.apply(one_more(&scope)).await.unwrap();
        let before = store.erasures(&scope).await.unwrap().unwrap();
        assert!(seen.insert(before), "{before} came again: {seen:?}");
        let write = Write::Erase {
            erasure: Erasure::Scope { through: u64::MAX, documents: u64::MAX },
            seed: id(),
        };
        store.apply(batch(&scope).with(write).with(Write::DropScope)).await.unwrap();
        assert_eq!(store.erasures(&scope).await.unwrap(), None);
        let read = || one_more(&scope).with_precondition(Precondition::IfErasures(before));
        assert!(store.apply(read()).await.unwrap_err().is_lost_race());
        assert_eq!(store.erasures(&scope).await.unwrap(), None);
    }
}
