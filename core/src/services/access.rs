//! Making, rotating and revoking keys, and telling who calls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::access::{Actor, ApiKey, AuditEntry, By, NewKey, Presented, Principal, Secret, Usable};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{KeyId, TenantId, UserId, WorkspaceId};
use crate::page::{Page, PageRequest};
use crate::ports::{
    Clock, LedgerEntry, SecretGen, Store, TenantBatch, TenantPrecondition, TenantWrite,
};
use crate::services::removals::Removals;
use crate::time::Timestamp;

/// How often a change is rebuilt when another writer came first.
const ATTEMPTS: usize = 4;
/// How long a rotated key's old secret can stay valid.
const MAX_GRACE: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// The interval between two records of the same use or the same refusal.
const NOTED_EVERY: Duration = Duration::from_secs(60);
/// Uses and refusals that are remembered for it.
const MOST_NOTED: usize = 10_000;

/// A key that was just made or rotated: the only time that it can be shown.
#[derive(Debug, Clone)]
pub struct CreatedKey {
    /// Its record.
    pub record: ApiKey,
    /// The whole key.
    pub key: String,
}

/// Why a presented key is refused. Callers get the same sentence for all reasons.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// It is not of the form of a key.
    Malformed,
    /// No key has its id.
    Unknown,
    /// Its secret is another one.
    WrongSecret,
    /// It was revoked.
    Revoked,
    /// Its time has passed.
    Expired,
}

impl Refusal {
    /// Its name in logs and metrics.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed_key",
            Self::Unknown => "unknown_key",
            Self::WrongSecret => "wrong_secret",
            Self::Revoked => "revoked_key",
            Self::Expired => "expired_key",
        }
    }
}

/// When something was last noted, so that it is not noted for every call.
type Noted = HashMap<(KeyId, String), Timestamp>;

/// Keys and their use.
#[derive(Clone)]
pub struct AccessService {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    secrets: Arc<dyn SecretGen>,
    removals: Removals,
    noted: Arc<Mutex<Noted>>,
}

