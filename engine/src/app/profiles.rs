//! Changing the profile.

use throughline_core::Result;
use throughline_core::access::Actor;
use throughline_core::scope::{Profile, ProfileChange};
use throughline_core::secret::SecretPolicy;

use super::App;
use crate::identity::{Identity, hex};

impl App {
    /// Changes rules and card of the caller; a secret that was masked for a model stays where it gives back the mask.
    /// Beside the profile: what it states that the user rejected.
    ///
    /// # Errors
    /// Those of the profile service.
    pub async fn change_profile(
        &self,
        caller: &Identity,
        change: ProfileChange,
    ) -> Result<(Profile, Vec<String>)> {
        let scope = caller.scope()?;
        let change = match caller.actor {
            Actor::Model if self.engine.masking != SecretPolicy::Keep => {
                change.by_model(&self.engine.profiles.get(&scope).await?)
            }
            _ => change,
        };
        let profile = self.engine.profiles.change(&scope, change).await?;
        caller.audit(&self.engine, "profile.change", hex(&self.engine.names.scope(&scope))).await;
        let warnings = self.rejected_in(caller, &[&profile.rules, &profile.card]).await?;
        Ok((profile, warnings))
    }
}
