//! Refusals that wait to be counted.

use async_trait::async_trait;
use sqlx::Row;
use sqlx::postgres::PgRow;
use throughline_core::Result;
use throughline_core::ports::{RefusalCount, RefusalRepo};

use crate::connection::mapped;
use crate::records::{bounded, number};
use crate::store::PostgresStore;

fn read(row: &PgRow) -> sqlx::Result<RefusalCount> {
    Ok(RefusalCount {
        interface: row.try_get(0)?,
        code: row.try_get(1)?,
        count: number(row.try_get(2)?)?,
    })
}

#[async_trait]
impl RefusalRepo for PostgresStore {
    async fn add_refusals(&self, refusals: &[RefusalCount]) -> Result<()> {
        let mut work = self.work().await?;
        // In one order for all, so that none waits for another in a circle.
        let mut refusals: Vec<&RefusalCount> = refusals.iter().collect();
        refusals.sort_by(|a, b| (&a.interface, &a.code).cmp(&(&b.interface, &b.code)));
        for RefusalCount { interface, code, count } in refusals {
            let added = sqlx::query(
                "INSERT INTO refusal AS r (interface, code, count) VALUES ($1, $2, $3)
                 ON CONFLICT (interface, code) DO UPDATE SET count = r.count + $3",
            )
            .bind(interface)
            .bind(code)
            .bind(bounded(*count))
            .execute(work.connection())
            .await;
            mapped(added, "add_refusals")?;
        }
        work.commit().await
    }

    async fn take_refusals(&self) -> Result<Vec<RefusalCount>> {
        let mut work = self.work().await?;
        let rows = sqlx::query("DELETE FROM refusal RETURNING interface, code, count")
            .fetch_all(work.connection())
            .await;
        let taken = rows.and_then(|rows| rows.iter().map(read).collect());
        let mut taken: Vec<RefusalCount> = mapped(taken, "take_refusals")?;
        work.commit().await?;
        taken.sort_by(|a, b| (&a.interface, &a.code).cmp(&(&b.interface, &b.code)));
        Ok(taken)
    }
}
