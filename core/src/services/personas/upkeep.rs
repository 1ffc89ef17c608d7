//! Scheduled upkeep: expired personas are backed up and deactivated, those whose grace period has ended are
//! erased, and the others backed up once a day. A job of the scope does it, slice by slice.

use std::time::Duration;

use super::{PersonaService, replace};
use crate::error::{ErrorKind, Result};
use crate::ids::JobId;
use crate::job::{DEFAULT_PRIORITY, Job, NewJob, Outcome};
use crate::persona::{BackupReason, Persona, Status, next_due};
use crate::ports::{Write, WriteBatch};
use crate::scope::Scope;
use crate::time::Timestamp;

/// Kind of the jobs that do the upkeep of a scope's personas.
pub const UPKEEP_JOB: &str = "persona_upkeep";

/// How long an attempt may take before another worker may try.
const LEASE: Duration = Duration::from_secs(600);
/// A day: how long after something was done it is looked at again.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// The result of upkeep.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Upkept {
    /// Personas that had expired and were put away.
    pub expired: u64,
    /// Personas whose grace had ended and that were erased.
    pub erased: u64,
    /// Personas that were backed up.
    pub backed_up: u64,
    /// Whether more is due.
    pub more: bool,
}

impl Upkept {
    fn done(&self) -> u64 {
        self.expired + self.erased + self.backed_up
    }
}

/// The action that is due for a persona.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Due {
    PutAway,
    Erase,
    Backup,
}

fn due(persona: &Persona, grace_days: u32, now: Timestamp) -> Option<Due> {
    match persona.status(now) {
        Status::Deleted => {
            persona.erased_from(grace_days).filter(|end| *end <= now).map(|_| Due::Erase)
        }
        Status::Expired => Some(Due::PutAway),
        Status::Active | Status::Expiring => persona.wants_backup(now).then_some(Due::Backup),
    }
}

impl PersonaService {
    /// Does up to `limit` things that are due in a scope: puts personas away that have expired, erases those
    /// whose grace has ended, and takes daily backups.
    ///
    /// # Errors
    /// Those of the store and of erasure; what was done before stays.
    pub async fn due(&self, scope: &Scope, limit: usize) -> Result<Upkept> {
        let (now, grace) = (self.now(), self.limits().grace_days);
        let mut done = Upkept::default();
        let mut others = Vec::new();
        for persona in self.ports.store.personas(scope).await? {
            let Some(due) = due(&persona, grace, now) else {
                others.push(persona);
                continue;
            };
            if done.done() >= limit as u64 {
                done.more = true;
                return Ok(done);
            }
            self.keep_up(scope, &persona, (due, now), &mut done).await?;
        }
        for persona in &others {
            if !self.lacks_backup(scope, persona, now).await? {
                continue;
            }
            if done.done() >= limit as u64 {
                done.more = true;
                return Ok(done);
            }
            self.keep_up(scope, persona, (Due::Backup, now), &mut done).await?;
        }
        Ok(done)
    }

    /// Whether a persona of which nothing is known to have changed has no backup with its last message: one
    /// that held an erased message went with it, and what a client appends to the session is no turn.
    async fn lacks_backup(&self, scope: &Scope, persona: &Persona, now: Timestamp) -> Result<bool> {
        if !persona.may_be_backed_up(now) || self.limits().daily_backups == 0 {
            return Ok(false);
        }
        let store = &self.ports.store;
        let newest = store.persona_backups(scope, persona.id).await?.into_iter().next();
        let Some(newest) = newest else { return Ok(true) };
        let last = store.recent_messages(scope, &persona.session, 1).await?.pop();
        Ok(last.is_some_and(|last| last.seq > newest.through))
    }

