//! What belongs to a tenant as a whole.

use std::collections::BTreeMap;

use async_trait::async_trait;
use throughline_core::access::{ApiKey, AuditEntry, KeyUser};
use throughline_core::ids::{KeyId, SessionId, ShareId, TenantId, UserId};
use throughline_core::page::{Page, PageRequest};
use throughline_core::ports::{TenantBatch, TenantPrecondition, TenantRepo, TenantWrite};
use throughline_core::session::Share;
use throughline_core::settings::TenantSettings;
use throughline_core::time::Timestamp;
use throughline_core::usage::{ModelUse, UsageDay};
use throughline_core::{Result, Scope};

use super::MemoryStore;
use super::sessions::page;

/// Of all tenants, in the order in which they were first made, each with its ordinal.
#[derive(Debug, Clone, Default)]
pub(super) struct Tenants {
    last: u64,
    keys: Vec<(u64, ApiKey)>,
    shares: Vec<(u64, Share)>,
    settings: BTreeMap<TenantId, TenantSettings>,
    audit: Vec<(TenantId, AuditEntry)>,
    model_use: Vec<(TenantId, ModelUse)>,
}

impl Tenants {
    fn key(&self, id: KeyId) -> Option<&ApiKey> {
        self.keys.iter().map(|(_, key)| key).find(|key| key.id == id)
    }

    fn version(&self, tenant: &TenantId, precondition: TenantPrecondition) -> Option<u64> {
        match precondition {
            TenantPrecondition::NoKey(id) => self.key(id).map(|key| key.version),
            TenantPrecondition::KeyVersion(id, _) => {
                self.key(id).filter(|key| key.tenant == *tenant).map(|key| key.version)
            }
            TenantPrecondition::SettingsVersion(_) => {
                self.settings.get(tenant).map(|settings| settings.version)
            }
        }
    }

    fn apply(&mut self, batch: &TenantBatch) -> Result<()> {
        batch.check()?;
        for precondition in &batch.preconditions {
            precondition.check(self.version(&batch.tenant, *precondition))?;
        }
        batch.writes.iter().try_for_each(|write| self.write(batch, write))
    }

    fn write(&mut self, batch: &TenantBatch, write: &TenantWrite) -> Result<()> {
        let tenant = &batch.tenant;
        match write {
            TenantWrite::PutKey(key) => self.put_key(batch, key)?,
            TenantWrite::PutSettings(settings) => {
                self.settings.insert(tenant.clone(), TenantSettings::clone(settings));
            }
            TenantWrite::PutShare(share) => {
                let same = |held: &&mut (u64, Share)| {
                    held.1.owner == share.owner && held.1.session == share.session
                };
                if let Some((_, held)) = self.shares.iter_mut().find(same) {
                    held.members.clone_from(&share.members);
                    held.writable = share.writable;
                } else {
                    self.last += 1;
                    self.shares.push((self.last, Share::clone(share)));
                }
            }
            TenantWrite::RemoveShare(id) => {
                self.shares.retain(|(_, held)| held.owner.tenant != *tenant || held.id != *id);
            }
            TenantWrite::RemoveUser(user) => self.remove_user(tenant, user),
            TenantWrite::Audit(entry) => self.audit.push((tenant.clone(), entry.clone())),
            TenantWrite::AddModelUse(used) => {
                let same = |held: &&mut (TenantId, ModelUse)| {
                    held.0 == *tenant
                        && (held.1.day, held.1.work, &held.1.model)
                            == (used.day, used.work, &used.model)
                };
                match self.model_use.iter_mut().find(same) {
                    Some((_, held)) => held.add(used),
                    None => self.model_use.push((tenant.clone(), used.clone())),
                }
            }
        }
        Ok(())
    }

    fn put_key(&mut self, batch: &TenantBatch, key: &ApiKey) -> Result<()> {
        let Some((_, held)) = self.keys.iter_mut().find(|(_, held)| held.id == key.id) else {
            self.last += 1;
            self.keys.push((self.last, key.clone()));
            return Ok(());
        };
        if held.tenant != batch.tenant {
            return Err(batch.taken(key.id));
        }
        let last_used_at = held.last_used_at.max(key.last_used_at);
        *held = ApiKey { last_used_at, ..key.clone() };
        Ok(())
    }

