//! Nearness in meaning beside words. Pure.
//!
//! A passage's cosine with the question is averaged with that of its window, as counts of words are:
//! what answers a question is often said in the message after the one that is about it. Then words and
//! meaning are put on one scale and added. Fusion by rank alone (reciprocal rank, Cormack et al. 2009)
//! was measured a little lower, multiplying much lower.

use std::collections::HashMap;

use super::Intent;
use super::rank::Ranked;
use crate::ports::{UnitKey, VectorHit};

/// How meaning is weighed; measured on conversations, and flat around these values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Meaning {
    /// Weight against words, the best of each being 1.
    pub(super) weight: f32,
    /// Cosines up to here mean nothing.
    pub(super) least: f32,
    /// Passages below this cosine have no share of meaning at all.
    pub(super) gate: f32,
    /// Share of the window in a passage's cosine.
    pub(super) window: f32,
    /// Weight of a neighbour at distance 1, 2, … in the window.
    pub(super) neighbours: &'static [f32],
}

impl Meaning {
    /// Messages, with neighbours. Who asks for what was said gets all that may bear on it; another
    /// turn only what is near, since most of a long memory has nothing to do with it.
    pub(super) fn messages(intent: Intent) -> Self {
        let gate = if intent == Intent::ContextLookup { 0.0 } else { 0.2 };
        Self { weight: 0.6, least: 0.05, gate, window: 0.5, neighbours: &[0.6, 0.4, 0.2, 0.1] }
    }

    /// Passages of documents: each by itself, and near or not at all, since what a document says otherwise
    /// has nothing to do with most turns.
    pub(super) const DOCUMENTS: Self =
        Self { weight: 0.6, least: 0.05, gate: 0.2, window: 0.0, neighbours: &[] };

    /// Each text by itself.
    pub(super) const SINGLE: Self =
        Self { weight: 0.6, least: 0.05, gate: 0.0, window: 0.0, neighbours: &[] };
}

/// The best of both rankings, best first, ties by key. `factor` is what is known of a passage
/// beside its words.
pub(super) fn blend(
    ranked: &[Ranked],
    hits: &[VectorHit],
    meaning: &Meaning,
    factor: impl Fn(UnitKey) -> f32,
) -> Vec<Ranked> {
    let cosines: HashMap<UnitKey, f32> =
        hits.iter().map(|hit| (hit.key, 2.0 * hit.score - 1.0)).collect();
    let mut keys: Vec<UnitKey> = ranked.iter().map(|ranked| ranked.key).collect();
    keys.extend(cosines.keys());
    keys.sort_unstable();
    keys.dedup();
    let near: Vec<f32> = keys
        .iter()
        .map(|key| match windowed(*key, &cosines, meaning) {
            cosine if cosine < meaning.gate => 0.0,
            cosine => (cosine - meaning.least).max(0.0) * factor(*key),
        })
        .collect();
    let words: HashMap<UnitKey, f32> =
        ranked.iter().map(|ranked| (ranked.key, ranked.score)).collect();
    let largest = |values: &mut dyn Iterator<Item = f32>| values.fold(f32::MIN_POSITIVE, f32::max);
    let by_words = 1.0 / largest(&mut ranked.iter().map(|ranked| ranked.score));
    let by_meaning = meaning.weight / largest(&mut near.iter().copied());
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

/// A passage's cosine, averaged with that of its window; a neighbour whose cosine is not known counts
/// as one that means nothing.
fn windowed(key: UnitKey, cosines: &HashMap<UnitKey, f32>, meaning: &Meaning) -> f32 {
    let own = cosines.get(&key).copied().unwrap_or(meaning.least);
    if meaning.window == 0.0 {
        return own;
    }
    let (mut sum, mut weights) = (own, 1.0);
    for (weight, distance) in meaning.neighbours.iter().zip(1..) {
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
    (1.0 - meaning.window) * own + meaning.window * sum / weights
}
