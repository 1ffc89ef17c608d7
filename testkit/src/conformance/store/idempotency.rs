//! A message appended again under its caller's id is the same message.

use throughline_core::entity::EntityKind;
use throughline_core::ports::{AppliedMessage, Store, Write};
use throughline_core::session::PreparedMessage;
use throughline_core::{Error, ErrorKind};

use super::super::runner::Scenario;
use super::scenarios;
use super::support::{Port, Snapshot, contents, head, messages, put, put_one};
use crate::build::{append, at, batch, fact, job, message, say, scope, slot_fact};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["idempotency":
    a_replay_returns_the_first_identity,
    a_replay_doubles_nothing,
    a_replay_leaves_the_session_as_it_is,
    a_replay_stands_beside_new_messages,
    a_repeat_within_one_batch_is_a_replay,
    other_content_is_a_conflict_and_nothing_is_applied,
    other_content_within_one_batch_is_a_conflict,
    another_session_is_another_message,
    another_scope_is_another_message,
    without_the_callers_id_equal_content_is_said_twice,
    a_replay_is_known_among_many,
];

/// Prepared anew each time, as a caller that tries again does: ids differ, the hash does not.
fn told() -> PreparedMessage {
    say("The harbor kettle whistles at 8443")
        .external("x1")
        .fact(slot_fact("user", "kettle", "red", at(1)))
        .fact(fact("Whistling is loud", at(1)))
        .entity(EntityKind::Id, "8443")
        .build()
}

fn conflict(error: &Error) {
    assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
    assert!(!error.is_lost_race(), "building the batch again cannot help");
}

async fn a_replay_returns_the_first_identity(store: Port) {
    let scope = scope("a");
    put_one(&store, &scope, "s1", message("before")).await;
    let first = put_one(&store, &scope, "s1", told()).await;
    put_one(&store, &scope, "s1", message("after")).await;
    assert!(!first.replayed);
    for _ in 0..2 {
        let again = put_one(&store, &scope, "s1", told()).await;
        let expected = AppliedMessage { replayed: true, ..first };
        assert_eq!(again, expected);
    }
}

async fn a_replay_doubles_nothing(store: Port) {
    let scope = scope("a");
    put_one(&store, &scope, "s1", told()).await;
    let before = Snapshot::of(&store, &scope).await.without_versions();
    put_one(&store, &scope, "s1", told()).await;
    assert_eq!(Snapshot::of(&store, &scope).await.without_versions(), before);
    assert_eq!((before.messages.len(), before.entities.len()), (1, 1));
    assert_eq!(before.facts.iter().map(|fact| fact.weight).sum::<f32>(), 2.0);
}

async fn a_replay_leaves_the_session_as_it_is(store: Port) {
    let scope = scope("a");
    put_one(&store, &scope, "s1", told()).await;
    let before = head(&store, &scope, "s1").await;
    put_one(&store, &scope, "s1", told()).await;
    let after = head(&store, &scope, "s1").await;
    assert_eq!(after, before, "a batch that writes nothing to it gives it no version");
}

async fn a_replay_stands_beside_new_messages(store: Port) {
    let scope = scope("a");
    let first = put_one(&store, &scope, "s1", told()).await;
    let said = vec![message("new"), told(), message("newer")];
    let applied = put(&store, &scope, "s1", said).await;
    let replayed: Vec<bool> = applied.iter().map(|message| message.replayed).collect();
    assert_eq!(replayed, [false, true, false]);
    assert_eq!((applied[1].id, applied[1].seq), (first.id, 1));
    assert_eq!((applied[0].seq, applied[2].seq), (2, 3));
    assert_eq!((applied[0].position, applied[2].position), (1, 2));
    let held = messages(&store, &scope, "s1").await;
    assert_eq!(contents(&held)[1..], ["new", "newer"]);
}

async fn a_repeat_within_one_batch_is_a_replay(store: Port) {
    let scope = scope("a");
    let applied = put(&store, &scope, "s1", vec![told(), told()]).await;
    let expected = AppliedMessage { replayed: true, ..applied[0] };
    assert!(!applied[0].replayed);
    assert_eq!(applied[1], expected);
    assert_eq!(store.totals(&scope).await.unwrap().messages, 1);
}

async fn other_content_is_a_conflict_and_nothing_is_applied(store: Port) {
    let scope = scope("a");
    put_one(&store, &scope, "s1", told()).await;
    let before = Snapshot::of(&store, &scope).await;
    let changed = batch(&scope)
        .with(append("s1", message("first of the batch")))
        .with(append("s2", message("a new session")))
        .with(Write::EnqueueJob(job("embed", "s1")))
        .with(append("s1", say("something else").external("x1").build()));
    conflict(&store.apply(changed).await.unwrap_err());
    assert_eq!(Snapshot::of(&store, &scope).await, before);
}

async fn other_content_within_one_batch_is_a_conflict(store: Port) {
    let scope = scope("a");
    let twice = batch(&scope)
        .with(append("s1", told()))
        .with(append("s1", say("something else").external("x1").build()));
    conflict(&store.apply(twice).await.unwrap_err());
    assert!(Snapshot::of(&store, &scope).await.is_empty());
}

async fn another_session_is_another_message(store: Port) {
    let scope = scope("a");
    let first = put_one(&store, &scope, "s1", told()).await;
    let second = put_one(&store, &scope, "s2", told()).await;
    assert!(!second.replayed);
    assert_ne!(second.id, first.id);
    let other = say("other words").external("x1").build();
    assert!(!put_one(&store, &scope, "s3", other).await.replayed);
    assert_eq!(store.totals(&scope).await.unwrap().messages, 3);
}

async fn another_scope_is_another_message(store: Port) {
    let first = put_one(&store, &scope("a"), "s1", told()).await;
    let second = put_one(&store, &scope("b"), "s1", told()).await;
    assert!(!second.replayed);
    assert_ne!(second.id, first.id);
    assert_eq!((first.seq, second.seq), (1, 1));
}

async fn without_the_callers_id_equal_content_is_said_twice(store: Port) {
    let scope = scope("a");
    let applied = put(&store, &scope, "s1", vec![message("yes"), message("yes")]).await;
    assert!(applied.iter().all(|message| !message.replayed));
    assert_eq!(contents(&messages(&store, &scope, "s1").await), ["yes", "yes"]);
}

async fn a_replay_is_known_among_many(store: Port) {
    let scope = scope("a");
    let numbered = |n: u64| say(&format!("line {n}")).external(&format!("line-{n}")).build();
    let first = put(&store, &scope, "s1", (0..60).map(numbered).collect()).await;
    let again = put(&store, &scope, "s1", (0..70).map(numbered).collect()).await;
    for (first, again) in first.iter().zip(&again) {
        let expected = AppliedMessage { replayed: true, ..*first };
        assert_eq!(*again, expected);
    }
    let new: Vec<u64> = again[60..].iter().map(|message| message.seq).collect();
    assert_eq!(new, (61..=70).collect::<Vec<u64>>());
}
