//! Data of a whole tenant: each batch in a transaction of the writer.

use std::collections::BTreeSet;

use async_trait::async_trait;
use rusqlite::{Connection, OptionalExtension, Row, params};
use throughline_core::Result;
use throughline_core::access::{ApiKey, AuditEntry, KeyUser, Permissions, Rate};
use throughline_core::ids::{KeyId, SessionId, ShareId, TenantId, UserId, WorkspaceId};
use throughline_core::page::{Page, PageRequest};
use throughline_core::ports::{TenantBatch, TenantPrecondition, TenantRepo, TenantWrite};
use throughline_core::scope::Scope;
use throughline_core::session::Share;
use throughline_core::settings::TenantSettings;
use throughline_core::time::Timestamp;
use throughline_core::turn::Tier;
use throughline_core::usage::{ModelUse, UsageDay};

use crate::records::{At, Bits, Id, bounded, mapped, parsed, stored_wrongly};
use crate::store::{SqliteStore, scope_columns};

/// Applies a batch. The caller rolls back when this fails.
fn apply(connection: &Connection, batch: &TenantBatch) -> Result<()> {
    batch.check()?;
    let tenant = &batch.tenant;
    for precondition in &batch.preconditions {
        precondition.check(mapped(version(connection, tenant, *precondition), "apply_tenant")?)?;
    }
    for write in &batch.writes {
        match write {
            TenantWrite::PutKey(key) => {
                if !mapped(put_key(connection, key), "apply_tenant")? {
                    return Err(batch.taken(key.id));
                }
            }
            TenantWrite::PutShare(share) => {
                mapped(put_share(connection, share), "apply_tenant")?;
            }
            TenantWrite::PutSettings(settings) => {
                mapped(put_settings(connection, tenant, settings), "apply_tenant")?;
            }
            TenantWrite::RemoveShare(id) => {
                let id = Id(id.as_uuid());
                mapped(remove_share(connection, tenant, id), "apply_tenant")?;
            }
            TenantWrite::RemoveUser(user) => {
                mapped(remove_user(connection, tenant, user), "apply_tenant")?;
            }
            TenantWrite::Audit(entry) => {
                mapped(put_entry(connection, tenant, entry), "apply_tenant")?;
            }
            TenantWrite::AddModelUse(used) => {
                mapped(add_model_use(connection, tenant, used), "apply_tenant")?;
            }
        }
    }
    Ok(())
}

/// The version of what a precondition names.
fn version(
    connection: &Connection,
    tenant: &TenantId,
    precondition: TenantPrecondition,
) -> rusqlite::Result<Option<u64>> {
    match precondition {
        TenantPrecondition::NoKey(id) => connection
            .prepare_cached("SELECT version FROM api_key WHERE id = ?1")?
            .query_row([Bits(id.to_bits())], |row| row.get(0))
            .optional(),
        TenantPrecondition::KeyVersion(id, _) => connection
            .prepare_cached("SELECT version FROM api_key WHERE id = ?1 AND tenant = ?2")?
            .query_row(params![Bits(id.to_bits()), tenant.as_str()], |row| row.get(0))
            .optional(),
        TenantPrecondition::SettingsVersion(_) => {
            Ok(settings(connection, tenant)?.map(|held| held.version))
        }
    }
}

/// Whether it was kept: the id may be another tenant's.
fn put_key(connection: &Connection, key: &ApiKey) -> rusqlite::Result<bool> {
    let user = match &key.user {
        KeyUser::Is(user) => Some(user.as_str()),
        KeyUser::Any => None,
    };
    let (previous_hash, previous_until) = key.previous.unzip();
    let kept = connection
        .prepare_cached(
            "INSERT INTO api_key (id, tenant, version, created_at, expires_at, revoked_at,
               last_used_at, previous_until, rate_most, rate_per, hash, previous_hash, user_id,
               workspace, permissions, name)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)
             ON CONFLICT (id) DO UPDATE SET version = ?3, created_at = ?4, expires_at = ?5,
               revoked_at = ?6, last_used_at = max(coalesce(last_used_at, ?7),
               coalesce(?7, last_used_at)), previous_until = ?8, rate_most = ?9, rate_per = ?10,
               hash = ?11, previous_hash = ?12, user_id = ?13, workspace = ?14, permissions = ?15,
               name = ?16
             WHERE tenant = ?2",
        )?
        .execute(params![
            Bits(key.id.to_bits()),
            key.tenant.as_str(),
            key.version,
            At(key.created_at),
            key.expires_at.map(At),
            key.revoked_at.map(At),
            key.last_used_at.map(At),
            previous_until.map(At),
            key.rate.map(|rate| rate.most),
            key.rate.map(|rate| bounded(rate.per.as_micros())),
            key.hash,
            previous_hash,
            user,
            key.workspace.as_ref().map(WorkspaceId::as_str),
            key.permissions.to_text(),
            key.name
        ])?;
    Ok(kept > 0)
}

