//! Who may call: API keys bound to an identity, what they permit, and the record of what was changed and
//! refused. A scope comes from the credential; a caller only chooses within what it is bound to.

mod actor;
mod key;
mod rate;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{KeyId, TenantId, UserId, WorkspaceId};
use crate::scope::Scope;
use crate::time::Timestamp;

pub use actor::Actor;
pub use key::{ApiKey, KeyReach, KeyUser, NewKey, Presented, Secret, Usable};
pub use rate::Rate;

/// One thing that a key may permit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Permission {
    /// Reading what the scope holds, and assembling contexts.
    Read,
    /// Appending, correcting, erasing one's own.
    Write,
    /// Having a model answer.
    Chat,
    /// Keys, settings, the audit log and erasure of users, of the whole tenant.
    Admin,
}

impl Permission {
    /// Every permission, in the order in which they are listed.
    pub const ALL: [Self; 4] = [Self::Read, Self::Write, Self::Chat, Self::Admin];

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Chat => "chat",
            Self::Admin => "admin",
        }
    }
}

impl std::fmt::Display for Permission {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for Permission {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == text).ok_or_else(|| {
            let allowed = Self::ALL.map(Self::as_str).join(", ");
            Error::invalid(format!("unknown permission: use one of {allowed}"))
        })
    }
}

/// A set of permissions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Permissions(u8);

impl Permissions {
    /// Every permission.
    pub const ALL: Self = Self(0b1111);

    const fn bit(permission: Permission) -> u8 {
        match permission {
            Permission::Read => 1,
            Permission::Write => 2,
            Permission::Chat => 4,
            Permission::Admin => 8,
        }
    }

    /// Whether the permission is one of these.
    #[must_use]
    pub const fn has(self, permission: Permission) -> bool {
        self.0 & Self::bit(permission) != 0
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The permissions, in the order of [`Permission::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Permission> {
        Permission::ALL.into_iter().filter(move |one| self.has(*one))
    }

    /// For a store to keep: names with commas between.
    #[must_use]
    pub fn to_text(self) -> String {
        self.iter().map(Permission::as_str).collect::<Vec<_>>().join(",")
    }

    /// Reads `read,write`.
    ///
    /// # Errors
    /// `InvalidInput` for an unknown name, or none.
    pub fn parse(text: &str) -> Result<Self> {
        let names = text.split(',').map(str::trim).filter(|name| !name.is_empty());
        let set: Self =
            names.map(str::parse).collect::<Result<Vec<Permission>>>()?.into_iter().collect();
        if set.is_empty() {
            return Err(Error::invalid(
                "a key needs at least one permission: read, write, chat or admin",
            ));
        }
        Ok(set)
    }
}

impl FromIterator<Permission> for Permissions {
    fn from_iter<I: IntoIterator<Item = Permission>>(all: I) -> Self {
        Self(all.into_iter().fold(0, |set, one| set | Self::bit(one)))
    }
}

/// Whom a call acts for, and what it may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Principal {
    /// The key; `None` is the local user.
    pub key: Option<KeyId>,
    /// The tenant.
    pub tenant: TenantId,
    /// The user, where the credential or the call says which.
    pub user: Option<UserId>,
    /// The workspace, where the credential or the call says which.
    pub workspace: Option<WorkspaceId>,
    /// Its permissions.
    pub permissions: Permissions,
}

impl Principal {
    /// The scope whose memory the call works on.
    ///
    /// # Errors
    /// `InvalidInput` where the key acts for users and the call did not name one.
    pub fn scope(&self) -> Result<Scope> {
        let user = self.user.clone().ok_or_else(|| {
            Error::invalid(
                "this key acts for several users: name the user in the header `Throughline-User`",
            )
        })?;
        Ok(Scope { tenant: self.tenant.clone(), user, workspace: self.workspace.clone() })
    }

    /// Whether it may do this.
    ///
    /// # Errors
    /// `Forbidden` that names the permission.
    pub fn require(&self, permission: Permission) -> Result<()> {
        if self.permissions.has(permission) {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Forbidden,
            format!("this key does not have the permission `{permission}`: use a key that has it"),
        ))
    }
}

/// One entry of the audit log. It holds no content, and no name of what was erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditEntry {
    /// When.
    pub at: Timestamp,
    /// By which key; `None` is the operator, by command line or as the local user.
    pub key: Option<KeyId>,
    /// The action, such as `key.create` or `session.erase`.
    pub action: String,
    /// To what: an opaque id, or a keyed hash of a caller's name.
    pub target: Option<String>,
    /// How it ended: `done`, or the code of the error that refused it.
    pub outcome: String,
    /// Whether the caller itself did it, or a model for it.
    pub actor: Actor,
}

/// By whom something is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct By {
    /// The key; `None` is the operator, by command line or as the local user.
    pub key: Option<KeyId>,
    /// Whether the caller itself does it, or a model for it.
    pub actor: Actor,
}

impl By {
    /// The operator, by command line or as the local user.
    pub const OPERATOR: Self = Self { key: None, actor: Actor::Api };
}

impl AuditEntry {
    /// The entry of what was done.
    #[must_use]
    pub fn done(at: Timestamp, by: By, action: &str, target: Option<String>) -> Self {
        Self::ended(at, by, action, target, "done")
    }

    /// The entry of what ended so: `done`, or the code of the error that refused it.
    #[must_use]
    pub fn ended(
        at: Timestamp,
        by: By,
        action: &str,
        target: Option<String>,
        outcome: &str,
    ) -> Self {
        let (action, outcome) = (action.to_owned(), outcome.to_owned());
        Self { at, key: by.key, action, target, outcome, actor: by.actor }
    }
}
