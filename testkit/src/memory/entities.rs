//! Typed values of a session.

use async_trait::async_trait;
use throughline_core::entity::{Entity, NewEntity};
use throughline_core::ids::SessionId;
use throughline_core::ports::{EntityRepo, SOURCES_READ};
use throughline_core::session::PreparedMessage;
use throughline_core::{Result, Scope};

use super::{MemoryStore, ScopeState};

impl ScopeState {
    pub(super) fn see_entity(
        &mut self,
        session: &SessionId,
        message: &PreparedMessage,
        new: &NewEntity,
    ) {
        let held = self.entities.iter_mut().find(|entity| {
            entity.session == *session && entity.kind == new.kind && entity.value == new.value
        });
        let Some(held) = held else {
            self.entities.push(Entity {
                id: new.id,
                session: session.clone(),
                kind: new.kind,
                value: new.value.clone(),
                sources: vec![message.id],
                last_at: message.created_at,
            });
            return;
        };
        held.last_at = held.last_at.max(message.created_at);
        if !held.sources.contains(&message.id) {
            held.sources.push(message.id);
        }
    }

    /// The values of a session, the most recently seen first.
    pub(super) fn entities_of(&self, session: &SessionId, limit: usize) -> Vec<Entity> {
        let of_session = |entity: &&Entity| entity.session == *session;
        let mut found: Vec<Entity> = self.entities.iter().filter(of_session).cloned().collect();
        found.sort_by(|a, b| {
            let ties = || (a.kind.as_str(), &a.value).cmp(&(b.kind.as_str(), &b.value));
            b.last_at.cmp(&a.last_at).then_with(ties)
        });
        found.truncate(limit);
        for entity in &mut found {
            let first = entity.sources.len().saturating_sub(SOURCES_READ);
            entity.sources = entity.sources.split_off(first);
        }
        found
    }
}

#[async_trait]
impl EntityRepo for MemoryStore {
    async fn entities(
        &self,
        scope: &Scope,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<Entity>> {
        Ok(self.read(scope, |held| held.entities_of(session, limit)))
    }
}
