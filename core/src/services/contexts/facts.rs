//! Facts of the ledger for recall.

use std::cmp::Reverse;
use std::collections::HashSet;

use futures_util::try_join;

use super::{ContextService, MOST_POSTINGS};
use crate::context::{
    Bearing, Bm25, FactCandidate, Nearness, Query, Ranked, Ranking, blend, relevance_step,
};
use crate::error::{Error, Result};
use crate::index::{Namespace, TermId, UnitKey};
use crate::scope::Scope;
use crate::turn::{RecallOptions, Weights};

/// Fact candidates of one turn.
const FACT_CANDIDATES: usize = 24;
/// Facts ranked for one turn: superseded ones are among them.
const FACTS_RANKED: usize = 1_024;
/// Facts nearest in meaning that are looked at.
const NEAREST_FACTS: usize = 64;

impl ContextService {
    /// The active facts that a question is about, best first: by words and, where there is an
    /// embedder, by meaning.
    ///
    /// # Errors
    /// Those of the store and of the index.
    pub async fn recall_facts(
        &self,
        scope: &Scope,
        question: &str,
        limit: usize,
    ) -> Result<Vec<FactCandidate>> {
        let query = Query::of(question);
        let options = RecallOptions::default();
        let (mut found, _, _) = self.fact_candidates(scope, &query, &options, limit).await?;
        if scope.workspace.is_some() {
            let of_user = scope.without_workspace();
            let (inherited, _, _) = self.fact_candidates(&of_user, &query, &options, limit).await?;
            add_inherited(&mut found, inherited);
        }
        found.truncate(limit);
        Ok(found)
    }

    /// The facts that bear on a question, and a warning where only words were searched. In a workspace those are among
    /// them that their user told for all.
    pub(super) async fn facts_that_hold(
        &self,
        scope: &Scope,
        query: &Query,
        options: &RecallOptions,
    ) -> Result<(Vec<FactCandidate>, Option<String>)> {
        let bearing = async |scope: &Scope| {
            let (found, bearing, late) =
                self.fact_candidates(scope, query, options, FACT_CANDIDATES).await?;
            Ok::<_, Error>((if bearing.is_enough() { found } else { Vec::new() }, late))
        };
        if scope.workspace.is_none() {
            return bearing(scope).await;
        }
        let of_user = scope.without_workspace();
        let ((mut found, late), (inherited, later)) = try_join!(bearing(scope), bearing(&of_user))?;
        add_inherited(&mut found, inherited);
        found.truncate(FACT_CANDIDATES);
        Ok((found, late.or(later)))
    }

    async fn fact_candidates(
        &self,
        scope: &Scope,
        query: &Query,
        options: &RecallOptions,
        most: usize,
    ) -> Result<(Vec<FactCandidate>, Bearing, Option<String>)> {
        if !options.facts {
            return Ok((Vec::new(), Bearing::default(), None));
        }
        let terms: Vec<TermId> = query.content().iter().map(|term| TermId::of(term)).collect();
        let found = self.store.postings(scope, Namespace::Fact, &terms, MOST_POSTINGS).await?;
        let words = query.without_marks();
        let ranking = Ranking::new(&words, found, &Bm25::SINGLE, &Weights::NONE);
        let mut ranked = ranking.best(FACTS_RANKED);
        let keys: Vec<UnitKey> = ranked.iter().map(|ranked| ranked.key).collect();
        let also: Vec<UnitKey> =
            ranked.iter().take(NEAREST_FACTS).map(|ranked| ranked.key).collect();
        let matched: HashSet<UnitKey> = ranked.iter().map(|ranked| ranked.key).collect();
        let (hits, warning) = self
            .nearest(scope, Namespace::Fact, query.text(), NEAREST_FACTS, &also, options)
            .await?;
        if !hits.is_empty() {
            ranked = blend(&ranked, &hits, Nearness::ANY);
        }
        let bearing = Bearing::of(&ranking, &keys, &hits);
        // Of facts that match equally well the newest come first: older ones may be superseded.
        let best = ranked.iter().map(|ranked| ranked.score).fold(0.0, f32::max);
        let order = |ranked: &Ranked| (relevance_step(ranked.score, best), ranked.key);
        ranked.sort_by_key(|ranked| Reverse(order(ranked)));
        let mut candidates = Vec::new();
        for chunk in ranked.chunks(2 * FACT_CANDIDATES) {
            let numbers: Vec<u32> = chunk.iter().map(|ranked| ranked.key.position()).collect();
            let mut scored = chunk.iter();
            for fact in self.store.active_facts(scope, &numbers).await? {
                // Both are in the order of `numbers`; superseded facts are missing in the answer.
                let found = scored.find(|ranked| ranked.key.position() == fact.number);
                let score = found.map_or(0.0, |ranked| ranked.score);
                // Facts about others are recalled only where the turn has a word of them.
                if matched.contains(&UnitKey::fact(fact.number)) || fact.is_of_the_user() {
                    candidates.push(FactCandidate { fact, score });
                }
            }
            if candidates.len() >= most {
                break;
            }
        }
        candidates.truncate(most);
        Ok((candidates, bearing, warning))
    }
}

/// The most relevant first, and of facts that match equally well the newest.
pub fn sort_by_relevance(found: &mut [FactCandidate]) {
    let best = found.iter().map(|found| found.score).fold(0.0, f32::max);
    let order = |found: &FactCandidate| (relevance_step(found.score, best), found.fact.observed_at);
    found.sort_by_key(|found| Reverse(order(found)));
}

/// Adds what was told for all workspaces, best first; of one slot the workspace's own fact holds.
fn add_inherited(own: &mut Vec<FactCandidate>, inherited: Vec<FactCandidate>) {
    let slots: HashSet<_> = own.iter().filter_map(|found| found.fact.slot()).collect();
    own.extend(
        inherited
            .into_iter()
            .filter(|found| found.fact.holds_everywhere())
            .filter(|found| found.fact.slot().is_none_or(|slot| !slots.contains(&slot))),
    );
    sort_by_relevance(own);
}
