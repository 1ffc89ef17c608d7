//! Enqueueing and finishing jobs.

use std::time::{Duration, Instant};

use throughline_core::ids::JobId;
use throughline_core::job::{Job, JobState, MAX_ATTEMPTS, NewJob, Outcome, backoff};
use throughline_core::ports::{Store, Write};
use throughline_core::time::Timestamp;
use throughline_core::{ErrorKind, Scope};

use super::super::runner::Scenario;
use super::scenarios;
use super::support::{Port, jobs};
use crate::build::{at, batch, id, job, scope};

pub(super) const TABLE: &[Scenario<dyn Store>] = scenarios!["jobs":
    a_new_job_is_queued,
    a_job_is_enqueued_once_while_queued,
    a_job_is_enqueued_once_while_running,
    job_is_put_off_by_another_in_its_place,
    a_job_that_ended_may_be_enqueued_again,
    another_kind_subject_or_scope_is_another_job,
    a_job_that_is_done_stays_done,
    a_skipped_job_tells_why,
    a_failed_attempt_is_tried_again_after_a_wait,
    a_job_is_given_up_after_its_last_attempt,
    finishing_a_job_that_is_not_running_is_not_found,
    finishing_is_of_the_scope,
    a_wait_ends_with_its_patience,
    an_enqueue_ends_a_wait,
    an_enqueue_before_the_wait_is_not_missed,
    an_enqueue_before_the_first_wait_is_not_missed,
    an_enqueue_wakes_one_of_many_at_least,
];

const MINUTE: Duration = Duration::from_secs(60);

async fn enqueue(store: &Port, scope: &Scope, job: NewJob) -> JobId {
    let id = job.id;
    store.apply(batch(scope).with(Write::EnqueueJob(job))).await.unwrap();
    id
}

async fn claim(store: &Port, now: Timestamp) -> Vec<Job> {
    store.claim_jobs(&["embed"], now, MINUTE, 10).await.unwrap()
}

async fn finish(store: &Port, id: JobId, outcome: Outcome, now: Timestamp) {
    let mut batch = batch(&scope("a")).with(Write::FinishJob(id, outcome));
    batch.now = now;
    store.apply(batch).await.unwrap();
}

async fn only(store: &Port) -> Job {
    let mut jobs = jobs(store, &scope("a")).await;
    assert_eq!(jobs.len(), 1);
    jobs.remove(0)
}

async fn a_new_job_is_queued(store: Port) {
    let new = NewJob { priority: -7, due_at: at(99), ..job("embed", "session é/1") };
    enqueue(&store, &scope("a"), new.clone()).await;
    let expected = Job {
        id: new.id,
        scope: scope("a"),
        kind: new.kind,
        subject: new.subject,
        priority: -7,
        state: JobState::Queued,
        attempts: 0,
        due_at: at(99),
        error: None,
    };
    assert_eq!(only(&store).await, expected);
}

async fn a_job_is_enqueued_once_while_queued(store: Port) {
    let first = enqueue(&store, &scope("a"), job("embed", "s1")).await;
    let again = NewJob { priority: 9, due_at: at(50), ..job("embed", "s1") };
    enqueue(&store, &scope("a"), again).await;
    let twice = batch(&scope("a"))
        .with(Write::EnqueueJob(job("embed", "s1")))
        .with(Write::EnqueueJob(job("embed", "s1")));
    store.apply(twice).await.unwrap();
    let held = only(&store).await;
    assert_eq!((held.id, held.priority, held.due_at), (first, job("", "").priority, at(0)));
}

async fn a_job_is_enqueued_once_while_running(store: Port) {
    let first = enqueue(&store, &scope("a"), job("embed", "s1")).await;
    assert_eq!(claim(&store, at(1)).await.len(), 1);
    enqueue(&store, &scope("a"), job("embed", "s1")).await;
    let held = only(&store).await;
    assert_eq!((held.id, held.state), (first, JobState::Running));
}

