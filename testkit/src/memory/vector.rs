//! The vector index: a look through all vectors.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use throughline_core::ports::{
    Namespace, UnitKey, VectorHit, VectorIndex, VectorItem, VectorSpace,
};
use throughline_core::{Error, Result, Scope};

/// Everything of the `VectorIndex` port, in memory.
#[derive(Debug, Default)]
pub struct MemoryVectorIndex {
    held: Mutex<BTreeMap<Place, Vectors>>,
}

/// Scope, namespace, and the space by id and dimensions.
type Place = (Scope, Namespace, String, usize);

#[derive(Debug, Default)]
struct Vectors {
    through: u64,
    by_key: BTreeMap<UnitKey, Vec<f32>>,
}

impl MemoryVectorIndex {
    /// An empty index.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    fn held(&self) -> MutexGuard<'_, BTreeMap<Place, Vectors>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place(scope: &Scope, namespace: Namespace, space: &VectorSpace) -> Place {
    (scope.clone(), namespace, space.id.clone(), space.dimensions)
}

fn check(space: &VectorSpace, vector: &[f32]) -> Result<()> {
    if vector.len() == space.dimensions {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "a vector of {} values is not of the space `{}`, whose vectors have {}",
        vector.len(),
        space.id,
        space.dimensions
    )))
}

/// Cosine mapped to 0..=1; a vector without direction is halfway from all others.
fn score(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let norms = (dot(a, a) * dot(b, b)).sqrt();
    let cosine = if norms > 0.0 { dot(a, b) / norms } else { 0.0 };
    f32::midpoint(cosine, 1.0).clamp(0.0, 1.0)
}

#[async_trait]
impl VectorIndex for MemoryVectorIndex {
    async fn upsert(
        &self,
        scope: &Scope,
        namespace: Namespace,
        space: &VectorSpace,
        items: &[VectorItem],
        through: u64,
    ) -> Result<()> {
        for item in items {
            check(space, &item.vector)?;
        }
        let mut held = self.held();
        let vectors = held.entry(place(scope, namespace, space)).or_default();
        vectors.through = through;
        for item in items {
            vectors.by_key.insert(item.key, item.vector.clone());
        }
        Ok(())
    }

    async fn remove(&self, scope: &Scope, namespace: Namespace, keys: &[UnitKey]) -> Result<()> {
        for ((of, within, ..), vectors) in self.held().iter_mut() {
            if of == scope && *within == namespace {
                vectors.by_key.retain(|key, _| !keys.contains(key));
            }
        }
        Ok(())
    }

    async fn watermark(
        &self,
        scope: &Scope,
        namespace: Namespace,
        space: &VectorSpace,
    ) -> Result<u64> {
        let held = self.held();
        let vectors = held.get(&place(scope, namespace, space));
        Ok(vectors.map_or(0, |vectors| vectors.through))
    }

    async fn search(
        &self,
        scope: &Scope,
        namespace: Namespace,
        space: &VectorSpace,
        query: &[f32],
        limit: usize,
    ) -> Result<Vec<VectorHit>> {
        check(space, query)?;
        let held = self.held();
        let vectors = held.get(&place(scope, namespace, space));
        let mut hits: Vec<VectorHit> = vectors
            .iter()
            .flat_map(|vectors| &vectors.by_key)
            .map(|(key, vector)| VectorHit { key: *key, score: score(query, vector) })
            .collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.key.cmp(&b.key)));
        hits.truncate(limit);
        Ok(hits)
    }
}
