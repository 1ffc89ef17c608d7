//! Sessions that several named users of a tenant share, when their owner says so.

use std::collections::BTreeSet;

use crate::error::{Error, Result};
use crate::ids::{SessionId, ShareId, UserId};
use crate::scope::Scope;
use crate::time::Timestamp;

/// Most users that one session is shared with.
pub const MAX_MEMBERS: usize = 100;

/// A grant: these users may read the session, and where it says so append to it. Nothing else of the
/// owner's scope shows to them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Share {
    /// Its id, under which the members reach the session.
    pub id: ShareId,
    /// Whose session it is.
    pub owner: Scope,
    /// The session.
    pub session: SessionId,
    /// With whom it is shared.
    pub members: BTreeSet<UserId>,
    /// Whether they may append.
    pub writable: bool,
    /// When it was first shared.
    pub created_at: Timestamp,
}

impl Share {
    /// Whether it can be granted.
    ///
    /// # Errors
    /// `InvalidInput` that says what is allowed.
    pub fn check(&self) -> Result<()> {
        if self.members.is_empty() || self.members.len() > MAX_MEMBERS {
            return Err(Error::invalid(format!(
                "members: a session is shared with 1 to {MAX_MEMBERS} users"
            )));
        }
        if self.members.contains(&self.owner.user) {
            return Err(Error::invalid("members: leave out the owner, who already has access"));
        }
        Ok(())
    }
}
