//! The documents of memories: put and read whole, with history, sections and search.

mod conditions;
mod facets;
mod forms;
mod history;
mod latest;
mod sections;
mod vaults;

use serde::Deserialize;
use throughline_core::Result;
use throughline_core::ids::{MemoryId, VaultId};
use utoipa_axum::router::OpenApiRouter;

use crate::http::service::Service;

pub(crate) fn router() -> OpenApiRouter<Service> {
    OpenApiRouter::new()
        .merge(latest::router())
        .merge(history::router())
        .merge(sections::router())
        .merge(vaults::router())
}

/// The names of a memory in a path.
#[derive(Debug, Deserialize)]
struct OfMemory {
    vault: String,
    memory: String,
}

impl OfMemory {
    fn ids(self) -> Result<(VaultId, MemoryId)> {
        Ok((VaultId::new(self.vault)?, MemoryId::new(self.memory)?))
    }
}
