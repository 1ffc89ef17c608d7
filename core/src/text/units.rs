//! Spans that a cut through a text must not divide.

use std::ops::Range;

use super::enclosures::{enclosures, merge};
use super::protect::protected_values;

/// Quotations, code, parentheses and protected values of a text.
pub(super) struct Units(Vec<Range<usize>>);

impl Units {
    pub(super) fn of(text: &str) -> Self {
        let mut units = enclosures(text);
        units.extend(protected_values(text));
        merge(&mut units, 0);
        Self(units)
    }

    /// The unit that a cut at this position would divide.
    pub(super) fn around(&self, at: usize) -> Option<&Range<usize>> {
        let next = self.0.partition_point(|unit| unit.end <= at);
        self.0.get(next).filter(|unit| unit.start < at)
    }
}
