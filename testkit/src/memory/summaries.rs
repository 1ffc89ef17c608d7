//! Rolling summaries.

use async_trait::async_trait;
use throughline_core::ids::SessionId;
use throughline_core::ports::{SummaryRepo, Write};
use throughline_core::summary::{Summary, SummaryWriter};
use throughline_core::{Result, Scope};

use super::{MemoryStore, ScopeState};

impl ScopeState {
    pub(super) fn summaries_of(&self, session: &SessionId) -> Vec<Summary> {
        let mut versions = self.summaries.get(session).cloned().unwrap_or_default();
        versions.sort_by_key(|summary| summary.version);
        versions
    }

    pub(super) fn rewrite_summary(&mut self, summary: &Summary) -> Result<()> {
        let mut versions = self.summaries.get_mut(&summary.session).into_iter().flatten();
        let awaiting = versions
            .find(|held| held.id == summary.id && held.writer == SummaryWriter::AwaitsModel)
            .ok_or_else(Write::written_before)?;
        awaiting.lines.clone_from(&summary.lines);
        awaiting.tokens = summary.tokens;
        awaiting.writer = summary.writer.clone();
        if let Some(thread) = self.sessions.iter_mut().find(|t| t.head.id == summary.session) {
            thread.changed = true;
        }
        Ok(())
    }
}

#[async_trait]
impl SummaryRepo for MemoryStore {
    async fn latest_summary(&self, scope: &Scope, session: &SessionId) -> Result<Option<Summary>> {
        Ok(self.summaries(scope, session).await?.pop())
    }

    async fn awaiting_summaries(&self, scope: &Scope, limit: usize) -> Result<Vec<Summary>> {
        Ok(self.read(scope, |held| {
            let newest = held.summaries.keys().filter_map(|of| held.summaries_of(of).pop());
            newest.filter(|held| held.writer == SummaryWriter::AwaitsModel).take(limit).collect()
        }))
    }

    async fn summaries(&self, scope: &Scope, session: &SessionId) -> Result<Vec<Summary>> {
        Ok(self.read(scope, |held| held.summaries_of(session)))
    }
}
