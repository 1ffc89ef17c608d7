//! A rotation of the finished table, so that the signs of a vector's values are good bits.
//!
//! Large collections are searched by signs first. Along principal axes, most of a vector is in a
//! few values and most bits mean little. Any rotation keeps every cosine; iterative quantization
//! (ITQ: Gong & Lazebnik 2011) finds one under which vectors lie near the corners of the cube.

use nalgebra::DMatrix;
use throughline_core::{Error, Result};

use crate::algebra::{BLOCK, Columns, OuterProducts, normal, normalise};
use crate::bags::Bags;

const ROUNDS: usize = 30;
/// More texts do not change a rotation of this size.
const TEXTS: usize = 60_000;

/// The rotation for the vectors of these texts; the table is to be multiplied by it.
///
/// # Errors
/// `Internal` when a rotation cannot be computed.
pub fn itq(bags: &Bags, texts: &[usize], table: &Columns, seed: u64) -> Result<Columns> {
    let mut vectors = bags.sums(&texts[..texts.len().min(TEXTS)], table);
    normalise(&mut vectors);
    let mut random = fastrand::Rng::with_seed(seed);
    let size = table.nrows();
    let start: DMatrix<f64> = DMatrix::from_fn(size, size, |_, _| normal(&mut random));
    let mut rotation: Columns = start.qr().q().cast();
    for _ in 0..ROUNDS {
        let mut products = OuterProducts::new(size, size);
        for begin in (0..vectors.ncols()).step_by(BLOCK) {
            let block = vectors.columns(begin, BLOCK.min(vectors.ncols() - begin)).into_owned();
            let mut corners = &rotation * &block;
            corners.apply(|value| *value = value.signum());
            products.add(&corners, &block);
        }
        rotation = nearest(products.sum())?;
    }
    Ok(rotation)
}

/// The rotation that is nearest to a matrix (orthogonal Procrustes).
fn nearest(matrix: DMatrix<f64>) -> Result<Columns> {
    let svd = matrix.svd(true, true);
    match (svd.u, svd.v_t) {
        (Some(u), Some(v_t)) => Ok((u * v_t).cast()),
        _ => Err(Error::internal("no singular vectors")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How near vectors are to the corners that their signs name, 1 at most.
    fn nearness(vectors: &Columns) -> f32 {
        let near = vectors
            .column_iter()
            .map(|vector| vector.lp_norm(1) / (vector.norm() * (vectors.nrows() as f32).sqrt()));
        near.sum::<f32>() / vectors.ncols() as f32
    }

    #[test]
    fn vectors_come_near_to_corners_and_cosines_stay() {
        let mut random = fastrand::Rng::with_seed(5);
        // Long along the first axis, as principal components are.
        let table = Columns::from_fn(8, 500, |row, _| {
            (normal(&mut random) / f64::from(1 + row as u32)) as f32
        });
        let mut bags = Bags::default();
        (0..500).for_each(|row| bags.push(vec![row]));
        let texts: Vec<usize> = (0..500).collect();
        let rotation = itq(&bags, &texts, &table, 0).unwrap();
        assert_eq!(rotation, itq(&bags, &texts, &table, 0).unwrap());
        let rotated = &rotation * &table;
        assert!(nearness(&rotated) > nearness(&table) + 0.05);
        let product = |table: &Columns| table.column(3).dot(&table.column(4));
        assert!((product(&rotated) - product(&table)).abs() < 1e-4);
    }
}