const KEY_COLUMNS: &str = "number, id, tenant, version, created_at, expires_at, revoked_at, \
    last_used_at, previous_until, rate_most, rate_per, hash, previous_hash, user_id, workspace, \
    permissions, name";

fn read_key(row: &Row<'_>) -> rusqlite::Result<(u64, ApiKey)> {
    let at = |column| row.get::<_, Option<At>>(column).map(|at| at.map(|at| at.0));
    let rate = |most, per: u64| Rate { most, per: std::time::Duration::from_micros(per) };
    let user: Option<String> = row.get(13)?;
    let workspace: Option<String> = row.get(14)?;
    let key = ApiKey {
        id: KeyId::from_bits(row.get::<_, Bits>(1)?.0),
        tenant: TenantId::new(row.get_ref(2)?.as_str()?).map_err(stored_wrongly)?,
        version: row.get(3)?,
        created_at: row.get::<_, At>(4)?.0,
        expires_at: at(5)?,
        revoked_at: at(6)?,
        last_used_at: at(7)?,
        previous: row.get::<_, Option<[u8; 32]>>(12)?.zip(at(8)?),
        rate: row.get::<_, Option<u32>>(9)?.zip(row.get(10)?).map(|(most, per)| rate(most, per)),
        hash: row.get(11)?,
        user: match user {
            Some(user) => KeyUser::Is(UserId::new(user).map_err(stored_wrongly)?),
            None => KeyUser::Any,
        },
        workspace: workspace.map(WorkspaceId::new).transpose().map_err(stored_wrongly)?,
        permissions: Permissions::parse(row.get_ref(15)?.as_str()?).map_err(stored_wrongly)?,
        name: row.get(16)?,
    };
    Ok((row.get(0)?, key))
}

fn put_settings(
    connection: &Connection,
    tenant: &TenantId,
    settings: &TenantSettings,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO tenant_settings (tenant, version, updated_at, token_budget, tier, flags,
               models, client_config)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
             ON CONFLICT DO UPDATE SET version = ?2, updated_at = ?3, token_budget = ?4, tier = ?5,
               flags = ?6, models = ?7, client_config = ?8",
        )?
        .execute(params![
            tenant.as_str(),
            settings.version,
            At(settings.updated_at),
            settings.token_budget,
            settings.tier.map(Tier::as_str),
            settings.flags_text(),
            settings.models_text(),
            settings.client_config
        ])
        .map(|_| ())
}

fn settings(
    connection: &Connection,
    tenant: &TenantId,
) -> rusqlite::Result<Option<TenantSettings>> {
    connection
        .prepare_cached(
            "SELECT version, updated_at, token_budget, tier, flags, models, client_config
             FROM tenant_settings WHERE tenant = ?1",
        )?
        .query_row([tenant.as_str()], |row| {
            let (flags, models) = (row.get_ref(4)?.as_str()?, row.get_ref(5)?.as_str()?);
            Ok(TenantSettings {
                version: row.get(0)?,
                updated_at: row.get::<_, At>(1)?.0,
                token_budget: row.get(2)?,
                tier: row.get::<_, Option<String>>(3)?.as_deref().map(parsed).transpose()?,
                flags: TenantSettings::parse_flags(flags).map_err(stored_wrongly)?,
                models: TenantSettings::parse_models(models).map_err(stored_wrongly)?,
                client_config: row.get(6)?,
            })
        })
        .optional()
}

