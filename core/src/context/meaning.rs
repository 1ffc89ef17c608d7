//! Nearness in meaning beside words. Pure.
//!
//! A passage's cosine with the question counts by itself and averaged with that of its window, as
//! counts of words do: what answers a question is often said in the message after the one that is
//! about it. Words and meaning are put on one scale and added. Fusion by rank alone (reciprocal rank,
//! Cormack et al. 2009) was measured a little lower, multiplying much lower.

use std::collections::HashMap;

use super::rank::Ranked;
use crate::index::UnitKey;
use crate::ports::VectorHit;
use crate::turn::Intent;

/// Cosines up to here mean nothing.
const LEAST: f32 = 0.05;
/// Weight of meaning against words, the best of each being 1, where both are of single texts.
const WEIGHT: f32 = 0.6;

/// From which cosine on a text is near.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Nearness {
    /// Below this cosine a text has no share of meaning at all.
    gate: f32,
}

impl Nearness {
    /// Who asks for what was said gets all that may bear on it; another turn only what is near, since
    /// most of a long memory has nothing to do with it.
    pub(crate) fn messages(intent: Intent) -> Self {
        Self { gate: if intent == Intent::ContextLookup { 0.0 } else { 0.2 } }
    }

    /// What a document says has nothing to do with most turns.
    pub(crate) const DOCUMENTS: Self = Self { gate: 0.2 };

    /// Every text.
    pub(crate) const ANY: Self = Self { gate: 0.0 };

    /// How near each of `keys` is, half by itself and half with its window. `kernel` has the weight
    /// of a neighbour at distance 1, 2, …; a neighbour whose cosine is not known counts for nothing.
    pub(super) fn of(self, hits: &[VectorHit], keys: &[UnitKey], kernel: &[f32]) -> Vec<f32> {
        let cosines = cosines(hits);
        keys.iter()
            .map(|key| {
                let own = cosines.get(key).copied().unwrap_or(LEAST);
                let near = (own + windowed(*key, own, &cosines, kernel)) / 2.0;
                if near < self.gate { 0.0 } else { (near - LEAST).max(0.0) }
            })
            .collect()
    }
}

/// The best of both rankings of single texts, best first, ties by key.
pub(crate) fn blend(ranked: &[Ranked], hits: &[VectorHit], nearness: Nearness) -> Vec<Ranked> {
    let mut keys: Vec<UnitKey> = ranked.iter().map(|ranked| ranked.key).collect();
    keys.extend(hits.iter().map(|hit| hit.key));
    keys.sort_unstable();
    keys.dedup();
    let near = nearness.of(hits, &keys, &[]);
    let words: HashMap<UnitKey, f32> =
        ranked.iter().map(|ranked| (ranked.key, ranked.score)).collect();
    let largest = |values: &mut dyn Iterator<Item = f32>| values.fold(f32::MIN_POSITIVE, f32::max);
    let by_words = 1.0 / largest(&mut ranked.iter().map(|ranked| ranked.score));
    let by_meaning = WEIGHT / largest(&mut near.iter().copied());
    let mut blended: Vec<Ranked> = keys
        .iter()
        .zip(&near)
        .map(|(key, near)| {
            let words = words.get(key).copied().unwrap_or_default();
            Ranked { key: *key, score: words * by_words + near * by_meaning }
        })
        .filter(|ranked| ranked.score > 0.0)
        .collect();
    blended.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.key.cmp(&b.key)));
    blended
}

fn cosines(hits: &[VectorHit]) -> HashMap<UnitKey, f32> {
    hits.iter().map(|hit| (hit.key, 2.0 * hit.score - 1.0)).collect()
}

/// A passage's cosine, averaged with those of its neighbours that are known.
fn windowed(key: UnitKey, own: f32, cosines: &HashMap<UnitKey, f32>, kernel: &[f32]) -> f32 {
    let (mut sum, mut weights) = (own, 1.0);
    for (weight, distance) in kernel.iter().zip(1..) {
        let position = key.position();
        for neighbour in [position.checked_sub(distance), position.checked_add(distance)] {
            let found =
                neighbour.and_then(|at| cosines.get(&UnitKey::message(key.session_number(), at)));
            if let Some(cosine) = found {
                sum += weight * cosine;
                weights += weight;
            }
        }
    }
    sum / weights
}
