//! Which session a path names: the caller's own, or one that somebody of its tenant shares with it.

use throughline_core::ids::{SessionId, ShareId};
use throughline_core::session::Share;
use throughline_core::{Error, ErrorKind, Result, Scope};

use crate::compose::Engine;
use crate::identity::Identity;

/// The prefix of a shared session's id; the id of its grant follows.
const SHARE: &str = "share:";

/// Whether an id can only be that of a shared session.
pub fn is_reserved(id: &str) -> bool {
    share_id(id).is_some()
}

fn share_id(id: &str) -> Option<ShareId> {
    id.strip_prefix(SHARE)?.parse().ok()
}

/// A session as a caller reaches it.
#[derive(Debug, Clone)]
pub struct Thread {
    /// The scope that holds it.
    pub scope: Scope,
    /// Its id there.
    pub session: SessionId,
    /// The grant, where it is somebody else's.
    pub share: Option<Share>,
}

impl Thread {
    /// The caller's own session. What belongs to its owner alone is asked for by this.
    ///
    /// # Errors
    /// `InvalidInput` for an invalid id; `Forbidden` for a shared session.
    pub fn own(caller: &Identity, id: &str) -> Result<(Scope, SessionId)> {
        if is_reserved(id) {
            return Err(Error::new(
                ErrorKind::Forbidden,
                "a shared session belongs to its owner: you can read it and, if it is shared as \
                 writable, append to it",
            ));
        }
        Ok((caller.scope()?, SessionId::new(id)?))
    }

    /// A session to read.
    ///
    /// # Errors
    /// `InvalidInput` for an invalid id; `NotFound` for a grant that is not this caller's.
    pub async fn to_read(engine: &Engine, caller: &Identity, id: &str) -> Result<Self> {
        let scope = caller.scope()?;
        match share_id(id) {
            Some(share) => {
                let share = engine.shares.open(&scope, share).await?;
                let (scope, session) = (share.owner.clone(), share.session.clone());
                Ok(Self { scope, session, share: Some(share) })
            }
            None => Ok(Self { scope, session: SessionId::new(id)?, share: None }),
        }
    }

    /// A session to append to.
    ///
    /// # Errors
    /// As [`Self::to_read`]; `Forbidden` for a grant to read.
    pub async fn to_append(engine: &Engine, caller: &Identity, id: &str) -> Result<Self> {
        let thread = Self::to_read(engine, caller, id).await?;
        match &thread.share {
            Some(share) if !share.writable => Err(Error::new(
                ErrorKind::Forbidden,
                "this session is shared read-only: its owner can make it writable",
            )),
            _ => Ok(thread),
        }
    }
}
