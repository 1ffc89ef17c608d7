//! A batch that comes again under its idempotency key is answered as the first was, and does nothing.

use std::time::Duration;

use throughline_core::ports::{
    Applied, AppliedMessage, IDEMPOTENCY_KEPT, Idempotency, Precondition, RecordKey, Store, Write,
    WriteBatch,
};
use throughline_core::time::Timestamp;
use throughline_core::usage::{UsageCounters, UsageDay};
use throughline_core::{Error, ErrorKind, Scope};

use super::super::runner::Scenario;
use super::scenarios;
use super::support::{Port, Snapshot, contents, messages, put_one};
use crate::build::{append, at, batch, job, message, say, scope, session};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["repeats":
    a_repeat_is_answered_as_the_first,
    a_repeat_writes_nothing,
    a_repeat_is_one_where_nothing_was_appended,
    a_repeat_needs_no_precondition_to_hold,
    another_request_under_the_key_is_a_conflict,
    a_batch_that_fails_leaves_no_key,
    another_scope_has_keys_of_its_own,
    without_a_key_a_batch_is_applied_again,
    equal_batches_at_once_are_applied_once,
    a_key_is_kept_for_its_time_and_then_as_good_as_new,
    old_keys_do_not_pile_up_in_the_way_of_new_ones,
];

fn key(key: u8, fingerprint: u8) -> Option<Idempotency> {
    Some(Idempotency { key: [key; 16], fingerprint: [fingerprint; 16] })
}

/// One message under a key, prepared anew each time as a caller that tries again does.
fn told(scope: &Scope, text: &str, under: Option<Idempotency>) -> WriteBatch {
    batch(scope).with(append("s1", message(text))).with_idempotency(under)
}

fn replayed(first: &Applied) -> Applied {
    let messages = first.messages.iter();
    let messages = messages.map(|message| AppliedMessage { replayed: true, ..*message });
    Applied { messages: messages.collect(), repeated: true, ..Applied::default() }
}

fn conflict(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error:?}");
    assert!(!error.is_lost_race(), "{error:?}");
}

async fn a_repeat_is_answered_as_the_first(store: Port) {
    let scope = scope("a");
    put_one(&store, &scope, "s1", say("before").external("x1").build()).await;
    let both = |text: &str| {
        told(&scope, text, key(1, 1)).with(append("s2", say("before").external("x2").build()))
    };
    let first = store.apply(both("hello")).await.unwrap();
    assert_eq!((first.repeated, first.messages.len()), (false, 2));
    assert!(first.messages.iter().all(|message| !message.replayed));
    put_one(&store, &scope, "s1", message("after")).await;
    for _ in 0..2 {
        // What it holds is not looked at: the fingerprint is the request's.
        assert_eq!(store.apply(both("other ids")).await.unwrap(), replayed(&first));
    }
}

async fn a_repeat_writes_nothing(store: Port) {
    let scope = scope("a");
    let contexts = UsageCounters { contexts: 1, ..UsageCounters::default() };
    let all = || {
        told(&scope, "hello", key(1, 1))
            .with(Write::AddUsage(UsageDay::of(at(0)), contexts))
            .with(Write::EnqueueJob(job("embed", "s1")))
            .with(Write::OpenSession { session: session("s2"), created_at: at(0) })
    };
    store.apply(all()).await.unwrap();
    let before = Snapshot::of(&store, &scope).await;
    for _ in 0..3 {
        assert!(store.apply(all()).await.unwrap().repeated);
    }
    assert_eq!(Snapshot::of(&store, &scope).await, before);
}

async fn a_repeat_is_one_where_nothing_was_appended(store: Port) {
    let opens = || {
        let write = Write::OpenSession { session: session("s1"), created_at: at(0) };
        batch(&scope("a")).with(write).with_idempotency(key(1, 1))
    };
    assert_eq!(store.apply(opens()).await.unwrap(), Applied::default());
    let repeated = Applied { repeated: true, ..Applied::default() };
    assert_eq!(store.apply(opens()).await.unwrap(), repeated);
}

async fn a_repeat_needs_no_precondition_to_hold(store: Port) {
    let first = || {
        let absent = Precondition::IfAbsent(RecordKey::Session(session("s1")));
        told(&scope("a"), "hello", key(1, 1)).with_precondition(absent)
    };
    let applied = store.apply(first()).await.unwrap();
    assert_eq!(store.apply(first()).await.unwrap(), replayed(&applied));
    let other = WriteBatch { idempotency: key(2, 2), ..first() };
    assert!(store.apply(other).await.unwrap_err().is_lost_race());
}

