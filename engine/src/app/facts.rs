//! Facts that callers state, look for, correct and take back.

use std::collections::HashSet;
use std::time::Duration;

use throughline_core::context::FactCandidate;
use throughline_core::fact::{EVERYWHERE, Fact, FactKind};
use throughline_core::ids::{FactId, SessionId};
use throughline_core::page::{MAX_PAGE, PageRequest};
use throughline_core::ports::Idempotency;
use throughline_core::services::facts::{Correction, Remember};
use throughline_core::text::terms;
use throughline_core::time::Timestamp;
use throughline_core::{Error, ErrorKind, Result, Scope};

use super::App;
use crate::identity::Identity;

/// Most facts that a search answers with.
const MAX_FOUND: usize = 24;
/// Facts that a search looks at, of which age and tags choose.
const MAX_SEARCHED: usize = 64;
/// As many of which a session chooses.
const MAX_SEARCHED_IN_SESSION: usize = 512;
/// Most tags of a search.
const MAX_SEARCH_TAGS: usize = 16;
/// By how much all tags raise a fact's score.
const TAG_SHARE: f32 = 0.5;
/// Facts that are told to be similar.
const MAX_SIMILAR: usize = 3;
/// Most characters of a search.
const MAX_QUERY_CHARS: usize = 10_000;

/// A search among facts.
#[derive(Debug, Clone, Default)]
pub struct FactSearch {
    /// The question.
    pub query: String,
    /// Only facts that were first stated in this session.
    pub session: Option<SessionId>,
    /// Tags that raise a fact's rank.
    pub tags: Vec<String>,
    /// Most facts.
    pub k: usize,
}

/// The part of its score that a fact of some age keeps: half of it fades with the half-life, so that an old fact that
/// alone answers is found, too.
fn fading(observed_at: Timestamp, now: Timestamp, half_life: Duration) -> f32 {
    if half_life.is_zero() {
        return 1.0;
    }
    let age = now.as_micros().saturating_sub(observed_at.as_micros()).max(0);
    let lives = age as f64 / half_life.as_micros() as f64;
    (0.5 + 0.5 * 0.5_f64.powf(lives)) as f32
}

/// The share of the tags asked for that a fact has.
fn shared(held: &[String], asked: &[String]) -> f32 {
    let both = asked.iter().filter(|tag| held.contains(tag)).count();
    both as f32 / asked.len().max(1) as f32
}

/// Which facts to list.
#[derive(Debug, Clone, Default)]
pub struct FactFilter {
    /// Of this kind.
    pub kind: Option<FactKind>,
    /// With this tag.
    pub tag: Option<String>,
    /// Those, too, that do not hold any more.
    pub include_superseded: bool,
}

impl FactFilter {
    fn takes(&self, fact: &Fact) -> bool {
        fact.kind != FactKind::Retraction
            && (self.include_superseded || fact.holds())
            && self.kind.is_none_or(|kind| fact.kind == kind)
            && self.tag.as_ref().is_none_or(|tag| fact.tags.contains(tag))
    }
}

/// Where a fact holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Place {
    /// In the caller's workspace; in all where it has none.
    #[default]
    Workspace,
    /// In all workspaces of its user.
    AllWorkspaces,
}

impl App {
    /// Adds a fact that the caller states directly: in its workspace, or in all of its user's.
    ///
    /// # Errors
    /// Those of the fact service; as [`Identity::user_scope`].
    pub async fn remember(
        &self,
        caller: &Identity,
        mut fact: Remember,
        place: Place,
        idempotency: Option<Idempotency>,
    ) -> Result<Fact> {
        let told_in = caller.scope()?;
        let scope = match place {
            Place::Workspace => told_in.clone(),
            Place::AllWorkspaces => {
                fact.tags.push(EVERYWHERE.to_owned());
                let scope = caller.user_scope();
                caller.refused(&self.engine, "fact.remember", scope).await?
            }
        };
        let by = (caller.actor, &told_in);
        let told = self.engine.facts.remember(&scope, fact, by, idempotency).await;
        let fact = caller.refused(&self.engine, "fact.remember", told).await?;
        caller.audit(&self.engine, "fact.remember", fact.id.to_string()).await;
        Ok(fact)
    }

    /// A fact of the caller's workspace, or one that holds in all of its user's, with its scope.
    ///
    /// # Errors
    /// `NotFound`; those of the store.
    pub async fn fact(&self, caller: &Identity, id: FactId) -> Result<(Scope, Fact)> {
        let own = caller.scope()?;
        let missing = match self.engine.facts.get(&own, id).await {
            Ok(fact) => return Ok((own, fact)),
            Err(error) if error.kind() == ErrorKind::NotFound => error,
            Err(error) => return Err(error),
        };
        let Ok(of_user) = caller.user_scope() else { return Err(missing) };
        match self.engine.facts.get(&of_user, id).await {
            Ok(fact) if fact.holds_everywhere() => Ok((of_user, fact)),
            _ => Err(missing),
        }
    }