fn put_share(connection: &Connection, share: &Share) -> rusqlite::Result<()> {
    let (tenant, user, workspace) = scope_columns(&share.owner);
    let id: Id = connection
        .prepare_cached(
            "INSERT INTO share (id, tenant, created_at, writable, user_id, workspace, session)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (tenant, user_id, workspace, session) DO UPDATE SET writable = ?4
             RETURNING id",
        )?
        .query_row(
            params![
                Id(share.id.as_uuid()),
                tenant,
                At(share.created_at),
                share.writable,
                user,
                workspace,
                share.session.as_str()
            ],
            |row| row.get(0),
        )?;
    connection.prepare_cached("DELETE FROM share_member WHERE share_id = ?1")?.execute([id])?;
    let mut insert = connection.prepare_cached(
        "INSERT INTO share_member (tenant, user_id, share_id) VALUES (?1, ?2, ?3)",
    )?;
    for member in &share.members {
        insert.execute(params![tenant, member.as_str(), id])?;
    }
    Ok(())
}

fn remove_share(connection: &Connection, tenant: &TenantId, id: Id) -> rusqlite::Result<()> {
    for statement in [
        "DELETE FROM share_member WHERE tenant = ?1 AND share_id = ?2",
        "DELETE FROM share WHERE tenant = ?1 AND id = ?2",
    ] {
        connection.prepare_cached(statement)?.execute(params![tenant.as_str(), id])?;
    }
    Ok(())
}

/// In this order: what a grant has of members tells whether it stays.
fn remove_user(connection: &Connection, tenant: &TenantId, user: &UserId) -> rusqlite::Result<()> {
    for statement in [
        "DELETE FROM api_key WHERE tenant = ?1 AND user_id = ?2",
        "DELETE FROM share_member WHERE tenant = ?1 AND share_id IN (
           SELECT id FROM share WHERE tenant = ?1 AND user_id = ?2)",
        "DELETE FROM share WHERE tenant = ?1 AND (user_id = ?2 OR id IN (
           SELECT share_id FROM share_member m WHERE tenant = ?1 AND user_id = ?2
             AND NOT EXISTS (SELECT 1 FROM share_member o
               WHERE o.share_id = m.share_id AND o.user_id <> ?2)))",
        "DELETE FROM share_member WHERE tenant = ?1 AND user_id = ?2",
    ] {
        connection.prepare_cached(statement)?.execute([tenant.as_str(), user.as_str()])?;
    }
    Ok(())
}

const SHARE_COLUMNS: &str =
    "s.number, s.id, s.tenant, s.user_id, s.workspace, s.session, s.writable, s.created_at";

fn read_share(connection: &Connection, row: &Row<'_>) -> rusqlite::Result<(u64, Share)> {
    let id: Id = row.get(1)?;
    let members: rusqlite::Result<BTreeSet<UserId>> = connection
        .prepare_cached("SELECT user_id FROM share_member WHERE share_id = ?1")?
        .query_map([id], |row| UserId::new(row.get_ref(0)?.as_str()?).map_err(stored_wrongly))?
        .collect();
    let share = Share {
        id: ShareId::from_uuid(id.0),
        owner: crate::store::read_scope_columns(row, 2)?,
        session: SessionId::new(row.get_ref(5)?.as_str()?).map_err(stored_wrongly)?,
        members: members?,
        writable: row.get(6)?,
        created_at: row.get::<_, At>(7)?.0,
    };
    Ok((row.get(0)?, share))
}

fn put_entry(
    connection: &Connection,
    tenant: &TenantId,
    entry: &AuditEntry,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO audit (tenant, at, key_id, action, target, outcome, actor)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)",
        )?
        .execute(params![
            tenant.as_str(),
            At(entry.at),
            entry.key.map(|key| Bits(key.to_bits())),
            entry.action,
            entry.target,
            entry.outcome,
            entry.actor.as_str()
        ])
        .map(|_| ())
}

