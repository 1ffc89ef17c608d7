//! Who a call acts for. A scope comes from the credential, never from a request body.

mod profile;

use std::fmt;

use crate::error::Result;
use crate::ids::{TenantId, UserId, WorkspaceId};

pub use profile::{MAX_CARD_TOKENS, MAX_RULES_TOKENS, Profile, ProfileChange};

/// Tenant, user and optional workspace: the boundary that no read or write crosses.
///
/// Two scopes that differ in any part share nothing, except that a workspace inherits the parts of
/// the profile that it leaves empty from its user.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Scope {
    /// The tenant.
    pub tenant: TenantId,
    /// The end user within the tenant.
    pub user: UserId,
    /// A partition of the user's memory, such as one project.
    pub workspace: Option<WorkspaceId>,
}

impl Scope {
    /// A scope from its parts as text.
    ///
    /// # Errors
    /// `InvalidInput` when a part is not a valid identifier.
    pub fn new(tenant: &str, user: &str, workspace: Option<&str>) -> Result<Self> {
        Ok(Self {
            tenant: TenantId::new(tenant)?,
            user: UserId::new(user)?,
            workspace: workspace.map(WorkspaceId::new).transpose()?,
        })
    }

    /// The same user outside any workspace.
    #[must_use]
    pub fn without_workspace(&self) -> Self {
        Self { workspace: None, ..self.clone() }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.tenant, self.user)?;
        match &self.workspace {
            Some(workspace) => write!(f, "/{workspace}"),
            None => Ok(()),
        }
    }
}
