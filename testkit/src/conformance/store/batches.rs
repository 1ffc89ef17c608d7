//! A batch is applied whole and in order, or not at all.

use throughline_core::ErrorKind;
use throughline_core::entity::EntityKind;
use throughline_core::ids::JobId;
use throughline_core::job::Outcome;
use throughline_core::ports::{Applied, Precondition, RecordKey, Write, WriteBatch};
use throughline_core::scope::Profile;
use throughline_core::usage::{UsageCounters, UsageDay};

use super::super::runner::Scenario;
use super::scenarios;
use super::support::{Port, Snapshot, contents, head, messages, put, put_one};
use crate::build::{append, at, batch, id, job, message, say, scope, session, slot_fact, summary};

pub(super) const TABLE: &[Scenario<dyn throughline_core::ports::Store>] = scenarios!["batches":
    an_empty_batch_changes_nothing,
    a_failing_last_write_leaves_nothing_in_a_new_scope,
    a_failing_last_write_leaves_nothing_beside_what_was_there,
    a_failed_batch_takes_no_sequence_number,
    writes_are_applied_in_order,
    each_append_is_answered_in_order,
    one_batch_writes_to_several_sessions,
    a_summary_may_come_before_its_message,
    later_reads_see_an_applied_batch,
    health_finds_nothing_wrong,
];

fn profile(rules: &str, version: u64) -> Profile {
    Profile { rules: rules.to_owned(), card: "a card".to_owned(), version, updated_at: at(1) }
}

/// One write of each kind, before what fails: there is no such job.
fn doomed(batch: WriteBatch) -> WriteBatch {
    let said = say("The harbor kettle whistles at 8443")
        .fact(slot_fact("user", "kettle", "red", at(9)))
        .entity(EntityKind::Id, "K-8443")
        .build();
    let source = said.id;
    batch
        .with(append("s1", said))
        .with(append("s-new", message("another thread")))
        .with(Write::PutSummary(Box::new(summary("s1", 7, 1, &[source]))))
        .with(Write::PutProfile(profile("never kept", 90)))
        .with(Write::AddUsage(
            UsageDay::of(at(0)),
            UsageCounters { contexts: 5, ..UsageCounters::default() },
        ))
        .with(Write::EnqueueJob(job("embed", "s1")))
        .with(Write::FinishJob(JobId::from_uuid(id()), Outcome::Done))
}

async fn an_empty_batch_changes_nothing(store: Port) {
    let scope = scope("a");
    let applied = store.apply(batch(&scope)).await.unwrap();
    assert_eq!(applied, Applied::default());
    assert!(Snapshot::of(&store, &scope).await.is_empty());
    put_one(&store, &scope, "s1", message("one")).await;
    let before = Snapshot::of(&store, &scope).await;
    store.apply(batch(&scope)).await.unwrap();
    assert_eq!(Snapshot::of(&store, &scope).await, before);
}

