//! The job queue: leases are taken in the writer's transactions, so no two callers get one job.

use std::time::Duration;

use async_trait::async_trait;
use rusqlite::{Connection, Row, params};
use throughline_core::ids::JobId;
use throughline_core::job::{Job, MAX_ATTEMPTS};
use throughline_core::page::{Page, PageRequest};
use throughline_core::ports::JobRepo;
use throughline_core::time::Timestamp;
use throughline_core::{Result, Scope};

use crate::records::{At, Id, bounded, mapped, parsed};
use crate::store::{SqliteStore, read_scope_columns};

const JOB_COLUMNS: &str = "j.rowid, j.id, s.tenant, s.user, s.workspace, j.kind, j.subject, \
    j.priority, j.state, j.attempts, j.due_at, j.error";

fn read_job(row: &Row<'_>) -> rusqlite::Result<(u64, Job)> {
    let job = Job {
        id: JobId::from_uuid(row.get::<_, Id>(1)?.0),
        scope: read_scope_columns(row, 2)?,
        kind: row.get(5)?,
        subject: row.get(6)?,
        priority: row.get(7)?,
        state: parsed(row.get_ref(8)?.as_str()?)?,
        attempts: row.get(9)?,
        due_at: row.get::<_, At>(10)?.0,
        error: row.get(11)?,
    };
    Ok((row.get(0)?, job))
}

/// The first due jobs of each kind, of which the first of all are leased.
fn claim(
    connection: &Connection,
    kinds: &[String],
    now: Timestamp,
    lease: Duration,
    limit: usize,
) -> rusqlite::Result<Vec<Job>> {
    let mut due = connection.prepare_cached(&format!(
        "SELECT {JOB_COLUMNS} FROM job j JOIN scope s ON s.id = j.scope_id
         WHERE j.kind = ?1 AND j.state IN ('queued', 'running') AND j.due_at <= ?2
         ORDER BY j.priority DESC, j.due_at, j.rowid LIMIT ?3"
    ))?;
    let mut given_up = connection.prepare_cached(
        "UPDATE job SET state = 'failed', error = 'its last attempt never ended'
         WHERE kind = ?1 AND state = 'running' AND due_at <= ?2 AND attempts >= ?3",
    )?;
    let mut claimed: Vec<(u64, Job)> = Vec::new();
    for kind in kinds {
        given_up.execute(params![kind, At(now), MAX_ATTEMPTS])?;
        let found = due.query_map(params![kind, At(now), bounded(limit)], read_job)?;
        claimed.extend(found.collect::<rusqlite::Result<Vec<_>>>()?);
    }
    claimed.sort_by_key(|(rowid, job)| (std::cmp::Reverse(job.priority), job.due_at, *rowid));
    claimed.dedup_by_key(|(rowid, _)| *rowid);
    claimed.truncate(limit);
    let until = now.plus(lease);
    let mut take = connection.prepare_cached(
        "UPDATE job SET state = 'running', attempts = attempts + 1, due_at = ?2 WHERE rowid = ?1",
    )?;
    claimed
        .into_iter()
        .map(|(rowid, mut job)| {
            take.execute(params![rowid, At(until)])?;
            job.state = throughline_core::job::JobState::Running;
            job.attempts += 1;
            job.due_at = until;
            Ok(job)
        })
        .collect()
}

#[async_trait]
impl JobRepo for SqliteStore {
    async fn claim_jobs(
        &self,
        kinds: &[&str],
        now: Timestamp,
        lease: Duration,
        limit: usize,
    ) -> Result<Vec<Job>> {
        let kinds: Vec<String> = kinds.iter().map(ToString::to_string).collect();
        self.inner
            .writer
            .run(move |connection| {
                mapped(claim(connection, &kinds, now, lease, limit), "claim_jobs")
            })
            .await
    }

    /// What another process enqueues is found when the patience ends.
    async fn await_jobs(&self, patience: Duration) -> Result<()> {
        let _ = tokio::time::timeout(patience, self.inner.enqueued.notified()).await;
        Ok(())
    }

    async fn jobs(&self, scope: &Scope, page: &PageRequest) -> Result<Page<Job>> {
        let (limit, after) = (page.limit(), page.position().unwrap_or(0));
        let rows = self
            .read_scope(scope, move |connection, scope_id| {
                connection
                    .prepare_cached(&format!(
                        "SELECT {JOB_COLUMNS} FROM job j JOIN scope s ON s.id = j.scope_id
                         WHERE j.scope_id = ?1 AND j.rowid > ?2 ORDER BY j.rowid LIMIT ?3"
                    ))?
                    .query_map(params![scope_id, bounded(after), bounded(limit + 1)], read_job)?
                    .collect()
            })
            .await?;
        Ok(Page::from_rows(rows.unwrap_or_default(), limit))
    }
}
