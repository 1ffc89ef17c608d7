//! What facts of a batch are met with beside facts: rejected values, and the earlier messages that state them.

use std::collections::{HashMap, HashSet};

use sqlx::Row;
use sqlx::postgres::PgRow;
use throughline_core::fact::{RejectionKey, SlotKey, StatementKey};
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

/// Those statements of slots that the user replaced by others.
pub(crate) async fn corrected(
    connection: &mut Timed,
    scope: Uuid,
    said: &[(SlotKey, StatementKey)],
) -> sqlx::Result<HashSet<(SlotKey, StatementKey)>> {
    if said.is_empty() {
        return Ok(HashSet::new());
    }
    let found: Vec<(i64, i64)> = sqlx::query_as(
        "SELECT o.slot, o.statement FROM unnest($2::bigint[], $3::bigint[]) AS s (slot, statement)
         JOIN fact o ON o.scope = $1 AND o.slot = s.slot AND o.statement = s.statement
           AND o.superseded_by IS NOT NULL
         JOIN fact n ON n.scope = $1 AND n.id = o.superseded_by AND n.actor IN ('user', 'api')
           AND n.statement <> o.statement",
    )
    .bind(scope)
    .bind(said.iter().map(|(slot, _)| slot.to_bits().cast_signed()).collect::<Vec<i64>>())
    .bind(said.iter().map(|(_, said)| said.to_bits().cast_signed()).collect::<Vec<i64>>())
    .fetch_all(connection)
    .await?;
    let keys = |(slot, said): (i64, i64)| {
        (SlotKey::from_bits(slot.cast_unsigned()), StatementKey::from_bits(said.cast_unsigned()))
    };
    Ok(found.into_iter().map(keys).collect())
}
