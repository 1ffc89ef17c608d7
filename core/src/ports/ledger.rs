//! The ledger of erasures: what was erased, by opaque ids and keyed hashes. It lives outside backups, so
//! that a backup which is restored can be brought to what holds now before it is served.

use std::fmt;

use async_trait::async_trait;
use uuid::Uuid;

use crate::error::Result;
use crate::ids::{
    ExternalId, KeyId, MemoryId, MessageId, PresetId, SessionId, ShareId, TenantId, UserId, VaultId,
};
use crate::scope::Scope;
use crate::time::Timestamp;

/// A name as the ledger knows it: hashed with the ledger's key, so that who reads the ledger alone
/// cannot guess it.
pub type NameHash = [u8; 16];

/// Whose ledger it is, and the key of its hashes. Both are made with the ledger and never change.
#[derive(Clone, PartialEq, Eq)]
pub struct LedgerIdentity {
    /// What a store is bound to.
    pub id: Uuid,
    /// Keys the hashes of names.
    pub key: [u8; 32],
}

/// Without the key.
impl fmt::Debug for LedgerIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LedgerIdentity").field("id", &self.id).finish_non_exhaustive()
    }
}

impl LedgerIdentity {
    /// The hash of a scope.
    #[must_use]
    pub fn scope(&self, scope: &Scope) -> NameHash {
        let workspace = scope.workspace.as_ref().map_or("", |workspace| workspace.as_str());
        self.hash("scope", &[scope.tenant.as_str(), scope.user.as_str(), workspace])
    }

    /// The hash of a session of a scope.
    #[must_use]
    pub fn session(&self, scope: &Scope, session: &SessionId) -> NameHash {
        let workspace = scope.workspace.as_ref().map_or("", |workspace| workspace.as_str());
        let names = [scope.tenant.as_str(), scope.user.as_str(), workspace, session.as_str()];
        self.hash("session", &names)
    }

    /// The hash of a memory's document in a scope.
    #[must_use]
    pub fn document(&self, scope: &Scope, vault: &VaultId, memory: &MemoryId) -> NameHash {
        let workspace = scope.workspace.as_ref().map_or("", |workspace| workspace.as_str());
        let (tenant, user) = (scope.tenant.as_str(), scope.user.as_str());
        self.hash("document", &[tenant, user, workspace, vault.as_str(), memory.as_str()])
    }

    /// The hash of a caller's id of a message.
    #[must_use]
    pub fn external(&self, scope: &Scope, session: &SessionId, id: &ExternalId) -> NameHash {
        let workspace = scope.workspace.as_ref().map_or("", |workspace| workspace.as_str());
        let (tenant, user) = (scope.tenant.as_str(), scope.user.as_str());
        self.hash("external", &[tenant, user, workspace, session.as_str(), id.as_str()])
    }

    /// The hash of a preset of a scope.
    #[must_use]
    pub fn preset(&self, scope: &Scope, preset: &PresetId) -> NameHash {
        let workspace = scope.workspace.as_ref().map_or("", |workspace| workspace.as_str());
        let names = [scope.tenant.as_str(), scope.user.as_str(), workspace, preset.as_str()];
        self.hash("preset", &names)
    }

    /// The hash of a tenant.
    #[must_use]
    pub fn tenant(&self, tenant: &TenantId) -> NameHash {
        self.hash("tenant", &[tenant.as_str()])
    }

    /// The hash of a user of a tenant.
    #[must_use]
    pub fn user(&self, tenant: &TenantId, user: &UserId) -> NameHash {
        self.hash("user", &[tenant.as_str(), user.as_str()])
    }

    /// What it is of keeps equal names of different things apart; lengths keep neighbours apart.
    fn hash(&self, of: &str, names: &[&str]) -> NameHash {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        for name in std::iter::once(&of).chain(names) {
            hasher.update(&(name.len() as u64).to_le_bytes());
            hasher.update(name.as_bytes());
        }
        let mut hash = [0; 16];
        hasher.finalize_xof().fill(&mut hash);
        hash
    }
}

