//! Joining ranked lists whose scores do not compare.

use std::collections::BTreeMap;

/// Softens the first ranks: the value of the paper (Cormack, Clarke and Büttcher 2009).
const SMOOTHING: f32 = 60.0;

/// Fuses ranked lists, each best first and without repeats, by reciprocal rank. Best first; of equal scores the lower key is
/// first. Scores are above 0.0 and at most 1.0, which is the first of every list.
#[must_use]
pub fn fuse<K: Copy + Ord>(lists: &[Vec<K>]) -> Vec<(K, f32)> {
    let mut scores: BTreeMap<K, f32> = BTreeMap::new();
    let most = lists.len() as f32 / (SMOOTHING + 1.0);
    for (rank, key) in lists.iter().flat_map(|list| list.iter().enumerate()) {
        *scores.entry(*key).or_default() += 1.0 / (SMOOTHING + 1.0 + rank as f32) / most;
    }
    let mut fused: Vec<(K, f32)> =
        scores.into_iter().map(|(key, score)| (key, score.min(1.0))).collect();
    fused.sort_by(|a, b| b.1.total_cmp(&a.1));
    fused
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_of_all_lists_comes_first() {
        let keys = |lists: &[Vec<u32>]| fuse(lists).iter().map(|one| one.0).collect::<Vec<_>>();
        assert!(keys(&[]).is_empty());
        assert_eq!(keys(&[vec![3, 1, 2]]), [3, 1, 2]);
        assert_eq!(keys(&[vec![1, 2, 3], vec![2, 4]]), [2, 1, 4, 3]);
        assert_eq!(keys(&[vec![2], vec![1]]), [1, 2]);
        assert_eq!(fuse(&[vec![7], vec![7]]), [(7, 1.0)]);
        assert!(fuse(&[vec![1, 2], vec![2, 1]]).iter().all(|(_, score)| *score < 1.0));
    }
}
