//! Applies a batch of a tenant.

use throughline_core::Result;
use throughline_core::access::{ApiKey, AuditEntry, KeyUser};
use throughline_core::ids::{KeyId, ShareId, TenantId, UserId, WorkspaceId};
use throughline_core::ports::{TenantBatch, TenantWrite};
use throughline_core::session::Share;
use throughline_core::settings::TenantSettings;
use throughline_core::time::Timestamp;
use throughline_core::turn::Tier;
use throughline_core::usage::ModelUse;
use uuid::Uuid;

use crate::connection::mapped;
use crate::records::{bounded, scope_parts};
use crate::tenant::key_bits;
use crate::timed::Timed;

/// The tenant's row, locked until the batch is committed.
pub(crate) async fn lock(connection: &mut Timed, key: Uuid, tenant: &TenantId) -> sqlx::Result<()> {
    let lock = "SELECT 1 FROM tenant WHERE key = $1 FOR UPDATE";
    if sqlx::query(lock).bind(key).fetch_optional(&mut *connection).await?.is_some() {
        return Ok(());
    }
    sqlx::query("INSERT INTO tenant (key, name) VALUES ($1, $2) ON CONFLICT DO NOTHING")
        .bind(key)
        .bind(tenant.as_str())
        .execute(&mut *connection)
        .await?;
    sqlx::query(lock).bind(key).fetch_one(connection).await.map(|_| ())
}

/// Shows this transaction the key with this id, whose tenant it may not know.
pub(crate) async fn present(connection: &mut Timed, id: KeyId) -> sqlx::Result<()> {
    sqlx::query("SELECT set_config('throughline.key', $1, true)")
        .bind(key_bits(id).to_string())
        .execute(connection)
        .await
        .map(|_| ())
}

/// How many keys there are, so that a worker can tell whether there is one and sees none.
pub(crate) async fn count_keys(connection: &mut Timed, tenant: Uuid) -> sqlx::Result<()> {
    sqlx::query(
        "UPDATE tenant t SET keys = held.keys
         FROM (SELECT count(*) AS keys FROM api_key WHERE tenant = $1) held
         WHERE t.key = $1 AND t.keys <> held.keys",
    )
    .bind(tenant)
    .execute(connection)
    .await
    .map(|_| ())
}

pub(crate) async fn apply(
    connection: &mut Timed,
    key: Uuid,
    batch: &TenantBatch,
    write: &TenantWrite,
) -> Result<()> {
    let written = match write {
        TenantWrite::PutKey(new) => {
            if !mapped(put_key(connection, key, new).await, "apply_tenant")? {
                return Err(batch.taken(new.id));
            }
            Ok(())
        }
        TenantWrite::PutShare(share) => put_share(connection, key, share).await,
        TenantWrite::PutSettings(settings) => put_settings(connection, key, settings).await,
        TenantWrite::RemoveShare(id) => remove_share(connection, key, *id).await,
        TenantWrite::RemoveUser(user) => remove_user(connection, key, user).await,
        TenantWrite::Audit(entry) => put_entry(connection, key, entry).await,
        TenantWrite::AddModelUse(used) => add_model_use(connection, key, used).await,
    };
    mapped(written, "apply_tenant")
}

/// Whether it was kept: the id may be another tenant's. Where that makes it at the same time, the second
/// to commit has lost a race.
async fn put_key(connection: &mut Timed, tenant: Uuid, key: &ApiKey) -> sqlx::Result<bool> {
    present(connection, key.id).await?;
    let others = sqlx::query("SELECT 1 FROM api_key WHERE id = $1 AND tenant <> $2")
        .bind(key_bits(key.id))
        .bind(tenant)
        .fetch_optional(&mut *connection)
        .await?;
    if others.is_some() {
        return Ok(false);
    }
    let user = match &key.user {
        KeyUser::Is(user) => Some(user.as_str()),
        KeyUser::Any => None,
    };
    let (previous_hash, previous_until) = key.previous.unzip();
    // Conflicts are those of the tenant's own keys: another's id is a violation, and so a lost race.
    sqlx::query(
        "INSERT INTO api_key AS k (id, tenant, version, created_at, expires_at, revoked_at,
           last_used_at, previous_until, rate_most, rate_per, hash, previous_hash, user_id,
           workspace, permissions, name)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16)
         ON CONFLICT (tenant, id) DO UPDATE SET version = $3, created_at = $4, expires_at = $5,
           revoked_at = $6, last_used_at = greatest(k.last_used_at, $7), previous_until = $8,
           rate_most = $9, rate_per = $10, hash = $11, previous_hash = $12, user_id = $13,
           workspace = $14, permissions = $15, name = $16",
    )
    .bind(key_bits(key.id))
    .bind(tenant)
    .bind(bounded(key.version))
    .bind(key.created_at.as_micros())
    .bind(key.expires_at.map(Timestamp::as_micros))
    .bind(key.revoked_at.map(Timestamp::as_micros))
    .bind(key.last_used_at.map(Timestamp::as_micros))
    .bind(previous_until.map(Timestamp::as_micros))
    .bind(key.rate.map(|rate| i64::from(rate.most)))
    .bind(key.rate.map(|rate| bounded(rate.per.as_micros())))
    .bind(key.hash.as_slice())
    .bind(previous_hash.map(Vec::from))
    .bind(user)
    .bind(key.workspace.as_ref().map(WorkspaceId::as_str))
    .bind(key.permissions.to_text())
    .bind(&key.name)
    .execute(connection)
    .await
    .map(|_| true)
}

