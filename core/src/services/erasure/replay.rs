//! Bringing a store to what the ledger says, before it is served.

use std::collections::{BTreeSet, HashMap};

use super::EraseService;
use crate::access::ApiKey;
use crate::document::SnapshotInfo;
use crate::erase::check;
use crate::error::{Error, Result};
use crate::fact::RejectionKey;
use crate::ids::{KeyId, MemoryId, SessionId, ShareId, TenantId, UserId, VaultId};
use crate::page::{MAX_PAGE, PageRequest};
use crate::persona::Preset;
use crate::ports::{
    Erased, Erasure, ErasureLedger, LedgerEntry, LedgerIdentity, NameHash, Recorded, ScopeEnd,
    TenantBatch, TenantWrite, Write, WriteBatch,
};
use crate::scope::Scope;

/// Entries that are read at once.
const PAGE: usize = 1_000;

/// The result of a replay.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Replayed {
    /// Entries that the store had not applied.
    pub entries: u64,
    /// The erased counts.
    pub erased: Erased,
}

impl EraseService {
    /// Applies the entries of the ledger that the store has not applied: those of a restored backup, and
    /// of a process that ended in between. A store that is bound to no ledger is bound to this one.
    ///
    /// # Errors
    /// `Conflict` when the store goes by another ledger, or knows of entries that this one has not: what
    /// was erased could come back, so nothing may be served. Those of ledger and store.
    pub async fn replay(&self) -> Result<Replayed> {
        // The store is read before the ledger, so that an entry that is applied meanwhile is in the ledger.
        let state = self.store.erasure_state().await?;
        let identity = self.ledger.identity().await?;
        let last = self.ledger.last().await?;
        check(&state, &identity, last)?;
        if state.ledger.is_none() {
            self.store.bind_ledger(identity.id).await?;
        }
        let mut replayed = Replayed::default();
        if state.applied == last {
            return Ok(replayed);
        }
        let applied = self.applied().await?;
        let known = self.known_scopes(&identity).await?;
        let mut after = 0;
        loop {
            let entries = self.ledger.entries(after, PAGE).await?;
            let Some(end) = entries.last() else { break };
            after = end.number;
            for recorded in entries.iter().filter(|entry| !applied.contains(&entry.number)) {
                let erased = self.apply_entry(recorded, &identity, &known).await?;
                replayed.erased.add(erased);
                // What a store has nothing to do for is no erasure.
                let only_noted =
                    matches!(recorded.entry, LedgerEntry::Gone { .. } | LedgerEntry::Shared { .. });
                let is_erasure = !only_noted;
                replayed.entries += u64::from(is_erasure);
            }
        }
        self.store.purge().await?;
        Ok(replayed)
    }

    /// Goes by this ledger from now on, whatever the store went by: what was erased before and comes from
    /// a backup stays.
    ///
    /// # Errors
    /// Those of ledger and store.
    pub async fn accept_ledger(&self) -> Result<()> {
        let identity = self.ledger.identity().await?;
        let state = self.store.erasure_state().await?;
        if state.ledger == Some(identity.id) && state.last <= self.ledger.last().await? {
            return Ok(());
        }
        self.store.bind_ledger(identity.id).await
    }

    async fn applied(&self) -> Result<BTreeSet<u64>> {
        let mut applied = BTreeSet::new();
        loop {
            let after = applied.last().copied().unwrap_or(0);
            let numbers = self.store.erasures_applied(after, PAGE).await?;
            if numbers.is_empty() {
                return Ok(applied);
            }
            applied.extend(numbers);
        }
    }

    /// The scopes that the store has, by the hashes of their names.
    async fn known_scopes(&self, identity: &LedgerIdentity) -> Result<HashMap<NameHash, Scope>> {
        let mut known = HashMap::new();
        let mut page = PageRequest::first(MAX_PAGE)?;
        loop {
            let scopes = self.store.scopes(&page).await?;
            let hashed = scopes.items.into_iter().map(|(scope, _)| (identity.scope(&scope), scope));
            known.extend(hashed);
            match scopes.next_cursor {
                Some(cursor) => page = PageRequest::first(MAX_PAGE)?.after(&cursor)?,
                None => return Ok(known),
            }
        }
    }

