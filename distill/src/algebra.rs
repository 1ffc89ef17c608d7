//! The few operations on matrices that the steps share, over `nalgebra`.

use nalgebra::DMatrix;
use throughline_core::{Error, Result};

/// Many vectors: one a column, so that each lies together in memory.
pub type Columns = DMatrix<f32>;

/// Columns that are multiplied at once; what is transposed of them stays small.
pub(crate) const BLOCK: usize = 4_096;

/// The sum over columns of `x yᵗ`. Blocks are multiplied in `f32` and summed in `f64`.
#[derive(Debug, Clone)]
pub(crate) struct OuterProducts(DMatrix<f64>);

impl OuterProducts {
    pub(crate) fn new(rows: usize, columns: usize) -> Self {
        Self(DMatrix::zeros(rows, columns))
    }

    /// Adds a block of columns of both.
    pub(crate) fn add(&mut self, x: &Columns, y: &Columns) {
        let mut product = DMatrix::zeros(x.nrows(), y.nrows());
        product.gemm(1.0, x, &y.transpose(), 0.0);
        self.0.zip_apply(&product, |sum, value: f32| *sum += f64::from(value));
    }

    pub(crate) fn sum(self) -> DMatrix<f64> {
        self.0
    }
}

/// The eigenvectors of a symmetric matrix with the largest eigenvalues, the largest first.
pub(crate) fn principal(symmetric: DMatrix<f64>, count: usize) -> Columns {
    let eigen = symmetric.symmetric_eigen();
    let mut order: Vec<usize> = (0..eigen.eigenvalues.len()).collect();
    order.sort_by(|a, b| eigen.eigenvalues[*b].total_cmp(&eigen.eigenvalues[*a]));
    order.truncate(count);
    eigen.eigenvectors.select_columns(&order).cast()
}

/// The matrix `a` with the least `|aᵗ x - y|² + penalty |a|²`, from `x xᵗ` and `x yᵗ`.
///
/// # Errors
/// `InvalidInput` when the penalty leaves the equations without one solution.
pub(crate) fn ridge(mut xx: DMatrix<f64>, xy: &DMatrix<f64>, penalty: f64) -> Result<Columns> {
    for at in 0..xx.nrows() {
        xx[(at, at)] += penalty;
    }
    let solver = xx.cholesky().ok_or_else(|| {
        Error::invalid("the teacher's vectors are not numbers, or there are too few texts")
    })?;
    Ok(solver.solve(xy).cast())
}

/// Each column to length 1; one without a direction stays as it is.
pub(crate) fn normalise(columns: &mut Columns) {
    for mut column in columns.column_iter_mut() {
        let norm = column.norm();
        if norm > 0.0 {
            column /= norm;
        }
    }
}

/// The product of two vectors, in eight sums so that the compiler can do them at once.
pub(crate) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let (blocks, rest) = a.as_chunks::<8>();
    let (others, other_rest) = b.as_chunks::<8>();
    let mut sums = [0.0_f32; 8];
    for (a, b) in blocks.iter().zip(others) {
        for ((sum, a), b) in sums.iter_mut().zip(a).zip(b) {
            *sum += a * b;
        }
    }
    let rest: f32 = rest.iter().zip(other_rest).map(|(a, b)| a * b).sum();
    sums.iter().sum::<f32>() + rest
}

/// `sum += factor * vector`.
pub(crate) fn add_scaled(sum: &mut [f32], factor: f32, vector: &[f32]) {
    for (sum, value) in sum.iter_mut().zip(vector) {
        *sum += factor * value;
    }
}

/// Numbers of the standard normal distribution (Box and Muller).
pub(crate) fn normal(random: &mut fastrand::Rng) -> f64 {
    // The logarithm of zero is none; one minus a share of one never is zero.
    let radius = (-2.0 * (1.0 - random.f64()).ln()).sqrt();
    radius * (std::f64::consts::TAU * random.f64()).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_linear_map_is_found_again() {
        let mut random = fastrand::Rng::with_seed(1);
        let mut noise = |rows, columns| -> Columns {
            DMatrix::from_fn(rows, columns, |_, _| normal(&mut random) as f32)
        };
        let (map, x) = (noise(5, 3), noise(5, 200));
        let y = map.transpose() * &x;
        let (mut xx, mut xy) = (OuterProducts::new(5, 5), OuterProducts::new(5, 3));
        xx.add(&x, &x);
        xy.add(&x, &y);
        let found = ridge(xx.sum(), &xy.sum(), 1e-6).unwrap();
        assert!((found - map).amax() < 1e-4);
    }

    #[test]
    fn principal_axes_come_largest_first() {
        let symmetric = DMatrix::from_row_slice(3, 3, &[1., 0., 0., 0., 3., 0., 0., 0., 2.]);
        let axes = principal(symmetric, 2);
        assert_eq!(axes.shape(), (3, 2));
        assert!((axes[(1, 0)].abs() - 1.0).abs() < 1e-6);
        assert!((axes[(2, 1)].abs() - 1.0).abs() < 1e-6);
    }

    #[test]
    fn sums_cover_lengths_that_are_no_multiple() {
        let a: Vec<f32> = (0..19).map(|at| at as f32).collect();
        assert_eq!(dot(&a, &a), (0..19).map(|at| (at * at) as f32).sum::<f32>());
    }
}
