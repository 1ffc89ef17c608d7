//! Files that sessions refer to.

use async_trait::async_trait;
use sqlx::Row;
use sqlx::postgres::PgRow;
use throughline_core::ids::{FileRefId, MessageId, SessionId};
use throughline_core::ports::{FileList, FileRepo};
use throughline_core::session::FileRef;
use throughline_core::{Result, Scope};
use uuid::Uuid;

use crate::connection::mapped;
use crate::records::{at, bounded, number, parsed};
use crate::sessions::session_number;
use crate::store::PostgresStore;
use crate::timed::Timed;

pub(crate) async fn put(
    connection: &mut Timed,
    scope: Uuid,
    session_number: u32,
    file: &FileRef,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO file_ref (scope, id, session_number, created_at, message_id, kind, title,
           reference, metadata)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (scope, id) DO UPDATE SET session_number = $3, created_at = $4,
           message_id = $5, kind = $6, title = $7, reference = $8, metadata = $9",
    )
    .bind(scope)
    .bind(file.id.as_uuid())
    .bind(i64::from(session_number))
    .bind(file.created_at.as_micros())
    .bind(file.message.map(|id| id.as_uuid()))
    .bind(file.kind.as_str())
    .bind(&file.title)
    .bind(&file.reference)
    .bind(&file.metadata)
    .execute(connection)
    .await
    .map(|_| ())
}

/// Keeps a list where its revision is the next; tells whether it is.
pub(crate) async fn put_list(
    connection: &mut Timed,
    scope: Uuid,
    session_number: u32,
    list: &FileList,
) -> sqlx::Result<bool> {
    let put = sqlx::query(
        "INSERT INTO file_list (scope, session_number, revision, list, sent)
         SELECT $1, $2, $3, $4, $5 WHERE $3 = 1 + coalesce(
           (SELECT revision FROM file_list WHERE scope = $1 AND session_number = $2), 0)
         ON CONFLICT (scope, session_number) DO UPDATE SET revision = $3, list = $4, sent = $5",
    )
    .bind(scope)
    .bind(i64::from(session_number))
    .bind(bounded(list.revision))
    .bind(&list.bytes)
    .bind(list.sent.as_bytes())
    .execute(connection)
    .await?;
    Ok(put.rows_affected() > 0)
}

fn read_list(row: &PgRow) -> sqlx::Result<FileList> {
    let sent = String::from_utf8(row.try_get(2)?);
    let sent = sent.map_err(|error| sqlx::Error::Decode(error.into()))?;
    Ok(FileList { revision: number(row.try_get(0)?)?, bytes: row.try_get(1)?, sent })
}

fn read_file(row: &PgRow, session: &SessionId) -> sqlx::Result<FileRef> {
    Ok(FileRef {
        id: FileRefId::from_uuid(row.try_get(0)?),
        session: session.clone(),
        created_at: at(row.try_get(1)?),
        message: row.try_get::<Option<Uuid>, _>(2)?.map(MessageId::from_uuid),
        kind: parsed(row.try_get(3)?)?,
        title: row.try_get(4)?,
        reference: row.try_get(5)?,
        metadata: row.try_get(6)?,
    })
}

#[async_trait]
impl FileRepo for PostgresStore {
    async fn files(
        &self,
        scope: &Scope,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<FileRef>> {
        let mut read = self.read(scope).await?;
        let rows = sqlx::query(concat!(
            "SELECT id, created_at, message_id, kind, title, reference, metadata FROM file_ref
             WHERE scope = $1 AND session_number = ",
            session_number!(),
            " ORDER BY created_at DESC, id DESC LIMIT $3"
        ))
        .bind(read.key)
        .bind(session.as_str())
        .bind(bounded(limit))
        .fetch_all(read.connection())
        .await;
        let files = |rows: Vec<PgRow>| rows.iter().map(|row| read_file(row, session)).collect();
        mapped(rows.and_then(files), "files")
    }

    async fn file_list(&self, scope: &Scope, session: &SessionId) -> Result<Option<FileList>> {
        let mut read = self.read(scope).await?;
        let row = sqlx::query(concat!(
            "SELECT revision, list, sent FROM file_list WHERE scope = $1 AND session_number = ",
            session_number!()
        ))
        .bind(read.key)
        .bind(session.as_str())
        .fetch_optional(read.connection())
        .await;
        mapped(row.and_then(|row| row.as_ref().map(read_list).transpose()), "file_list")
    }
}
