//! Reading and changing a profile.

use std::sync::Arc;

use crate::error::Result;
use crate::ports::{Clock, Precondition, RecordKey, Store, Write, WriteBatch};
use crate::scope::{Profile, ProfileChange, Scope};
use crate::tokens::Tokenizer;

/// How often a change is rebuilt when another writer came first.
const ATTEMPTS: usize = 4;

/// Rules and profile cards.
#[derive(Clone)]
pub struct ProfileService {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    tokenizer: Arc<dyn Tokenizer>,
}

impl ProfileService {
    /// A service over its ports.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        tokenizer: Arc<dyn Tokenizer>,
    ) -> Self {
        Self { store, clock, tokenizer }
    }

    /// The profile that holds in `scope`: its own, and what a workspace leaves empty from its user's.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn get(&self, scope: &Scope) -> Result<Profile> {
        let own = self.store.profile(scope).await?.unwrap_or_default();
        let inherited = match scope.workspace {
            Some(_) => self.store.profile(&scope.without_workspace()).await?,
            None => None,
        };
        Ok(own.or_of(inherited))
    }

    /// Changes the profile of exactly this scope and returns it. A change that changes nothing raises no version.
    ///
    /// # Errors
    /// `InvalidInput` when a part is over its limit; those of the store.
    pub async fn change(&self, scope: &Scope, change: ProfileChange) -> Result<Profile> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let now = self.clock.now();
            let erasures = self.store.erasures(scope).await?;
            let current = self.store.profile(scope).await?;
            let precondition = match &current {
                Some(profile) => Precondition::IfVersion(RecordKey::Profile, profile.version),
                None => Precondition::IfAbsent(RecordKey::Profile),
            };
            let held = current.unwrap_or_default();
            let changed = held.clone().changed(change.clone(), now, &*self.tokenizer)?;
            if (&changed.rules, &changed.card) == (&held.rules, &held.card) && held.version > 0 {
                return Ok(held);
            }
            let mut batch = WriteBatch::new(scope.clone(), now)
                .with_precondition(precondition)
                .with(Write::PutProfile(changed.clone()));
            // After an erasure a new profile may have the same version.
            batch.preconditions.extend(erasures.map(Precondition::IfErasures));
            match self.store.apply(batch).await {
                Ok(_) => return Ok(changed),
                Err(error) if attempt < ATTEMPTS && error.is_lost_race() => {}
                Err(error) => return Err(error),
            }
        }
    }
}
