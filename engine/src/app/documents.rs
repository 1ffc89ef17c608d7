//! Writing and erasing documents.

use throughline_core::Result;
use throughline_core::document::Expected;
use throughline_core::ids::{MemoryId, VaultId};
use throughline_core::ports::Erased;
use throughline_core::services::documents::{Put, PutDocument};

use super::App;
use crate::identity::{Identity, hex};

impl App {
    /// Puts a document. Beside what was done: what it states that the user rejected.
    ///
    /// # Errors
    /// Those of the document service.
    pub async fn put_document(
        &self,
        caller: &Identity,
        put: PutDocument,
    ) -> Result<(Put, Vec<String>)> {
        let scope = caller.scope()?;
        let target = hex(&self.engine.names.document(&scope, &put.vault, &put.memory));
        let done = self.engine.documents.put(&scope, put).await?;
        caller.audit(&self.engine, "document.put", target).await;
        let warnings = self.rejected_in(caller, &[&done.snapshot.text]).await?;
        Ok((done, warnings))
    }

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
