//! The documents of memories: a row for each snapshot, and one for the memory that names the latest.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, params};
use throughline_core::document::{
    Etag, Memory, NewSnapshot, Snapshot, SnapshotInfo, Vault, index_document,
};
use throughline_core::ids::{ActorId, ContextId, MemoryId, VaultId};
use throughline_core::index::{IndexUnit, Namespace, UnitKey};
use throughline_core::page::{Page, PageRequest};
use throughline_core::ports::{DocumentRepo, Erased, Erasure, VectorSpace};
use throughline_core::{Result, Scope};

use crate::apply::{IndexWriter, ScopeRow};
use crate::fold::WriteConnection;
use crate::records::{At, bounded, mapped, stored_wrongly};
use crate::store::SqliteStore;
use crate::{lexical, vectors};

/// The row of a memory.
#[derive(Clone, Copy)]
struct Head {
    /// Number of the first snapshot that there was.
    id: u32,
    /// Number of the latest.
    latest: u32,
}

fn head(
    connection: &Connection,
    scope_id: i64,
    vault: &VaultId,
    memory: &MemoryId,
) -> rusqlite::Result<Option<Head>> {
    connection
        .prepare_cached(
            "SELECT id, latest FROM document WHERE scope_id = ?1 AND vault = ?2 AND memory = ?3",
        )?
        .query_row(params![scope_id, vault.as_str(), memory.as_str()], |row| {
            Ok(Head { id: row.get(0)?, latest: row.get(1)? })
        })
        .optional()
}

/// The number of the latest snapshot, for preconditions.
pub(crate) fn version(
    connection: &Connection,
    scope_id: i64,
    vault: &VaultId,
    memory: &MemoryId,
) -> rusqlite::Result<Option<u64>> {
    Ok(head(connection, scope_id, vault, memory)?.map(|head| head.latest.into()))
}

/// Adds a snapshot with its index entries, in place of those of the one before.
pub(crate) fn put(
    connection: &WriteConnection,
    scope: &mut ScopeRow,
    space: Option<&VectorSpace>,
    new: &NewSnapshot,
) -> Result<()> {
    let head = mapped(head(connection, scope.id, &new.vault, &new.memory), "apply")?;
    let is_repeated = match head {
        Some(head) => mapped(holds(connection, scope.id, head.id, &new.context), "apply")?,
        None => false,
    };
    let number = scope.counters.next_snapshot(is_repeated)?;
    mapped(insert(connection, scope, space, (head, number, new)), "apply")
}

fn holds(
    connection: &Connection,
    scope_id: i64,
    id: u32,
    context: &ContextId,
) -> rusqlite::Result<bool> {
    connection
        .prepare_cached(
            "SELECT 1 FROM document_snapshot
             WHERE scope_id = ?1 AND document_id = ?2 AND context = ?3",
        )?
        .exists(params![scope_id, id, context.as_str()])
}

fn insert(
    connection: &WriteConnection,
    scope: &mut ScopeRow,
    space: Option<&VectorSpace>,
    (head, number, new): (Option<Head>, u32, &NewSnapshot),
) -> rusqlite::Result<()> {
    let id = head.map_or(number, |head| head.id);
    if let Some(head) = head {
        let text: String = connection
            .prepare_cached(
                "SELECT text FROM document_snapshot WHERE scope_id = ?1 AND number = ?2",
            )?
            .query_row((scope.id, head.latest), |row| row.get(0))?;
        remove_units(connection, scope.id, head.latest, &text)?;
    }
    connection
        .prepare_cached(
            "INSERT INTO document (scope_id, id, latest, vault, memory) VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT (scope_id, id) DO UPDATE SET latest = ?3",
        )?
        .execute(params![scope.id, id, number, new.vault.as_str(), new.memory.as_str()])?;
    connection
        .prepare_cached(
            "INSERT INTO document_snapshot (scope_id, number, document_id, created_at, etag, context,
               actor, text)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            scope.id,
            number,
            id,
            At(new.created_at),
            Etag::of(&new.text).as_bytes(),
            new.context.as_str(),
            new.actor.as_str(),
            new.text
        ])?;
    connection
        .prepare_cached(
            "DELETE FROM document_snapshot WHERE scope_id = ?1 AND document_id = ?2
               AND number NOT IN (SELECT number FROM document_snapshot
                 WHERE scope_id = ?1 AND document_id = ?2 ORDER BY number DESC LIMIT ?3)",
        )?
        .execute(params![scope.id, id, new.keep.max(1)])?;
    let before = u64::from(number) - 1;
    let mut index = IndexWriter::open(connection, scope.id, Namespace::Document, space, before)?;
    for (unit, ordinal) in new.units.iter().zip(0..) {
        index.add(connection, UnitKey::document(number, ordinal), unit)?;
    }
    index.close(connection, number.into())
}

