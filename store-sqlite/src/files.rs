//! Files that sessions refer to.

use async_trait::async_trait;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};
use throughline_core::ids::{FileRefId, SessionId};
use throughline_core::ports::{FileList, FileRepo};
use throughline_core::session::FileRef;
use throughline_core::{Result, Scope};

use crate::records::{At, Id, bounded, parsed};
use crate::sessions;
use crate::store::SqliteStore;

pub(crate) fn put(
    connection: &Connection,
    scope_id: i64,
    session_number: u32,
    file: &FileRef,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO file_ref (scope_id, id, session_number, created_at, message_id, kind, title,
               reference, metadata)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
             ON CONFLICT DO UPDATE SET session_number = ?3, created_at = ?4, message_id = ?5,
               kind = ?6, title = ?7, reference = ?8, metadata = ?9",
        )?
        .execute(params![
            scope_id,
            Id(file.id.as_uuid()),
            session_number,
            At(file.created_at),
            file.message.map(|id| Id(id.as_uuid())),
            file.kind.as_str(),
            file.title,
            file.reference,
            file.metadata
        ])
        .map(|_| ())
}

/// Keeps a list where its revision is the next; tells whether it is.
pub(crate) fn put_list(
    connection: &Connection,
    scope_id: i64,
    session_number: u32,
    list: &FileList,
) -> rusqlite::Result<bool> {
    let held = connection
        .prepare_cached(
            "SELECT revision FROM file_list WHERE scope_id = ?1 AND session_number = ?2",
        )?
        .query_row(params![scope_id, session_number], |row| row.get::<_, u64>(0))
        .optional()?;
    if list.revision != held.unwrap_or(0) + 1 {
        return Ok(false);
    }
    connection
        .prepare_cached(
            "INSERT INTO file_list (scope_id, session_number, revision, list, sent)
             VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO UPDATE SET revision = ?3, list = ?4, sent = ?5",
        )?
        .execute(params![scope_id, session_number, list.revision, list.bytes, list.sent.as_bytes()])
        .map(|_| true)
}

fn read_list(
    connection: &Connection,
    scope_id: i64,
    session_number: u32,
) -> rusqlite::Result<Option<FileList>> {
    connection
        .prepare_cached(
            "SELECT revision, list, sent FROM file_list WHERE scope_id = ?1 AND session_number = ?2",
        )?
        .query_row(params![scope_id, session_number], |row| {
            let sent = String::from_utf8(row.get(2)?).map_err(|error| {
                rusqlite::Error::FromSqlConversionFailure(2, Type::Blob, error.into())
            })?;
            Ok(FileList { revision: row.get(0)?, bytes: row.get(1)?, sent })
        })
        .optional()
}

fn read_file(row: &Row<'_>, session: &SessionId) -> rusqlite::Result<FileRef> {
    Ok(FileRef {
        id: FileRefId::from_uuid(row.get::<_, Id>(0)?.0),
        session: session.clone(),
        created_at: row.get::<_, At>(1)?.0,
        message: row.get::<_, Option<Id>>(2)?.map(Into::into),
        kind: parsed(row.get_ref(3)?.as_str()?)?,
        title: row.get(4)?,
        reference: row.get(5)?,
        metadata: row.get(6)?,
    })
}

#[async_trait]
impl FileRepo for SqliteStore {
    async fn files(
        &self,
        scope: &Scope,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<FileRef>> {
        let session = session.clone();
        let found = self
            .read_scope(scope, move |connection, scope_id| {
                let Some(number) = sessions::number(connection, scope_id, &session)? else {
                    return Ok(Vec::new());
                };
                connection
                    .prepare_cached(
                        "SELECT id, created_at, message_id, kind, title, reference, metadata
                         FROM file_ref WHERE scope_id = ?1 AND session_number = ?2
                         ORDER BY created_at DESC, id DESC LIMIT ?3",
                    )?
                    .query_map(params![scope_id, number, bounded(limit)], |row| {
                        read_file(row, &session)
                    })?
                    .collect()
            })
            .await?;
        Ok(found.unwrap_or_default())
    }

    async fn file_list(&self, scope: &Scope, session: &SessionId) -> Result<Option<FileList>> {
        let session = session.clone();
        let found = self
            .read_scope(scope, move |connection, scope_id| {
                match sessions::number(connection, scope_id, &session)? {
                    Some(number) => read_list(connection, scope_id, number),
                    None => Ok(None),
                }
            })
            .await?;
        Ok(found.flatten())
    }
}
