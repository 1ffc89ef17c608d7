//! Background jobs that survive a crash: states, attempts and backoff.

use std::time::Duration;

use crate::error::{Error, Result};
use crate::ids::JobId;
use crate::scope::Scope;
use crate::time::Timestamp;

/// Attempts before a job has failed for good.
pub const MAX_ATTEMPTS: u32 = 3;
/// Default priority of a job; higher runs first.
pub const DEFAULT_PRIORITY: i16 = 5;

/// Where a job stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum JobState {
    /// Waiting for its time.
    Queued,
    /// Leased by a worker.
    Running,
    /// Finished.
    Done,
    /// Given up after [`MAX_ATTEMPTS`].
    Failed,
    /// Not run, with the reason in `error`, such as a quota.
    Skipped,
}

impl JobState {
    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }
}

impl std::str::FromStr for JobState {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        [Self::Queued, Self::Running, Self::Done, Self::Failed, Self::Skipped]
            .into_iter()
            .find(|state| state.as_str() == text)
            .ok_or_else(|| Error::invalid("unknown job state"))
    }
}

/// A job to enqueue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewJob {
    /// Our id.
    pub id: JobId,
    /// The kind of work, such as `embed`.
    pub kind: String,
    /// The subject; equal kind and subject is one job while it is queued or running.
    pub subject: String,
    /// Higher goes first.
    pub priority: i16,
    /// Not before this.
    pub due_at: Timestamp,
}

/// A job as the queue holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    /// Our id.
    pub id: JobId,
    /// The scope whose rows it may touch.
    pub scope: Scope,
    /// The kind of work.
    pub kind: String,
    /// The subject.
    pub subject: String,
    /// Higher goes first.
    pub priority: i16,
    /// Where it stands.
    pub state: JobState,
    /// Attempts begun.
    pub attempts: u32,
    /// When it is due, or until when its lease holds.
    pub due_at: Timestamp,
    /// Why it last failed or was skipped; no content, no secrets.
    pub error: Option<String>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// It is done.
    Done,
    /// It failed, for this reason; it is tried again while attempts are left.
    Failed(String),
    /// It must not be run, for this reason.
    Skipped(String),
}

impl Outcome {
    /// Why it was not done.
    #[must_use]
    pub fn reason(&self) -> Option<&str> {
        match self {
            Self::Done => None,
            Self::Failed(why) | Self::Skipped(why) => Some(why),
        }
    }
}

/// The error for finishing a job that is not running.
#[must_use]
pub fn not_running() -> Error {
    Error::not_found("the job is not running: its lease may have expired")
}

/// The state after an attempt that was the job's `attempts`-th, and when the next one is due.
#[must_use]
pub fn after_attempt(outcome: &Outcome, attempts: u32, now: Timestamp) -> (JobState, Timestamp) {
    match outcome {
        Outcome::Done => (JobState::Done, now),
        Outcome::Skipped(_) => (JobState::Skipped, now),
        Outcome::Failed(_) if attempts >= MAX_ATTEMPTS => (JobState::Failed, now),
        Outcome::Failed(_) => (JobState::Queued, now.plus(backoff(attempts))),
    }
}

/// Wait after the n-th failed attempt: 5 s, then 25 s, at most ten minutes.
#[must_use]
pub fn backoff(attempts: u32) -> Duration {
    Duration::from_secs(5_u64.saturating_pow(attempts.max(1)).min(600))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_attempts_back_off_and_end() {
        let now = Timestamp::from_micros(0);
        let failed = Outcome::Failed("no answer".into());
        let table = [
            (&Outcome::Done, 1, JobState::Done, 0),
            (&failed, 1, JobState::Queued, 5),
            (&failed, 2, JobState::Queued, 25),
            (&failed, 3, JobState::Failed, 0),
        ];
        for (outcome, attempts, state, seconds) in table {
            let expected = (state, now.plus(Duration::from_secs(seconds)));
            assert_eq!(after_attempt(outcome, attempts, now), expected, "{outcome:?} {attempts}");
        }
    }
}
