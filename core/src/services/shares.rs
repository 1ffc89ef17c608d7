//! Sharing a session, and reaching one that is shared.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::access::{AuditEntry, By};
use crate::error::{Error, Result};
use crate::ids::{SessionId, ShareId, TenantId, UserId};
use crate::page::{Page, PageRequest};
use crate::ports::{Clock, IdGen, LedgerEntry, NameHash, Store, TenantBatch, TenantWrite};
use crate::scope::Scope;
use crate::services::removals::Removals;
use crate::session::Share;

/// Grants of sessions.
#[derive(Clone)]
pub struct ShareService {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGen>,
    removals: Removals,
}

impl ShareService {
    /// A service over its ports.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdGen>,
        removals: Removals,
    ) -> Self {
        Self { store, clock, ids, removals }
    }

    /// Shares a session with exactly these users of its tenant. One that is shared already keeps its
    /// grant's id; users who were members and what they may no longer do stay taken away, whatever backup is restored.
    /// It is in the audit log.
    ///
    /// # Errors
    /// `NotFound` when the session is not there; `InvalidInput` for the members; those of ledger and store.
    pub async fn share(
        &self,
        by: By,
        owner: &Scope,
        session: &SessionId,
        members: BTreeSet<UserId>,
        writable: bool,
    ) -> Result<Share> {
        if self.store.session(owner, session).await?.is_none() {
            return Err(Error::not_found(
                "there is no session with this id: create it before you share it",
            ));
        }
        let now = self.clock.now();
        let held = self.store.share_of(owner, session).await?;
        let (id, created_at) = match &held {
            Some(held) => (held.id, held.created_at),
            None => (ShareId::from_uuid(self.ids.next()), now),
        };
        let owner = owner.clone();
        let share = Share { id, owner, session: session.clone(), members, writable, created_at };
        share.check()?;
        let audit = AuditEntry::done(now, by, "session.share", Some(id.to_string()));
        let batch = TenantBatch::new(share.owner.tenant.clone())
            .with(TenantWrite::PutShare(Box::new(share.clone())))
            .with(TenantWrite::Audit(audit));
        let applied = self.store.apply_tenant(batch);
        match held.as_ref().map(|held| self.narrowed(held, &share)) {
            Some(Some(entry)) => self.removals.remove(entry, applied).await?,
            Some(None) => applied.await?,
            None => {
                let session = self.removals.names().session(&share.owner, session);
                self.removals.record(&LedgerEntry::Shared { session }).await?;
                applied.await?;
            }
        }
        // Of two grants at once the first one decides the id.
        let kept = self.store.share_of(&share.owner, session).await?;
        Ok(kept.unwrap_or(share))
    }

    /// What a grant takes away from who had the one before, if anything.
    fn narrowed(&self, before: &Share, after: &Share) -> Option<LedgerEntry> {
        let names = self.removals.names();
        let tenant = &before.owner.tenant;
        let left = before.members.difference(&after.members);
        let users: Vec<NameHash> = left.map(|user| names.user(tenant, user)).collect();
        let read_only = before.writable && !after.writable;
        let (tenant, share) = (names.tenant(tenant), before.id);
        let narrows = read_only || !users.is_empty();
        narrows.then_some(LedgerEntry::NarrowedGrant { tenant, share, users, read_only })
    }

    /// Takes the grant of a session back: at once, for every member, and for good, whatever backup is restored. It is
    /// in the audit log.
    ///
    /// # Errors
    /// `NotFound` when the session is not shared; those of ledger and store.
    pub async fn unshare(&self, by: By, owner: &Scope, session: &SessionId) -> Result<()> {
        let held = self.of(owner, session).await?;
        let held = held.ok_or_else(|| Error::not_found("this session is not shared"))?;
        let target = Some(held.id.to_string());
        let audit = AuditEntry::done(self.clock.now(), by, "session.unshare", target);
        let batch = TenantBatch::new(owner.tenant.clone())
            .with(TenantWrite::RemoveShare(held.id))
            .with(TenantWrite::Audit(audit));
        let tenant = self.removals.names().tenant(&owner.tenant);
        let entry = LedgerEntry::Grant { tenant, share: held.id };
        self.removals.remove(entry, self.store.apply_tenant(batch)).await
    }

    /// The grant of a session, if it is shared.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn of(&self, owner: &Scope, session: &SessionId) -> Result<Option<Share>> {
        self.store.share_of(owner, session).await
    }

    /// The grants for a user.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn with_user(
        &self,
        tenant: &TenantId,
        user: &UserId,
        page: &PageRequest,
    ) -> Result<Page<Share>> {
        self.store.shared_with(tenant, user, page).await
    }

    /// The grant under this id, for a caller whose scope this is.
    ///
    /// # Errors
    /// `NotFound` unless the caller's user is a member, whether the grant is there or not; those of the
    /// store.
    pub async fn open(&self, caller: &Scope, id: ShareId) -> Result<Share> {
        let held = self.store.share(&caller.tenant, id).await?;
        let held = held.filter(|share| share.members.contains(&caller.user));
        held.ok_or_else(|| Error::not_found("no session with this id is shared with this user"))
    }
}
