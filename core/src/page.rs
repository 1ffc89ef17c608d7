//! Cursor pagination.

use crate::error::{Error, Result};

/// Most items of one page.
pub const MAX_PAGE: usize = 500;

/// What part of a list is asked for: at most `limit` items after the opaque `after`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageRequest {
    limit: usize,
    after: Option<u64>,
}

impl PageRequest {
    /// The first `limit` items.
    ///
    /// # Errors
    /// `InvalidInput` unless `limit` is 1 to [`MAX_PAGE`].
    pub fn first(limit: usize) -> Result<Self> {
        if (1..=MAX_PAGE).contains(&limit) {
            Ok(Self { limit, after: None })
        } else {
            Err(Error::invalid(format!("limit must be 1 to {MAX_PAGE}")))
        }
    }

    /// The same, but at most so many items, and one at least.
    #[must_use]
    pub fn at_most(&self, limit: usize) -> Self {
        Self { limit: self.limit.min(limit).max(1), after: self.after }
    }

    /// The items that follow a cursor of an earlier [`Page`].
    ///
    /// # Errors
    /// `InvalidInput` when the cursor is not one of ours.
    pub fn after(mut self, cursor: &str) -> Result<Self> {
        let wrong = || Error::invalid("cursor must be the next_cursor of an earlier page");
        self.after = Some(read(cursor).ok_or_else(wrong)?);
        Ok(self)
    }

    /// Most items to return.
    #[must_use]
    pub fn limit(&self) -> usize {
        self.limit
    }

    /// The position after which the page starts: the ordinal of the last item already seen.
    #[must_use]
    pub fn position(&self) -> Option<u64> {
        self.after
    }
}

fn write(position: u64) -> String {
    format!("{position:x}")
}

fn read(cursor: &str) -> Option<u64> {
    let digits = cursor.len() <= 16 && cursor.bytes().all(|byte| byte.is_ascii_hexdigit());
    digits.then(|| u64::from_str_radix(cursor, 16).ok()).flatten()
}

/// Some items of a list and where the rest starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<T> {
    /// The items, in the list's order.
    pub items: Vec<T>,
    /// Pass it to [`PageRequest::after`]; `None` at the end.
    pub next_cursor: Option<String>,
}

impl<T> Page<T> {
    /// Builds a page from up to `limit + 1` rows, each with its ordinal; the extra row only tells
    /// that there are more.
    #[must_use]
    pub fn from_rows(mut rows: Vec<(u64, T)>, limit: usize) -> Self {
        let more = rows.len() > limit;
        rows.truncate(limit);
        let next_cursor = more.then(|| rows.last().map(|(ordinal, _)| write(*ordinal))).flatten();
        Self { items: rows.into_iter().map(|(_, item)| item).collect(), next_cursor }
    }
}