    async fn apply_entry(
        &self,
        recorded: &Recorded,
        identity: &LedgerIdentity,
        known: &HashMap<NameHash, Scope>,
    ) -> Result<Erased> {
        let (targets, drop) = match &recorded.entry {
            LedgerEntry::Messages { scope, ids } => {
                let erasure = Erasure::Messages(ids.clone());
                (
                    known.get(scope).map(|scope| (scope.clone(), erasure)).into_iter().collect(),
                    false,
                )
            }
            LedgerEntry::Session { scope, session, through } => {
                let scope = known.get(scope);
                let id = match scope {
                    Some(scope) => self.session_named(scope, identity, session).await?,
                    None => None,
                };
                if let (Some(scope), Some(id)) = (scope, &id) {
                    self.remove_grant(scope, id).await?;
                }
                let erasure = |id| Erasure::Session { id, through: *through };
                let target = scope.cloned().zip(id.map(erasure));
                (target.into_iter().collect(), false)
            }
            LedgerEntry::Document { scope, document, through } => {
                let target = match known.get(scope) {
                    Some(scope) => {
                        let name = self.document_named(scope, identity, document).await?;
                        name.map(|(vault, memory)| {
                            let erasure = Erasure::Document { vault, memory, through: *through };
                            (scope.clone(), erasure)
                        })
                    }
                    None => None,
                };
                (target.into_iter().collect(), false)
            }
            LedgerEntry::User { user, scopes } => {
                let of =
                    known.values().find(|scope| identity.user(&scope.tenant, &scope.user) == *user);
                if let Some(scope) = of {
                    self.remove_user(&scope.tenant, &scope.user).await?;
                }
                let erasure = |end: &ScopeEnd| {
                    let (through, documents) = (end.through, end.documents);
                    Some((known.get(&end.scope)?.clone(), Erasure::Scope { through, documents }))
                };
                (scopes.iter().filter_map(erasure).collect(), true)
            }
            LedgerEntry::Gone { .. } | LedgerEntry::Shared { .. } => (Vec::new(), false),
            LedgerEntry::Grant { tenant, share } => {
                let of = known.values().find(|scope| identity.tenant(&scope.tenant) == *tenant);
                if let Some(scope) = of {
                    let batch = TenantBatch::new(scope.tenant.clone());
                    self.store.apply_tenant(batch.with(TenantWrite::RemoveShare(*share))).await?;
                }
                (Vec::new(), false)
            }
            LedgerEntry::NarrowedGrant { tenant, share, users, read_only } => {
                let of = known.values().find(|scope| identity.tenant(&scope.tenant) == *tenant);
                if let Some(scope) = of {
                    let stays =
                        |user: &UserId| !users.contains(&identity.user(&scope.tenant, user));
                    self.narrow_grant(&scope.tenant, *share, stays, *read_only).await?;
                }
                (Vec::new(), false)
            }
            LedgerEntry::RevokedKey { key, .. } => {
                self.change_key(*key, |held| held.revoked(recorded.at)).await?;
                (Vec::new(), false)
            }
            LedgerEntry::RotatedKey { key, hash, .. } => {
                let rotated = |held: &ApiKey| ApiKey {
                    hash: *hash,
                    previous: None,
                    version: held.version + 1,
                    ..held.clone()
                };
                self.change_key(*key, rotated).await?;
                (Vec::new(), false)
            }
            LedgerEntry::Preset { scope, preset } => {
                if let Some(scope) = known.get(scope) {
                    let held = self.store.presets(scope).await?;
                    let same = |held: &&Preset| identity.preset(scope, &held.id) == *preset;
                    let removed = held.iter().find(same).map(|preset| preset.id.clone());
                    let batch = WriteBatch::new(scope.clone(), self.clock.now());
                    let remove = |id| batch.with(Write::RemovePreset(id));
                    if let Some(batch) = removed.map(remove) {
                        self.store.apply(batch).await?;
                    }
                }
                (Vec::new(), false)
            }
            LedgerEntry::Rejected { scope, keys } => {
                let keys: Vec<RejectionKey> =
                    keys.iter().map(|key| RejectionKey::from_bytes(*key)).collect();
                if let (Some(scope), Some(facts)) = (known.get(scope), &self.facts) {
                    facts.reject_again(scope, &keys, recorded.number).await?;
                    return Ok(Erased::default());
                }
                (Vec::new(), false)
            }
            LedgerEntry::AllowedAgain { scope, keys } => {
                if let Some(scope) = known.get(scope) {
                    let keys = keys.iter().map(|key| RejectionKey::from_bytes(*key)).collect();
                    let batch = WriteBatch::new(scope.clone(), self.clock.now())
                        .with(Write::Allow(keys))
                        .with(Write::NoteErasure(recorded.number));
                    self.store.apply(batch).await?;
                    return Ok(Erased::default());
                }
                (Vec::new(), false)
            }
        };
        self.carry_out(recorded.number, targets, drop).await
    }

