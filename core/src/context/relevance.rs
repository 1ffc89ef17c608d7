//! How relevant a passage is to a turn. Pure.
//!
//! Words and meaning of the passage and its window make its blend; what marks tell of it (who said
//! it, when, how rare such a voice is in the scope) weighs the blend. Everything is relative to what
//! is there, so that one short table of weights serves short messages of two people and long
//! answers of a model alike. `cargo xtask eval` with several sets learns the table, and measures it
//! on each set when it was learnt from the others.

use super::meaning::Nearness;
use super::rank::{Ranked, Ranking};
use crate::index::UnitKey;
use crate::ports::VectorHit;
use crate::turn::{SIGNALS, Weights};

/// A passage with what is known of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The passage.
    pub key: UnitKey,
    /// Its relevance; it compares within one turn only.
    pub score: f32,
    /// Words and meaning of the passage and its window, each as a share of the best.
    pub blend: f32,
    /// What weighs the blend.
    pub signals: [f32; SIGNALS],
}

/// How far the best that was found bears on a turn, by measures that compare between turns.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Bearing {
    /// Share of the turn's words, by how much they tell, that one passage has.
    pub words: f32,
    /// Largest cosine; `None` where there is no embedder.
    pub meaning: Option<f32>,
    /// Passages of the scope: of many, one is near by chance.
    pub passages: f32,
}

impl Bearing {
    /// Of words and meaning together, in a scope of one passage.
    const LEAST: f32 = 0.2;
    /// The same from a thousand passages on; learnt with [`Self::LEAST_WORDS`] from questions that have
    /// an answer in their scope and questions that have none.
    const LEAST_OF_MANY: f32 = 0.45;
    /// Of words, where nothing else is known.
    const LEAST_WORDS: f32 = 0.15;

    /// Whether anything bears on the turn at all.
    #[must_use]
    pub fn is_enough(self) -> bool {
        match self.meaning {
            Some(meaning) => {
                let many = (self.passages.max(1.0).log10() / 3.0).min(1.0);
                let least = Self::LEAST + (Self::LEAST_OF_MANY - Self::LEAST) * many;
                self.words + meaning >= least
            }
            None => self.words >= Self::LEAST_WORDS,
        }
    }

    /// The bearing of what was found by words in `ranking` and by meaning in `hits`.
    pub(crate) fn of(ranking: &Ranking<'_>, keys: &[UnitKey], hits: &[VectorHit]) -> Self {
        let own = largest(keys.iter().map(|key| ranking.own(*key)));
        let cosines = hits.iter().map(|hit| 2.0 * hit.score - 1.0);
        Self {
            words: own / ranking.whole().max(f32::MIN_POSITIVE),
            meaning: (!hits.is_empty()).then(|| largest(cosines)),
            passages: ranking.units(),
        }
    }
}

/// Share of meaning in a blend, words being 1.
const MEANING: f32 = 0.6;

/// Judges the best passages by words and all that are near in meaning; the best `limit`, best first,
/// ties by key.
pub(crate) fn judge(
    ranking: &Ranking<'_>,
    hits: &[VectorHit],
    nearness: Nearness,
    weights: &Weights,
    limit: usize,
) -> (Vec<Judged>, Bearing) {
    let scores = ranking.scores();
    let mut keys: Vec<UnitKey> = ranking.best(limit).iter().map(|ranked| ranked.key).collect();
    keys.extend(hits.iter().map(|hit| hit.key));
    keys.sort_unstable();
    keys.dedup();
    let words = shares(keys.iter().map(|key| scores.of(*key)).collect());
    let near = shares(nearness.of(hits, &keys, ranking.kernel()));
    let mut judged: Vec<Judged> = keys
        .iter()
        .zip(words.iter().zip(&near))
        .map(|(key, (words, near))| {
            let blend = words + MEANING * near;
            let signals = ranking.signals(*key);
            Judged { key: *key, score: blend * weights.factor(&signals), blend, signals }
        })
        .filter(|judged| judged.score > 0.0)
        .collect();
    judged.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| a.key.cmp(&b.key)));
    judged.truncate(limit);
    (judged, Bearing::of(ranking, &keys, hits))
}

/// Steps between nothing and the best score.
const STEPS: f32 = 20.0;

/// The step of a score below the best one. Within one step texts match equally well, such as two that differ in nothing but
/// a value: then the newer one comes first.
#[must_use]
pub fn relevance_step(score: f32, best: f32) -> u32 {
    // Shares are 0 to 1, so nothing is cut off.
    (score / best.max(f32::MIN_POSITIVE) * STEPS).round().max(0.0) as u32
}

/// Values as shares of the largest.
fn shares(mut values: Vec<f32>) -> Vec<f32> {
    let largest = largest(values.iter().copied()).max(f32::MIN_POSITIVE);
    values.iter_mut().for_each(|value| *value /= largest);
    values
}

fn largest(values: impl Iterator<Item = f32>) -> f32 {
    values.fold(0.0, f32::max)
}

impl From<&Judged> for Ranked {
    fn from(judged: &Judged) -> Self {
        Self { key: judged.key, score: judged.score }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recalls_nothing_below_the_relevance_threshold() {
        let table = [
            // words, cosine, passages
            (0.0, Some(0.1), 2.0, false),
            (0.0, Some(0.3), 2.0, true),
            (0.0, Some(0.3), 2_000.0, false),
            (0.2, Some(0.3), 2_000.0, true),
            (0.9, Some(0.0), 2_000.0, true),
            (0.1, None, 2.0, false),
            (0.3, None, 2_000.0, true),
        ];
        for (words, meaning, passages, expected) in table {
            let bearing = Bearing { words, meaning, passages };
            assert_eq!(bearing.is_enough(), expected, "{bearing:?}");
        }
    }
}
