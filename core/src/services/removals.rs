//! Removals that outlive a restored backup: they are recorded in the ledger of erasures, which no backup holds.

use std::sync::Arc;

use crate::error::Result;
use crate::ports::{Clock, ErasureLedger, LedgerEntry, LedgerIdentity, Store};

/// Records what is removed beside the memory itself: grants, keys and presets.
#[derive(Clone)]
pub struct Removals {
    ledger: Arc<dyn ErasureLedger>,
    names: LedgerIdentity,
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
}

impl Removals {
    /// Over its ports; `names` are those of the ledger.
    #[must_use]
    pub fn new(
        ledger: Arc<dyn ErasureLedger>,
        names: LedgerIdentity,
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
    ) -> Self {
        Self { ledger, names, store, clock }
    }

    /// Names as the ledger knows them.
    pub(super) fn names(&self) -> &LedgerIdentity {
        &self.names
    }

    /// Records a removal, carries it out, and notes that the store has it. What ends in between is carried out when
    /// the store is opened next.
    pub(super) async fn remove<T>(
        &self,
        entry: LedgerEntry,
        carried_out: impl Future<Output = Result<T>>,
    ) -> Result<T> {
        let number = self.ledger.record(&entry, self.clock.now()).await?;
        let done = carried_out.await?;
        self.store.note_erasures(&[number]).await?;
        Ok(done)
    }

    /// Records that for which no store has anything to do, or what was done already.
    pub(super) async fn record(&self, entry: &LedgerEntry) -> Result<()> {
        let number = self.ledger.record(entry, self.clock.now()).await?;
        self.store.note_erasures(&[number]).await
    }
}