/// Writes of a batch are applied in order.
async fn job_is_put_off_by_another_in_its_place(store: Port) {
    let first = enqueue(&store, &scope("a"), job("embed", "all")).await;
    let later = NewJob { due_at: at(900), ..job("embed", "all") };
    let put_off =
        batch(&scope("a")).with(Write::DropJob(first)).with(Write::EnqueueJob(later.clone()));
    store.apply(put_off).await.unwrap();
    let held = only(&store).await;
    assert_eq!((held.id, held.due_at), (later.id, at(900)));
    assert!(claim(&store, at(899)).await.is_empty());
    assert_eq!(claim(&store, at(900)).await.len(), 1);
}

async fn a_job_that_ended_may_be_enqueued_again(store: Port) {
    for outcome in [Outcome::Done, Outcome::Skipped("a quota".to_owned())] {
        let first = enqueue(&store, &scope("a"), job("embed", "s1")).await;
        assert_eq!(claim(&store, at(1)).await.len(), 1);
        finish(&store, first, outcome, at(2)).await;
    }
    let mut now = at(10);
    let failing = enqueue(&store, &scope("a"), job("embed", "s1")).await;
    for _ in 0..MAX_ATTEMPTS {
        assert_eq!(claim(&store, now).await.len(), 1);
        finish(&store, failing, Outcome::Failed("no answer".to_owned()), now).await;
        now = now.plus(Duration::from_secs(3_600));
    }
    enqueue(&store, &scope("a"), job("embed", "s1")).await;
    let states: Vec<JobState> = jobs(&store, &scope("a")).await.iter().map(|j| j.state).collect();
    let expected = [JobState::Done, JobState::Skipped, JobState::Failed, JobState::Queued];
    assert_eq!(states, expected);
}

async fn another_kind_subject_or_scope_is_another_job(store: Port) {
    for (user, kind, subject) in [
        ("a", "embed", "s1"),
        ("a", "embed", "s2"),
        ("a", "summarize", "s1"),
        ("b", "embed", "s1"),
        ("a", "embed", "S1"),
    ] {
        enqueue(&store, &scope(user), job(kind, subject)).await;
    }
    assert_eq!(jobs(&store, &scope("a")).await.len(), 4);
    assert_eq!(jobs(&store, &scope("b")).await.len(), 1);
}

async fn a_job_that_is_done_stays_done(store: Port) {
    let id = enqueue(&store, &scope("a"), job("embed", "s1")).await;
    claim(&store, at(1)).await;
    finish(&store, id, Outcome::Done, at(2)).await;
    let held = only(&store).await;
    assert_eq!((held.state, held.attempts), (JobState::Done, 1));
    assert_eq!(claim(&store, at(1_000_000)).await, []);
}

async fn a_skipped_job_tells_why(store: Port) {
    let id = enqueue(&store, &scope("a"), job("embed", "s1")).await;
    claim(&store, at(1)).await;
    finish(&store, id, Outcome::Skipped("over the quota".to_owned()), at(2)).await;
    let held = only(&store).await;
    assert_eq!(held.state, JobState::Skipped);
    assert_eq!(held.error.as_deref(), Some("over the quota"));
    assert_eq!(claim(&store, at(1_000_000)).await, []);
}

async fn a_failed_attempt_is_tried_again_after_a_wait(store: Port) {
    let id = enqueue(&store, &scope("a"), job("embed", "s1")).await;
    let mut now = at(1);
    for attempt in 1..MAX_ATTEMPTS {
        assert_eq!(claim(&store, now).await[0].attempts, attempt);
        finish(&store, id, Outcome::Failed(format!("failure {attempt}")), now).await;
        let held = only(&store).await;
        assert_eq!((held.state, held.attempts), (JobState::Queued, attempt));
        assert_eq!(held.due_at, now.plus(backoff(attempt)));
        assert_eq!(held.error, Some(format!("failure {attempt}")));
        let before = held.due_at.as_micros() - 1;
        assert_eq!(claim(&store, Timestamp::from_micros(before)).await, []);
        now = held.due_at;
    }
}

async fn a_job_is_given_up_after_its_last_attempt(store: Port) {
    let id = enqueue(&store, &scope("a"), job("embed", "s1")).await;
    let mut now = at(1);
    for _ in 0..MAX_ATTEMPTS {
        assert_eq!(claim(&store, now).await.len(), 1);
        finish(&store, id, Outcome::Failed("no answer".to_owned()), now).await;
        now = now.plus(Duration::from_secs(3_600));
    }
    let held = only(&store).await;
    assert_eq!((held.state, held.attempts), (JobState::Failed, MAX_ATTEMPTS));
    assert_eq!(held.error.as_deref(), Some("no answer"));
    assert_eq!(claim(&store, at(1_000_000)).await, []);
}