impl AccessService {
    /// A service over its ports.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        secrets: Arc<dyn SecretGen>,
        removals: Removals,
    ) -> Self {
        Self { store, clock, secrets, removals, noted: Arc::default() }
    }

    /// Makes a key. `repeat`, a hash of the caller's `Idempotency-Key`, makes its id the same each
    /// time, so that a repeated call makes no second key.
    ///
    /// # Errors
    /// `InvalidInput` that names the field; `Conflict` where the same call made a key already, whose
    /// secret cannot be shown again; those of the store.
    pub async fn create(
        &self,
        by: By,
        tenant: &TenantId,
        new: NewKey,
        repeat: Option<[u8; 16]>,
    ) -> Result<CreatedKey> {
        let now = self.clock.now();
        new.check(now)?;
        let random = self.secrets.secret();
        let mut bits = [0; 8];
        match repeat {
            Some(hash) => bits.copy_from_slice(&hash[..8]),
            None => bits.copy_from_slice(&random[..8]),
        }
        let id = KeyId::from_bits(u64::from_le_bytes(bits));
        let secret = Secret::from_bytes(self.secrets.secret());
        let record = ApiKey {
            id,
            tenant: tenant.clone(),
            user: new.user,
            workspace: new.workspace,
            permissions: new.permissions,
            name: new.name,
            rate: new.rate,
            created_at: now,
            expires_at: new.expires_at,
            revoked_at: None,
            last_used_at: None,
            hash: secret.hash(),
            previous: None,
            version: 1,
        };
        let batch = TenantBatch::new(tenant.clone())
            .with_precondition(TenantPrecondition::NoKey(id))
            .with(TenantWrite::PutKey(Box::new(record.clone())))
            .with(TenantWrite::Audit(done(now, by, "key.create", id)));
        match self.store.apply_tenant(batch).await {
            Ok(()) => Ok(CreatedKey { key: secret.key(id), record }),
            Err(error) if error.is_lost_race() => Err(Error::conflict(format!(
                "the key {id} was already created with this Idempotency-Key, and its secret is \
                 shown only once: rotate that key, or use a new Idempotency-Key"
            ))),
            Err(error) => Err(error),
        }
    }

    /// The keys of a tenant.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn list(&self, tenant: &TenantId, page: &PageRequest) -> Result<Page<ApiKey>> {
        self.store.keys(tenant, page).await
    }

    /// A key of a tenant.
    ///
    /// # Errors
    /// `NotFound`; those of the store.
    pub async fn get(&self, tenant: &TenantId, id: KeyId) -> Result<ApiKey> {
        let held = self.store.key(id).await?.filter(|key| key.tenant == *tenant);
        held.ok_or_else(no_key)
    }

    /// Gives a key another secret. The old one works for `grace` longer.
    ///
    /// # Errors
    /// `NotFound`; `InvalidInput` for a grace of over a week; `Conflict` for a revoked key; those of
    /// the store.
    pub async fn rotate(
        &self,
        by: By,
        tenant: &TenantId,
        id: KeyId,
        grace: Duration,
    ) -> Result<CreatedKey> {
        if grace > MAX_GRACE {
            return Err(Error::invalid("the old secret can stay valid for at most one week"));
        }
        let secret = Secret::from_bytes(self.secrets.secret());
        let change = |key: &ApiKey, now| match key.revoked_at {
            Some(_) => Err(Error::conflict("the key was revoked: create another")),
            None => Ok(key.rotated(&secret, grace, now)),
        };
        let record = self.change(by, tenant, id, "key.rotate", change).await?;
        // Recorded afterwards: a secret that nobody was told must not take the place of one that works.
        let tenant = self.removals.names().tenant(tenant);
        let entry = LedgerEntry::RotatedKey { tenant, key: id, hash: record.hash };
        self.removals.record(&entry).await?;
        Ok(CreatedKey { key: secret.key(id), record })
    }

    /// Revokes a key: from now on it is refused by every server, whatever backup is restored. Doing it again changes
    /// nothing.
    ///
    /// # Errors
    /// `NotFound`; those of ledger and store.
    pub async fn revoke(&self, by: By, tenant: &TenantId, id: KeyId) -> Result<ApiKey> {
        self.get(tenant, id).await?;
        let entry =
            LedgerEntry::RevokedKey { tenant: self.removals.names().tenant(tenant), key: id };
        let revoke = self.change(by, tenant, id, "key.revoke", |key, now| Ok(key.revoked(now)));
        self.removals.remove(entry, revoke).await
    }

    async fn change(
        &self,
        by: By,
        tenant: &TenantId,
        id: KeyId,
        action: &str,
        change: impl Fn(&ApiKey, Timestamp) -> Result<ApiKey> + Send,
    ) -> Result<ApiKey> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let now = self.clock.now();
            let held = self.get(tenant, id).await?;
            let changed = change(&held, now)?;
            let batch = TenantBatch::new(tenant.clone())
                .with_precondition(TenantPrecondition::KeyVersion(id, held.version))
                .with(TenantWrite::PutKey(Box::new(changed.clone())))
                .with(TenantWrite::Audit(done(now, by, action, id)));
            match self.store.apply_tenant(batch).await {
                Ok(()) => return Ok(changed),
                Err(error) if attempt < ATTEMPTS && error.is_lost_race() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Who presents this credential, acting for whom. A refusal of a key that is there is in the
    /// audit log of its tenant.
    ///
    /// # Errors
    /// The inner one is a refusal, which a caller is told in [`unauthenticated`]'s words. `Forbidden`
    /// where the call names a user or a workspace that the key is not bound to; those of the store.
    pub async fn authenticate(
        &self,
        credential: &str,
        user: Option<UserId>,
        workspace: Option<WorkspaceId>,
    ) -> Result<std::result::Result<(Principal, ApiKey), Refusal>> {
        let Some(presented) = Presented::parse(credential) else {
            return Ok(Err(Refusal::Malformed));
        };
        let Some(key) = self.store.key(presented.id).await? else {
            return Ok(Err(Refusal::Unknown));
        };
        let now = self.clock.now();
        let refusal = match key.usable(&presented, now) {
            Usable::Yes => {
                self.note_use(&key, now).await;
                let principal = key.principal(user, workspace);
                if let Err(error) = &principal {
                    let by = By { key: Some(key.id), actor: Actor::Api };
                    self.note_refused(&key.tenant, by, "authenticate", error.kind()).await;
                }
                return Ok(Ok((principal?, key)));
            }
            Usable::WrongSecret => Refusal::WrongSecret,
            Usable::Revoked => Refusal::Revoked,
            Usable::Expired => Refusal::Expired,
        };
        let by = By { key: Some(key.id), actor: Actor::Api };
        self.note_refusal(&key.tenant, by, "authenticate", refusal.as_str()).await;
        Ok(Err(refusal))
    }

    async fn note_use(&self, key: &ApiKey, now: Timestamp) {
        let recently = key.last_used_at.is_some_and(|at| at.plus(NOTED_EVERY) > now);
        if !recently && self.is_news(key.id, "used", now) {
            // Failing to record a use does not refuse the call.
            let _ = self.store.touch_key(&key.tenant, key.id, now).await;
        }
    }

    /// Adds a refusal to the audit log of a tenant, an equal one at most once a minute.
    pub async fn note_refused(&self, tenant: &TenantId, by: By, action: &str, why: ErrorKind) {
        self.note_refusal(tenant, by, action, why.code()).await;
    }

    async fn note_refusal(&self, tenant: &TenantId, by: By, action: &str, outcome: &str) {
        let now = self.clock.now();
        let key = by.key.unwrap_or(KeyId::from_bits(0));
        if !self.is_news(key, &format!("{tenant} {action} {outcome}"), now) {
            return;
        }
        let entry = AuditEntry::ended(now, by, action, None, outcome);
        let batch = TenantBatch::new(tenant.clone()).with(TenantWrite::Audit(entry));
        // A refusal stands even if the log entry fails.
        let _ = self.store.apply_tenant(batch).await;
    }

    fn is_news(&self, key: KeyId, what: &str, now: Timestamp) -> bool {
        let mut noted = self.noted.lock().unwrap_or_else(PoisonError::into_inner);
        if noted.len() >= MOST_NOTED {
            noted.retain(|_, at| at.plus(NOTED_EVERY) > now);
        }
        match noted.get(&(key, what.to_owned())) {
            Some(at) if at.plus(NOTED_EVERY) > now => false,
            _ if noted.len() >= MOST_NOTED => false,
            _ => noted.insert((key, what.to_owned()), now).is_none_or(|_| true),
        }
    }
}

fn no_key() -> Error {
    Error::not_found("there is no key with this id")
}

fn done(at: Timestamp, by: By, action: &str, id: KeyId) -> AuditEntry {
    AuditEntry::done(at, by, action, Some(id.to_string()))
}

/// The one error for every caller without a valid credential, so that it reveals nothing.
#[must_use]
pub fn unauthenticated() -> Error {
    Error::new(
        ErrorKind::Unauthenticated,
        "this call needs a valid key: send `Authorization: Bearer tl_…`; `throughline keys create` \
         creates a key",
    )
}