/// What was indexed of a snapshot while it was the latest, under its keys.
fn indexed(number: u32, text: &str) -> Vec<(UnitKey, IndexUnit)> {
    let key = |ordinal| UnitKey::document(number, ordinal);
    (0..).map(key).zip(index_document(text)).collect()
}

fn remove_units(
    connection: &WriteConnection,
    scope_id: i64,
    number: u32,
    text: &str,
) -> rusqlite::Result<()> {
    let units = indexed(number, text);
    lexical::remove(connection, scope_id, Namespace::Document, &units)?;
    let keys: Vec<UnitKey> = units.into_iter().map(|(key, _)| key).collect();
    vectors::remove_everywhere(connection, scope_id, Namespace::Document, &keys)
}

/// Erases snapshots, and documents of which none is left.
pub(crate) fn erase(
    connection: &WriteConnection,
    scope_id: i64,
    erasure: &Erasure,
    erased: &mut Erased,
) -> rusqlite::Result<()> {
    let gone = "SELECT s.number, s.text, s.number = d.latest FROM document d
         JOIN document_snapshot s ON s.scope_id = d.scope_id AND s.document_id = d.id
         WHERE d.scope_id = ?1 AND";
    let read = |row: &Row<'_>| {
        Ok((row.get::<_, u32>(0)?, row.get::<_, String>(1)?, row.get::<_, bool>(2)?))
    };
    let gone: Vec<(u32, String, bool)> = match erasure {
        Erasure::Document { vault, memory, through } => connection
            .prepare_cached(&format!("{gone} d.vault = ?2 AND d.memory = ?3 AND s.number <= ?4"))?
            .query_map(params![scope_id, vault.as_str(), memory.as_str(), bounded(*through)], read)?
            .collect::<rusqlite::Result<_>>()?,
        Erasure::Scope { documents, .. } => connection
            .prepare_cached(&format!("{gone} s.number <= ?2"))?
            .query_map(params![scope_id, bounded(*documents)], read)?
            .collect::<rusqlite::Result<_>>()?,
        Erasure::Messages(_) | Erasure::Session { .. } => return Ok(()),
    };
    let mut delete = connection
        .prepare_cached("DELETE FROM document_snapshot WHERE scope_id = ?1 AND number = ?2")?;
    for (number, text, is_latest) in gone {
        if is_latest {
            remove_units(connection, scope_id, number, &text)?;
        }
        let keys = indexed(number, &text).into_iter();
        erased.units.extend(keys.map(|(key, _)| (Namespace::Document, key)));
        delete.execute((scope_id, number))?;
    }
    erased.documents += connection
        .prepare_cached(
            "DELETE FROM document WHERE scope_id = ?1 AND NOT EXISTS (SELECT 1
               FROM document_snapshot s WHERE s.scope_id = ?1 AND s.document_id = document.id)",
        )?
        .execute([scope_id])? as u64;
    Ok(())
}

