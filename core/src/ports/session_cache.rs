//! Heads of sessions that are in use, kept where every replica finds them.

use async_trait::async_trait;

use crate::error::Result;
use crate::ids::SessionId;
use crate::ports::{HeadLimits, SessionHead};
use crate::scope::Scope;

/// Hot heads: what a turn reads of its session, by the session's version. Whoever asks has just read
/// that version from the store, so that a head is the right one or none, whatever was written, lost or
/// restored meanwhile. To a caller an error is a miss.
#[async_trait]
pub trait SessionCache: Send + Sync {
    /// The head that was kept of exactly this scope, session, version and these limits.
    async fn get(
        &self,
        scope: &Scope,
        session: &SessionId,
        version: u64,
        limits: HeadLimits,
    ) -> Result<Option<SessionHead>>;

    /// Keeps a head, under its session's own version, for a while.
    async fn put(&self, scope: &Scope, limits: HeadLimits, head: &SessionHead) -> Result<()>;

    /// Forgets every head of a scope: after an erasure, when the same session may begin anew with the
    /// versions that it had.
    async fn forget(&self, scope: &Scope) -> Result<()>;
}
