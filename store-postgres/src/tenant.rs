//! What belongs to a tenant as a whole. A batch holds the tenant's row, so that what its preconditions
//! found holds until it is committed; what it keeps and removes is in `tenant_write`.

use async_trait::async_trait;
use sqlx::Row;
use sqlx::postgres::PgRow;
use throughline_core::Result;
use throughline_core::access::{ApiKey, AuditEntry, KeyUser, Permissions, Rate};
use throughline_core::ids::{KeyId, SessionId, ShareId, TenantId, UserId, WorkspaceId};
use throughline_core::page::{Page, PageRequest};
use throughline_core::ports::{TenantBatch, TenantPrecondition, TenantRepo};
use throughline_core::scope::Scope;
use throughline_core::session::Share;
use throughline_core::settings::TenantSettings;
use throughline_core::time::Timestamp;
use throughline_core::usage::{ModelUse, UsageDay};
use uuid::Uuid;

use crate::connection::mapped;
use crate::records::{
    at, bounded, number, parsed, scope_of, scope_parts, stored_wrongly, tenant_key,
};
use crate::store::{Bounded, PostgresStore};
use crate::tenant_write;
use crate::timed::Timed;

/// The number of a key's id in its column: all 64 bits count.
pub(crate) fn key_bits(id: KeyId) -> i64 {
    id.to_bits().cast_signed()
}

async fn decide(write: &mut Bounded, batch: &TenantBatch) -> Result<()> {
    batch.check()?;
    let key = write.key;
    let connection = write.connection();
    mapped(tenant_write::lock(connection, key, &batch.tenant).await, "apply_tenant")?;
    for precondition in &batch.preconditions {
        let version = mapped(version(connection, key, *precondition).await, "apply_tenant")?;
        precondition.check(version)?;
    }
    for write in &batch.writes {
        tenant_write::apply(connection, key, batch, write).await?;
    }
    mapped(tenant_write::count_keys(connection, key).await, "apply_tenant")
}

/// The version of what a precondition names.
async fn version(
    connection: &mut Timed,
    tenant: Uuid,
    precondition: TenantPrecondition,
) -> sqlx::Result<Option<u64>> {
    let held: Option<i64> = match precondition {
        TenantPrecondition::NoKey(id) => {
            tenant_write::present(connection, id).await?;
            sqlx::query_scalar("SELECT version FROM api_key WHERE id = $1")
                .bind(key_bits(id))
                .fetch_optional(connection)
                .await?
        }
        TenantPrecondition::KeyVersion(id, _) => {
            sqlx::query_scalar("SELECT version FROM api_key WHERE id = $1 AND tenant = $2")
                .bind(key_bits(id))
                .bind(tenant)
                .fetch_optional(connection)
                .await?
        }
        TenantPrecondition::SettingsVersion(_) => {
            return Ok(settings(connection, tenant).await?.map(|held| held.version));
        }
    };
    held.map(number).transpose()
}

macro_rules! key_columns {
    () => {
        "k.number, k.id, t.name, k.version, k.created_at, k.expires_at, k.revoked_at, \
         k.last_used_at, k.previous_until, k.rate_most, k.rate_per, k.hash, k.previous_hash, \
         k.user_id, k.workspace, k.permissions, k.name \
         FROM api_key k JOIN tenant t ON t.key = k.tenant"
    };
}

fn read_key(row: &PgRow) -> sqlx::Result<(u64, ApiKey)> {
    let instant = |column| row.try_get::<Option<i64>, _>(column).map(|stored| stored.map(at));
    let hash = |stored: Vec<u8>| {
        <[u8; 32]>::try_from(stored).map_err(|_| stored_wrongly("a hash of another length"))
    };
    let rate = |(most, per): (i64, i64)| -> sqlx::Result<Rate> {
        Ok(Rate { most: number(most)?, per: std::time::Duration::from_micros(number(per)?) })
    };
    let rate_most: Option<i64> = row.try_get(9)?;
    let previous = row.try_get::<Option<Vec<u8>>, _>(12)?.map(hash).transpose()?;
    let user: Option<String> = row.try_get(13)?;
    let workspace: Option<String> = row.try_get(14)?;
    let key = ApiKey {
        id: KeyId::from_bits(row.try_get::<i64, _>(1)?.cast_unsigned()),
        tenant: TenantId::new(row.try_get::<String, _>(2)?).map_err(stored_wrongly)?,
        version: number(row.try_get(3)?)?,
        created_at: at(row.try_get(4)?),
        expires_at: instant(5)?,
        revoked_at: instant(6)?,
        last_used_at: instant(7)?,
        previous: previous.zip(instant(8)?),
        rate: rate_most.zip(row.try_get(10)?).map(rate).transpose()?,
        hash: hash(row.try_get(11)?)?,
        user: match user {
            Some(user) => KeyUser::Is(UserId::new(user).map_err(stored_wrongly)?),
            None => KeyUser::Any,
        },
        workspace: workspace.map(WorkspaceId::new).transpose().map_err(stored_wrongly)?,
        permissions: Permissions::parse(row.try_get(15)?).map_err(stored_wrongly)?,
        name: row.try_get(16)?,
    };
    Ok((number(row.try_get(0)?)?, key))
}

