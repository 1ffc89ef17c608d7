//! Passages of documents as candidates of recall.

use std::borrow::Cow;
use std::sync::Arc;

use super::source::Source;
use crate::document::{DocumentPassage, Snapshot};
use crate::index::UnitKey;
use crate::secret::SecretPolicy;
use crate::text::guarded;

/// A passage of a document that recall found.
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentCandidate {
    /// What it is indexed under.
    pub key: UnitKey,
    /// The latest snapshot of its memory.
    pub snapshot: Arc<Snapshot>,
    /// Where it stands.
    pub passage: DocumentPassage,
    /// Its score among documents.
    pub score: f32,
    /// Whether its secrets are masked or shown.
    pub secrets: SecretPolicy,
}

impl DocumentCandidate {
    /// The passage, as a model may read it.
    #[must_use]
    pub fn text(&self) -> Cow<'_, str> {
        let stored = self.snapshot.text.get(self.passage.range.clone()).unwrap_or_default();
        self.secrets.shown(stored.trim())
    }

    /// The line of the recalled block that shows it: whose document it is, then the passage, with the heading
    /// of its section where it does not begin with it.
    pub(super) fn line(&self) -> String {
        let info = &self.snapshot.info;
        let section = match self.passage.begins_with_heading(&self.snapshot.text) {
            true => String::new(),
            false if self.passage.title.is_empty() => String::new(),
            false => format!(", {}", self.passage.title),
        };
        let of = format!("{}/{}{section}", info.vault, info.memory);
        format!("- {}: {}\n", guarded(&of), guarded(&self.text()))
    }

    /// Where it comes from.
    #[must_use]
    pub fn source(&self) -> Source {
        let info = &self.snapshot.info;
        Source::Document {
            vault: info.vault.clone(),
            memory: info.memory.clone(),
            context: info.context.clone(),
            section: self.passage.slug.to_string(),
        }
    }
}
