//! Rules and profile cards.

use async_trait::async_trait;
use sqlx::Row;
use sqlx::postgres::PgRow;
use throughline_core::ports::ProfileRepo;
use throughline_core::scope::Profile;
use throughline_core::{Result, Scope};
use uuid::Uuid;

use crate::connection::mapped;
use crate::records::{at, bounded, number};
use crate::store::PostgresStore;
use crate::timed::Timed;

pub(crate) async fn put(
    connection: &mut Timed,
    scope: Uuid,
    profile: &Profile,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO profile (scope, rules, card, version, updated_at) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (scope) DO UPDATE SET rules = $2, card = $3, version = $4, updated_at = $5",
    )
    .bind(scope)
    .bind(&profile.rules)
    .bind(&profile.card)
    .bind(bounded(profile.version))
    .bind(profile.updated_at.as_micros())
    .execute(connection)
    .await
    .map(|_| ())
}

fn read_profile(row: &PgRow) -> sqlx::Result<Profile> {
    Ok(Profile {
        rules: row.try_get(0)?,
        card: row.try_get(1)?,
        version: number(row.try_get(2)?)?,
        updated_at: at(row.try_get(3)?),
    })
}

pub(crate) async fn get(connection: &mut Timed, scope: Uuid) -> sqlx::Result<Option<Profile>> {
    let row = sqlx::query("SELECT rules, card, version, updated_at FROM profile WHERE scope = $1")
        .bind(scope)
        .fetch_optional(connection)
        .await?;
    row.as_ref().map(read_profile).transpose()
}

#[async_trait]
impl ProfileRepo for PostgresStore {
    async fn profile(&self, scope: &Scope) -> Result<Option<Profile>> {
        let mut read = self.read(scope).await?;
        let key = read.key;
        mapped(get(read.connection(), key).await, "profile")
    }
}
