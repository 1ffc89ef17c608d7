//! Claiming jobs.

use std::collections::BTreeSet;
use std::time::Duration;

use throughline_core::Scope;
use throughline_core::job::{JobState, NewJob, Outcome};
use throughline_core::ports::{Store, Write};
use throughline_core::time::Timestamp;

use super::super::runner::Scenario;
use super::scenarios;
use super::support::{Port, jobs};
use crate::build::{at, batch, job, scope};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["leases":
    nothing_is_claimed_from_an_empty_queue,
    higher_priority_goes_first_then_the_longer_due,
    what_is_not_due_waits,
    only_the_kinds_asked_for_are_claimed,
    at_most_the_limit_is_claimed,
    a_lease_counts_as_an_attempt,
    a_leased_job_is_not_claimed_again,
    a_lease_that_passed_is_due_again,
    jobs_of_all_scopes_are_claimed,
    concurrent_callers_never_get_one_job,
];

const MINUTE: Duration = Duration::from_secs(60);

async fn enqueue(store: &Port, scope: &Scope, job: NewJob) {
    store.apply(batch(scope).with(Write::EnqueueJob(job))).await.unwrap();
}

async fn claimed(store: &Port, now: Timestamp, limit: usize) -> Vec<String> {
    let jobs = store.claim_jobs(&["embed"], now, MINUTE, limit).await.unwrap();
    jobs.into_iter().map(|job| job.subject).collect()
}

async fn nothing_is_claimed_from_an_empty_queue(store: Port) {
    assert_eq!(claimed(&store, at(0), 5).await, [""; 0]);
}

async fn higher_priority_goes_first_then_the_longer_due(store: Port) {
    let queue = [
        ("low", -1, 1),
        ("late", 5, 9),
        ("first", 5, 3),
        ("urgent", 30, 8),
        ("lowest", i16::MIN, 0),
        ("top", i16::MAX, 9),
    ];
    for (subject, priority, due) in queue {
        let new = NewJob { priority, due_at: at(due), ..job("embed", subject) };
        enqueue(&store, &scope("a"), new).await;
    }
    let order = ["top", "urgent", "first", "late", "low", "lowest"];
    assert_eq!(claimed(&store, at(10), 4).await, order[..4]);
    assert_eq!(claimed(&store, at(10), 4).await, order[4..]);
}

async fn what_is_not_due_waits(store: Port) {
    let later = NewJob { due_at: at(100), priority: 100, ..job("embed", "later") };
    enqueue(&store, &scope("a"), later).await;
    enqueue(&store, &scope("a"), job("embed", "now")).await;
    assert_eq!(claimed(&store, at(99), 5).await, ["now"]);
    assert_eq!(claimed(&store, at(100), 5).await, ["later"]);
}

async fn only_the_kinds_asked_for_are_claimed(store: Port) {
    for kind in ["embed", "summarize", "erase"] {
        enqueue(&store, &scope("a"), job(kind, kind)).await;
    }
    let claim = async |kinds: &[&str]| {
        let jobs = store.claim_jobs(kinds, at(1), MINUTE, 9).await.unwrap();
        let mut kinds: Vec<String> = jobs.into_iter().map(|job| job.kind).collect();
        kinds.sort();
        kinds
    };
    assert_eq!(claim(&[]).await, [""; 0]);
    assert_eq!(claim(&["unknown", "Embed"]).await, [""; 0]);
    assert_eq!(claim(&["erase", "embed"]).await, ["embed", "erase"]);
    assert_eq!(claim(&["erase", "embed", "summarize"]).await, ["summarize"]);
}

async fn at_most_the_limit_is_claimed(store: Port) {
    for n in 0..7 {
        enqueue(&store, &scope("a"), job("embed", &format!("s{n}"))).await;
    }
    for expected in [3, 3, 1, 0] {
        assert_eq!(claimed(&store, at(1), 3).await.len(), expected);
    }
    assert_eq!(claimed(&store, at(1_000), 0).await, [""; 0]);
}

async fn a_lease_counts_as_an_attempt(store: Port) {
    enqueue(&store, &scope("a"), job("embed", "s1")).await;
    let claimed = store.claim_jobs(&["embed"], at(1), MINUTE, 5).await.unwrap();
    assert_eq!(claimed.len(), 1);
    assert_eq!((claimed[0].state, claimed[0].attempts), (JobState::Running, 1));
    assert_eq!(claimed[0].due_at, at(61), "until when the lease holds");
    assert_eq!(jobs(&store, &scope("a")).await, claimed, "what is returned is what is held");
}

async fn a_leased_job_is_not_claimed_again(store: Port) {
    enqueue(&store, &scope("a"), job("embed", "s1")).await;
    assert_eq!(claimed(&store, at(1), 5).await, ["s1"]);
    for now in [1, 30, 60] {
        assert_eq!(claimed(&store, at(now), 5).await, [""; 0], "{now}");
    }
}

async fn a_lease_that_passed_is_due_again(store: Port) {
    enqueue(&store, &scope("a"), job("embed", "s1")).await;
    assert_eq!(claimed(&store, at(1), 5).await, ["s1"]);
    let again = store.claim_jobs(&["embed"], at(62), MINUTE, 5).await.unwrap();
    assert_eq!((again.len(), again[0].attempts), (1, 2));
    assert_eq!(again[0].due_at, at(122));
    let done = Write::FinishJob(again[0].id, Outcome::Done);
    store.apply(batch(&scope("a")).with(done)).await.unwrap();
    assert_eq!(claimed(&store, at(1_000), 5).await, [""; 0]);
}

async fn jobs_of_all_scopes_are_claimed(store: Port) {
    let scopes = [
        scope("a"),
        scope("b"),
        Scope::new("other", "a", None).unwrap(),
        Scope::new("acme", "a", Some("alfred")).unwrap(),
    ];
    for scope in &scopes {
        enqueue(&store, scope, job("embed", "s1")).await;
    }
    let claimed = store.claim_jobs(&["embed"], at(1), MINUTE, 9).await.unwrap();
    let of: BTreeSet<Scope> = claimed.into_iter().map(|job| job.scope).collect();
    assert_eq!(of, scopes.into_iter().collect());
}

async fn concurrent_callers_never_get_one_job(store: Port) {
    const JOBS: usize = 60;
    for n in 0..JOBS {
        let user = scope(&format!("user-{}", n % 4));
        enqueue(&store, &user, job("embed", &format!("s{n}"))).await;
    }
    let worker = |store: Port| async move {
        let mut mine = Vec::new();
        loop {
            let claimed = store.claim_jobs(&["embed"], at(1), MINUTE, 3).await.unwrap();
            if claimed.is_empty() {
                return mine;
            }
            mine.extend(claimed.into_iter().map(|job| job.id));
        }
    };
    let workers: Vec<_> = (0..8).map(|_| tokio::spawn(worker(store.clone()))).collect();
    let mut all = Vec::new();
    for worker in workers {
        all.extend(worker.await.unwrap());
    }
    assert_eq!(all.len(), JOBS);
    assert_eq!(all.into_iter().collect::<BTreeSet<_>>().len(), JOBS, "each of them once");
}