async fn another_request_under_the_key_is_a_conflict(store: Port) {
    let scope = scope("a");
    let first = store.apply(told(&scope, "hello", key(1, 1))).await.unwrap();
    let before = Snapshot::of(&store, &scope).await;
    conflict(&store.apply(told(&scope, "other", key(1, 2))).await.unwrap_err());
    assert_eq!(Snapshot::of(&store, &scope).await, before);
    let again = store.apply(told(&scope, "hello", key(1, 1))).await.unwrap();
    assert_eq!(again, replayed(&first));
    assert!(!store.apply(told(&scope, "other", key(2, 2))).await.unwrap().repeated);
}

async fn a_batch_that_fails_leaves_no_key(store: Port) {
    let scope = scope("a");
    put_one(&store, &scope, "s1", say("first").external("x1").build()).await;
    let bad = told(&scope, "hello", key(1, 1))
        .with(append("s1", say("other content").external("x1").build()));
    conflict(&store.apply(bad).await.unwrap_err());
    let good = store.apply(told(&scope, "hello", key(1, 2))).await.unwrap();
    assert!(!good.repeated);
    assert_eq!(contents(&messages(&store, &scope, "s1").await), ["first", "hello"]);
}

async fn another_scope_has_keys_of_its_own(store: Port) {
    let workspace = Scope::new("acme", "a", Some("w")).unwrap();
    let tenant = Scope::new("globex", "a", None).unwrap();
    for (n, scope) in (1..).zip([scope("a"), scope("b"), workspace, tenant]) {
        let applied = store.apply(told(&scope, "hello", key(1, n))).await.unwrap();
        assert!(!applied.repeated, "{scope}");
    }
}

async fn without_a_key_a_batch_is_applied_again(store: Port) {
    let scope = scope("a");
    for seq in 1..=3 {
        let applied = store.apply(told(&scope, "hello", None)).await.unwrap();
        assert_eq!((applied.repeated, applied.messages[0].seq), (false, seq));
    }
}

async fn equal_batches_at_once_are_applied_once(store: Port) {
    for round in 0..10 {
        let tasks: Vec<_> = (0..8)
            .map(|_| {
                let store = store.clone();
                let batch = told(&scope("a"), &format!("round {round}"), key(round, 1));
                tokio::spawn(async move { store.apply(batch).await.unwrap() })
            })
            .collect();
        let mut first = Vec::new();
        let mut identities = Vec::new();
        for task in tasks {
            let applied = task.await.unwrap();
            identities.push((applied.messages[0].id, applied.messages[0].seq));
            first.extend((!applied.repeated).then_some(applied));
        }
        assert_eq!(first.len(), 1, "one of them is the first");
        identities.dedup();
        assert_eq!(identities.len(), 1, "all are told the same identity");
    }
    assert_eq!(store.totals(&scope("a")).await.unwrap().messages, 10);
}

fn at_time(batch: WriteBatch, now: Timestamp) -> WriteBatch {
    WriteBatch { now, ..batch }
}

async fn a_key_is_kept_for_its_time_and_then_as_good_as_new(store: Port) {
    let scope = scope("a");
    let told = |fingerprint, now| at_time(told(&scope, "hello", key(1, fingerprint)), now);
    let first = store.apply(told(1, at(0))).await.unwrap();
    let last = at(0).plus(IDEMPOTENCY_KEPT);
    assert_eq!(store.apply(told(1, last)).await.unwrap(), replayed(&first));
    conflict(&store.apply(told(2, last)).await.unwrap_err());
    let after = last.plus(Duration::from_micros(1));
    let second = store.apply(told(2, after)).await.unwrap();
    assert_eq!((second.repeated, second.messages[0].seq), (false, 2));
    let again = store.apply(told(2, after.plus(IDEMPOTENCY_KEPT))).await.unwrap();
    assert_eq!(again, replayed(&second));
}

async fn old_keys_do_not_pile_up_in_the_way_of_new_ones(store: Port) {
    let scope = scope("a");
    for n in 0..200 {
        store.apply(told(&scope, "hello", key(n, 1))).await.unwrap();
    }
    let later = at(0).plus(IDEMPOTENCY_KEPT * 2);
    for n in 0..200 {
        // Some of them were removed meanwhile, and some not.
        let told = at_time(told(&scope, "hello", key(n, 2)), later);
        assert!(!store.apply(told).await.unwrap().repeated, "{n}");
    }
    for n in 0..200 {
        let told = at_time(told(&scope, "hello", key(n, 2)), later);
        assert!(store.apply(told).await.unwrap().repeated, "{n}");
    }
}
