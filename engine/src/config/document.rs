//! Limits of documents.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use throughline_core::document::{DEFAULT_KEPT, DEFAULT_MAX_BYTES, DocumentLimits};

/// Settings of the documents of memories.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DocumentConfig {
    /// Maximum size of a document, in bytes.
    pub max_bytes: usize,
    /// Snapshots to keep of each memory; older ones are deleted.
    pub kept: u32,
}

impl DocumentConfig {
    /// The limits for core.
    #[must_use]
    pub fn limits(&self) -> DocumentLimits {
        DocumentLimits { max_bytes: self.max_bytes, kept: self.kept }
    }
}

impl Default for DocumentConfig {
    fn default() -> Self {
        Self { max_bytes: DEFAULT_MAX_BYTES, kept: DEFAULT_KEPT }
    }
}
