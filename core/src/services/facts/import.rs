//! Facts of an export: what was told directly, and what was rejected, taken in again.

use std::collections::HashMap;

use super::{FactService, Remember};
use crate::access::Actor;
use crate::error::{ErrorKind, Result};
use crate::fact::{Fact, FactKind, FactStatus, NewFact, Place};
use crate::ids::FactId;
use crate::page::{MAX_PAGE, PageRequest};
use crate::ports::{Write, WriteBatch};
use crate::scope::Scope;
use crate::text::{analyze, value_key};
use crate::time::Timestamp;

/// A fact as an export has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FactCopy {
    /// What was told.
    pub fact: Remember,
    /// When it was last stated.
    pub observed_at: Timestamp,
    /// Whether a model told it. Any other is on the word of the import.
    pub by_model: bool,
    /// When it was rejected, where it was.
    pub rejected_at: Option<Timestamp>,
}

/// A checked copy.
#[derive(Debug, Clone)]
pub struct ReadyCopy {
    fact: NewFact,
    rejected_at: Option<Timestamp>,
}

impl ReadyCopy {
    /// When it was last stated.
    #[must_use]
    pub fn observed_at(&self) -> Timestamp {
        self.fact.observed_at
    }
}

/// What became of something that was imported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImportOutcome {
    /// It was added.
    Added,
    /// It is there already.
    Replayed,
    /// What is there is newer, or was decided by the user, and stays.
    Kept,
    /// It was erased or rejected here since.
    HeldBack,
}

impl FactService {
    /// Checks a copy before anything is written.
    ///
    /// # Errors
    /// `InvalidInput` that names the field.
    pub fn ready(&self, copy: FactCopy) -> Result<ReadyCopy> {
        let actor = if copy.by_model { Actor::Model } else { Actor::Import };
        let observed_at = copy.observed_at.min(self.clock.now());
        let fact = self.told(copy.fact, actor, observed_at)?;
        Ok(ReadyCopy { fact, rejected_at: copy.rejected_at })
    }

    /// Takes in facts of an export, in its order; a repeat adds nothing. What the user rejected here stays
    /// rejected, what they told here holds, and of two in one slot the later one does.
    ///
    /// # Errors
    /// Those of the store; what was taken in until then stays.
    pub async fn import(
        &self,
        scope: &Scope,
        copies: Vec<ReadyCopy>,
    ) -> Result<Vec<ImportOutcome>> {
        let mut holders =
            if copies.is_empty() { HashMap::new() } else { self.holders(scope).await? };
        let mut outcomes = Vec::with_capacity(copies.len());
        for copy in copies {
            let (outcome, added) = self.import_one(scope, copy, &holders).await?;
            for id in added {
                let fact = self.get(scope, id).await?;
                if fact.status == FactStatus::Active {
                    holders.insert(place(&fact), fact);
                }
            }
            outcomes.push(outcome);
        }
        Ok(outcomes)
    }

    async fn import_one(
        &self,
        scope: &Scope,
        copy: ReadyCopy,
        holders: &HashMap<Place, Fact>,
    ) -> Result<(ImportOutcome, Vec<FactId>)> {
        let ReadyCopy { mut fact, rejected_at } = copy;
        let keys = self.rejecting.rejections.keys(scope, &fact);
        let holder = holders.get(&fact.place());
        let is_rejected = self.store.is_rejected(scope, &keys).await?;
        let now = self.clock.now();
        let Some(rejected_at) = rejected_at else {
            let outcome = match holder {
                _ if is_rejected => ImportOutcome::HeldBack,
                Some(holder) if takes_back(holder, &fact) => ImportOutcome::HeldBack,
                Some(holder) if states(holder, &fact) => ImportOutcome::Replayed,
                Some(holder) if holder.observed_at > fact.observed_at => ImportOutcome::Kept,
                _ => ImportOutcome::Added,
            };
            if outcome != ImportOutcome::Added {
                return Ok((outcome, Vec::new()));
            }
            let batch = self.with_fact(WriteBatch::new(scope.clone(), now), fact).await;
            return match self.store.apply(batch).await {
                Ok(applied) => Ok((outcome, applied.facts)),
                // A model told it, and its user has settled it otherwise here.
                Err(error) if error.kind() == ErrorKind::Conflict => {
                    Ok((ImportOutcome::Kept, Vec::new()))
                }
                Err(error) => Err(error),
            };
        };
        if is_rejected {
            return Ok((ImportOutcome::Replayed, Vec::new()));
        }
        if let Some(holder) = holder.filter(|holder| states(holder, &fact)) {
            if holder.actor == Actor::Api {
                return Ok((ImportOutcome::Kept, Vec::new()));
            }
            self.retract(scope, holder.id, Actor::Import).await?;
            return Ok((ImportOutcome::Added, Vec::new()));
        }
        if holder.is_some() {
            // What holds the slot here goes on holding it.
            (fact.subject, fact.attribute, fact.value) = (None, None, None);
        }
        let retraction = NewFact {
            id: FactId::from_uuid(self.ids.next()),
            kind: FactKind::Retraction,
            value: Some(fact.value.clone().unwrap_or_else(|| fact.text.clone())),
            observed_at: rejected_at.max(fact.observed_at),
            unit: analyze(&fact.text, &fact.tags),
            rejects: true,
            ..fact.clone()
        };
        let entries = [self.rejected(scope, &keys)];
        let batch = WriteBatch::new(scope.clone(), now).with(Write::Reject(keys));
        let batch = self.recorded_before(batch, &entries, Actor::Import).await?;
        let batch = self.with_fact(batch, fact).await.with(Write::PutFact(Box::new(retraction)));
        let applied = self.store.apply(batch).await?;
        Ok((ImportOutcome::Added, applied.facts))
    }

    /// Whether what a fact says is rejected: it may have been allowed again since.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn is_rejected(&self, scope: &Scope, fact: &Fact) -> Result<bool> {
        self.store.is_rejected(scope, &self.rejecting.rejections.keys_of(scope, fact)).await
    }

    /// What holds each place: facts and retractions.
    async fn holders(&self, scope: &Scope) -> Result<HashMap<Place, Fact>> {
        let mut holders = HashMap::new();
        let mut page = PageRequest::first(MAX_PAGE)?;
        loop {
            let facts = self.store.facts(scope, &page).await?;
            let active = facts.items.into_iter().filter(|fact| fact.status == FactStatus::Active);
            holders.extend(active.map(|fact| (place(&fact), fact)));
            match facts.next_cursor {
                Some(cursor) => page = PageRequest::first(MAX_PAGE)?.after(&cursor)?,
                None => return Ok(holders),
            }
        }
    }
}

fn place(fact: &Fact) -> Place {
    Place::of(fact.slot(), fact.statement())
}

fn states(holder: &Fact, fact: &NewFact) -> bool {
    fact.restates(holder.kind, holder.statement())
}

/// Whether the holder of a place takes back what a fact says. Outside slots, a place is one statement.
fn takes_back(holder: &Fact, fact: &NewFact) -> bool {
    holder.kind == FactKind::Retraction
        && (fact.slot().is_none()
            || holder.value.as_deref().map(value_key) == fact.value.as_deref().map(value_key))
}