fn read_entry(row: &Row<'_>) -> rusqlite::Result<(u64, AuditEntry)> {
    let entry = AuditEntry {
        at: row.get::<_, At>(1)?.0,
        key: row.get::<_, Option<Bits>>(2)?.map(|bits| KeyId::from_bits(bits.0)),
        action: row.get(3)?,
        target: row.get(4)?,
        outcome: row.get(5)?,
        actor: parsed(row.get_ref(6)?.as_str()?)?,
    };
    Ok((row.get(0)?, entry))
}

fn add_model_use(
    connection: &Connection,
    tenant: &TenantId,
    used: &ModelUse,
) -> rusqlite::Result<()> {
    connection
        .prepare_cached(
            "INSERT INTO model_use (tenant, day, work, model, calls, input, cached_input, output,
               micro_usd)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)
             ON CONFLICT DO UPDATE SET calls = calls + ?5, input = input + ?6,
               cached_input = cached_input + ?7, output = output + ?8, micro_usd = micro_usd + ?9",
        )?
        .execute(params![
            tenant.as_str(),
            used.day.days(),
            used.work.as_str(),
            used.model,
            bounded(used.calls),
            bounded(used.input),
            bounded(used.cached_input),
            bounded(used.output),
            bounded(used.micro_usd)
        ])
        .map(|_| ())
}

fn read_model_use(row: &Row<'_>) -> rusqlite::Result<ModelUse> {
    Ok(ModelUse {
        day: UsageDay::from_days(row.get(0)?),
        work: parsed(row.get_ref(1)?.as_str()?)?,
        model: row.get(2)?,
        calls: row.get(3)?,
        input: row.get(4)?,
        cached_input: row.get(5)?,
        output: row.get(6)?,
        micro_usd: row.get(7)?,
    })
}

impl SqliteStore {
    /// Runs a read of a tenant in one snapshot.
    async fn read_tenant<T, F>(&self, tenant: &TenantId, work: F) -> Result<T>
    where
        T: Send + 'static,
        F: FnOnce(&Connection, &TenantId) -> rusqlite::Result<T> + Send + 'static,
    {
        let tenant = tenant.clone();
        self.read(move |connection| {
            let read = || work(&*connection.unchecked_transaction()?, &tenant);
            mapped(read(), "read")
        })
        .await
    }
}

#[async_trait]
impl TenantRepo for SqliteStore {
    async fn apply_tenant(&self, batch: TenantBatch) -> Result<()> {
        self.inner.writer.run(move |connection| apply(connection, &batch)).await
    }

    async fn key(&self, id: KeyId) -> Result<Option<ApiKey>> {
        self.read(move |connection| {
            let read = || {
                connection
                    .prepare_cached(&format!("SELECT {KEY_COLUMNS} FROM api_key WHERE id = ?1"))?
                    .query_row([Bits(id.to_bits())], read_key)
                    .optional()
            };
            Ok(mapped(read(), "key")?.map(|(_, key)| key))
        })
        .await
    }

    async fn has_keys(&self) -> Result<bool> {
        self.read(|connection| {
            let read = || {
                connection
                    .prepare_cached("SELECT EXISTS (SELECT 1 FROM api_key)")?
                    .query_row([], |row| row.get(0))
            };
            mapped(read(), "has_keys")
        })
        .await
    }

    async fn keys(&self, tenant: &TenantId, page: &PageRequest) -> Result<Page<ApiKey>> {
        let (after, limit) = (page.position().unwrap_or(0), page.limit());
        let rows = self.read_tenant(tenant, move |connection, tenant| {
            connection
                .prepare_cached(&format!(
                    "SELECT {KEY_COLUMNS} FROM api_key WHERE tenant = ?1 AND number > ?2
                     ORDER BY number LIMIT ?3"
                ))?
                .query_map(params![tenant.as_str(), bounded(after), bounded(limit + 1)], read_key)?
                .collect()
        });
        Ok(Page::from_rows(rows.await?, limit))
    }

