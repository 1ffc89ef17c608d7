//! Rows of tokens that the texts lack, or hardly have.
//!
//! The fit leaves them where they began. But it has learnt what a transformer's output for a token
//! alone is worth in a sum: a linear map from outputs to fitted rows, found on the tokens that are
//! frequent enough, says where the others would have come to lie.

use nalgebra::DMatrix;
use throughline_core::Result;

use crate::algebra::{BLOCK, Columns, OuterProducts, add_scaled, normalise, ridge};
use crate::bags::{column, column_mut};

/// Occurrences from which on a row teaches the map.
const TEACHES: f64 = 30.0;
const PENALTY: f64 = 3.0;
/// Occurrences at which half of a row is its own.
const OWN: f64 = 2.0;
/// The occurrences of the rows whose usual length the mapped ones take: rarer ones are about as
/// long.
const USUAL: std::ops::Range<f64> = 10.0..40.0;

/// Pulls each row to where the map puts it, all the way where its token never occurred. A table
/// without frequent rows stays as it is.
///
/// # Errors
/// `InvalidInput` when the vectors do not determine a map.
pub fn pull(table: &mut Columns, tokens: &Columns, frequencies: &[f64]) -> Result<()> {
    let teaching: Vec<usize> = rows_with(frequencies, |count| count >= TEACHES);
    let usual = rows_with(frequencies, |count| USUAL.contains(&count));
    let mut lengths: Vec<f32> = usual.iter().map(|row| table.column(*row).norm()).collect();
    lengths.sort_unstable_by(f32::total_cmp);
    let (Some(length), false) = (lengths.get(lengths.len() / 2), teaching.is_empty()) else {
        return Ok(());
    };

    // A constant beside each output: the rows' mean is not at the origin.
    let with_constant = tokens.clone().insert_row(tokens.nrows(), 1.0);
    let mut xx = OuterProducts::new(with_constant.nrows(), with_constant.nrows());
    let mut xy = OuterProducts::new(with_constant.nrows(), table.nrows());
    for block in teaching.chunks(BLOCK) {
        let x = with_constant.select_columns(block);
        let mut y = table.select_columns(block);
        normalise(&mut y);
        xx.add(&x, &x);
        xy.add(&x, &y);
    }
    let map = ridge(xx.sum(), &xy.sum(), PENALTY)?;
    let mut mapped: DMatrix<f32> = map.transpose() * with_constant;
    normalise(&mut mapped);
    for (row, count) in frequencies.iter().enumerate() {
        let own = (count / (count + OWN)) as f32;
        let values = column_mut(table, row);
        values.iter_mut().for_each(|value| *value *= own);
        add_scaled(values, (1.0 - own) * length, column(&mapped, row));
    }
    Ok(())
}

fn rows_with(frequencies: &[f64], fits: impl Fn(f64) -> bool) -> Vec<usize> {
    (0..frequencies.len()).filter(|row| fits(frequencies[*row])).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_never_seen_is_mapped() {
        let mut random = fastrand::Rng::with_seed(3);
        let tokens = Columns::from_fn(4, 300, |_, _| random.f32() - 0.5);
        let mut truth = Columns::from_fn(2, 4, |_, _| random.f32() - 0.5) * &tokens;
        normalise(&mut truth);
        let mut table = truth.clone();
        let mut frequencies = vec![35.0; 300];
        for row in [7, 8] {
            frequencies[row] = 0.0;
            table.column_mut(row).fill(9.0);
        }
        frequencies[9] = 1e9;
        pull(&mut table, &tokens, &frequencies).unwrap();
        for row in [7, 8] {
            let cosine = table.column(row).dot(&truth.column(row));
            assert!(cosine > 0.9, "{cosine}");
        }
        assert!((table.column(9) - truth.column(9)).amax() < 1e-6);
    }

    #[test]
    fn without_frequent_rows_nothing_is_mapped() {
        let mut table = Columns::repeat(2, 3, 1.0);
        pull(&mut table, &Columns::repeat(4, 3, 1.0), &[0.0, 1.0, 2.0]).unwrap();
        assert_eq!(table, Columns::repeat(2, 3, 1.0));
    }
}
