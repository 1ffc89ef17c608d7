//! Rules and profile cards.

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, params};
use throughline_core::ports::ProfileRepo;
use throughline_core::scope::Profile;
use throughline_core::{Result, Scope};

use crate::records::At;
use crate::store::SqliteStore;

pub(crate) fn put(
    connection: &Connection,
    scope_id: i64,
    profile: &Profile,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO profile (scope_id, rules, card, version, updated_at)
             VALUES (?1, ?2, ?3, ?4, ?5)
             ON CONFLICT DO UPDATE SET rules = ?2, card = ?3, version = ?4, updated_at = ?5",
        )?
        .execute(params![
            scope_id,
            profile.rules,
            profile.card,
            profile.version,
            At(profile.updated_at)
        ])
        .map(|_| ())
}

fn get(connection: &Connection, scope_id: i64) -> rusqlite::Result<Option<Profile>> {
    connection
        .prepare_cached("SELECT rules, card, version, updated_at FROM profile WHERE scope_id = ?1")?
        .query_row([scope_id], |row| {
            Ok(Profile {
                rules: row.get(0)?,
                card: row.get(1)?,
                version: row.get(2)?,
                updated_at: row.get::<_, At>(3)?.0,
            })
        })
        .optional()
}

pub(crate) fn version(connection: &Connection, scope_id: i64) -> rusqlite::Result<Option<u64>> {
    Ok(get(connection, scope_id)?.map(|profile| profile.version))
}

#[async_trait]
impl ProfileRepo for SqliteStore {
    async fn profile(&self, scope: &Scope) -> Result<Option<Profile>> {
        Ok(self.read_scope(scope, get).await?.flatten())
    }
}
