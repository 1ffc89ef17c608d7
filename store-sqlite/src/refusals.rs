//! Refusals that wait to be counted.

use async_trait::async_trait;
use rusqlite::{Connection, params};
use throughline_core::Result;
use throughline_core::ports::{RefusalCount, RefusalRepo};

use crate::records::mapped;
use crate::store::SqliteStore;

fn add(connection: &Connection, refusals: &[RefusalCount]) -> rusqlite::Result<()> {
    let mut add = connection.prepare_cached(
        "INSERT INTO refusal (interface, code, count) VALUES (?1, ?2, ?3)
         ON CONFLICT DO UPDATE SET count = count + ?3",
    )?;
    for RefusalCount { interface, code, count } in refusals {
        add.execute(params![interface, code, count])?;
    }
    Ok(())
}

fn take(connection: &Connection) -> rusqlite::Result<Vec<RefusalCount>> {
    let mut taken: Vec<RefusalCount> = connection
        .prepare_cached("DELETE FROM refusal RETURNING interface, code, count")?
        .query_map([], |row| {
            Ok(RefusalCount { interface: row.get(0)?, code: row.get(1)?, count: row.get(2)? })
        })?
        .collect::<rusqlite::Result<_>>()?;
    taken.sort_by(|a, b| (&a.interface, &a.code).cmp(&(&b.interface, &b.code)));
    Ok(taken)
}

#[async_trait]
impl RefusalRepo for SqliteStore {
    async fn add_refusals(&self, refusals: &[RefusalCount]) -> Result<()> {
        let refusals = refusals.to_vec();
        let add = move |connection: &Connection| add(connection, &refusals);
        self.inner.writer.run(move |connection| mapped(add(connection), "add_refusals")).await
    }

    async fn take_refusals(&self) -> Result<Vec<RefusalCount>> {
        // Most calls find nothing, and need not wait for those who write.
        let waits = |connection: &Connection| {
            connection.prepare_cached("SELECT 1 FROM refusal")?.exists([])
        };
        if !self.read(move |connection| mapped(waits(connection), "take_refusals")).await? {
            return Ok(Vec::new());
        }
        self.inner.writer.run(|connection| mapped(take(connection), "take_refusals")).await
    }
}
