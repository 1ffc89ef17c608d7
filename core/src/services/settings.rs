//! Reading and changing what holds for every user of a tenant.

use std::sync::Arc;

use crate::access::{AuditEntry, By};
use crate::error::Result;
use crate::ids::TenantId;
use crate::ports::{Clock, Store, TenantBatch, TenantPrecondition, TenantWrite};
use crate::settings::{SettingsChange, TenantSettings};

/// How often a change is rebuilt when another writer came first.
const ATTEMPTS: usize = 4;

/// Settings of tenants.
#[derive(Clone)]
pub struct SettingsService {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
}

impl SettingsService {
    /// A service over its ports.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, clock: Arc<dyn Clock>) -> Self {
        Self { store, clock }
    }

    /// The settings of a tenant, or those of one that has set none.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn get(&self, tenant: &TenantId) -> Result<TenantSettings> {
        Ok(self.store.settings(tenant).await?.unwrap_or_default())
    }

    /// Changes the settings and returns them; the change is in the audit log.
    ///
    /// # Errors
    /// `InvalidInput` that names the field; those of the store.
    pub async fn change(
        &self,
        by: By,
        tenant: &TenantId,
        change: SettingsChange,
    ) -> Result<TenantSettings> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let now = self.clock.now();
            let current = self.get(tenant).await?;
            let changed = current.changed(change.clone(), now)?;
            let batch = TenantBatch::new(tenant.clone())
                .with_precondition(TenantPrecondition::SettingsVersion(current.version))
                .with(TenantWrite::PutSettings(Box::new(changed.clone())))
                .with(TenantWrite::Audit(AuditEntry::done(now, by, "settings.change", None)));
            match self.store.apply_tenant(batch).await {
                Ok(()) => return Ok(changed),
                Err(error) if attempt < ATTEMPTS && error.is_lost_race() => {}
                Err(error) => return Err(error),
            }
        }
    }
}
