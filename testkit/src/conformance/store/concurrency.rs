//! Writers at the same time: nothing is lost, nothing is doubled, and numbers have no gap.

use std::collections::BTreeSet;

use throughline_core::fact::FactStatus;
use throughline_core::index::UnitKey;
use throughline_core::ports::{
    AppliedMessage, Precondition, RecordKey, SOURCES_READ, Store, Write,
};
use throughline_core::scope::Profile;

use super::super::runner::Scenario;
use super::scenarios;
use super::support::{Port, facts, head, jobs, messages, put_one, usage};
use crate::build::{append, at, batch, fact, job, message, say, scope, session, slot_fact};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["concurrency":
    sequence_numbers_have_no_gap,
    one_session_keeps_every_message,
    what_is_acknowledged_is_read_by_anyone,
    equal_appends_are_one_message,
    one_of_many_creates_what_must_be_absent,
    read_change_write_loses_no_change,
    restatements_all_count,
    statements_of_a_slot_leave_one_value,
    a_job_is_enqueued_once,
    a_batch_that_fails_fails_alone,
];

const TASKS: usize = 8;

/// Runs `work` once for each task, all at the same time, and gives what they returned.
async fn together<T: Send + 'static, W: Future<Output = T> + Send + 'static>(
    store: &Port,
    work: impl Fn(Port, usize) -> W,
) -> Vec<T> {
    let tasks: Vec<_> = (0..TASKS).map(|task| tokio::spawn(work(store.clone(), task))).collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.unwrap());
    }
    results
}

async fn sequence_numbers_have_no_gap(store: Port) {
    let applied = together(&store, |store, task| async move {
        let of = format!("s{task}");
        let mut mine: Vec<AppliedMessage> = Vec::new();
        for n in 0..100 {
            let said = message(&format!("task {task} says {n}"));
            mine.push(put_one(&store, &scope("a"), &of, said).await);
        }
        mine
    })
    .await;
    for mine in &applied {
        assert!(mine.is_sorted_by(|a, b| a.seq < b.seq), "one writer's order is kept");
    }
    let mut seqs: Vec<u64> = applied.iter().flatten().map(|message| message.seq).collect();
    seqs.sort_unstable();
    assert_eq!(seqs, (1..=800).collect::<Vec<u64>>());
    for (task, mine) in applied.iter().enumerate() {
        let held = messages(&store, &scope("a"), &format!("s{task}")).await;
        let held: Vec<_> = held.iter().map(|m| (m.id, m.seq, m.position)).collect();
        let expected: Vec<_> = mine.iter().map(|m| (m.id, m.seq, m.position)).collect();
        assert_eq!(held, expected, "every acknowledged message is read back");
    }
    let mut numbers = BTreeSet::new();
    for task in 0..TASKS {
        numbers.insert(head(&store, &scope("a"), &format!("s{task}")).await.number);
    }
    assert_eq!(numbers, (1..=8).collect());
}

async fn one_session_keeps_every_message(store: Port) {
    let applied = together(&store, |store, task| async move {
        let mut mine = Vec::new();
        for n in 0..40 {
            let said = message(&format!("task {task} says {n}"));
            mine.push(put_one(&store, &scope("a"), "s1", said).await);
        }
        mine
    })
    .await;
    let mut expected: Vec<_> =
        applied.iter().flatten().map(|m| (m.position, m.seq, m.id)).collect();
    expected.sort_unstable();
    let positions: Vec<u32> = expected.iter().map(|(position, ..)| *position).collect();
    assert_eq!(positions, (0..320).collect::<Vec<u32>>());
    let held = messages(&store, &scope("a"), "s1").await;
    let held: Vec<_> = held.iter().map(|m| (m.position, m.seq, m.id)).collect();
    assert_eq!(held, expected, "positions and sequence numbers grow together");
    let head = head(&store, &scope("a"), "s1").await;
    assert_eq!((head.number, head.messages, head.next_position), (1, 320, 320));
    let counted = usage(&store, &scope("a")).await;
    assert_eq!((counted.len(), counted[0].1.messages), (1, 320));
    assert_eq!(store.totals(&scope("a")).await.unwrap().messages, 320);
}

async fn what_is_acknowledged_is_read_by_anyone(store: Port) {
    together(&store, |store, task| async move {
        let number = |of: &str| {
            let (store, of) = (store.clone(), of.to_owned());
            async move { head(&store, &scope("a"), &of).await.number }
        };
        for n in 0..20 {
            let of = format!("s{}", (task + n) % 3);
            let applied = put_one(&store, &scope("a"), &of, message(&format!("{task} {n}"))).await;
            let key = UnitKey::message(number(&of).await, applied.position);
            let found = store.messages_at(&scope("a"), &[key]).await.unwrap();
            assert_eq!(found.len(), 1);
            assert_eq!(found[0].1.id, applied.id);
            assert!(store.totals(&scope("a")).await.unwrap().last_seq >= applied.seq);
        }
    })
    .await;
}

