//! Texts as bags of tokens, read by the product's own code.

use throughline_core::{Error, Result};
use throughline_provider_local::{StaticEmbedder, encode_table};

use crate::algebra::{Columns, add_scaled};

/// How often each token occurs in each text. What is no token of the table does not count.
#[derive(Debug, Clone, Default)]
pub struct Bags {
    /// Where each text's entries end.
    ends: Vec<usize>,
    /// Row and count, by row within a text.
    entries: Vec<(u32, f32)>,
}

impl Bags {
    /// Reads texts by the tokens of the table's rows.
    ///
    /// # Errors
    /// `InvalidInput` for tokens that no table can have.
    pub fn read<'t>(tokens: &[&str], texts: impl IntoIterator<Item = &'t str>) -> Result<Self> {
        // A table without content knows how the product will read texts with this vocabulary.
        let table = encode_table("rows", 1, tokens.iter().map(|token| (*token, [0.0].as_slice())))?;
        let table = StaticEmbedder::from_bytes(table)?;
        let mut bags = Self::default();
        texts.into_iter().for_each(|text| bags.push(table.rows(text)));
        Ok(bags)
    }

    /// Adds a text by its tokens' rows.
    pub fn push(&mut self, mut rows: Vec<u32>) {
        rows.sort_unstable();
        self.entries.extend(rows.chunk_by(|a, b| a == b).map(|row| (row[0], row.len() as f32)));
        self.ends.push(self.entries.len());
    }

    /// How many texts there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// A text's rows, each once and ascending, and how often they occur.
    #[must_use]
    pub fn bag(&self, text: usize) -> &[(u32, f32)] {
        let begin = text.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.entries[begin..self.ends[text]]
    }

    /// How often each of `rows` tokens occurs in the texts.
    #[must_use]
    pub fn frequencies(&self, texts: &[usize], rows: usize) -> Vec<f64> {
        let mut frequencies = vec![0.0; rows];
        for (row, count) in texts.iter().flat_map(|text| self.bag(*text)) {
            frequencies[*row as usize] += f64::from(*count);
        }
        frequencies
    }

    /// A text's sum of the table's vectors, in place of what is in `sum`.
    pub(crate) fn sum(&self, text: usize, table: &Columns, sum: &mut [f32]) {
        sum.fill(0.0);
        for (row, count) in self.bag(text) {
            add_scaled(sum, *count, column(table, *row as usize));
        }
    }

    /// The sums of several texts.
    pub(crate) fn sums(&self, texts: &[usize], table: &Columns) -> Columns {
        let mut sums = Columns::zeros(table.nrows(), texts.len());
        for (at, text) in texts.iter().enumerate() {
            self.sum(*text, table, column_mut(&mut sums, at));
        }
        sums
    }
}

/// A column's values, which lie together.
pub(crate) fn column(columns: &Columns, at: usize) -> &[f32] {
    let length = columns.nrows();
    &columns.as_slice()[at * length..(at + 1) * length]
}

/// As [`column`], to be changed.
pub(crate) fn column_mut(columns: &mut Columns, at: usize) -> &mut [f32] {
    let length = columns.nrows();
    &mut columns.as_mut_slice()[at * length..(at + 1) * length]
}

/// The tokens that get a row: not the unused ones of the vocabulary, nor markers such as `[CLS]`,
/// which no text contains.
#[must_use]
pub fn has_row(token: &str) -> bool {
    let marker = token.len() > 2 && token.starts_with('[') && token.ends_with(']');
    !marker
}

/// The ids of a vocabulary's tokens that get a row.
///
/// # Errors
/// `InvalidInput` when there is none.
pub fn kept(vocabulary: &[String]) -> Result<Vec<u32>> {
    let kept: Vec<u32> =
        (0..).zip(vocabulary).filter(|(_, token)| has_row(token)).map(|(id, _)| id).collect();
    if kept.is_empty() {
        return Err(Error::invalid("the vocabulary has no tokens"));
    }
    Ok(kept)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_counted_by_row() {
        let bags = Bags::read(&["b", "a", "##s", "."], ["A b, as a.", "", "c"]).unwrap();
        let counts: Vec<_> = (0..bags.len()).map(|text| bags.bag(text)).collect();
        assert_eq!(counts, [&[(0, 1.0), (1, 3.0), (2, 1.0), (3, 1.0)][..], &[], &[]]);
        assert_eq!(bags.frequencies(&[0, 1], 4), [1.0, 3.0, 1.0, 1.0]);
        let table = Columns::from_column_slice(1, 4, &[1.0, 10.0, 100.0, 1_000.0]);
        assert_eq!(bags.sums(&[2, 0], &table).as_slice(), [0.0, 1_131.0]);
    }

    #[test]
    fn markers_have_no_row() {
        for token in ["[CLS]", "[PAD]", "[unused0]", "[unused993]"] {
            assert!(!has_row(token), "{token}");
        }
        for token in ["[", "]", "a", "##]", "[]"] {
            assert!(has_row(token), "{token}");
        }
    }
}
