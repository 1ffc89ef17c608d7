//! From a vector to what is asked, and from Qdrant's answer to hits: pure functions.

use std::collections::BTreeMap;

use qdrant_client::qdrant::ScoredPoint;
use throughline_core::index::UnitKey;
use throughline_core::ports::VectorHit;

use crate::place::key_of;

/// The vector at length one; `None` for one that means nothing: zeros, or values that are no
/// numbers.
pub(crate) fn normalized(vector: &[f32]) -> Option<Vec<f32>> {
    let square = |value: &f32| f64::from(*value) * f64::from(*value);
    let length = vector.iter().map(square).sum::<f64>().sqrt();
    if !(length > 0.0 && length.is_finite()) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "from -1 to 1")]
    let part = |value: &f32| (f64::from(*value) / length) as f32;
    Some(vector.iter().map(part).collect())
}

/// What Qdrant found, in the order of the port.
pub(crate) fn hits(points: &[ScoredPoint]) -> Vec<VectorHit> {
    let hit = |point: &ScoredPoint| {
        Some(VectorHit { key: key_of(&point.payload)?, score: score(point.score) })
    };
    sorted(points.iter().filter_map(hit).collect())
}

/// Whether keys that are as close as the last of `limit` may be missing: there are more of them
/// than were asked for, and Qdrant chose among them by no rule.
pub(crate) fn undecided(hits: &[VectorHit], limit: usize, asked: usize) -> bool {
    let at_limit = limit.checked_sub(1).and_then(|last| hits.get(last));
    hits.len() >= asked
        && at_limit.zip(hits.last()).is_some_and(|(one, last)| one.score == last.score)
}

/// Both lists as one, each key once.
pub(crate) fn merged(nearest: &[VectorHit], also: &[VectorHit]) -> Vec<VectorHit> {
    let scores: BTreeMap<UnitKey, f32> =
        also.iter().chain(nearest).map(|hit| (hit.key, hit.score)).collect();
    sorted(scores.into_iter().map(|(key, score)| VectorHit { key, score }).collect())
}

fn sorted(mut hits: Vec<VectorHit>) -> Vec<VectorHit> {
    hits.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.key.cmp(&b.key)));
    hits
}

/// A cosine, which rounding may carry past 1, as the port's score.
fn score(cosine: f32) -> f32 {
    f32::midpoint(1.0, cosine).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hit(key: u64, score: f32) -> VectorHit {
        VectorHit { key: UnitKey::from_bits(key), score }
    }

    #[test]
    fn a_vector_of_any_length_becomes_one_of_length_one() {
        for vector in [[3.0, 4.0], [3e-38, 4e-38], [3e37, 4e37], [3e-45, 4e-45]] {
            let unit = normalized(&vector).unwrap();
            assert!((unit[0] - 0.6).abs() < 0.05 && (unit[1] - 0.8).abs() < 0.05, "{unit:?}");
        }
        for nothing in [[0.0, -0.0], [f32::NAN, 1.0], [f32::INFINITY, 1.0]] {
            assert_eq!(normalized(&nothing), None);
        }
    }

    #[test]
    fn scores_stay_within_their_bounds() {
        for (cosine, expected) in [(1.0, 1.0), (1.000_001, 1.0), (0.0, 0.5), (-1.000_001, 0.0)] {
            assert_eq!(score(cosine), expected);
        }
    }

    #[test]
    fn a_tie_across_the_end_is_undecided() {
        let hits = [hit(1, 0.9), hit(2, 0.8), hit(3, 0.8), hit(4, 0.8)];
        for (limit, asked, expected) in [
            (1, 4, false),
            (2, 4, true),
            (3, 4, true),
            (4, 4, true),
            (2, 5, false),
            (0, 4, false),
            (9, 4, false),
        ] {
            assert_eq!(undecided(&hits, limit, asked), expected, "{limit} {asked}");
        }
        assert!(!undecided(&[], 5, 5));
    }

    #[test]
    fn lists_are_merged_in_order() {
        let merged = merged(&[hit(3, 0.9), hit(1, 0.5)], &[hit(2, 0.5), hit(3, 0.9)]);
        assert_eq!(merged, [hit(3, 0.9), hit(1, 0.5), hit(2, 0.5)]);
    }
}
