//! Relevance feedback: words that the best passages share and the question lacks (Rocchio; RM3).
//!
//! Questions use other words than the memory does. What the first passages have in common is mostly
//! about the same thing, so it is asked for as well, at a small weight.

use std::collections::{BTreeMap, BTreeSet};

use super::rank::{Query, idf};
use super::recall::MessageCandidate;
use crate::index::TermId;
use crate::text::terms;

/// Passages that are looked at.
pub(crate) const LOOK_AT: usize = 20;
/// Terms that are added at most.
const ADD: usize = 10;
/// Weight of the best added term against one of the question's.
const WEIGHT: f32 = 0.2;
/// Terms whose frequency is asked for at most; those that the best passages bear are kept.
const CONSIDER: usize = 64;

/// A term that passages share, and how much of their score it bears.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shared {
    pub(crate) term: TermId,
    bears: f32,
}

/// The terms that at least two of the best passages share, by how much they bear; neither the
/// question's own nor names of speakers.
pub(crate) fn shared_terms(query: &Query, best: &[MessageCandidate]) -> Vec<Shared> {
    let top = best.first().map_or(1.0, |first| first.score);
    let mut excluded: BTreeSet<String> = query.content().iter().cloned().collect();
    for candidate in best {
        excluded.extend(candidate.message.name.iter().flat_map(|name| terms(name)));
    }
    let mut found: BTreeMap<String, (f32, u32)> = BTreeMap::new();
    for candidate in best {
        let distinct: BTreeSet<String> = terms(candidate.passage()).into_iter().collect();
        for term in distinct.difference(&excluded) {
            let (bears, passages) = found.entry(term.clone()).or_default();
            *bears += candidate.score / top;
            *passages += 1;
        }
    }
    let mut shared: Vec<Shared> = found
        .into_iter()
        .filter(|(_, (_, passages))| *passages >= 2)
        .map(|(term, (bears, _))| Shared { term: TermId::of(&term), bears })
        .collect();
    // The sort is stable and the map ordered: ties stay in order of the terms.
    shared.sort_by(|a, b| b.bears.total_cmp(&a.bears));
    shared.truncate(CONSIDER);
    shared
}

/// The terms to add with their weights, by what they bear and how rare they are in `units`.
pub(crate) fn choose(shared: &[Shared], frequencies: &[u64], units: u64) -> Vec<(TermId, f32)> {
    let mut valued: Vec<(TermId, f32)> = shared
        .iter()
        .zip(frequencies)
        .map(|(shared, frequency)| {
            let rare = idf(units as f32, usize::try_from(*frequency).unwrap_or(usize::MAX));
            (shared.term, shared.bears * rare)
        })
        .collect();
    valued.sort_by(|a, b| b.1.total_cmp(&a.1));
    valued.truncate(ADD);
    let best = valued.first().map_or(1.0, |(_, value)| value.max(f32::MIN_POSITIVE));
    valued.into_iter().map(|(term, value)| (term, WEIGHT * value / best)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rare_shared_terms_are_chosen_and_weighed() {
        let shared: Vec<Shared> = ["common", "rare", "rarer"]
            .into_iter()
            .zip([3.0, 2.0, 1.0])
            .map(|(term, bears)| Shared { term: TermId::of(term), bears })
            .collect();
        let chosen = choose(&shared, &[990, 4, 3], 1_000);
        let terms: Vec<TermId> = chosen.iter().map(|(term, _)| *term).collect();
        assert_eq!(terms, ["rare", "rarer", "common"].map(TermId::of));
        assert!((chosen[0].1 - WEIGHT).abs() < 1e-6);
        assert!(chosen.iter().all(|(_, weight)| (0.0..=WEIGHT).contains(weight)));
    }
}
