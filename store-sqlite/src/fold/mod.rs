//! Folds tails outside of the writers' transactions. The writing thread folds between two groups of writes, one
//! slice at a time.
//!
//! A slice is one transaction. Before and after it, every posting and every vector is in one place: the tail or a
//! block. So readers, erasures and the next process after a crash need not know whether a fold is half done.

use std::cell::RefCell;
use std::ops::Deref;

use rusqlite::Connection;
use throughline_core::index::TermId;
use throughline_core::text::FOLD_AT;

use crate::connection::driver_error;
use crate::lexical;
use crate::vectors::{self, Place};

/// A batch that brings a tail to this many units folds it whole. It bounds what a query scans, which takes 1.6 ms
/// for as many, and what a killed process leaves behind.
pub(crate) const MOST_TAIL: u64 = 8 * FOLD_AT;

/// A tail of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tail {
    /// Of the lexical index.
    Words {
        /// The row of the scope.
        scope_id: i64,
        /// The code of the namespace.
        namespace: i64,
    },
    /// Of the vector index.
    Vectors(Place),
}

/// A tail that is to be folded.
#[derive(Debug)]
struct Due {
    tail: Tail,
    units: u64,
    /// The first term that is not folded yet.
    from: TermId,
}

/// The writing connection, with the tails that are due.
#[derive(Debug)]
pub(crate) struct WriteConnection {
    connection: Connection,
    due: RefCell<Vec<Due>>,
}

impl Deref for WriteConnection {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        &self.connection
    }
}

impl WriteConnection {
    pub(crate) fn new(connection: Connection) -> Self {
        Self { connection, due: RefCell::default() }
    }

    /// Notes how long a tail is now. The note of a transaction that is rolled back does no harm: a slice checks
    /// the stored count.
    pub(crate) fn grown(&self, tail: Tail, units: u64) {
        if units < FOLD_AT {
            return;
        }
        let mut due = self.due.borrow_mut();
        match due.iter_mut().find(|due| due.tail == tail) {
            Some(due) => due.units = units,
            None => due.push(Due { tail, units, from: lexical::FIRST_TERM }),
        }
    }

    /// Whether a tail waits to be folded.
    pub(crate) fn is_due(&self) -> bool {
        !self.due.borrow().is_empty()
    }

    /// Slices to fold before the next group, even if writes wait: none up to twice the limit, then more the longer
    /// the longest tail is, so that writers who never pause do not outrun the folds.
    pub(crate) fn slices_behind(&self) -> u64 {
        let longest = self.due.borrow().iter().map(|due| due.units).max().unwrap_or(0);
        (longest / FOLD_AT).saturating_sub(1)
    }

    /// Folds a slice of the longest tail. A tail that cannot be folded is tried again after its next write.
    pub(crate) fn fold_slice(&self) {
        self.fold_longest(false);
    }

    /// Folds all that is due. Only where nobody waits for the connection.
    pub(crate) fn fold_rest(&self) {
        while self.is_due() {
            self.fold_longest(true);
        }
    }

    fn fold_longest(&self, nobody_waits: bool) {
        let longest = {
            let mut due = self.due.borrow_mut();
            let longest = (0..due.len()).max_by_key(|at| due[*at].units);
            longest.map(|at| due.swap_remove(at))
        };
        let Some(Due { tail, from, units }) = longest else {
            return;
        };
        match self.slice(tail, from, nobody_waits) {
            Ok(None) => {}
            Ok(Some(from)) => self.due.borrow_mut().push(Due { tail, units, from }),
            Err(error) => {
                tracing::warn!(
                    error = %driver_error(error, "fold"),
                    "merging index entries failed; it is retried after the next write to the same \
                     scope"
                );
                if !self.is_autocommit() {
                    let _ = self.execute_batch("ROLLBACK");
                }
            }
        }
    }

    /// Where the next slice of the tail begins, if there is one.
    fn slice(
        &self,
        tail: Tail,
        from: TermId,
        nobody_waits: bool,
    ) -> rusqlite::Result<Option<TermId>> {
        self.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
        let next = match tail {
            Tail::Words { scope_id, namespace } => {
                lexical::fold_slice(self, scope_id, namespace, from, nobody_waits)?
            }
            Tail::Vectors(place) => vectors::fold_block(self, place)?.then_some(from),
        };
        self.prepare_cached("COMMIT")?.execute([])?;
        Ok(next)
    }
}

#[cfg(test)]
pub(crate) mod tests;
