//! A table to begin the fit with, by one linear solution.
//!
//! The transformer's output for a token alone, as in Model2Vec, weighted by smooth inverse
//! frequency (SIF: Arora, Liang & Ma 2017), so that frequent words do not drown the rest. What is
//! new is the map to the target's dimensions: not principal components, but the linear map under
//! which the weighted sums of texts come nearest to their targets.

use throughline_core::Result;

use crate::algebra::{BLOCK, Columns, OuterProducts, ridge};
use crate::bags::{Bags, column_mut};

/// The weight of a token that is p of the text is a / (a + p).
const A: f64 = 1e-3;
/// Of the mean of the diagonal: enough to make the solution unique, too little to change it.
const PENALTY: f64 = 1e-3;
/// More texts do not change a map of this size.
const TEXTS: usize = 120_000;

/// A table of one vector a token, scaled so that the sum of a text has length 1 on average.
///
/// `tokens` are the transformer's outputs for each, `frequencies` how often it occurs.
///
/// # Errors
/// `InvalidInput` when the vectors do not determine a map.
pub fn start(
    bags: &Bags,
    texts: &[usize],
    targets: &Columns,
    tokens: &Columns,
    frequencies: &[f64],
) -> Result<Columns> {
    let mut weighted = tokens.clone();
    for (at, weight) in sif(frequencies).enumerate() {
        weighted.column_mut(at).scale_mut(weight as f32);
    }
    let texts = &texts[..texts.len().min(TEXTS)];
    let mut xx = OuterProducts::new(tokens.nrows(), tokens.nrows());
    let mut xy = OuterProducts::new(tokens.nrows(), targets.nrows());
    for block in texts.chunks(BLOCK) {
        let mut means = bags.sums(block, &weighted);
        for (at, text) in block.iter().enumerate() {
            let count: f32 = bags.bag(*text).iter().map(|(_, count)| count).sum();
            column_mut(&mut means, at).iter_mut().for_each(|value| *value /= count);
        }
        xx.add(&means, &means);
        xy.add(&means, &targets.select_columns(block));
    }
    let xx = xx.sum();
    let penalty = PENALTY * xx.trace() / xx.nrows() as f64;
    let map = ridge(xx, &xy.sum(), penalty)?;
    let mut table = map.transpose() * weighted;

    let mut length = 0.0;
    for block in texts.chunks(BLOCK) {
        let sums = bags.sums(block, &table);
        length += sums.column_iter().map(|sum| f64::from(sum.norm())).sum::<f64>();
    }
    table /= (length / texts.len() as f64) as f32;
    Ok(table)
}

/// The weight of each token. Half an occurrence is added to each: what never occurs is rare, not
/// impossible.
fn sif(frequencies: &[f64]) -> impl Iterator<Item = f64> {
    let all = frequencies.iter().sum::<f64>() + 0.5 * frequencies.len() as f64;
    frequencies.iter().map(move |count| A / (A + (count + 0.5) / all))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frequent_tokens_weigh_less() {
        let weights: Vec<f64> = sif(&[1_000.0, 10.0, 0.0]).collect();
        assert!(weights.is_sorted() && weights[0] < 0.01 && weights[2] > 0.6);
    }
}