    async fn touch_key(&self, tenant: &TenantId, id: KeyId, at: Timestamp) -> Result<()> {
        let tenant = tenant.clone();
        self.inner
            .writer
            .run(move |connection| {
                let touch = || {
                    connection
                        .prepare_cached(
                            "UPDATE api_key SET last_used_at = ?3 WHERE id = ?1 AND tenant = ?2
                               AND (last_used_at IS NULL OR last_used_at < ?3)",
                        )?
                        .execute(params![Bits(id.to_bits()), tenant.as_str(), At(at)])
                };
                mapped(touch(), "touch_key").map(|_| ())
            })
            .await
    }

    async fn settings(&self, tenant: &TenantId) -> Result<Option<TenantSettings>> {
        self.read_tenant(tenant, settings).await
    }

    async fn share(&self, tenant: &TenantId, id: ShareId) -> Result<Option<Share>> {
        let found = self.read_tenant(tenant, move |connection, tenant| {
            connection
                .prepare_cached(&format!(
                    "SELECT {SHARE_COLUMNS} FROM share s WHERE s.id = ?1 AND s.tenant = ?2"
                ))?
                .query_row(params![Id(id.as_uuid()), tenant.as_str()], |row| {
                    read_share(connection, row)
                })
                .optional()
        });
        Ok(found.await?.map(|(_, share)| share))
    }

    async fn share_of(&self, owner: &Scope, session: &SessionId) -> Result<Option<Share>> {
        let (scope, session) = (owner.clone(), session.clone());
        let found = self.read_tenant(&owner.tenant, move |connection, _| {
            let (tenant, user, workspace) = scope_columns(&scope);
            connection
                .prepare_cached(&format!(
                    "SELECT {SHARE_COLUMNS} FROM share s WHERE s.tenant = ?1 AND s.user_id = ?2
                       AND s.workspace = ?3 AND s.session = ?4"
                ))?
                .query_row([tenant, user, workspace, session.as_str()], |row| {
                    read_share(connection, row)
                })
                .optional()
        });
        Ok(found.await?.map(|(_, share)| share))
    }

    async fn shared_with(
        &self,
        tenant: &TenantId,
        user: &UserId,
        page: &PageRequest,
    ) -> Result<Page<Share>> {
        let (after, limit) = (page.position().unwrap_or(0), page.limit());
        let user = user.clone();
        let rows = self.read_tenant(tenant, move |connection, tenant| {
            connection
                .prepare_cached(&format!(
                    "SELECT {SHARE_COLUMNS} FROM share_member m JOIN share s ON s.id = m.share_id
                     WHERE m.tenant = ?1 AND m.user_id = ?2 AND s.number > ?3
                     ORDER BY s.number LIMIT ?4"
                ))?
                .query_map(
                    params![tenant.as_str(), user.as_str(), bounded(after), bounded(limit + 1)],
                    |row| read_share(connection, row),
                )?
                .collect()
        });
        Ok(Page::from_rows(rows.await?, limit))
    }

    async fn model_use(
        &self,
        tenant: &TenantId,
        from: UsageDay,
        to: UsageDay,
    ) -> Result<Vec<ModelUse>> {
        self.read_tenant(tenant, move |connection, tenant| {
            connection
                .prepare_cached(
                    "SELECT day, work, model, calls, input, cached_input, output, micro_usd
                     FROM model_use WHERE tenant = ?1 AND day BETWEEN ?2 AND ?3
                     ORDER BY day, work, model",
                )?
                .query_map(params![tenant.as_str(), from.days(), to.days()], read_model_use)?
                .collect()
        })
        .await
    }

    async fn audit(&self, tenant: &TenantId, page: &PageRequest) -> Result<Page<AuditEntry>> {
        let (after, limit) = (page.position().unwrap_or(0), page.limit());
        let rows = self.read_tenant(tenant, move |connection, tenant| {
            connection
                .prepare_cached(
                    "SELECT number, at, key_id, action, target, outcome, actor FROM audit
                     WHERE tenant = ?1 AND number > ?2 ORDER BY number LIMIT ?3",
                )?
                .query_map(
                    params![tenant.as_str(), bounded(after), bounded(limit + 1)],
                    read_entry,
                )?
                .collect()
        });
        Ok(Page::from_rows(rows.await?, limit))
    }
}