    /// The facts of the caller that fit, those of all workspaces among them, the last stated first; and how many there
    /// are.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn newest_facts(
        &self,
        caller: &Identity,
        filter: &FactFilter,
        limit: usize,
    ) -> Result<(Vec<Fact>, usize)> {
        let own = caller.scope()?;
        let of_user = caller.user_scope().ok().filter(|of_user| *of_user != own);
        let mut found = Vec::new();
        for scope in [Some(own.clone()), of_user].into_iter().flatten() {
            let mut page = PageRequest::first(MAX_PAGE)?;
            loop {
                let facts = self.engine.facts.list(&scope, &page).await?;
                let own = scope == own;
                let here = |fact: &Fact| own || fact.holds_everywhere();
                let fitting = |fact: &Fact| here(fact) && filter.takes(fact);
                found.extend(facts.items.into_iter().filter(fitting));
                match facts.next_cursor {
                    Some(cursor) => page = PageRequest::first(MAX_PAGE)?.after(&cursor)?,
                    None => break,
                }
            }
        }
        let total = found.len();
        found.sort_by_key(|fact| std::cmp::Reverse((fact.observed_at, fact.id)));
        found.truncate(limit);
        Ok((found, total))
    }

    /// Facts that say nearly the same as a text: most of the words of the shorter one are the other's, too.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn similar_facts(&self, caller: &Identity, text: &str) -> Result<Vec<Fact>> {
        let found = self.engine.contexts.recall_facts(&caller.scope()?, text, MAX_FOUND).await?;
        let words = |text: &str| terms(text).into_iter().collect::<HashSet<_>>();
        let own = words(text);
        let similar = |fact: &Fact| {
            let other = words(&fact.text);
            let shared = own.intersection(&other).count();
            shared > 0 && shared * 10 >= own.len().min(other.len()) * 7
        };
        let facts = found.into_iter().map(|found| found.fact);
        Ok(facts.filter(similar).take(MAX_SIMILAR).collect())
    }

    /// Warnings about what texts state that the user rejected.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn rejected_in(&self, scope: &Scope, texts: &[&str]) -> Result<Vec<String>> {
        let mut warnings = Vec::new();
        for text in texts {
            if let Some(fact) = self.engine.facts.says_rejected(scope, text).await? {
                let value = fact.value.as_ref().unwrap_or(&fact.text);
                warnings.push(format!(
                    "this states `{value}`, which the user rejected (fact {}): leave it out, or \
                     ask the user whether it holds again",
                    fact.id
                ));
            }
        }
        Ok(warnings)
    }

    /// The valid facts that bear on a question, by words and meaning, shared tags and age, the most relevant first.
    ///
    /// # Errors
    /// `InvalidInput` for a number or a question out of bounds; those of the store.
    pub async fn search_facts(
        &self,
        caller: &Identity,
        search: &FactSearch,
    ) -> Result<Vec<FactCandidate>> {
        let FactSearch { query, session, tags, k } = search;
        if !(1..=MAX_FOUND).contains(k) {
            return Err(Error::invalid(format!("k must be 1 to {MAX_FOUND}")));
        }
        if !(1..=MAX_QUERY_CHARS).contains(&query.chars().count()) {
            return Err(Error::invalid(format!("query: 1 to {MAX_QUERY_CHARS} characters")));
        }
        if tags.len() > MAX_SEARCH_TAGS {
            return Err(Error::invalid(format!("tags: at most {MAX_SEARCH_TAGS}")));
        }
        let scope = caller.scope()?;
        let asked = format!("{query} {}", tags.join(" "));
        let most = if session.is_some() { MAX_SEARCHED_IN_SESSION } else { MAX_SEARCHED };
        let mut found = self.engine.contexts.recall_facts(&scope, &asked, most).await?;
        found.retain(|found| session.is_none() || found.fact.session == *session);
        let (now, half_life) = (self.engine.clock.now(), self.engine.fact_half_life);
        for found in &mut found {
            found.score *= fading(found.fact.observed_at, now, half_life);
            found.score *= 1.0 + TAG_SHARE * shared(&found.fact.tags, tags);
        }
        found.sort_by(|a, b| b.score.total_cmp(&a.score));
        found.truncate(*k);
        Ok(found)
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
        let (scope, _) = self.fact(caller, id).await?;
        let by = (caller.actor, &caller.scope()?);
        let told = self.engine.facts.correct(&scope, id, correction, by).await;
        let fact = caller.refused(&self.engine, "fact.correct", told).await?;
        caller.audit(&self.engine, "fact.correct", id.to_string()).await;
        Ok(fact)
    }

    /// Takes a fact back; its value stays rejected.
    ///
    /// # Errors
    /// Those of the fact service.
    pub async fn retract(&self, caller: &Identity, id: FactId) -> Result<Fact> {
        let (scope, _) = self.fact(caller, id).await?;
        let told = self.engine.facts.retract(&scope, id, caller.actor).await;
        let fact = caller.refused(&self.engine, "fact.retract", told).await?;
        caller.audit(&self.engine, "fact.retract", id.to_string()).await;
        Ok(fact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_score_fades() {
        let day = 86_400_000_000;
        let at = Timestamp::from_micros;
        let half_life = Duration::from_secs(86_400 * 90);
        assert!((fading(at(0), at(0), half_life) - 1.0).abs() < 1e-6);
        assert!((fading(at(0), at(90 * day), half_life) - 0.75).abs() < 1e-6);
        assert!((fading(at(0), at(9_000 * day), half_life) - 0.5).abs() < 1e-6);
        assert!((fading(at(0), at(90 * day), Duration::ZERO) - 1.0).abs() < 1e-6);
        assert!((fading(at(day), at(0), half_life) - 1.0).abs() < 1e-6);
    }
}
