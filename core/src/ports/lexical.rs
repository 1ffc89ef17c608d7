//! The lexical index: postings of a scope, fed by the write batch. Ranking is core's.

use async_trait::async_trait;

use crate::error::Result;
use crate::scope::Scope;

/// What a posting points at. Namespaces never mix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Namespace {
    /// Passages of messages; the key is session number and position.
    Message,
    /// Facts; the key is the fact's number.
    Fact,
    /// Passages of the latest snapshots of documents; the key is the snapshot's number and the passage's
    /// ordinal within it.
    Document,
}

impl Namespace {
    /// Every namespace.
    pub const ALL: [Self; 3] = [Self::Message, Self::Fact, Self::Document];
}

/// A term after analysis, as a stable 64-bit hash: an index holds no readable text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TermId(u64);

impl TermId {
    /// The id of an analyzed term.
    #[must_use]
    pub fn of(term: &str) -> Self {
        Self(xxhash_rust::xxh3::xxh3_64(term.as_bytes()))
    }

    /// From what [`Self::to_bits`] gave.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// For a store to keep.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0
    }
}

/// What is indexed, within a scope and namespace. Keys of a session's neighbouring passages are
/// consecutive numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnitKey(u64);

impl UnitKey {
    /// A passage: session number in the upper half, position in the lower.
    #[must_use]
    pub fn message(session_number: u32, position: u32) -> Self {
        Self(u64::from(session_number) << 32 | u64::from(position))
    }

    /// A fact by its number.
    #[must_use]
    pub fn fact(number: u32) -> Self {
        Self(number.into())
    }

    /// A passage of a snapshot: its number in the upper half, the passage's ordinal in the lower.
    #[must_use]
    pub fn document(number: u32, ordinal: u32) -> Self {
        Self(u64::from(number) << 32 | u64::from(ordinal))
    }

    /// From what [`Self::to_bits`] gave.
    #[must_use]
    pub const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    /// For a store to keep; order is that of the bits.
    #[must_use]
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// The session number of a message key, or the snapshot's number of a document key.
    #[must_use]
    pub const fn session_number(self) -> u32 {
        (self.0 >> 32) as u32
    }

    /// The position of a message key, the number of a fact key, or the ordinal of a document key.
    #[must_use]
    pub const fn position(self) -> u32 {
        self.0 as u32
    }
}

/// What is indexed of a passage or fact.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct IndexUnit {
    /// Distinct terms with their counts, sorted by term.
    pub terms: Vec<(TermId, u16)>,
    /// Length in terms, for normalization.
    pub length: u16,
    /// Its vector in the batch's [`VectorSpace`](crate::ports::VectorSpace), where it was embedded
    /// with the write and means anything.
    pub vector: Option<Vec<f32>>,
}

/// One occurrence list entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Posting {
    /// Where the term occurs.
    pub key: UnitKey,
    /// How often it occurs there.
    pub count: u16,
    /// Length of the unit in terms.
    pub length: u16,
}

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