/// Columns of [`read_info`], of a document `d` and its snapshot `s`.
const INFO: &str = "s.number, d.vault, d.memory, s.context, s.actor, s.etag,
    length(CAST(s.text AS BLOB)), s.created_at";

fn read_info(row: &Row<'_>) -> rusqlite::Result<SnapshotInfo> {
    let text = |at: usize| row.get::<_, String>(at);
    Ok(SnapshotInfo {
        number: row.get(0)?,
        vault: VaultId::new(text(1)?).map_err(stored_wrongly)?,
        memory: MemoryId::new(text(2)?).map_err(stored_wrongly)?,
        context: ContextId::new(text(3)?).map_err(stored_wrongly)?,
        actor: ActorId::new(text(4)?).map_err(stored_wrongly)?,
        etag: Etag::from_bytes(row.get(5)?),
        bytes: row.get(6)?,
        created_at: row.get::<_, At>(7)?.0,
    })
}

fn read_snapshot(row: &Row<'_>) -> rusqlite::Result<Snapshot> {
    Ok(Snapshot { info: read_info(row)?, text: row.get(8)? })
}

const OF_MEMORY: &str = "FROM document d
    JOIN document_snapshot s ON s.scope_id = d.scope_id AND s.document_id = d.id
    WHERE d.scope_id = ?1 AND d.vault = ?2 AND d.memory = ?3";

#[async_trait]
impl DocumentRepo for SqliteStore {
    async fn document(
        &self,
        scope: &Scope,
        vault: &VaultId,
        memory: &MemoryId,
    ) -> Result<Option<Snapshot>> {
        let (vault, memory) = (vault.clone(), memory.clone());
        let found = self.read_scope(scope, move |connection, scope_id| {
            connection
                .prepare_cached(&format!(
                    "SELECT {INFO}, s.text {OF_MEMORY} AND s.number = d.latest"
                ))?
                .query_row(params![scope_id, vault.as_str(), memory.as_str()], read_snapshot)
                .optional()
        });
        Ok(found.await?.flatten())
    }

    async fn snapshot(
        &self,
        scope: &Scope,
        vault: &VaultId,
        memory: &MemoryId,
        context: &ContextId,
    ) -> Result<Option<Snapshot>> {
        let (vault, memory, context) = (vault.clone(), memory.clone(), context.clone());
        let found = self.read_scope(scope, move |connection, scope_id| {
            let names = params![scope_id, vault.as_str(), memory.as_str(), context.as_str()];
            connection
                .prepare_cached(&format!("SELECT {INFO}, s.text {OF_MEMORY} AND s.context = ?4"))?
                .query_row(names, read_snapshot)
                .optional()
        });
        Ok(found.await?.flatten())
    }

    async fn snapshots(
        &self,
        scope: &Scope,
        vault: &VaultId,
        memory: &MemoryId,
        page: &PageRequest,
    ) -> Result<Page<SnapshotInfo>> {
        let (vault, memory) = (vault.clone(), memory.clone());
        let (limit, before) = (page.limit(), page.position().unwrap_or(u64::MAX));
        let rows = self.read_scope(scope, move |connection, scope_id| {
            connection
                .prepare_cached(&format!(
                    "SELECT {INFO} {OF_MEMORY} AND s.number < ?4 ORDER BY s.number DESC LIMIT ?5"
                ))?
                .query_map(
                    params![
                        scope_id,
                        vault.as_str(),
                        memory.as_str(),
                        bounded(before),
                        bounded(limit + 1)
                    ],
                    |row| read_info(row).map(|info| (u64::from(info.number), info)),
                )?
                .collect()
        });
        Ok(Page::from_rows(rows.await?.unwrap_or_default(), limit))
    }

