//! Rules and profile cards.

use async_trait::async_trait;
use throughline_core::ports::ProfileRepo;
use throughline_core::scope::Profile;
use throughline_core::{Result, Scope};

use super::MemoryStore;

#[async_trait]
impl ProfileRepo for MemoryStore {
    async fn profile(&self, scope: &Scope) -> Result<Option<Profile>> {
        Ok(self.read(scope, |held| held.profile.clone()))
    }
}
