//! Refusals that wait to be counted.

use async_trait::async_trait;
use throughline_core::Result;
use throughline_core::ports::{RefusalCount, RefusalRepo};

use super::MemoryStore;

#[async_trait]
impl RefusalRepo for MemoryStore {
    async fn add_refusals(&self, refusals: &[RefusalCount]) -> Result<()> {
        let mut state = self.state();
        for RefusalCount { interface, code, count } in refusals {
            *state.refusals.entry((interface.clone(), code.clone())).or_default() += count;
        }
        Ok(())
    }

    async fn take_refusals(&self) -> Result<Vec<RefusalCount>> {
        let taken = std::mem::take(&mut self.state().refusals);
        let taken = taken.into_iter();
        Ok(taken
            .map(|((interface, code), count)| RefusalCount { interface, code, count })
            .collect())
    }
}
