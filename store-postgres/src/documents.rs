//! The documents of memories: a row for each snapshot, and one for the memory that names the latest.

use async_trait::async_trait;
use sqlx::postgres::PgRow;
use sqlx::{AssertSqlSafe, Row};
use throughline_core::document::{
    Etag, Memory, NewSnapshot, Snapshot, SnapshotInfo, Vault, index_document,
};
use throughline_core::ids::{ActorId, ContextId, MemoryId, VaultId};
use throughline_core::index::{IndexUnit, Namespace, UnitKey};
use throughline_core::page::{Page, PageRequest};
use throughline_core::ports::{DocumentRepo, Erased, Erasure, VectorSpace};
use throughline_core::{Result, Scope};
use uuid::Uuid;

use crate::apply::ScopeRow;
use crate::connection::mapped;
use crate::lexical::{self, TailWriter};
use crate::records::{at, bounded, number, stored_wrongly};
use crate::store::PostgresStore;
use crate::timed::Timed;
use crate::vectors::{self, VectorWriter};

/// The row of a memory.
#[derive(Clone, Copy)]
struct Head {
    /// Number of the first snapshot that there was.
    id: i64,
    /// Number of the latest.
    latest: i64,
}

async fn head(
    connection: &mut Timed,
    scope: Uuid,
    vault: &VaultId,
    memory: &MemoryId,
) -> sqlx::Result<Option<Head>> {
    let row = sqlx::query(
        "SELECT id, latest FROM document WHERE scope = $1 AND vault = $2 AND memory = $3",
    )
    .bind(scope)
    .bind(vault.as_str())
    .bind(memory.as_str())
    .fetch_optional(connection)
    .await?;
    row.map(|row| Ok(Head { id: row.try_get(0)?, latest: row.try_get(1)? })).transpose()
}

/// The number of the latest snapshot, for preconditions.
pub(crate) async fn version(
    connection: &mut Timed,
    scope: Uuid,
    vault: &VaultId,
    memory: &MemoryId,
) -> sqlx::Result<Option<u64>> {
    head(connection, scope, vault, memory).await?.map(|head| number(head.latest)).transpose()
}

/// Adds a snapshot with its index entries, in place of those of the one before.
pub(crate) async fn put(
    connection: &mut Timed,
    (scope, counters): (Uuid, &mut ScopeRow),
    space: Option<&VectorSpace>,
    new: &NewSnapshot,
) -> Result<()> {
    let head = mapped(head(connection, scope, &new.vault, &new.memory).await, "apply")?;
    let is_repeated = match head {
        Some(head) => mapped(holds(connection, scope, head.id, &new.context).await, "apply")?,
        None => false,
    };
    let number = counters.counters.next_snapshot(is_repeated)?;
    let inserted = insert(connection, scope, (head, number, new)).await;
    mapped(inserted, "apply")?;
    mapped(index(connection, scope, space, (number, new)).await, "apply")
}

async fn holds(
    connection: &mut Timed,
    scope: Uuid,
    id: i64,
    context: &ContextId,
) -> sqlx::Result<bool> {
    sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM document_snapshot
           WHERE scope = $1 AND document_id = $2 AND context = $3)",
    )
    .bind(scope)
    .bind(id)
    .bind(context.as_str())
    .fetch_one(connection)
    .await
}

async fn insert(
    connection: &mut Timed,
    scope: Uuid,
    (head, number, new): (Option<Head>, u32, &NewSnapshot),
) -> sqlx::Result<()> {
    let id = head.map_or(i64::from(number), |head| head.id);
    if let Some(head) = head {
        let text: String = sqlx::query_scalar(
            "SELECT text FROM document_snapshot WHERE scope = $1 AND number = $2",
        )
        .bind(scope)
        .bind(head.latest)
        .fetch_one(&mut *connection)
        .await?;
        let units = indexed(crate::records::number(head.latest)?, &text);
        remove_units(connection, scope, &units).await?;
    }
    sqlx::query(
        "INSERT INTO document (scope, id, latest, vault, memory) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (scope, id) DO UPDATE SET latest = $3",
    )
    .bind(scope)
    .bind(id)
    .bind(i64::from(number))
    .bind(new.vault.as_str())
    .bind(new.memory.as_str())
    .execute(&mut *connection)
    .await?;
    sqlx::query(
        "INSERT INTO document_snapshot (scope, number, document_id, created_at, etag, context,
           actor, text)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(scope)
    .bind(i64::from(number))
    .bind(id)
    .bind(new.created_at.as_micros())
    .bind(Etag::of(&new.text).as_bytes().as_slice())
    .bind(new.context.as_str())
    .bind(new.actor.as_str())
    .bind(&new.text)
    .execute(&mut *connection)
    .await?;
    sqlx::query(
        "DELETE FROM document_snapshot WHERE scope = $1 AND document_id = $2
           AND number NOT IN (SELECT number FROM document_snapshot
             WHERE scope = $1 AND document_id = $2 ORDER BY number DESC LIMIT $3)",
    )
    .bind(scope)
    .bind(id)
    .bind(i64::from(new.keep.max(1)))
    .execute(connection)
    .await
    .map(|_| ())
}

