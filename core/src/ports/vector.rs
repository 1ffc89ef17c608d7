//! The vector index. It holds vectors and keys only; hits are hydrated from the store, so that
//! what was deleted there cannot come back from an index.

use async_trait::async_trait;

use crate::error::{Error, Result};
use crate::index::{Namespace, UnitKey};
use crate::ports::Health;
use crate::scope::Scope;

/// The identity of an embedding model's output. Vectors of different spaces are never compared.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct VectorSpace {
    /// Model and revision.
    pub id: String,
    /// Values of each vector.
    pub dimensions: usize,
}

impl VectorSpace {
    /// Whether a vector can be of this space.
    ///
    /// # Errors
    /// `InvalidInput` that names both numbers of values.
    pub fn check(&self, vector: &[f32]) -> Result<()> {
        if vector.len() == self.dimensions {
            return Ok(());
        }
        Err(Error::invalid(format!(
            "a vector of {} dimensions does not fit the space `{}`, whose vectors have {}",
            vector.len(),
            self.id,
            self.dimensions
        )))
    }
}

/// A vector to keep.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorItem {
    /// Its key.
    pub key: UnitKey,
    /// Its values.
    pub vector: Vec<f32>,
}

/// A near vector.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct VectorHit {
    /// Its key.
    pub key: UnitKey,
    /// Cosine similarity mapped to 0..=1; higher is closer.
    pub score: f32,
}

/// Nearest neighbours within a scope, namespace and space.
#[async_trait]
pub trait VectorIndex: Send + Sync {
    /// Keeps vectors of one scope, namespace and space, replacing those of equal keys (of equal keys
    /// in one call the last counts), and moves
    /// the watermark up to `through`: every change of the store up to that sequence number is in.
    /// A vector of other dimensions than the space's is `InvalidInput`, and nothing is kept. One of
    /// zeros, or with a value that is no finite number, means nothing: it is not found, and takes the place of what was
    /// there.
    async fn upsert(
        &self,
        scope: &Scope,
        namespace: Namespace,
        space: &VectorSpace,
        items: &[VectorItem],
        through: u64,
    ) -> Result<()>;

    /// Removes keys in every space; unknown keys are not an error.
    async fn remove(&self, scope: &Scope, namespace: Namespace, keys: &[UnitKey]) -> Result<()>;

    /// Removes what the scope holds in every other space: after another model has embedded it anew.
    async fn keep_only(&self, scope: &Scope, space: &VectorSpace) -> Result<()>;

    /// Removes all that the scope holds, watermarks included, which then are 0: before it is erased, or
    /// read anew from the store.
    async fn forget(&self, scope: &Scope) -> Result<()>;

    /// Up to `limit` of the keys that are held, in order, from the first above `after` on.
    async fn keys(
        &self,
        scope: &Scope,
        namespace: Namespace,
        space: &VectorSpace,
        after: Option<UnitKey>,
        limit: usize,
    ) -> Result<Vec<UnitKey>>;

    /// The state of the index. An unavailable one is reported as a problem, not as an error.
    async fn index_health(&self) -> Result<Health>;

    /// The sequence number up to which the index is complete; 0 when it holds nothing. Of facts,
    /// their number. What lies above waits in the outbox, and recall knows it by its words.
    async fn watermark(
        &self,
        scope: &Scope,
        namespace: Namespace,
        space: &VectorSpace,
    ) -> Result<u64>;

    /// Up to `limit` nearest keys, and those of `also` that the index holds, the closest first, ties
    /// by key. A query of other dimensions
    /// than the space's is `InvalidInput`; one of zeros, or with a value that is no finite number, finds nothing.
    async fn search(
        &self,
        scope: &Scope,
        namespace: Namespace,
        space: &VectorSpace,
        query: &[f32],
        limit: usize,
        also: &[UnitKey],
    ) -> Result<Vec<VectorHit>>;
}
