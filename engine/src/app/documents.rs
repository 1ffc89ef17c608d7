//! Erasing documents.

use throughline_core::Result;
use throughline_core::document::Expected;
use throughline_core::ids::{MemoryId, VaultId};
use throughline_core::ports::Erased;

use super::App;
use crate::identity::{Identity, hex};

impl App {
    /// Erases a document with its history, where its latest snapshot is what is expected.
    ///
    /// # Errors
    /// `NotFound`; `PreconditionFailed` where it has changed; those of the erasure.
    pub async fn erase_document(
        &self,
        caller: &Identity,
        vault: &VaultId,
        memory: &MemoryId,
        expected: &Expected,
    ) -> Result<Erased> {
        let scope = caller.scope()?;
        let erased = self.engine.erase.document_if(&scope, vault, memory, expected).await?;
        let target = hex(&self.engine.names.document(&scope, vault, memory));
        caller.audit(&self.engine, "document.erase", target).await;
        Ok(erased)
    }
}