/// Adds a snapshot to the indexes, which makes it the scope's last one.
async fn index(
    connection: &mut Timed,
    scope: Uuid,
    space: Option<&VectorSpace>,
    (number, new): (u32, &NewSnapshot),
) -> sqlx::Result<()> {
    let mut words = TailWriter::open_one(connection, scope, Namespace::Document).await?;
    let mut vectors = match space {
        Some(space) => Some(
            VectorWriter::open_one(
                connection,
                scope,
                space,
                (Namespace::Document, u64::from(number) - 1),
            )
            .await?,
        ),
        None => None,
    };
    for (unit, ordinal) in new.units.iter().zip(0..) {
        let key = UnitKey::document(number, ordinal);
        words.add(key, unit);
        if let (Some(vectors), Some(vector)) = (&mut vectors, &unit.vector) {
            vectors.add(key, vector);
        }
    }
    words.close(connection, scope, Namespace::Document).await?;
    match vectors {
        Some(vectors) => vectors.close(connection, scope, number.into()).await,
        None => Ok(()),
    }
}

/// What was indexed of a snapshot while it was the latest, under its keys.
fn indexed(number: u32, text: &str) -> Vec<(UnitKey, IndexUnit)> {
    let key = |ordinal| UnitKey::document(number, ordinal);
    (0..).map(key).zip(index_document(text)).collect()
}

async fn remove_units(
    connection: &mut Timed,
    scope: Uuid,
    units: &[(UnitKey, IndexUnit)],
) -> sqlx::Result<()> {
    lexical::remove(connection, scope, Namespace::Document, units).await?;
    let keys: Vec<UnitKey> = units.iter().map(|(key, _)| *key).collect();
    vectors::remove_keys(connection, scope, Namespace::Document, &keys).await
}

/// Erases snapshots, and documents of which none is left.
pub(crate) async fn erase(
    connection: &mut Timed,
    scope: Uuid,
    erasure: &Erasure,
    erased: &mut Erased,
) -> sqlx::Result<()> {
    let gone = "SELECT s.number, s.text, s.number = d.latest FROM document d
         JOIN document_snapshot s ON s.scope = $1 AND s.document_id = d.id WHERE d.scope = $1 AND";
    let rows = match erasure {
        Erasure::Document { vault, memory, through } => {
            let of = format!("{gone} d.vault = $2 AND d.memory = $3 AND s.number <= $4");
            sqlx::query(AssertSqlSafe(of))
                .bind(scope)
                .bind(vault.as_str())
                .bind(memory.as_str())
                .bind(bounded(*through))
                .fetch_all(&mut *connection)
                .await?
        }
        Erasure::Scope { documents, .. } => {
            sqlx::query(AssertSqlSafe(format!("{gone} s.number <= $2")))
                .bind(scope)
                .bind(bounded(*documents))
                .fetch_all(&mut *connection)
                .await?
        }
        Erasure::Messages(_) | Erasure::Session { .. } => return Ok(()),
    };
    let (mut numbers, mut leaving): (Vec<i64>, Vec<_>) = (Vec::new(), Vec::new());
    for row in &rows {
        let (snapshot, text): (i64, &str) = (row.try_get(0)?, row.try_get(1)?);
        let units = indexed(number(snapshot)?, text);
        numbers.push(snapshot);
        erased.units.extend(units.iter().map(|(key, _)| (Namespace::Document, *key)));
        if row.try_get(2)? {
            leaving.extend(units);
        }
    }
    if numbers.is_empty() {
        return Ok(());
    }
    remove_units(connection, scope, &leaving).await?;
    sqlx::query("DELETE FROM document_snapshot WHERE scope = $1 AND number = ANY($2)")
        .bind(scope)
        .bind(numbers)
        .execute(&mut *connection)
        .await?;
    let emptied = sqlx::query(
        "DELETE FROM document d WHERE d.scope = $1 AND NOT EXISTS (SELECT 1
           FROM document_snapshot s WHERE s.scope = $1 AND s.document_id = d.id)",
    )
    .bind(scope)
    .execute(connection)
    .await?;
    erased.documents += emptied.rows_affected();
    Ok(())
}