async fn equal_appends_are_one_message(store: Port) {
    for round in 0..10 {
        let applied = together(&store, |store, _| async move {
            let said = say(&format!("round {round}")).external(&format!("x{round}")).build();
            put_one(&store, &scope("a"), "s1", said).await
        })
        .await;
        let first = applied.iter().filter(|message| !message.replayed).count();
        assert_eq!(first, 1, "one of them is the first");
        let identities: BTreeSet<_> = applied.iter().map(|m| (m.id, m.seq, m.position)).collect();
        assert_eq!(identities.len(), 1, "all are told the same identity");
    }
    assert_eq!(store.totals(&scope("a")).await.unwrap().messages, 10);
}

async fn one_of_many_creates_what_must_be_absent(store: Port) {
    for round in 0..10 {
        let won = together(&store, |store, task| async move {
            let of = format!("s{round}");
            let absent = Precondition::IfAbsent(RecordKey::Session(session(&of)));
            let first = batch(&scope("a"))
                .with_precondition(absent)
                .with(append(&of, message(&format!("task {task}"))));
            match store.apply(first).await {
                Ok(_) => true,
                Err(error) => {
                    assert!(error.is_lost_race(), "{error:?}");
                    false
                }
            }
        })
        .await;
        assert_eq!(won.into_iter().filter(|won| *won).count(), 1);
        assert_eq!(head(&store, &scope("a"), &format!("s{round}")).await.messages, 1);
    }
}

async fn read_change_write_loses_no_change(store: Port) {
    together(&store, |store, _| async move {
        let mut left = 5;
        while left > 0 {
            let held = store.profile(&scope("a")).await.unwrap();
            let version = held.as_ref().map_or(0, |profile| profile.version);
            let precondition = match held {
                Some(_) => Precondition::IfVersion(RecordKey::Profile, version),
                None => Precondition::IfAbsent(RecordKey::Profile),
            };
            let next = Profile { version: version + 1, ..Profile::default() };
            let change =
                batch(&scope("a")).with_precondition(precondition).with(Write::PutProfile(next));
            match store.apply(change).await {
                Ok(_) => left -= 1,
                Err(error) => assert!(error.is_lost_race(), "{error:?}"),
            }
        }
    })
    .await;
    let held = store.profile(&scope("a")).await.unwrap().unwrap();
    assert_eq!(held.version, 40);
}

async fn restatements_all_count(store: Port) {
    together(&store, |store, task| async move {
        for n in 0..10 {
            let said = say(&format!("{task} {n}")).fact(fact("Bees hum", at(n))).build();
            put_one(&store, &scope("a"), &format!("s{task}"), said).await;
        }
    })
    .await;
    let held = facts(&store, &scope("a")).await;
    assert_eq!(held.len(), 1);
    assert_eq!((held[0].weight, held[0].observed_at), (80.0, at(9)));
    let sources: BTreeSet<_> = held[0].sources.iter().collect();
    assert_eq!((held[0].sources.len(), sources.len()), (SOURCES_READ, SOURCES_READ));
}

async fn statements_of_a_slot_leave_one_value(store: Port) {
    together(&store, |store, task| async move {
        for n in 0..10 {
            let when = i64::try_from(n * TASKS + task).unwrap();
            let value = slot_fact("user", "port", &format!("{when}"), at(when));
            let said = say(&format!("{task} {n}")).fact(value).build();
            put_one(&store, &scope("a"), &format!("s{task}"), said).await;
        }
    })
    .await;
    let held = facts(&store, &scope("a")).await;
    assert_eq!(held.len(), 80);
    let active: Vec<_> = held.iter().filter(|f| f.status == FactStatus::Active).collect();
    assert_eq!(active.len(), 1);
    assert_eq!(active[0].value.as_deref(), Some("79"), "the latest stated");
}

async fn a_job_is_enqueued_once(store: Port) {
    together(&store, |store, _| async move {
        for n in 0..5 {
            let write = Write::EnqueueJob(job("embed", &format!("s{n}")));
            store.apply(batch(&scope("a")).with(write)).await.unwrap();
        }
    })
    .await;
    assert_eq!(jobs(&store, &scope("a")).await.len(), 5);
}

/// Whatever an adapter commits together, each batch stands or falls by itself.
async fn a_batch_that_fails_fails_alone(store: Port) {
    put_one(&store, &scope("a"), "s1", say("first").external("x1").build()).await;
    let kept = together(&store, |store, task| async move {
        let mut kept = 0;
        for n in 0..20 {
            let good = append("s1", message(&format!("task {task} says {n}")));
            let bad = append("s1", say("other content").external("x1").build());
            let fails = (task + n) % 3 == 0;
            let both = batch(&scope("a")).with(good);
            let both = if fails { both.with(bad) } else { both };
            assert_eq!(store.apply(both).await.is_err(), fails);
            kept += u64::from(!fails);
        }
        kept
    })
    .await;
    let expected = 1 + kept.iter().sum::<u64>();
    let held = messages(&store, &scope("a"), "s1").await;
    let seqs: Vec<u64> = held.iter().map(|message| message.seq).collect();
    assert_eq!(seqs, (1..=expected).collect::<Vec<u64>>());
}