/// A scope that was erased, and up to where: what came later is another's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ScopeEnd {
    /// The scope.
    pub scope: NameHash,
    /// Sequence number of its last message then.
    pub through: u64,
    /// Number of its last snapshot of a document then.
    pub documents: u64,
}

/// A kind of erasure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LedgerEntry {
    /// Messages of a scope.
    Messages {
        /// The scope.
        scope: NameHash,
        /// Which.
        ids: Vec<MessageId>,
    },
    /// A session.
    Session {
        /// Its scope.
        scope: NameHash,
        /// Its id.
        session: NameHash,
        /// Sequence number of the scope's last message then: what came later is another's.
        through: u64,
    },
    /// The document of a memory.
    Document {
        /// Its scope.
        scope: NameHash,
        /// Its vault and memory.
        document: NameHash,
        /// Number of its last snapshot then: what came later is another's.
        through: u64,
    },
    /// A user, with every scope.
    User {
        /// The user.
        user: NameHash,
        /// The scopes that there were.
        scopes: Vec<ScopeEnd>,
    },
    /// Statements that must not be extracted again.
    Rejected {
        /// The scope.
        scope: NameHash,
        /// Keyed hashes of what was rejected.
        keys: Vec<[u8; 16]>,
    },
    /// Messages that an entry after it erases, by the ids under which they could come back in a file.
    Gone {
        /// Their scope.
        scope: NameHash,
        /// Our ids: those of messages of a session that others could read.
        messages: Vec<MessageId>,
        /// Their callers' ids.
        external: Vec<NameHash>,
    },
    /// The grant of a session that was taken back.
    Grant {
        /// Its tenant.
        tenant: NameHash,
        /// Which.
        share: ShareId,
    },
    /// What was taken out of a grant that others keep.
    NarrowedGrant {
        /// Its tenant.
        tenant: NameHash,
        /// Which.
        share: ShareId,
        /// Members who were taken out.
        users: Vec<NameHash>,
        /// Whether its members may no longer append.
        read_only: bool,
    },
    /// A session that was shared. Its guests may have copies of its messages, also after the grant was taken back, so
    /// that its erasure has to record them by id.
    Shared {
        /// The session.
        session: NameHash,
    },
    /// A key that was revoked.
    RevokedKey {
        /// Its tenant.
        tenant: NameHash,
        /// Which.
        key: KeyId,
    },
    /// A key whose secret was replaced: the one before opens nothing any more.
    RotatedKey {
        /// Its tenant.
        tenant: NameHash,
        /// Which.
        key: KeyId,
        /// Hash of its secret from then on.
        hash: [u8; 32],
    },
    /// A preset that was removed.
    Preset {
        /// Its scope.
        scope: NameHash,
        /// Its id.
        preset: NameHash,
    },
    /// Statements that may be extracted again.
    AllowedAgain {
        /// The scope.
        scope: NameHash,
        /// Keyed hashes of what had been rejected.
        keys: Vec<[u8; 16]>,
    },
}

/// An entry with its number, from 1 on without gaps, and when it was recorded.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recorded {
    /// Its number.
    pub number: u64,
    /// When it was recorded.
    pub at: Timestamp,
    /// The erasure.
    pub entry: LedgerEntry,
}

/// What was erased, in order.
#[async_trait]
pub trait ErasureLedger: Send + Sync {
    /// Whose ledger it is; the same at every call and after every start.
    async fn identity(&self) -> Result<LedgerIdentity>;

    /// Adds an entry. When this returns its number, it is durable. Of any number of writers at once each
    /// gets a number of its own, and none is left out.
    async fn record(&self, entry: &LedgerEntry, at: Timestamp) -> Result<u64>;

    /// Up to `limit` entries by number, from the first above `after` on.
    async fn entries(&self, after: u64, limit: usize) -> Result<Vec<Recorded>>;

    /// The number of the last entry; 0 when there is none.
    async fn last(&self) -> Result<u64>;

    /// Becomes the ledger of `identity` and adds these entries under their numbers; those it has stay.
    /// One that has entries under another identity is a `Conflict`, and so is a gap.
    async fn adopt(&self, identity: &LedgerIdentity, entries: &[Recorded]) -> Result<()>;
}