/// Columns of [`read_info`], of a document `d` and its snapshot `s`.
macro_rules! info {
    () => {
        "SELECT s.number, d.vault, d.memory, s.context, s.actor, s.etag, \
         octet_length(s.text)::bigint, s.created_at"
    };
}

/// The snapshots of a memory, `$1` to `$3`.
macro_rules! of_memory {
    () => {
        " FROM document d JOIN document_snapshot s ON s.scope = $1 AND s.document_id = d.id \
         WHERE d.scope = $1 AND d.vault = $2 AND d.memory = $3"
    };
}

fn read_info(row: &PgRow) -> sqlx::Result<SnapshotInfo> {
    let text = |at: usize| row.try_get::<String, _>(at);
    let etag: Vec<u8> = row.try_get(5)?;
    let etag = etag.try_into().map_err(|_| stored_wrongly("an etag of another size"))?;
    Ok(SnapshotInfo {
        number: number(row.try_get(0)?)?,
        vault: VaultId::new(text(1)?).map_err(stored_wrongly)?,
        memory: MemoryId::new(text(2)?).map_err(stored_wrongly)?,
        context: ContextId::new(text(3)?).map_err(stored_wrongly)?,
        actor: ActorId::new(text(4)?).map_err(stored_wrongly)?,
        etag: Etag::from_bytes(etag),
        bytes: number(row.try_get(6)?)?,
        created_at: at(row.try_get(7)?),
    })
}

fn read_snapshot(row: &PgRow) -> sqlx::Result<Snapshot> {
    Ok(Snapshot { info: read_info(row)?, text: row.try_get(8)? })
}

#[async_trait]
impl DocumentRepo for PostgresStore {
    async fn document(
        &self,
        scope: &Scope,
        vault: &VaultId,
        memory: &MemoryId,
    ) -> Result<Option<Snapshot>> {
        let mut read = self.read(scope).await?;
        let row =
            sqlx::query(concat!(info!(), ", s.text", of_memory!(), " AND s.number = d.latest"))
                .bind(read.key)
                .bind(vault.as_str())
                .bind(memory.as_str())
                .fetch_optional(read.connection())
                .await;
        mapped(row.and_then(|row| row.as_ref().map(read_snapshot).transpose()), "document")
    }

    async fn snapshot(
        &self,
        scope: &Scope,
        vault: &VaultId,
        memory: &MemoryId,
        context: &ContextId,
    ) -> Result<Option<Snapshot>> {
        let mut read = self.read(scope).await?;
        let row = sqlx::query(concat!(info!(), ", s.text", of_memory!(), " AND s.context = $4"))
            .bind(read.key)
            .bind(vault.as_str())
            .bind(memory.as_str())
            .bind(context.as_str())
            .fetch_optional(read.connection())
            .await;
        mapped(row.and_then(|row| row.as_ref().map(read_snapshot).transpose()), "snapshot")
    }

    async fn snapshots(
        &self,
        scope: &Scope,
        vault: &VaultId,
        memory: &MemoryId,
        page: &PageRequest,
    ) -> Result<Page<SnapshotInfo>> {
        let mut read = self.read(scope).await?;
        let rows = sqlx::query(concat!(
            info!(),
            of_memory!(),
            " AND s.number < $4 ORDER BY s.number DESC LIMIT $5"
        ))
        .bind(read.key)
        .bind(vault.as_str())
        .bind(memory.as_str())
        .bind(bounded(page.position().unwrap_or(u64::MAX)))
        .bind(bounded(page.limit() + 1))
        .fetch_all(read.connection())
        .await;
        let listed = |rows: Vec<PgRow>| {
            let row = |row| read_info(row).map(|info| (u64::from(info.number), info));
            rows.iter().map(row).collect()
        };
        Ok(Page::from_rows(mapped(rows.and_then(listed), "snapshots")?, page.limit()))
    }

