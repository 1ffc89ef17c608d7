//! The lexical index: postings of a scope, fed by the write batch. Ranking is core's.

use async_trait::async_trait;

use crate::error::Result;
use crate::index::{Namespace, Posting, TermId};
use crate::scope::Scope;

/// Size of a scope's index in one namespace.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct IndexStats {
    /// Units indexed.
    pub units: u64,
    /// Sum of their lengths.
    pub length: u64,
}

/// What the index holds for some terms.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PostingLists {
    /// Statistics of the scope and namespace, of the same moment as the lists.
    pub stats: IndexStats,
    /// One list for each term asked for, in that order, each sorted by key.
    pub lists: Vec<Vec<Posting>>,
    /// For each term, in how many units it occurs if its list was not read, else 0.
    pub unread: Vec<u64>,
}

impl PostingLists {
    /// What a scope without any unit has of `terms` terms.
    #[must_use]
    pub fn none(terms: usize) -> Self {
        Self {
            stats: IndexStats::default(),
            lists: vec![Vec::new(); terms],
            unread: vec![0; terms],
        }
    }

    /// Leaves lists unread, whose lengths are `frequencies`: from the rarest term on, ties in the order
    /// asked, those are read that have no more than `most` postings together.
    pub fn leave_unread(&mut self, frequencies: &[u64], most: usize) {
        let mut order: Vec<usize> = (0..frequencies.len()).collect();
        order.sort_by_key(|at| frequencies[*at]);
        let mut read = 0_u64;
        for at in order {
            read += frequencies[at];
            if read > most as u64 {
                self.unread[at] = frequencies[at];
            }
        }
    }
}

/// Candidates of a query within a scope.
#[async_trait]
pub trait LexicalIndex: Send + Sync {
    /// The postings of `terms`, of exactly this scope and namespace, as of the last applied batch.
    /// An unknown term has an empty list; an unknown scope has empty lists and zero statistics.
    ///
    /// Lists are read from the rarest term on, ties in the order asked, as long as they have no more
    /// than `most` postings together: what is common tells little, and would cost the most. The
    /// cost depends on `most` and the rows of the scope, not on what lies beside it.
    async fn postings(
        &self,
        scope: &Scope,
        namespace: Namespace,
        terms: &[TermId],
        most: usize,
    ) -> Result<PostingLists>;

    /// In how many units of exactly this scope and namespace each of `terms` occurs, in the order
    /// asked: the lengths of the lists that [`Self::postings`] would give, without reading them.
    async fn frequencies(
        &self,
        scope: &Scope,
        namespace: Namespace,
        terms: &[TermId],
    ) -> Result<Vec<u64>>;
}
