//! The job queue: a claim skips what another claim holds, so no two callers get one job.

use std::time::Duration;

use async_trait::async_trait;
use sqlx::Row;
use sqlx::postgres::PgRow;
use throughline_core::ids::JobId;
use throughline_core::job::{Job, MAX_ATTEMPTS};
use throughline_core::page::{Page, PageRequest};
use throughline_core::ports::JobRepo;
use throughline_core::time::Timestamp;
use throughline_core::{Result, Scope};

use crate::connection::mapped;
use crate::records::{at, bounded, number, parsed, scope_of};
use crate::store::PostgresStore;
use crate::timed::Timed;

/// What a worker listens to; the payload is the kind of the job.
pub(crate) const CHANNEL: &str = "throughline_jobs";

/// Wakes the workers once the transaction is committed.
pub(crate) async fn notify(connection: &mut Timed, kind: &str) -> sqlx::Result<()> {
    let notified = sqlx::query("SELECT pg_notify($1, $2)").bind(CHANNEL).bind(kind);
    notified.execute(connection).await.map(|_| ())
}

macro_rules! job_columns {
    () => {
        "j.number, j.id, s.tenant, s.user_id, s.workspace, j.kind, j.subject, j.priority, j.state, \
         j.attempts, j.due_at, j.error"
    };
}

fn read_job(row: &PgRow) -> sqlx::Result<(u64, Job)> {
    let job = Job {
        id: JobId::from_uuid(row.try_get(1)?),
        scope: scope_of(row.try_get(2)?, row.try_get(3)?, row.try_get(4)?)?,
        kind: row.try_get(5)?,
        subject: row.try_get(6)?,
        priority: row.try_get(7)?,
        state: parsed(row.try_get(8)?)?,
        attempts: number(row.try_get(9)?)?,
        due_at: at(row.try_get(10)?),
        error: row.try_get(11)?,
    };
    Ok((number(row.try_get(0)?)?, job))
}

async fn claim(
    connection: &mut Timed,
    kinds: &[&str],
    now: Timestamp,
    lease: Duration,
    limit: usize,
) -> sqlx::Result<Vec<Job>> {
    sqlx::query(
        "UPDATE job SET state = 'failed', error = 'its last attempt never ended'
         WHERE number IN (
           SELECT number FROM job
           WHERE kind = ANY($1) AND state = 'running' AND due_at <= $2 AND attempts >= $3
           FOR UPDATE SKIP LOCKED)",
    )
    .bind(kinds)
    .bind(now.as_micros())
    .bind(i64::from(MAX_ATTEMPTS))
    .execute(&mut *connection)
    .await?;
    let rows = sqlx::query(concat!(
        "WITH due AS (
           SELECT id FROM job
           WHERE kind = ANY($1) AND state IN ('queued', 'running') AND due_at <= $2
           ORDER BY priority DESC, due_at, number LIMIT $4 FOR UPDATE SKIP LOCKED
         ), j AS (
           UPDATE job SET state = 'running', attempts = attempts + 1, due_at = $3
           FROM due WHERE job.id = due.id
           RETURNING job.*, (SELECT old.due_at FROM job old WHERE old.id = due.id) AS was_due
         )
         SELECT ",
        job_columns!(),
        " FROM j JOIN scope s ON s.key = j.scope ORDER BY j.priority DESC, j.was_due, j.number"
    ))
    .bind(kinds)
    .bind(now.as_micros())
    .bind(now.plus(lease).as_micros())
    .bind(bounded(limit))
    .fetch_all(connection)
    .await?;
    rows.iter().map(|row| Ok(read_job(row)?.1)).collect()
}

#[async_trait]
impl JobRepo for PostgresStore {
    async fn claim_jobs(
        &self,
        kinds: &[&str],
        now: Timestamp,
        lease: Duration,
        limit: usize,
    ) -> Result<Vec<Job>> {
        let mut work = self.work().await?;
        let claimed = claim(work.connection(), kinds, now, lease, limit).await;
        let claimed = mapped(claimed, "claim_jobs")?;
        work.commit().await?;
        Ok(claimed)
    }

    async fn await_jobs(&self, patience: Duration) -> Result<()> {
        self.inner.listening.wait(&self.inner.options, patience).await;
        Ok(())
    }

    async fn jobs(&self, scope: &Scope, page: &PageRequest) -> Result<Page<Job>> {
        let mut read = self.read(scope).await?;
        let rows = sqlx::query(concat!(
            "SELECT ",
            job_columns!(),
            " FROM job j JOIN scope s ON s.key = j.scope
             WHERE j.scope = $1 AND j.number > $2 ORDER BY j.number LIMIT $3"
        ))
        .bind(read.key)
        .bind(bounded(page.position().unwrap_or(0)))
        .bind(bounded(page.limit() + 1))
        .fetch_all(read.connection())
        .await;
        let found = rows.and_then(|rows| rows.iter().map(read_job).collect());
        Ok(Page::from_rows(mapped(found, "jobs")?, page.limit()))
    }
}