    /// Takes out of a grant that came back with a backup what had been taken out of it.
    async fn narrow_grant(
        &self,
        tenant: &TenantId,
        id: ShareId,
        stays: impl Fn(&UserId) -> bool + Send,
        read_only: bool,
    ) -> Result<()> {
        let Some(mut share) = self.store.share(tenant, id).await? else { return Ok(()) };
        share.members.retain(stays);
        share.writable &= !read_only;
        let write = match share.members.is_empty() {
            true => TenantWrite::RemoveShare(id),
            false => TenantWrite::PutShare(Box::new(share)),
        };
        self.store.apply_tenant(TenantBatch::new(tenant.clone()).with(write)).await
    }

    /// Changes a key that came back with a backup, of whichever tenant it is.
    async fn change_key(&self, id: KeyId, change: impl Fn(&ApiKey) -> ApiKey + Send) -> Result<()> {
        let Some(held) = self.store.key(id).await? else { return Ok(()) };
        let batch = TenantBatch::new(held.tenant.clone())
            .with(TenantWrite::PutKey(Box::new(change(&held))));
        self.store.apply_tenant(batch).await
    }

    async fn document_named(
        &self,
        scope: &Scope,
        identity: &LedgerIdentity,
        hash: &NameHash,
    ) -> Result<Option<(VaultId, MemoryId)>> {
        let mut page = PageRequest::first(MAX_PAGE)?;
        loop {
            let memories = self.store.memories(scope, None, &page).await?;
            let mut latest = memories.items.into_iter().map(|memory| memory.latest);
            let same =
                |info: &SnapshotInfo| identity.document(scope, &info.vault, &info.memory) == *hash;
            if let Some(info) = latest.find(same) {
                return Ok(Some((info.vault, info.memory)));
            }
            match memories.next_cursor {
                Some(cursor) => page = PageRequest::first(MAX_PAGE)?.after(&cursor)?,
                None => return Ok(None),
            }
        }
    }

    async fn session_named(
        &self,
        scope: &Scope,
        identity: &LedgerIdentity,
        hash: &NameHash,
    ) -> Result<Option<SessionId>> {
        let mut page = PageRequest::first(MAX_PAGE)?;
        loop {
            let sessions = self.store.sessions(scope, &page).await?;
            let mut ids = sessions.items.into_iter().map(|session| session.id);
            if let Some(id) = ids.find(|id| identity.session(scope, id) == *hash) {
                return Ok(Some(id));
            }
            match sessions.next_cursor {
                Some(cursor) => page = PageRequest::first(MAX_PAGE)?.after(&cursor)?,
                None => return Ok(None),
            }
        }
    }
}

/// Copies all entries of `source` to `target`, for a store that moves. Returns how many there are; without
/// entries nothing is changed.
///
/// # Errors
/// `Conflict` where the target has entries of its own, or some that the source has not: then what moves
/// is older than what was erased there. Those of both.
pub async fn copy_ledger(source: &dyn ErasureLedger, target: &dyn ErasureLedger) -> Result<u64> {
    let identity = source.identity().await?;
    let last = source.last().await?;
    if last == 0 {
        return Ok(0);
    }
    if target.identity().await?.id == identity.id && target.last().await? > last {
        return Err(Error::conflict(
            "the target store has erasures that the old store does not have, so moving the rest of \
             the old store could bring erased data back: keep using the target store, or move to \
             an empty one",
        ));
    }
    let mut after = 0;
    loop {
        let entries = source.entries(after, PAGE).await?;
        target.adopt(&identity, &entries).await?;
        match entries.last() {
            Some(end) => after = end.number,
            None => return Ok(after),
        }
    }
}
