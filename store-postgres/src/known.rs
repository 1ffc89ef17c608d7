//! What facts of a batch are met with beside facts: rejected values, and the earlier messages that state them.

use std::collections::{HashMap, HashSet};

use sqlx::Row;
use sqlx::postgres::PgRow;
use throughline_core::fact::RejectionKey;
use uuid::Uuid;

use crate::apply::Source;
use crate::records::{number, stored_wrongly};
use crate::timed::Timed;

pub(crate) fn bytes(keys: &[RejectionKey]) -> Vec<&[u8]> {
    keys.iter().map(|key| key.as_bytes().as_slice()).collect()
}

/// Messages of the scope as sources of facts that come with later ones.
pub(crate) async fn said_earlier(
    connection: &mut Timed,
    scope: Uuid,
    messages: Vec<Uuid>,
) -> sqlx::Result<HashMap<Uuid, Source>> {
    if messages.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = sqlx::query(
        "SELECT id, session_number, seq FROM message WHERE scope = $1 AND id = ANY($2)",
    )
    .bind(scope)
    .bind(messages)
    .fetch_all(connection)
    .await?;
    let source = |row: &PgRow| {
        let (message, session_number) = (row.try_get(0)?, number(row.try_get(1)?)?);
        Ok((message, Source { session_number, message, seq: number(row.try_get(2)?)? }))
    };
    rows.iter().map(source).collect()
}

/// Those of the keys that are rejected.
pub(crate) async fn rejected(
    connection: &mut Timed,
    scope: Uuid,
    keys: &[RejectionKey],
) -> sqlx::Result<HashSet<RejectionKey>> {
    if keys.is_empty() {
        return Ok(HashSet::new());
    }
    let found: Vec<Vec<u8>> =
        sqlx::query_scalar("SELECT key FROM rejection WHERE scope = $1 AND key = ANY($2)")
            .bind(scope)
            .bind(bytes(keys))
            .fetch_all(connection)
            .await?;
    let key = |found: Vec<u8>| {
        let bytes = found.try_into().map_err(|_| stored_wrongly("a key of other than 16 bytes"))?;
        Ok(RejectionKey::from_bytes(bytes))
    };
    found.into_iter().map(key).collect()
}
