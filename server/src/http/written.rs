//! The answer to a write. A key without the permission `read` gets ids and versions, and nothing that is stored.

use serde::Serialize;
use throughline_engine::identity::Identity;
use utoipa::ToSchema;

/// The answer to a write.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum Written<T> {
    /// What is stored now.
    Whole(T),
    /// For a key without the permission `read`.
    Receipt(Receipt),
}

/// Ids and versions of what was written, for a key without the permission `read`.
#[derive(Debug, Default, Serialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Receipt {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// The session of a context, or the id under which a session is shared.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<String>,
    /// Increases with every change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<u64>,
    /// Identifies the text of a document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub etag: Option<String>,
    /// Messages that were left out because they have been erased; only after an import or a restore.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_back: Option<u64>,
    /// What the change states although the user rejected it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

impl Receipt {
    /// The receipt of what has nothing but an id.
    pub(crate) fn of_id(id: String) -> Self {
        Self { id: Some(id), ..Self::default() }
    }
}

impl<T: Into<Receipt>> Written<T> {
    /// What this caller may see of what it wrote.
    pub(crate) fn of(caller: &Identity, stored: T) -> Self {
        match caller.may_read() {
            true => Self::Whole(stored),
            false => Self::Receipt(stored.into()),
        }
    }
}
