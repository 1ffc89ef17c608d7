//! What belongs to a tenant as a whole: keys, settings, shared sessions, the audit log. Like the writes
//! of a scope, each change is a value that is applied whole or not at all.

use async_trait::async_trait;

use crate::access::{ApiKey, AuditEntry};
use crate::error::{Error, Result};
use crate::ids::{KeyId, SessionId, ShareId, TenantId, UserId};
use crate::page::{Page, PageRequest};
use crate::scope::Scope;
use crate::session::Share;
use crate::settings::TenantSettings;
use crate::time::Timestamp;
use crate::usage::{ModelUse, UsageDay};

/// What must hold when a tenant's batch is applied; else nothing of it is, and the error is a lost race.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TenantPrecondition {
    /// No key has this id, in any tenant.
    NoKey(KeyId),
    /// The tenant has this key, with exactly this version.
    KeyVersion(KeyId, u64),
    /// The settings have exactly this version; 0 where there are none.
    SettingsVersion(u64),
}

impl TenantPrecondition {
    /// Checks it against the version of what it names: of the key of any tenant, of the tenant's own key, of its
    /// settings.
    ///
    /// # Errors
    /// A lost race where it does not hold.
    pub fn check(self, version: Option<u64>) -> Result<()> {
        let holds = match self {
            Self::NoKey(_) => version.is_none(),
            Self::KeyVersion(_, expected) => version == Some(expected),
            Self::SettingsVersion(expected) => version.unwrap_or(0) == expected,
        };
        if holds {
            Ok(())
        } else {
            Err(Error::lost_race("another writer changed this first: try again"))
        }
    }
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TenantWrite {
    /// Keeps a key in place of the one with its id; of two last uses the later one stays. An id that
    /// a key of another tenant has is a `Conflict`.
    PutKey(Box<ApiKey>),
    /// Replaces the settings.
    PutSettings(Box<TenantSettings>),
    /// Grants a session in place of the grant of the same session: the id that it has already stays.
    PutShare(Box<Share>),
    /// Takes a grant back; one that is not there is no error.
    RemoveShare(ShareId),
    /// Removes what names a user: keys bound to it, grants of its sessions, and its membership in
    /// others' (a grant without members goes).
    RemoveUser(UserId),
    /// Adds to the audit log.
    Audit(AuditEntry),
    /// Adds to what background work spent on a model on a day.
    AddModelUse(ModelUse),
}

/// Changes of one tenant that happen together or not at all. A key, a share and a grant are of this
/// tenant; one of another is `InvalidInput`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TenantBatch {
    /// The tenant; every write is within it.
    pub tenant: TenantId,
    /// The preconditions.
    pub preconditions: Vec<TenantPrecondition>,
    /// The changes, applied in order.
    pub writes: Vec<TenantWrite>,
}

impl TenantBatch {
    /// An empty batch.
    #[must_use]
    pub fn new(tenant: TenantId) -> Self {
        Self { tenant, preconditions: Vec::new(), writes: Vec::new() }
    }

    /// What every store refuses before it reads anything.
    ///
    /// # Errors
    /// `InvalidInput` for a key or a grant of another tenant.
    pub fn check(&self) -> Result<()> {
        let is_own = |write: &TenantWrite| match write {
            TenantWrite::PutKey(key) => key.tenant == self.tenant,
            TenantWrite::PutShare(share) => share.owner.tenant == self.tenant,
            _ => true,
        };
        if self.writes.iter().all(is_own) {
            return Ok(());
        }
        Err(Error::invalid("a batch cannot change data of another tenant"))
    }

    /// What is answered where a key of another tenant has the id of one to keep.
    #[must_use]
    pub fn taken(&self, key: KeyId) -> Error {
        // No key had the id when that was asked: another writer has made it since.
        if self.preconditions.contains(&TenantPrecondition::NoKey(key)) {
            return Error::lost_race("another writer changed this first: try again");
        }
        Error::conflict("a key of another tenant has this id: create the key again")
    }

    /// Adds a precondition.
    #[must_use]
    pub fn with_precondition(mut self, precondition: TenantPrecondition) -> Self {
        self.preconditions.push(precondition);
        self
    }

    /// Adds a write.
    #[must_use]
    pub fn with(mut self, write: TenantWrite) -> Self {
        self.writes.push(write);
        self
    }
}

/// Reads and changes what belongs to a tenant. What is of another tenant is not there.
#[async_trait]
pub trait TenantRepo: Send + Sync {
    /// Applies a batch: all of it or nothing. When it returns, the batch is durable and every later
    /// read sees it, in every process.
    async fn apply_tenant(&self, batch: TenantBatch) -> Result<()>;

    /// The key with this id, of whichever tenant: what authentication asks before it knows one.
    async fn key(&self, id: KeyId) -> Result<Option<ApiKey>>;

    /// Whether there is any key, of any tenant, revoked and expired ones included.
    async fn has_keys(&self) -> Result<bool>;

    /// The keys of a tenant, in the order in which they were made.
    async fn keys(&self, tenant: &TenantId, page: &PageRequest) -> Result<Page<ApiKey>>;

    /// Notes that a key was used; an earlier time than the one noted changes nothing, nor does a key
    /// that is not the tenant's. Its version stays.
    async fn touch_key(&self, tenant: &TenantId, id: KeyId, at: Timestamp) -> Result<()>;

    /// The settings of a tenant; `None` where none were set.
    async fn settings(&self, tenant: &TenantId) -> Result<Option<TenantSettings>>;

    /// The grant with this id.
    async fn share(&self, tenant: &TenantId, id: ShareId) -> Result<Option<Share>>;

    /// The grant of a session.
    async fn share_of(&self, owner: &Scope, session: &SessionId) -> Result<Option<Share>>;

    /// The grants that a user is a member of, in the order in which they were first made.
    async fn shared_with(
        &self,
        tenant: &TenantId,
        user: &UserId,
        page: &PageRequest,
    ) -> Result<Page<Share>>;

    /// The audit log of a tenant, the oldest first.
    async fn audit(&self, tenant: &TenantId, page: &PageRequest) -> Result<Page<AuditEntry>>;

    /// What background work spent on models on the days from `from` to `to`, both included, ordered by day, work
    /// and model.
    async fn model_use(
        &self,
        tenant: &TenantId,
        from: UsageDay,
        to: UsageDay,
    ) -> Result<Vec<ModelUse>>;
}
