//! The ledger of erasures, in memory: it outlives the stores of a test as a file outlives a restore.

use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use throughline_core::ports::{ErasureLedger, LedgerEntry, LedgerIdentity, Recorded};
use throughline_core::time::Timestamp;
use throughline_core::{Error, Result};

use crate::build::id;

/// A ledger with an identity of its own.
#[derive(Debug)]
pub struct MemoryLedger(Mutex<(LedgerIdentity, Vec<Recorded>)>);

impl MemoryLedger {
    /// An empty one.
    #[must_use]
    pub fn new() -> Self {
        let id = id();
        // It differs by ledger; that nobody guesses it is no business of a test.
        let mut key = [7; 32];
        key[..16].copy_from_slice(id.as_bytes());
        Self(Mutex::new((LedgerIdentity { id, key }, Vec::new())))
    }

    /// Whose it is.
    #[must_use]
    pub fn names(&self) -> LedgerIdentity {
        self.state().0.clone()
    }

    fn state(&self) -> MutexGuard<'_, (LedgerIdentity, Vec<Recorded>)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for MemoryLedger {
    fn default() -> Self {
        Self::new()
    }
}

#[async_trait]
impl ErasureLedger for MemoryLedger {
    async fn identity(&self) -> Result<LedgerIdentity> {
        Ok(self.state().0.clone())
    }

    async fn record(&self, entry: &LedgerEntry, at: Timestamp) -> Result<u64> {
        let entries = &mut self.state().1;
        let number = entries.len() as u64 + 1;
        entries.push(Recorded { number, at, entry: entry.clone() });
        Ok(number)
    }

    async fn entries(&self, after: u64, limit: usize) -> Result<Vec<Recorded>> {
        let state = self.state();
        let above = state.1.iter().filter(|recorded| recorded.number > after);
        Ok(above.take(limit).cloned().collect())
    }

    async fn last(&self) -> Result<u64> {
        Ok(self.state().1.len() as u64)
    }

    async fn adopt(&self, identity: &LedgerIdentity, entries: &[Recorded]) -> Result<()> {
        let (own, held) = &mut *self.state();
        if own.id != identity.id && !held.is_empty() {
            return Err(Error::conflict("the ledger has entries of its own"));
        }
        let mut next = held.clone();
        for recorded in entries {
            let last = next.len() as u64;
            if recorded.number > last + 1 {
                return Err(Error::conflict("entries are missing"));
            }
            if recorded.number == last + 1 {
                next.push(recorded.clone());
            }
        }
        (*own, *held) = (identity.clone(), next);
        Ok(())
    }
}
