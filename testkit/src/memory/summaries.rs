//! Rolling summaries.

use async_trait::async_trait;
use throughline_core::ids::SessionId;
use throughline_core::ports::SummaryRepo;
use throughline_core::summary::Summary;
use throughline_core::{Result, Scope};

use super::{MemoryStore, ScopeState};

impl ScopeState {
    pub(super) fn summaries_of(&self, session: &SessionId) -> Vec<Summary> {
        let mut versions = self.summaries.get(session).cloned().unwrap_or_default();
        versions.sort_by_key(|summary| summary.version);
        versions
    }
}

#[async_trait]
impl SummaryRepo for MemoryStore {
    async fn latest_summary(&self, scope: &Scope, session: &SessionId) -> Result<Option<Summary>> {
        Ok(self.summaries(scope, session).await?.pop())
    }

    async fn summaries(&self, scope: &Scope, session: &SessionId) -> Result<Vec<Summary>> {
        Ok(self.read(scope, |held| held.summaries_of(session)))
    }
}
