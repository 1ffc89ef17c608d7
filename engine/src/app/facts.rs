//! Facts that callers state, look for, correct and take back.

use std::collections::HashSet;
use std::time::Duration;

use throughline_core::context::FactCandidate;
use throughline_core::fact::{EVERYWHERE, Fact, FactKind};
use throughline_core::ids::{FactId, SessionId};
use throughline_core::page::{MAX_PAGE, Page, PageRequest};
use throughline_core::ports::Idempotency;
use throughline_core::services::contexts::sort_by_relevance;
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
/// As many of which a session or a time chooses.
pub(super) const MOST_SEARCHED: usize = 1_024;
/// Most tags of a fact, and of a search.
const MAX_TAGS: usize = 16;
/// By how much all tags raise a fact's score.
const TAG_SHARE: f32 = 0.5;
/// In a list, where the facts of the user's own scope begin: behind every number of a workspace's.
const OF_USER: u64 = 1 << 32;
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
    /// In the caller's workspace; where it has none, outside of all workspaces.
    #[default]
    Workspace,
    /// In all workspaces of its user.
    AllWorkspaces,
}

impl App {
    /// Adds a fact that the caller states directly: in its workspace, or in all of its user's. A tag tells the latter apart,
    /// which callers cannot set themselves.
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
        if fact.tags.iter().any(|tag| tag == EVERYWHERE) {
            return Err(Error::invalid(format!(
                "tags: `{EVERYWHERE}` is reserved: to make a fact hold in all workspaces, set \
                 `{EVERYWHERE}` instead of the tag"
            )));
        }
        let told_in = caller.scope()?;
        let scope = match place {
            Place::Workspace => told_in.clone(),
            Place::AllWorkspaces => {
                if fact.tags.len() >= MAX_TAGS {
                    let most = MAX_TAGS - 1;
                    return Err(Error::invalid(format!(
                        "tags: at most {most} together with `{EVERYWHERE}`, which is stored as a \
                         tag"
                    )));
                }
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

    /// All facts of the caller by number, superseded ones included; in a workspace, those that hold in all workspaces of its
    /// user come after its own.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn list_facts(&self, caller: &Identity, page: &PageRequest) -> Result<Page<Fact>> {
        let own = caller.scope()?;
        let position = page.position().unwrap_or_default();
        let mut items = Vec::new();
        if position < OF_USER {
            let found = self.engine.facts.list(&own, page).await?;
            if found.next_cursor.is_some() || own.workspace.is_none() {
                return Ok(found);
            }
            items = found.items;
        }
        let mut after = position.saturating_sub(OF_USER);
        // A key that is bound to its workspace reads nothing outside.
        let Ok(of_user) = caller.user_scope() else {
            return Ok(Page { items, next_cursor: None });
        };
        loop {
            let rest = PageRequest::first(MAX_PAGE)?.after(&format!("{after:x}"))?;
            let found = self.engine.facts.list(&of_user, &rest).await?;
            for fact in found.items.into_iter().filter(Fact::holds_everywhere) {
                if items.len() == page.limit() {
                    let next_cursor = Some(format!("{:x}", OF_USER + after));
                    return Ok(Page { items, next_cursor });
                }
                after = fact.number.into();
                items.push(fact);
            }
            match found.next_cursor {
                Some(cursor) => {
                    let next = PageRequest::first(MAX_PAGE)?.after(&cursor)?;
                    after = next.position().unwrap_or(after);
                }
                None => return Ok(Page { items, next_cursor: None }),
            }
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

    /// Warnings about what texts state that the user rejected; they quote nothing to a caller who may not read.
    ///
    /// # Errors
    /// Those of the store.
    pub(super) async fn rejected_in(
        &self,
        caller: &Identity,
        texts: &[&str],
    ) -> Result<Vec<String>> {
        let mut warnings = Vec::new();
        for text in texts {
            if let Some(fact) = self.engine.facts.says_rejected(&caller.scope()?, text).await? {
                let value = match caller.may_read() {
                    true => format!("`{}`", fact.value.as_ref().unwrap_or(&fact.text)),
                    false => "something".to_owned(),
                };
                warnings.push(format!(
                    "this states {value}, which the user rejected (fact {}): remove it, or ask \
                     the user whether it is valid again",
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
        let FactSearch { query, tags, k, .. } = search;
        if !(1..=MAX_FOUND).contains(k) {
            return Err(Error::invalid(format!("k (or `limit`) must be 1 to {MAX_FOUND}")));
        }
        if !(1..=MAX_QUERY_CHARS).contains(&query.chars().count()) {
            return Err(Error::invalid(format!("query: 1 to {MAX_QUERY_CHARS} characters")));
        }
        if tags.len() > MAX_TAGS {
            return Err(Error::invalid(format!("tags: at most {MAX_TAGS}")));
        }
        self.ranked_facts(&caller.scope()?, search).await
    }

    pub(super) async fn ranked_facts(
        &self,
        scope: &Scope,
        search: &FactSearch,
    ) -> Result<Vec<FactCandidate>> {
        let FactSearch { query, session, tags, k } = search;
        let asked = format!("{query} {}", tags.join(" "));
        let most = if session.is_some() { MOST_SEARCHED } else { MAX_SEARCHED.max(*k) };
        let mut found = self.engine.contexts.recall_facts(scope, &asked, most).await?;
        found.retain(|found| session.is_none() || found.fact.session == *session);
        let (now, half_life) = (self.engine.clock.now(), self.engine.fact_half_life);
        for found in &mut found {
            found.score *= fading(found.fact.observed_at, now, half_life);
            found.score *= 1.0 + TAG_SHARE * shared(&found.fact.tags, tags);
        }
        sort_by_relevance(&mut found);
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