    async fn latest_documents(
        &self,
        scope: &Scope,
        numbers: &[u32],
        most_bytes: u64,
    ) -> Result<Vec<Snapshot>> {
        let numbers: Vec<i64> = numbers.iter().copied().map(i64::from).collect();
        let mut read = self.read(scope).await?;
        // Which ones is told by their lengths, so that no text is read that is not given.
        let rows = sqlx::query(concat!(
            info!(),
            ", s.text FROM (
               SELECT s.number, n.nth,
                 sum(octet_length(s.text)) OVER (ORDER BY n.nth) - octet_length(s.text) AS before
               FROM unnest($2::bigint[]) WITH ORDINALITY AS n (number, nth)
               JOIN document_snapshot s ON s.scope = $1 AND s.number = n.number
               JOIN document d ON d.scope = $1 AND d.id = s.document_id AND d.latest = s.number
             ) AS n
             JOIN document_snapshot s ON s.scope = $1 AND s.number = n.number
             JOIN document d ON d.scope = $1 AND d.id = s.document_id
             WHERE n.before < $3 ORDER BY n.nth"
        ))
        .bind(read.key)
        .bind(numbers)
        .bind(bounded(most_bytes))
        .fetch_all(read.connection())
        .await;
        let found = |rows: Vec<PgRow>| rows.iter().map(read_snapshot).collect();
        mapped(rows.and_then(found), "latest_documents")
    }

    async fn latest_numbers(&self, scope: &Scope, vault: Option<&VaultId>) -> Result<Vec<u32>> {
        let mut read = self.read(scope).await?;
        let found: sqlx::Result<Vec<i64>> = sqlx::query_scalar(
            "SELECT latest FROM document WHERE scope = $1 AND ($2::text IS NULL OR vault = $2)
             ORDER BY latest",
        )
        .bind(read.key)
        .bind(vault.map(VaultId::as_str))
        .fetch_all(read.connection())
        .await;
        let numbers = |found: Vec<i64>| found.into_iter().map(number).collect();
        mapped(found.and_then(numbers), "latest_numbers")
    }

    async fn vaults(&self, scope: &Scope, page: &PageRequest) -> Result<Page<Vault>> {
        let mut read = self.read(scope).await?;
        let rows = sqlx::query(
            "SELECT min(d.id), d.vault, count(*), max(s.created_at) FROM document d
             JOIN document_snapshot s ON s.scope = $1 AND s.number = d.latest
             WHERE d.scope = $1 GROUP BY d.vault HAVING min(d.id) > $2 ORDER BY 1 LIMIT $3",
        )
        .bind(read.key)
        .bind(bounded(page.position().unwrap_or(0)))
        .bind(bounded(page.limit() + 1))
        .fetch_all(read.connection())
        .await;
        let read_vault = |row: &PgRow| {
            let id = VaultId::new(row.try_get::<String, _>(1)?).map_err(stored_wrongly)?;
            let (memories, updated_at) = (number(row.try_get(2)?)?, at(row.try_get(3)?));
            Ok((number(row.try_get(0)?)?, Vault { id, memories, updated_at }))
        };
        let listed = |rows: Vec<PgRow>| rows.iter().map(read_vault).collect();
        Ok(Page::from_rows(mapped(rows.and_then(listed), "vaults")?, page.limit()))
    }

    async fn memories(
        &self,
        scope: &Scope,
        vault: Option<&VaultId>,
        page: &PageRequest,
    ) -> Result<Page<Memory>> {
        let mut read = self.read(scope).await?;
        let rows = sqlx::query(concat!(
            info!(),
            ", d.id, (SELECT count(*) FROM document_snapshot c
                 WHERE c.scope = $1 AND c.document_id = d.id)
             FROM document d JOIN document_snapshot s ON s.scope = $1 AND s.number = d.latest
             WHERE d.scope = $1 AND ($2::text IS NULL OR d.vault = $2) AND d.id > $3
             ORDER BY d.id LIMIT $4"
        ))
        .bind(read.key)
        .bind(vault.map(VaultId::as_str))
        .bind(bounded(page.position().unwrap_or(0)))
        .bind(bounded(page.limit() + 1))
        .fetch_all(read.connection())
        .await;
        let read_memory = |row: &PgRow| {
            let (latest, snapshots) = (read_info(row)?, number(row.try_get(9)?)?);
            Ok((number(row.try_get(8)?)?, Memory { latest, snapshots }))
        };
        let listed = |rows: Vec<PgRow>| rows.iter().map(read_memory).collect();
        Ok(Page::from_rows(mapped(rows.and_then(listed), "memories")?, page.limit()))
    }
}
