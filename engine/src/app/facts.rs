//! Facts that callers state, look for, correct and take back.

use throughline_core::context::FactCandidate;
use throughline_core::fact::Fact;
use throughline_core::ids::FactId;
use throughline_core::ports::Idempotency;
use throughline_core::services::facts::{Correction, Remember};
use throughline_core::{Error, Result};

use super::App;
use crate::identity::Identity;

/// Most facts that a search answers with.
const MAX_FOUND: usize = 24;
/// Most characters of a search.
const MAX_QUERY_CHARS: usize = 10_000;

impl App {
    /// Adds a fact that the caller states directly.
    ///
    /// # Errors
    /// Those of the fact service.
    pub async fn remember(
        &self,
        caller: &Identity,
        fact: Remember,
        idempotency: Option<Idempotency>,
    ) -> Result<Fact> {
        self.engine.facts.remember(&caller.scope()?, fact, idempotency).await
    }

    /// The valid facts that bear on a question, by words and meaning, the most relevant first.
    ///
    /// # Errors
    /// `InvalidInput` for a limit or a question out of bounds; those of the store.
    pub async fn search_facts(
        &self,
        caller: &Identity,
        query: &str,
        limit: usize,
    ) -> Result<Vec<FactCandidate>> {
        if !(1..=MAX_FOUND).contains(&limit) {
            return Err(Error::invalid(format!("limit must be 1 to {MAX_FOUND}")));
        }
        if !(1..=MAX_QUERY_CHARS).contains(&query.chars().count()) {
            return Err(Error::invalid(format!("query: 1 to {MAX_QUERY_CHARS} characters")));
        }
        self.engine.contexts.recall_facts(&caller.scope()?, query, limit).await
    }

    /// Replaces what a fact says; the old value stays rejected.
    ///
    /// # Errors
    /// Those of the fact service.
    pub async fn correct(
        &self,
        caller: &Identity,
        id: FactId,
        correction: Correction,
    ) -> Result<Fact> {
        let fact = self.engine.facts.correct(&caller.scope()?, id, correction).await?;
        caller.audit(&self.engine, "fact.correct", id.to_string()).await;
        Ok(fact)
    }

    /// Takes a fact back; its value stays rejected.
    ///
    /// # Errors
    /// Those of the fact service.
    pub async fn retract(&self, caller: &Identity, id: FactId) -> Result<Fact> {
        let fact = self.engine.facts.retract(&caller.scope()?, id).await?;
        caller.audit(&self.engine, "fact.retract", id.to_string()).await;
        Ok(fact)
    }
}