fn read_model_use(row: &PgRow) -> sqlx::Result<ModelUse> {
    Ok(ModelUse {
        day: UsageDay::from_days(row.try_get(0)?),
        work: parsed(row.try_get(1)?)?,
        model: row.try_get(2)?,
        calls: number(row.try_get(3)?)?,
        input: number(row.try_get(4)?)?,
        cached_input: number(row.try_get(5)?)?,
        output: number(row.try_get(6)?)?,
        micro_usd: number(row.try_get(7)?)?,
    })
}

fn read_settings(row: &PgRow) -> sqlx::Result<TenantSettings> {
    let budget: Option<i64> = row.try_get(2)?;
    let tier: Option<String> = row.try_get(3)?;
    Ok(TenantSettings {
        version: number(row.try_get(0)?)?,
        updated_at: at(row.try_get(1)?),
        token_budget: budget.map(number).transpose()?,
        tier: tier.as_deref().map(parsed).transpose()?,
        flags: TenantSettings::parse_flags(row.try_get(4)?).map_err(stored_wrongly)?,
        models: TenantSettings::parse_models(row.try_get(5)?).map_err(stored_wrongly)?,
        client_config: row.try_get(6)?,
    })
}

async fn settings(connection: &mut Timed, tenant: Uuid) -> sqlx::Result<Option<TenantSettings>> {
    let row = sqlx::query(
        "SELECT version, updated_at, token_budget, tier, flags, models, client_config
         FROM tenant_settings WHERE tenant = $1",
    )
    .bind(tenant)
    .fetch_optional(connection)
    .await?;
    row.as_ref().map(read_settings).transpose()
}

/// A grant, with its members beside it.
macro_rules! share_columns {
    () => {
        "s.number, s.id, s.user_id, s.workspace, s.session, s.writable, s.created_at, \
         ARRAY(SELECT m.user_id FROM share_member m WHERE m.tenant = $1 AND m.share_id = s.id)"
    };
}

fn read_share(row: &PgRow, tenant: &TenantId) -> sqlx::Result<(u64, Share)> {
    let members: Vec<String> = row.try_get(7)?;
    let share = Share {
        id: ShareId::from_uuid(row.try_get(1)?),
        owner: scope_of(tenant.as_str(), row.try_get(2)?, row.try_get(3)?)?,
        session: SessionId::new(row.try_get::<String, _>(4)?).map_err(stored_wrongly)?,
        writable: row.try_get::<i64, _>(5)? != 0,
        created_at: at(row.try_get(6)?),
        members: members
            .into_iter()
            .map(|user| UserId::new(user).map_err(stored_wrongly))
            .collect::<sqlx::Result<_>>()?,
    };
    Ok((number(row.try_get(0)?)?, share))
}

fn read_entry(row: &PgRow) -> sqlx::Result<(u64, AuditEntry)> {
    let key: Option<i64> = row.try_get(2)?;
    let entry = AuditEntry {
        at: at(row.try_get(1)?),
        key: key.map(|bits| KeyId::from_bits(bits.cast_unsigned())),
        action: row.try_get(3)?,
        target: row.try_get(4)?,
        outcome: row.try_get(5)?,
        actor: parsed(row.try_get(6)?)?,
    };
    Ok((number(row.try_get(0)?)?, entry))
}

#[async_trait]
impl TenantRepo for PostgresStore {
    async fn apply_tenant(&self, batch: TenantBatch) -> Result<()> {
        let mut write = self.write_tenant(tenant_key(&batch.tenant)).await?;
        match decide(&mut write, &batch).await {
            Ok(()) => write.commit().await,
            Err(error) => {
                // Who hears of it may go on at once: nothing of the batch is held any more.
                write.rollback().await;
                Err(error)
            }
        }
    }

    async fn key(&self, id: KeyId) -> Result<Option<ApiKey>> {
        let mut read = self.read_key(id).await?;
        let row = sqlx::query(concat!("SELECT ", key_columns!(), " WHERE k.id = $1"))
            .bind(key_bits(id))
            .fetch_optional(read.connection())
            .await;
        let key = row.and_then(|row| row.as_ref().map(read_key).transpose());
        Ok(mapped(key, "key")?.map(|(_, key)| key))
    }

    async fn has_keys(&self) -> Result<bool> {
        let mut work = self.work().await?;
        let any = sqlx::query_scalar("SELECT EXISTS (SELECT FROM tenant WHERE keys > 0)");
        mapped(any.fetch_one(work.connection()).await, "has_keys")
    }

    async fn keys(&self, tenant: &TenantId, page: &PageRequest) -> Result<Page<ApiKey>> {
        let mut read = self.read_tenant(tenant_key(tenant)).await?;
        let rows = sqlx::query(concat!(
            "SELECT ",
            key_columns!(),
            " WHERE k.tenant = $1 AND k.number > $2 ORDER BY k.number LIMIT $3"
        ))
        .bind(read.key)
        .bind(bounded(page.position().unwrap_or(0)))
        .bind(bounded(page.limit() + 1))
        .fetch_all(read.connection())
        .await;
        let found = rows.and_then(|rows| rows.iter().map(read_key).collect());
        Ok(Page::from_rows(mapped(found, "keys")?, page.limit()))
    }