    fn remove_user(&mut self, tenant: &TenantId, user: &UserId) {
        let bound = KeyUser::Is(user.clone());
        self.keys.retain(|(_, key)| key.tenant != *tenant || key.user != bound);
        let of_tenant = |share: &Share| share.owner.tenant == *tenant;
        self.shares.retain(|(_, share)| !of_tenant(share) || share.owner.user != *user);
        for (_, share) in self.shares.iter_mut().filter(|(_, share)| of_tenant(share)) {
            share.members.remove(user);
        }
        self.shares.retain(|(_, share)| !of_tenant(share) || !share.members.is_empty());
    }
}

#[async_trait]
impl TenantRepo for MemoryStore {
    async fn apply_tenant(&self, batch: TenantBatch) -> Result<()> {
        let mut state = self.state();
        let mut next = state.tenants.clone();
        next.apply(&batch)?;
        state.tenants = next;
        Ok(())
    }

    async fn key(&self, id: KeyId) -> Result<Option<ApiKey>> {
        Ok(self.state().tenants.key(id).cloned())
    }

    async fn has_keys(&self) -> Result<bool> {
        Ok(!self.state().tenants.keys.is_empty())
    }

    async fn keys(&self, tenant: &TenantId, request: &PageRequest) -> Result<Page<ApiKey>> {
        let state = self.state();
        let own = state.tenants.keys.iter().filter(|(_, key)| key.tenant == *tenant);
        Ok(page(own.cloned(), request))
    }

    async fn touch_key(&self, tenant: &TenantId, id: KeyId, at: Timestamp) -> Result<()> {
        let mut state = self.state();
        let mut keys = state.tenants.keys.iter_mut().map(|(_, key)| key);
        if let Some(key) = keys.find(|key| key.id == id && key.tenant == *tenant) {
            key.last_used_at = key.last_used_at.max(Some(at));
        }
        Ok(())
    }

    async fn settings(&self, tenant: &TenantId) -> Result<Option<TenantSettings>> {
        Ok(self.state().tenants.settings.get(tenant).cloned())
    }

    async fn share(&self, tenant: &TenantId, id: ShareId) -> Result<Option<Share>> {
        let state = self.state();
        let mut shares = state.tenants.shares.iter().map(|(_, share)| share);
        Ok(shares.find(|share| share.id == id && share.owner.tenant == *tenant).cloned())
    }

    async fn share_of(&self, owner: &Scope, session: &SessionId) -> Result<Option<Share>> {
        let state = self.state();
        let mut shares = state.tenants.shares.iter().map(|(_, share)| share);
        Ok(shares.find(|share| share.owner == *owner && share.session == *session).cloned())
    }

    async fn shared_with(
        &self,
        tenant: &TenantId,
        user: &UserId,
        request: &PageRequest,
    ) -> Result<Page<Share>> {
        let state = self.state();
        let of_user = state
            .tenants
            .shares
            .iter()
            .filter(|(_, share)| share.owner.tenant == *tenant && share.members.contains(user));
        Ok(page(of_user.cloned(), request))
    }

    async fn model_use(
        &self,
        tenant: &TenantId,
        from: UsageDay,
        to: UsageDay,
    ) -> Result<Vec<ModelUse>> {
        let state = self.state();
        let own = state.tenants.model_use.iter().filter(|(of, _)| of == tenant);
        let mut used: Vec<ModelUse> = own.map(|(_, used)| used.clone()).collect();
        used.retain(|used| from <= used.day && used.day <= to);
        used.sort_by_key(|used| (used.day, used.work.as_str(), used.model.clone()));
        Ok(used)
    }

    async fn audit(&self, tenant: &TenantId, request: &PageRequest) -> Result<Page<AuditEntry>> {
        let state = self.state();
        let rows = (1..).zip(&state.tenants.audit).filter(|(_, (of, _))| of == tenant);
        let rows = rows.map(|(ordinal, (_, entry)): (u64, _)| (ordinal, entry.clone()));
        Ok(page(rows, request))
    }
}
