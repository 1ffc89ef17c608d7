//! The job queue.

use std::time::Duration;

use async_trait::async_trait;
use throughline_core::ids::JobId;
use throughline_core::job::{
    Job, JobState, MAX_ATTEMPTS, NewJob, Outcome, after_attempt, not_running,
};
use throughline_core::page::{Page, PageRequest};
use throughline_core::ports::JobRepo;
use throughline_core::time::Timestamp;
use throughline_core::{Result, Scope};

use super::MemoryStore;
use super::sessions::page;

fn is_open(job: &Job) -> bool {
    matches!(job.state, JobState::Queued | JobState::Running)
}

pub(super) fn enqueue(jobs: &mut Vec<Job>, scope: &Scope, new: &NewJob) {
    let is_same = |job: &Job| {
        is_open(job) && job.scope == *scope && job.kind == new.kind && job.subject == new.subject
    };
    if jobs.iter().any(is_same) {
        return;
    }
    jobs.push(Job {
        id: new.id,
        scope: scope.clone(),
        kind: new.kind.clone(),
        subject: new.subject.clone(),
        priority: new.priority,
        state: JobState::Queued,
        attempts: 0,
        due_at: new.due_at,
        error: None,
    });
}

pub(super) fn finish(
    jobs: &mut [Job],
    scope: &Scope,
    id: JobId,
    outcome: &Outcome,
    now: Timestamp,
) -> Result<()> {
    let running =
        |job: &&mut Job| job.id == id && job.scope == *scope && job.state == JobState::Running;
    let job = jobs.iter_mut().find(running).ok_or_else(not_running)?;
    (job.state, job.due_at) = after_attempt(outcome, job.attempts, now);
    job.error = outcome.reason().map(str::to_owned);
    Ok(())
}

#[async_trait]
impl JobRepo for MemoryStore {
    async fn claim_jobs(
        &self,
        kinds: &[&str],
        now: Timestamp,
        lease: Duration,
        limit: usize,
    ) -> Result<Vec<Job>> {
        let mut state = self.state();
        let of_kinds = |job: &Job| kinds.contains(&job.kind.as_str());
        for job in state.jobs.iter_mut().filter(|job| of_kinds(job) && job.due_at <= now) {
            if job.state == JobState::Running && job.attempts >= MAX_ATTEMPTS {
                job.state = JobState::Failed;
                job.error = Some("its last attempt never ended".to_owned());
            }
        }
        let mut due: Vec<&mut Job> = state
            .jobs
            .iter_mut()
            .filter(|job| is_open(job) && job.due_at <= now && of_kinds(job))
            .collect();
        // The sort is stable: jobs that are equal in both stay in the order of the queue.
        due.sort_by(|a, b| b.priority.cmp(&a.priority).then(a.due_at.cmp(&b.due_at)));
        let take = |job: &mut Job| {
            job.state = JobState::Running;
            job.attempts += 1;
            job.due_at = now.plus(lease);
            job.clone()
        };
        Ok(due.into_iter().take(limit).map(take).collect())
    }

    async fn await_jobs(&self, patience: Duration) -> Result<()> {
        // In time or not: the caller looks.
        let _ = tokio::time::timeout(patience, self.enqueued.notified()).await;
        Ok(())
    }

    async fn jobs(&self, scope: &Scope, request: &PageRequest) -> Result<Page<Job>> {
        let state = self.state();
        let rows = (1..).zip(&state.jobs).filter(|(_, job)| job.scope == *scope);
        let rows = rows.map(|(ordinal, job): (u64, &Job)| (ordinal, job.clone()));
        Ok(page(rows, request))
    }
}