async fn not_found(store: &Port, scope: &Scope, id: JobId) {
    let write = Write::FinishJob(id, Outcome::Done);
    let error = store.apply(batch(scope).with(write)).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(!error.is_lost_race());
}

async fn finishing_a_job_that_is_not_running_is_not_found(store: Port) {
    let scope = scope("a");
    not_found(&store, &scope, JobId::from_uuid(id())).await;
    let queued = enqueue(&store, &scope, job("embed", "s1")).await;
    not_found(&store, &scope, queued).await;
    claim(&store, at(1)).await;
    finish(&store, queued, Outcome::Failed("once".to_owned()), at(2)).await;
    not_found(&store, &scope, queued).await;
    claim(&store, at(1_000)).await;
    finish(&store, queued, Outcome::Done, at(1_001)).await;
    not_found(&store, &scope, queued).await;
    assert_eq!(only(&store).await.state, JobState::Done);
}

async fn finishing_is_of_the_scope(store: Port) {
    let id = enqueue(&store, &scope("a"), job("embed", "s1")).await;
    claim(&store, at(1)).await;
    not_found(&store, &scope("b"), id).await;
    let workspace = Scope::new("acme", "a", Some("w")).unwrap();
    not_found(&store, &workspace, id).await;
    assert_eq!(only(&store).await.state, JobState::Running);
}

/// Longer than any scenario takes.
const LONG: Duration = Duration::from_secs(100);

/// Waits; how long that took.
async fn wait(store: &Port, patience: Duration) -> Duration {
    let begun = Instant::now();
    store.await_jobs(patience).await.unwrap();
    begun.elapsed()
}

/// Waits until nothing is left of what a store may tell for no reason.
async fn quiet(store: &Port) {
    const SHORT: Duration = Duration::from_millis(100);
    let mut early = 0;
    while wait(store, SHORT).await < SHORT {
        early += 1;
        assert!(early < 20, "the store always returns early");
    }
}

async fn a_wait_ends_with_its_patience(store: Port) {
    quiet(&store).await;
    let waited = wait(&store, Duration::from_millis(10)).await;
    assert!(waited < LONG / 2, "{waited:?}");
}

async fn an_enqueue_ends_a_wait(store: Port) {
    quiet(&store).await;
    // The wait is begun first.
    let waiting = wait(&store, LONG);
    let enqueued = async { enqueue(&store, &scope("a"), job("embed", "s1")).await };
    let (waited, _) = tokio::join!(waiting, enqueued);
    assert!(waited < LONG / 2, "{waited:?}");
    assert_eq!(claim(&store, at(1)).await.len(), 1, "what it was woken for is there");
}

async fn an_enqueue_before_the_wait_is_not_missed(store: Port) {
    quiet(&store).await;
    for n in 0..3 {
        enqueue(&store, &scope("a"), job("embed", &format!("s{n}"))).await;
        let waited = wait(&store, LONG).await;
        assert!(waited < LONG / 2, "{n}: {waited:?}");
    }
}

async fn an_enqueue_before_the_first_wait_is_not_missed(store: Port) {
    enqueue(&store, &scope("a"), job("embed", "s1")).await;
    let waited = wait(&store, LONG).await;
    assert!(waited < LONG / 2, "{waited:?}");
}

async fn an_enqueue_wakes_one_of_many_at_least(store: Port) {
    const PATIENCE: Duration = Duration::from_secs(2);
    quiet(&store).await;
    let waits = async || wait(&store, PATIENCE).await;
    let enqueued = async { enqueue(&store, &scope("a"), job("embed", "s1")).await };
    let (a, b, _) = tokio::join!(waits(), waits(), enqueued);
    assert!(a.min(b) < PATIENCE, "one is woken: {a:?}, {b:?}");
    assert!(a.max(b) < PATIENCE * 5, "none waits for ever: {a:?}, {b:?}");
}