async fn a_failing_last_write_leaves_nothing_in_a_new_scope(store: Port) {
    let scope = scope("a");
    let error = store.apply(doomed(batch(&scope))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    let after = Snapshot::of(&store, &scope).await;
    assert!(after.is_empty(), "{after:?}");
}

async fn a_failing_last_write_leaves_nothing_beside_what_was_there(store: Port) {
    let scope = scope("a");
    let held = say("The harbor kettle is blue")
        .fact(slot_fact("user", "kettle", "blue", at(1)))
        .entity(EntityKind::Id, "K-8443")
        .build();
    let before = batch(&scope).with(append("s1", held)).with(Write::PutProfile(profile("kept", 1)));
    store.apply(before).await.unwrap();
    let before = Snapshot::of(&store, &scope).await;
    let error = store.apply(doomed(batch(&scope))).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(!error.is_lost_race(), "only a precondition is a lost race");
    assert_eq!(Snapshot::of(&store, &scope).await, before);
}

async fn a_failed_batch_takes_no_sequence_number(store: Port) {
    let scope = scope("a");
    let first = put_one(&store, &scope, "s1", message("one")).await;
    store.apply(doomed(batch(&scope))).await.unwrap_err();
    let second = put_one(&store, &scope, "s1", message("two")).await;
    assert_eq!((first.seq, second.seq), (1, 2));
    assert_eq!((first.position, second.position), (0, 1));
    let other = put_one(&store, &scope, "s2", message("three")).await;
    assert_eq!(head(&store, &scope, "s2").await.number, 2, "no number is lost");
    assert_eq!(other.seq, 3);
}

async fn writes_are_applied_in_order(store: Port) {
    let scope = scope("a");
    let early = slot_fact("user", "town", "Bergen", at(1));
    let late = slot_fact("user", "town", "Oslo", at(1));
    let writes = batch(&scope)
        .with(append("s1", say("first").fact(early).build()))
        .with(Write::PutProfile(profile("old", 1)))
        .with(append("s1", say("second").fact(late).build()))
        .with(Write::PutProfile(profile("new", 2)))
        .with(append("s1", message("third")));
    store.apply(writes).await.unwrap();
    let held = messages(&store, &scope, "s1").await;
    assert_eq!(contents(&held), ["first", "second", "third"]);
    let seqs: Vec<u64> = held.iter().map(|message| message.seq).collect();
    assert_eq!(seqs, [1, 2, 3]);
    let profile = store.profile(&scope).await.unwrap().unwrap();
    assert_eq!((profile.rules.as_str(), profile.version), ("new", 2));
}

async fn each_append_is_answered_in_order(store: Port) {
    let scope = scope("a");
    let prepared: Vec<_> = ["a b", "c d e", "f"].map(message).into();
    let mixed = batch(&scope)
        .with(append("s1", prepared[0].clone()))
        .with(Write::EnqueueJob(job("embed", "x")))
        .with(append("s2", prepared[1].clone()))
        .with(append("s1", prepared[2].clone()));
    let applied = store.apply(mixed).await.unwrap().messages;
    assert_eq!(applied.len(), 3);
    for (applied, prepared) in applied.iter().zip(&prepared) {
        assert_eq!((applied.id, applied.tokens), (prepared.id, prepared.tokens));
        assert!(!applied.replayed);
    }
    let seqs: Vec<u64> = applied.iter().map(|message| message.seq).collect();
    let positions: Vec<u32> = applied.iter().map(|message| message.position).collect();
    assert_eq!((seqs, positions), (vec![1, 2, 3], vec![0, 0, 1]));
}

async fn one_batch_writes_to_several_sessions(store: Port) {
    let scope = scope("a");
    let mut mixed = batch(&scope);
    for round in 0..4 {
        for to in ["s1", "s2", "s3"] {
            mixed = mixed.with(append(to, message(&format!("{to} {round}"))));
        }
    }
    store.apply(mixed).await.unwrap();
    for (number, of) in (1..).zip(["s1", "s2", "s3"]) {
        let head = head(&store, &scope, of).await;
        assert_eq!((head.number, head.messages, head.next_position), (number, 4, 4));
        let held = messages(&store, &scope, of).await;
        let expected: Vec<String> = (0..4).map(|round| format!("{of} {round}")).collect();
        assert_eq!(contents(&held), expected);
    }
}

async fn a_summary_may_come_before_its_message(store: Port) {
    let scope = scope("a");
    let said = message("one");
    let source = said.id;
    let mixed = batch(&scope)
        .with(Write::PutSummary(Box::new(summary("s1", 1, 1, &[source]))))
        .with(append("s1", said));
    store.apply(mixed).await.unwrap();
    let head = head(&store, &scope, "s1").await;
    assert_eq!((head.messages, head.summarized), (1, 1));
}

async fn later_reads_see_an_applied_batch(store: Port) {
    let scope = scope("a");
    for round in 1..=40_u64 {
        let applied = put(&store, &scope, "s1", vec![message(&format!("round {round}"))]).await;
        let recent = store.recent_messages(&scope, &session("s1"), 1).await.unwrap();
        assert_eq!(recent[0].id, applied[0].id);
        assert_eq!(store.totals(&scope).await.unwrap().last_seq, round);
        let version = head(&store, &scope, "s1").await.version;
        let key = RecordKey::Session(session("s1"));
        let held = batch(&scope).with_precondition(Precondition::IfVersion(key, version));
        store.apply(held).await.unwrap();
    }
}

async fn health_finds_nothing_wrong(store: Port) {
    put(&store, &scope("a"), "s1", vec![message("one"), message("two")]).await;
    for deep in [false, true] {
        let health = store.health(deep).await.unwrap();
        assert_eq!(health.problems, Vec::<String>::new());
        assert!(!health.backend.is_empty());
    }
}
