//! How near a table comes to its teacher, on texts that were not fitted.

use crate::algebra::{BLOCK, Columns, dot, normalise};
use crate::bags::column;

/// Two numbers, 1 at best.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Fidelity {
    /// The mean cosine of texts' vectors and their targets.
    pub cosine: f64,
    /// Of each text, its similarities to all the others: the correlation (Pearson's) of the table's
    /// and the teacher's, on average. It is what ranking needs, and counts what fewer dimensions
    /// lose.
    pub correlation: f64,
}

/// Compares texts' vectors with their targets, and with the teacher's full vectors. A text without
/// a vector counts as not alike to anything.
#[must_use]
pub fn fidelity(vectors: &Columns, targets: &Columns, teacher: &Columns) -> Fidelity {
    Fidelity { cosine: cosine(vectors, targets), correlation: correlation(vectors, teacher) }
}

/// The mean cosine of columns.
pub(crate) fn cosine(vectors: &Columns, targets: &Columns) -> f64 {
    let cosines = (0..vectors.ncols()).map(|at| {
        let (vector, target) = (column(vectors, at), column(targets, at));
        let norms = (dot(vector, vector) * dot(target, target)).sqrt();
        f64::from(dot(vector, target) / norms.max(1e-9))
    });
    cosines.sum::<f64>() / vectors.ncols().max(1) as f64
}

fn correlation(vectors: &Columns, teacher: &Columns) -> f64 {
    let unit = |columns: &Columns| {
        let mut columns = columns.clone();
        normalise(&mut columns);
        columns
    };
    let (vectors, teacher) = (unit(vectors), unit(teacher));
    let texts = vectors.ncols();
    let mut sum = 0.0;
    for begin in (0..texts).step_by(BLOCK) {
        let count = BLOCK.min(texts - begin);
        let ours = vectors.tr_mul(&vectors.columns(begin, count));
        let theirs = teacher.tr_mul(&teacher.columns(begin, count));
        for at in 0..count {
            sum += pearson(column(&ours, at), column(&theirs, at), begin + at);
        }
    }
    sum / texts.max(1) as f64
}

/// The correlation of two rows of numbers, without those at `but`; 0 where one is constant.
fn pearson(a: &[f32], b: &[f32], but: usize) -> f64 {
    let pairs = || {
        let pairs = a.iter().zip(b).enumerate().filter(move |(at, _)| *at != but);
        pairs.map(|(_, (a, b))| (f64::from(*a), f64::from(*b)))
    };
    let count = pairs().count() as f64;
    let (a, b) = pairs().fold((0.0, 0.0), |sum, (a, b)| (sum.0 + a, sum.1 + b));
    let (mean_a, mean_b) = (a / count, b / count);
    let (mut aa, mut ab, mut bb) = (0.0, 0.0, 0.0);
    for (a, b) in pairs() {
        let (a, b) = (a - mean_a, b - mean_b);
        aa += a * a;
        ab += a * b;
        bb += b * b;
    }
    let spread = (aa * bb).sqrt();
    if spread > 0.0 { ab / spread } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rotated_and_scaled_copy_is_perfect() {
        let mut random = fastrand::Rng::with_seed(2);
        let teacher = Columns::from_fn(2, 50, |_, _| random.f32() - 0.5);
        let turned = Columns::from_row_slice(2, 2, &[0.6, -0.8, 0.8, 0.6]) * &teacher * 3.0;
        let same = fidelity(&turned, &turned, &teacher);
        assert!((same.cosine - 1.0).abs() < 1e-5 && (same.correlation - 1.0).abs() < 1e-5);
        let other = Columns::from_fn(2, 50, |_, _| random.f32() - 0.5);
        assert!(fidelity(&turned, &turned, &other).correlation < 0.5);
    }

    #[test]
    fn numbers_that_fall_together_correlate() {
        let a = [1.0, 2.0, 9.0, 3.0];
        assert!((pearson(&a, &[2.0, 4.0, -9.0, 6.0], 2) - 1.0).abs() < 1e-9);
        assert!((pearson(&a, &[3.0, 2.0, 9.0, 1.0], 2) + 1.0).abs() < 1e-9);
        assert_eq!(pearson(&a, &[1.0; 4], 0), 0.0);
    }
}