    async fn touch_key(&self, tenant: &TenantId, id: KeyId, at: Timestamp) -> Result<()> {
        let mut write = self.write_tenant(tenant_key(tenant)).await?;
        let touched = sqlx::query(
            "UPDATE api_key SET last_used_at = $3 WHERE tenant = $1 AND id = $2
               AND (last_used_at IS NULL OR last_used_at < $3)",
        )
        .bind(write.key)
        .bind(key_bits(id))
        .bind(at.as_micros())
        .execute(write.connection())
        .await;
        mapped(touched, "touch_key")?;
        write.commit().await
    }

    async fn settings(&self, tenant: &TenantId) -> Result<Option<TenantSettings>> {
        let mut read = self.read_tenant(tenant_key(tenant)).await?;
        let key = read.key;
        mapped(settings(read.connection(), key).await, "settings")
    }

    async fn share(&self, tenant: &TenantId, id: ShareId) -> Result<Option<Share>> {
        let mut read = self.read_tenant(tenant_key(tenant)).await?;
        let row = sqlx::query(concat!(
            "SELECT ",
            share_columns!(),
            " FROM share s WHERE s.tenant = $1 AND s.id = $2"
        ))
        .bind(read.key)
        .bind(id.as_uuid())
        .fetch_optional(read.connection())
        .await;
        let share = row.and_then(|row| row.map(|row| read_share(&row, tenant)).transpose());
        Ok(mapped(share, "share")?.map(|(_, share)| share))
    }

    async fn share_of(&self, owner: &Scope, session: &SessionId) -> Result<Option<Share>> {
        let mut read = self.read_tenant(tenant_key(&owner.tenant)).await?;
        let [_, user, workspace] = scope_parts(owner);
        let row = sqlx::query(concat!(
            "SELECT ",
            share_columns!(),
            " FROM share s
             WHERE s.tenant = $1 AND s.user_id = $2 AND s.workspace = $3 AND s.session = $4"
        ))
        .bind(read.key)
        .bind(user)
        .bind(workspace)
        .bind(session.as_str())
        .fetch_optional(read.connection())
        .await;
        let share = row.and_then(|row| row.map(|row| read_share(&row, &owner.tenant)).transpose());
        Ok(mapped(share, "share_of")?.map(|(_, share)| share))
    }

    async fn shared_with(
        &self,
        tenant: &TenantId,
        user: &UserId,
        page: &PageRequest,
    ) -> Result<Page<Share>> {
        let mut read = self.read_tenant(tenant_key(tenant)).await?;
        let rows = sqlx::query(concat!(
            "SELECT ",
            share_columns!(),
            " FROM share_member w JOIN share s ON s.tenant = w.tenant AND s.id = w.share_id
             WHERE w.tenant = $1 AND w.user_id = $2 AND s.number > $3 ORDER BY s.number LIMIT $4"
        ))
        .bind(read.key)
        .bind(user.as_str())
        .bind(bounded(page.position().unwrap_or(0)))
        .bind(bounded(page.limit() + 1))
        .fetch_all(read.connection())
        .await;
        let shares = |rows: Vec<PgRow>| rows.iter().map(|row| read_share(row, tenant)).collect();
        Ok(Page::from_rows(mapped(rows.and_then(shares), "shared_with")?, page.limit()))
    }

    async fn model_use(
        &self,
        tenant: &TenantId,
        from: UsageDay,
        to: UsageDay,
    ) -> Result<Vec<ModelUse>> {
        let mut read = self.read_tenant(tenant_key(tenant)).await?;
        let rows = sqlx::query(
            "SELECT day, work, model, calls, input, cached_input, output, micro_usd FROM model_use
             WHERE tenant = $1 AND day BETWEEN $2 AND $3 ORDER BY day, work, model",
        )
        .bind(read.key)
        .bind(from.days())
        .bind(to.days())
        .fetch_all(read.connection())
        .await;
        mapped(rows.and_then(|rows| rows.iter().map(read_model_use).collect()), "model_use")
    }

    async fn audit(&self, tenant: &TenantId, page: &PageRequest) -> Result<Page<AuditEntry>> {
        let mut read = self.read_tenant(tenant_key(tenant)).await?;
        let rows = sqlx::query(
            "SELECT number, at, key_id, action, target, outcome, actor FROM audit
             WHERE tenant = $1 AND number > $2 ORDER BY number LIMIT $3",
        )
        .bind(read.key)
        .bind(bounded(page.position().unwrap_or(0)))
        .bind(bounded(page.limit() + 1))
        .fetch_all(read.connection())
        .await;
        let found = rows.and_then(|rows| rows.iter().map(read_entry).collect());
        Ok(Page::from_rows(mapped(found, "audit")?, page.limit()))
    }
}
