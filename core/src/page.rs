//! Cursor pagination.

use crate::error::{Error, Result};

/// Most items of one page.
pub const MAX_PAGE: usize = 500;
/// A page of messages ends early where it has so many bytes of text.
pub const MAX_PAGE_BYTES: usize = 4 << 20;

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

    /// The items that follow a cursor of an earlier [`Page`].
    ///
    /// # Errors
    /// `InvalidInput` when the cursor is not one of ours.
    pub fn after(mut self, cursor: &str) -> Result<Self> {
        let wrong = || Error::invalid("cursor must be the next_cursor of an earlier page");
        self.after = Some(read(cursor).ok_or_else(wrong)?);
        Ok(self)
    }

    /// The items from an ordinal on.
    #[must_use]
    pub fn starting_at(self, ordinal: u64) -> Self {
        Self { after: ordinal.checked_sub(1), ..self }
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

/// The rows of a page of large items while a store reads them: at most so many, and none more once they have
/// [`MAX_PAGE_BYTES`].
#[derive(Debug)]
pub struct PageRows<T> {
    rows: Vec<(u64, T)>,
    limit: usize,
    bytes: usize,
    has_more: bool,
}

impl<T> PageRows<T> {
    /// No rows yet of this page.
    #[must_use]
    pub fn of(request: &PageRequest) -> Self {
        Self { rows: Vec::new(), limit: request.limit, bytes: 0, has_more: false }
    }

    /// Takes the next row, with its ordinal and its bytes; false where the page is complete without it.
    pub fn take(&mut self, ordinal: u64, item: T, bytes: usize) -> bool {
        self.has_more = self.rows.len() >= self.limit || self.bytes >= MAX_PAGE_BYTES;
        if !self.has_more {
            self.bytes += bytes;
            self.rows.push((ordinal, item));
        }
        !self.has_more
    }

    /// The page.
    #[must_use]
    pub fn page(self) -> Page<T> {
        let last = self.rows.last().filter(|_| self.has_more);
        let next_cursor = last.map(|(ordinal, _)| write(*ordinal));
        Page { items: self.rows.into_iter().map(|(_, item)| item).collect(), next_cursor }
    }
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