    async fn latest_documents(
        &self,
        scope: &Scope,
        numbers: &[u32],
        most_bytes: u64,
    ) -> Result<Vec<Snapshot>> {
        let numbers = numbers.to_vec();
        let found = self.read_scope(scope, move |connection, scope_id| {
            let mut one = connection.prepare_cached(&format!(
                "SELECT {INFO}, s.text FROM document_snapshot s
                 JOIN document d ON d.scope_id = s.scope_id AND d.id = s.document_id
                 WHERE s.scope_id = ?1 AND s.number = ?2 AND d.latest = s.number"
            ))?;
            let (mut found, mut bytes) = (Vec::new(), 0);
            for number in numbers {
                if bytes >= most_bytes {
                    break;
                }
                let held = one.query_row((scope_id, number), read_snapshot).optional()?;
                bytes += held.as_ref().map_or(0, |held| held.info.bytes);
                found.extend(held);
            }
            Ok(found)
        });
        Ok(found.await?.unwrap_or_default())
    }

    async fn latest_numbers(&self, scope: &Scope, vault: Option<&VaultId>) -> Result<Vec<u32>> {
        let vault = vault.cloned();
        let found = self.read_scope(scope, move |connection, scope_id| {
            connection
                .prepare_cached(
                    "SELECT latest FROM document WHERE scope_id = ?1 AND (?2 IS NULL OR vault = ?2)
                     ORDER BY latest",
                )?
                .query_map(params![scope_id, vault.as_ref().map(VaultId::as_str)], |row| {
                    row.get(0)
                })?
                .collect()
        });
        Ok(found.await?.unwrap_or_default())
    }

    async fn vaults(&self, scope: &Scope, page: &PageRequest) -> Result<Page<Vault>> {
        let (limit, after) = (page.limit(), page.position().unwrap_or(0));
        let rows = self.read_scope(scope, move |connection, scope_id| {
            connection
                .prepare_cached(
                    "SELECT min(d.id), d.vault, count(*), max(s.created_at) FROM document d
                     JOIN document_snapshot s ON s.scope_id = d.scope_id AND s.number = d.latest
                     WHERE d.scope_id = ?1 GROUP BY d.vault HAVING min(d.id) > ?2
                     ORDER BY 1 LIMIT ?3",
                )?
                .query_map(params![scope_id, bounded(after), bounded(limit + 1)], |row| {
                    let id = VaultId::new(row.get::<_, String>(1)?).map_err(stored_wrongly)?;
                    let updated_at = row.get::<_, At>(3)?.0;
                    Ok((row.get(0)?, Vault { id, memories: row.get(2)?, updated_at }))
                })?
                .collect()
        });
        Ok(Page::from_rows(rows.await?.unwrap_or_default(), limit))
    }

    async fn memories(
        &self,
        scope: &Scope,
        vault: Option<&VaultId>,
        page: &PageRequest,
    ) -> Result<Page<Memory>> {
        let vault = vault.cloned();
        let (limit, after) = (page.limit(), page.position().unwrap_or(0));
        let rows = self.read_scope(scope, move |connection, scope_id| {
            connection
                .prepare_cached(&format!(
                    "SELECT {INFO}, d.id, (SELECT count(*) FROM document_snapshot c
                       WHERE c.scope_id = d.scope_id AND c.document_id = d.id)
                     FROM document d
                     JOIN document_snapshot s ON s.scope_id = d.scope_id AND s.number = d.latest
                     WHERE d.scope_id = ?1 AND (?2 IS NULL OR d.vault = ?2) AND d.id > ?3
                     ORDER BY d.id LIMIT ?4"
                ))?
                .query_map(
                    params![
                        scope_id,
                        vault.as_ref().map(VaultId::as_str),
                        bounded(after),
                        bounded(limit + 1)
                    ],
                    |row| {
                        let latest = read_info(row)?;
                        Ok((row.get(8)?, Memory { latest, snapshots: row.get(9)? }))
                    },
                )?
                .collect()
        });
        Ok(Page::from_rows(rows.await?.unwrap_or_default(), limit))
    }
}
