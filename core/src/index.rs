//! How texts are known to the lexical and the vector index: keys of passages and facts, hashed terms,
//! and where these occur.

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
    /// Its vector in the space of the batch, where it was embedded with the write and means
    /// anything.
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
