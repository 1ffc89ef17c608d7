//! Refusals of processes whose metrics nobody can read: a command, or MCP over standard input and output. They wait in the
//! store until a process with metrics counts them.

use async_trait::async_trait;

use crate::error::Result;

/// How often an interface refused something for one reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusalCount {
    /// The interface, such as `cli`.
    pub interface: String,
    /// The code of the error.
    pub code: String,
    /// How often.
    pub count: u64,
}

/// Keeps refusals until they are counted. They name no tenant, and do not move to another store.
#[async_trait]
pub trait RefusalRepo: Send + Sync {
    /// Adds to what waits.
    async fn add_refusals(&self, refusals: &[RefusalCount]) -> Result<()>;

    /// Takes everything that waits, one for each interface and code, in order of both. Of callers at once, in any
    /// process, each refusal is given to one.
    async fn take_refusals(&self) -> Result<Vec<RefusalCount>>;
}
