//! What a model may not tell: what its user rejected or corrected, here or for all workspaces.

use super::FactService;
use crate::access::Actor;
use crate::context::{REJECTED_READ, SUPERSEDED_READ, states_corrected, states_rejected};
use crate::error::{Error, Result};
use crate::fact::{Fact, FactKind, NewFact, Place, SupersededFact};
use crate::ports::{LedgerLimits, Store};
use crate::scope::Scope;

impl FactService {
    /// Refuses a fact that a model may not tell. It is decided before anything is recorded: what the ledger of
    /// erasures has is done again at the next start.
    ///
    /// # Errors
    /// `Conflict`; those of the store.
    pub(super) async fn may_tell(
        &self,
        scope: &Scope,
        told_in: &Scope,
        fact: &NewFact,
    ) -> Result<()> {
        let holders = self.store.holders(scope, &[fact.place()]).await?;
        let holder = holders.first().map(|(_, holder)| holder);
        fact.replace(holder)?;
        if holder.is_some_and(|holder| fact.restates(holder.kind, holder.statement)) {
            return Ok(());
        }
        let superseded = superseded(&*self.store, told_in).await?;
        let mut is_rejected = false;
        for scope in scopes(told_in) {
            let keys = self.rejecting.rejections.keys(&scope, fact);
            is_rejected |= self.store.is_rejected(&scope, &keys).await?;
        }
        let keys = self.rejecting.rejections.keys(scope, fact);
        let same = |old: &&SupersededFact| {
            let own = self.rejecting.rejections.keys_of(scope, &old.fact);
            old.fact.rejected && own.iter().any(|key| keys.contains(key))
        };
        // What a model forgot for the user it may tell again.
        let mut rejected = superseded.iter().filter(same).peekable();
        let forgotten =
            rejected.peek().is_some() && rejected.all(|old| old.ended_by == Actor::Model);
        if is_rejected && !forgotten || states_corrected(&fact.text, &superseded).is_some() {
            return Err(Error::conflict(
                "the user rejected or corrected this, and a tool cannot override that: ask the \
                 user to state it over HTTP or with `throughline facts add`",
            ));
        }
        Ok(())
    }

    /// Refuses to let a model replace what its user settled.
    ///
    /// # Errors
    /// `Conflict`; those of the store.
    pub(super) async fn may_replace(&self, scope: &Scope, old: &Fact) -> Result<()> {
        let place = Place::of(old.slot(), old.statement());
        let holders = self.store.holders(scope, &[place]).await?;
        match holders.iter().find(|(_, holder)| holder.is_settled()) {
            Some((_, holder)) => Err(holder.overruled()),
            None => Ok(()),
        }
    }

    /// The value or statement in a text that the user rejected, and that does not hold again.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn says_rejected(&self, scope: &Scope, text: &str) -> Result<Option<Fact>> {
        Ok(states_rejected(text, &superseded(&*self.store, scope).await?).cloned())
    }
}

/// What does not hold any more in a scope, and what its user rejected there or for all workspaces.
pub(crate) async fn superseded(store: &dyn Store, scope: &Scope) -> Result<Vec<SupersededFact>> {
    let limits = LedgerLimits {
        superseded: SUPERSEDED_READ,
        rejected: REJECTED_READ,
        ..LedgerLimits::default()
    };
    let mut superseded = store.ledger(scope, limits).await?.superseded;
    if scope.workspace.is_some() {
        superseded.extend(rejected_everywhere(store, scope).await?);
    }
    Ok(superseded)
}

/// A scope, and that of all workspaces of its user.
fn scopes(scope: &Scope) -> Vec<Scope> {
    let of_user = scope.without_workspace();
    let other = (of_user != *scope).then_some(of_user);
    [scope.clone()].into_iter().chain(other).collect()
}

/// What the user of a workspace rejected outside of all workspaces, without what holds again in this one.
pub(crate) async fn rejected_everywhere(
    store: &dyn Store,
    workspace: &Scope,
) -> Result<Vec<SupersededFact>> {
    let limits = LedgerLimits { rejected: REJECTED_READ, ..LedgerLimits::default() };
    let mut rejected = store.ledger(&workspace.without_workspace(), limits).await?.superseded;
    if rejected.is_empty() {
        return Ok(rejected);
    }
    let place = |old: &SupersededFact| Place::of(old.fact.slot(), old.fact.statement());
    let places: Vec<Place> = rejected.iter().map(place).collect();
    let held = store.holders(workspace, &places).await?;
    rejected.retain(|old| {
        !held.iter().any(|(at, holder)| {
            *at == place(old)
                && holder.kind != FactKind::Retraction
                && holder.statement == old.fact.statement()
        })
    });
    for old in &mut rejected {
        // Numbers of messages are those of another scope.
        old.said.clear();
    }
    Ok(rejected)
}
