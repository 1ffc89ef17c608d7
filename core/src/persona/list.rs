//! Parts of lists that are short enough to be read whole: by place, with the total, as numbered
//! pages need it.

use crate::error::{Error, Result};
use crate::page::MAX_PAGE;

/// Which part of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Slice {
    /// Items before it.
    pub offset: usize,
    /// Most items.
    pub limit: usize,
}

impl Slice {
    /// So many items after so many.
    ///
    /// # Errors
    /// `InvalidInput` unless `limit` is 1 to [`MAX_PAGE`].
    pub fn new(offset: usize, limit: usize) -> Result<Self> {
        match (1..=MAX_PAGE).contains(&limit) {
            true => Ok(Self { offset, limit }),
            false => Err(Error::invalid(format!("limit must be 1 to {MAX_PAGE}"))),
        }
    }

    /// The page with a number, counted from 1.
    ///
    /// # Errors
    /// `InvalidInput` for page 0 and for a size that is not 1 to [`MAX_PAGE`].
    pub fn page(page: usize, size: usize) -> Result<Self> {
        if page == 0 {
            return Err(Error::invalid("page: must be 1 or more"));
        }
        if !(1..=MAX_PAGE).contains(&size) {
            return Err(Error::invalid(format!("page_size: must be 1 to {MAX_PAGE}")));
        }
        Ok(Self { offset: (page - 1).saturating_mul(size), limit: size })
    }
}

/// A part of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    /// The items.
    pub items: Vec<T>,
    /// Items of the whole list.
    pub total: u64,
    /// The offset at which the list goes on; `None` at its end.
    pub next: Option<usize>,
}

impl<T> Listed<T> {
    /// A part of a whole list.
    #[must_use]
    pub fn of(all: Vec<T>, slice: Slice) -> Self {
        let total = all.len();
        let items: Vec<T> = all.into_iter().skip(slice.offset).take(slice.limit).collect();
        let end = slice.offset.saturating_add(items.len());
        Self { next: (end < total && !items.is_empty()).then_some(end), items, total: total as u64 }
    }

    /// The same list of something else.
    #[must_use]
    pub fn map<U>(self, form: impl FnMut(T) -> U) -> Listed<U> {
        let items = self.items.into_iter().map(form).collect();
        Listed { items, total: self.total, next: self.next }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_parts_of_the_list() {
        let all: Vec<u8> = (0..5).collect();
        let table = [
            (Slice::page(1, 2).unwrap(), vec![0, 1], Some(2)),
            (Slice::page(2, 2).unwrap(), vec![2, 3], Some(4)),
            (Slice::page(3, 2).unwrap(), vec![4], None),
            (Slice::page(9, 2).unwrap(), vec![], None),
            (Slice::new(0, 500).unwrap(), all.clone(), None),
        ];
        for (slice, items, next) in table {
            assert_eq!(Listed::of(all.clone(), slice), Listed { items, total: 5, next });
        }
        for bad in [Slice::page(0, 2), Slice::page(1, 0), Slice::page(1, 501), Slice::new(0, 0)] {
            assert!(bad.is_err());
        }
    }
}
