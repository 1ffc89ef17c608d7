//! What the table is fitted to: the teacher's vectors in fewer dimensions.
//!
//! As in Model2Vec by principal components, but of the vectors of texts, not of tokens, and not
//! centred: what counts is the cosine, which is about the origin.

use throughline_core::{Error, Result};

use crate::algebra::{BLOCK, Columns, OuterProducts, normalise, principal};

/// Maps all of the teacher's vectors to the axes along which those of `texts` are longest, each to
/// length 1.
///
/// # Errors
/// `InvalidInput` for more dimensions than the teacher's.
pub fn target(teacher: &Columns, texts: &[usize], dimensions: usize) -> Result<Columns> {
    let from = teacher.nrows();
    if dimensions == 0 || dimensions > from {
        return Err(Error::invalid(format!(
            "the teacher has {from} dimensions: the table can have 1 to {from}, not {dimensions}"
        )));
    }
    let mut moment = OuterProducts::new(from, from);
    for block in texts.chunks(BLOCK) {
        let block = teacher.select_columns(block);
        moment.add(&block, &block);
    }
    let axes = principal(moment.sum(), dimensions).transpose();
    let mut target = Columns::zeros(dimensions, teacher.ncols());
    for begin in (0..teacher.ncols()).step_by(BLOCK) {
        let count = BLOCK.min(teacher.ncols() - begin);
        target.columns_mut(begin, count).gemm(1.0, &axes, &teacher.columns(begin, count), 0.0);
    }
    normalise(&mut target);
    Ok(target)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_axes_are_kept() {
        let teacher = Columns::from_column_slice(
            3,
            4,
            &[3.0, 0.1, 4.0, -4.0, 0.1, 3.0, 5.0, 0.1, 0.0, 0.0, 9.0, 0.0],
        );
        // The last text is not looked at for the axes, but mapped.
        let target = target(&teacher, &[0, 1, 2], 2).unwrap();
        assert_eq!(target.shape(), (2, 4));
        let cosine = |a: usize, b: usize| target.column(a).dot(&target.column(b));
        assert!(cosine(0, 1).abs() < 1e-2 && (cosine(0, 2) - 0.6).abs() < 1e-2);
        assert!((0..4).all(|text| (cosine(text, text) - 1.0).abs() < 1e-5));
        assert!(super::target(&teacher, &[0], 4).is_err());
    }
}