async fn put_settings(
    connection: &mut Timed,
    tenant: Uuid,
    settings: &TenantSettings,
) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO tenant_settings (tenant, version, updated_at, token_budget, tier, flags, models,
           client_config)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
         ON CONFLICT (tenant) DO UPDATE SET version = $2, updated_at = $3, token_budget = $4,
           tier = $5, flags = $6, models = $7, client_config = $8",
    )
    .bind(tenant)
    .bind(bounded(settings.version))
    .bind(settings.updated_at.as_micros())
    .bind(settings.token_budget.map(i64::from))
    .bind(settings.tier.map(Tier::as_str))
    .bind(settings.flags_text())
    .bind(settings.models_text())
    .bind(&settings.client_config)
    .execute(connection)
    .await
    .map(|_| ())
}

async fn put_share(connection: &mut Timed, tenant: Uuid, share: &Share) -> sqlx::Result<()> {
    let [_, user, workspace] = scope_parts(&share.owner);
    let id: Uuid = sqlx::query_scalar(
        "INSERT INTO share (tenant, id, created_at, writable, user_id, workspace, session)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (tenant, user_id, workspace, session) DO UPDATE SET writable = $4
         RETURNING id",
    )
    .bind(tenant)
    .bind(share.id.as_uuid())
    .bind(share.created_at.as_micros())
    .bind(i64::from(share.writable))
    .bind(user)
    .bind(workspace)
    .bind(share.session.as_str())
    .fetch_one(&mut *connection)
    .await?;
    sqlx::query("DELETE FROM share_member WHERE tenant = $1 AND share_id = $2")
        .bind(tenant)
        .bind(id)
        .execute(&mut *connection)
        .await?;
    let members: Vec<&str> = share.members.iter().map(UserId::as_str).collect();
    sqlx::query(
        "INSERT INTO share_member (tenant, share_id, user_id) SELECT $1, $2, unnest($3::text[])",
    )
    .bind(tenant)
    .bind(id)
    .bind(members)
    .execute(connection)
    .await
    .map(|_| ())
}

async fn remove_share(connection: &mut Timed, tenant: Uuid, id: ShareId) -> sqlx::Result<()> {
    for statement in [
        "DELETE FROM share_member WHERE tenant = $1 AND share_id = $2",
        "DELETE FROM share WHERE tenant = $1 AND id = $2",
    ] {
        sqlx::query(statement).bind(tenant).bind(id.as_uuid()).execute(&mut *connection).await?;
    }
    Ok(())
}

/// In this order: what a grant has of members tells whether it stays.
async fn remove_user(connection: &mut Timed, tenant: Uuid, user: &UserId) -> sqlx::Result<()> {
    for statement in [
        "DELETE FROM api_key WHERE tenant = $1 AND user_id = $2",
        "DELETE FROM share_member WHERE tenant = $1 AND share_id IN (
           SELECT id FROM share WHERE tenant = $1 AND user_id = $2)",
        "DELETE FROM share WHERE tenant = $1 AND (user_id = $2 OR id IN (
           SELECT share_id FROM share_member m WHERE tenant = $1 AND user_id = $2
             AND NOT EXISTS (SELECT FROM share_member o
               WHERE o.tenant = $1 AND o.share_id = m.share_id AND o.user_id <> $2)))",
        "DELETE FROM share_member WHERE tenant = $1 AND user_id = $2",
    ] {
        sqlx::query(statement).bind(tenant).bind(user.as_str()).execute(&mut *connection).await?;
    }
    Ok(())
}

async fn put_entry(connection: &mut Timed, tenant: Uuid, entry: &AuditEntry) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO audit (tenant, at, key_id, action, target, outcome, actor)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(tenant)
    .bind(entry.at.as_micros())
    .bind(entry.key.map(key_bits))
    .bind(&entry.action)
    .bind(&entry.target)
    .bind(&entry.outcome)
    .bind(entry.actor.as_str())
    .execute(connection)
    .await
    .map(|_| ())
}

async fn add_model_use(connection: &mut Timed, tenant: Uuid, used: &ModelUse) -> sqlx::Result<()> {
    sqlx::query(
        "INSERT INTO model_use AS u (tenant, day, work, model, calls, input, cached_input, output,
           micro_usd)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
         ON CONFLICT (tenant, day, work, model) DO UPDATE SET calls = u.calls + $5,
           input = u.input + $6, cached_input = u.cached_input + $7, output = u.output + $8,
           micro_usd = u.micro_usd + $9",
    )
    .bind(tenant)
    .bind(used.day.days())
    .bind(used.work.as_str())
    .bind(&used.model)
    .bind(bounded(used.calls))
    .bind(bounded(used.input))
    .bind(bounded(used.cached_input))
    .bind(bounded(used.output))
    .bind(bounded(used.micro_usd))
    .execute(connection)
    .await
    .map(|_| ())
}