    /// Does what is due for a persona.
    async fn keep_up(
        &self,
        scope: &Scope,
        persona: &Persona,
        (due, now): (Due, Timestamp),
        done: &mut Upkept,
    ) -> Result<()> {
        let did = match due {
            Due::PutAway => {
                done.expired += 1;
                self.put_away(scope, persona, BackupReason::Expiry).await.map(|_| ())
            }
            Due::Erase => {
                done.erased += 1;
                self.ports.erase.session(scope, &persona.session).await.map(|_| ())
            }
            Due::Backup => {
                done.backed_up += 1;
                self.back_up(scope, persona, now).await
            }
        };
        match did {
            // The persona was in use or was erased meanwhile: the next run handles it.
            Err(error) if error.is_lost_race() || error.kind() == ErrorKind::NotFound => Ok(()),
            did => did,
        }
    }

    /// Takes the daily backup of a persona.
    async fn back_up(&self, scope: &Scope, held: &Persona, now: Timestamp) -> Result<()> {
        let (backup, preconditions) = self.backed_up(scope, held, BackupReason::Daily, now).await?;
        let changed =
            Persona { backed_up_at: Some(now), version: held.version + 1, ..held.clone() };
        let mut batch = replace(scope, held, changed, now).with(backup);
        batch.preconditions.extend(preconditions);
        self.ports.store.apply(batch).await.map(|_| ())
    }

    /// The job that looks at the scope in a day; there is one of them at most.
    pub(super) fn upkeep_later(&self, now: Timestamp) -> Write {
        Write::EnqueueJob(self.job(now.plus(DAY)))
    }

    fn job(&self, due_at: Timestamp) -> NewJob {
        NewJob {
            id: JobId::from_uuid(self.ports.ids.next()),
            kind: UPKEEP_JOB.to_owned(),
            subject: "all".to_owned(),
            priority: DEFAULT_PRIORITY - 2,
            due_at,
        }
    }

    /// Attempts up to `limit` jobs that are due, of each of which up to `limit` things are done: the rest is
    /// another job, due at once. So who works beside answering calls does little at a time, and a worker goes on.
    /// Returns how many jobs there were, and what they did together.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn work(&self, limit: usize) -> Result<(u64, Upkept)> {
        let now = self.now();
        let jobs = self.ports.store.claim_jobs(&[UPKEEP_JOB], now, LEASE, limit).await?;
        let (attempted, mut all) = (jobs.len() as u64, Upkept::default());
        for job in jobs {
            let done = self.attempt(&job, limit).await?;
            all.expired += done.expired;
            all.erased += done.erased;
            all.backed_up += done.backed_up;
        }
        Ok((attempted, all))
    }

    async fn attempt(&self, job: &Job, limit: usize) -> Result<Upkept> {
        let (outcome, done) = match self.due(&job.scope, limit).await {
            Ok(done) => (Outcome::Done, done),
            Err(error) => (Outcome::Failed(error.to_string()), Upkept::default()),
        };
        let (now, scope) = (self.now(), &job.scope);
        let worked = outcome == Outcome::Done;
        let mut batch = WriteBatch::new(scope.clone(), now).with(Write::FinishJob(job.id, outcome));
        let mut next = None;
        if worked {
            // Finished jobs are dropped: one a day for each scope would add up.
            batch = batch.with(Write::DropJob(job.id));
            next = if done.more { Some(now) } else { self.next_upkeep(scope, now).await? };
            batch.writes.extend(next.map(|at| Write::EnqueueJob(self.job(at))));
        }
        match self.ports.store.apply(batch).await {
            // The scope was erased meanwhile, and the job with it.
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(done),
            applied => drop(applied?),
        }
        // A persona that was made while this job ran has enqueued no job of its own.
        if worked
            && next.is_none()
            && let Some(at) = self.next_upkeep(scope, now).await?
        {
            let batch = WriteBatch::new(scope.clone(), now);
            self.ports.store.apply(batch.with(Write::EnqueueJob(self.job(at)))).await?;
        }
        Ok(done)
    }

    /// When upkeep of a scope is next due; `None` where it has no persona.
    async fn next_upkeep(&self, scope: &Scope, now: Timestamp) -> Result<Option<Timestamp>> {
        let held = self.ports.store.personas(scope).await?;
        Ok(next_due(held.iter(), self.limits().grace_days, now))
    }
}
