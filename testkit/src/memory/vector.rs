//! The vector index: a look through all vectors.

use std::collections::BTreeMap;

use async_trait::async_trait;
use throughline_core::index::{Namespace, UnitKey};
use throughline_core::ports::{Health, VectorHit, VectorIndex, VectorItem, VectorSpace};
use throughline_core::{Result, Scope};

use super::MemoryStore;

/// Vectors of all scopes, namespaces and spaces.
#[derive(Debug, Clone, Default)]
pub(super) struct Vectors(BTreeMap<Place, Held>);

/// Scope, namespace, and the space by id and dimensions.
type Place = (Scope, Namespace, String, usize);

#[derive(Debug, Clone, Default)]
struct Held {
    through: u64,
    by_key: BTreeMap<UnitKey, Vec<f32>>,
}

fn place(scope: &Scope, namespace: Namespace, space: &VectorSpace) -> Place {
    (scope.clone(), namespace, space.id.clone(), space.dimensions)
}

fn is_zero(vector: &[f32]) -> bool {
    vector.iter().all(|value| *value == 0.0)
}

/// Cosine mapped to 0..=1.
fn score(a: &[f32], b: &[f32]) -> f32 {
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f32>();
    let cosine = dot(a, b) / (dot(a, a) * dot(b, b)).sqrt();
    f32::midpoint(cosine, 1.0).clamp(0.0, 1.0)
}

impl Vectors {
    pub(super) fn watermark(
        &self,
        scope: &Scope,
        namespace: Namespace,
        space: &VectorSpace,
    ) -> u64 {
        self.0.get(&place(scope, namespace, space)).map_or(0, |held| held.through)
    }

    pub(super) fn put(
        &mut self,
        scope: &Scope,
        namespace: Namespace,
        space: &VectorSpace,
        items: impl Iterator<Item = (UnitKey, Vec<f32>)>,
        through: u64,
    ) {
        let held = self.0.entry(place(scope, namespace, space)).or_default();
        held.through = held.through.max(through);
        for (key, vector) in items {
            held.by_key.insert(key, vector);
        }
    }
}

impl Vectors {
    pub(super) fn remove(&mut self, scope: &Scope, namespace: Namespace, keys: &[UnitKey]) {
        for ((of, within, ..), held) in &mut self.0 {
            if of == scope && *within == namespace {
                held.by_key.retain(|key, _| !keys.contains(key));
            }
        }
    }

    pub(super) fn forget(&mut self, scope: &Scope) {
        self.0.retain(|(of, ..), _| of != scope);
    }
}

#[async_trait]
impl VectorIndex for MemoryStore {
    async fn upsert(
        &self,
        scope: &Scope,
        namespace: Namespace,
        space: &VectorSpace,
        items: &[VectorItem],
        through: u64,
    ) -> Result<()> {
        for item in items {
            space.check(&item.vector)?;
        }
        let items = items.iter().map(|item| (item.key, item.vector.clone()));
        self.state().vectors.put(scope, namespace, space, items, through);
        Ok(())
    }

    async fn remove(&self, scope: &Scope, namespace: Namespace, keys: &[UnitKey]) -> Result<()> {
        self.state().vectors.remove(scope, namespace, keys);
        Ok(())
    }

    async fn keep_only(&self, scope: &Scope, space: &VectorSpace) -> Result<()> {
        let kept = |(of, _, id, dimensions): &Place| {
            of != scope || (id, *dimensions) == (&space.id, space.dimensions)
        };
        self.state().vectors.0.retain(|place, _| kept(place));
        Ok(())
    }

    async fn forget(&self, scope: &Scope) -> Result<()> {
        self.state().vectors.forget(scope);
        Ok(())
    }

    async fn keys(
        &self,
        scope: &Scope,
        namespace: Namespace,
        space: &VectorSpace,
        after: Option<UnitKey>,
        limit: usize,
    ) -> Result<Vec<UnitKey>> {
        let state = self.state();
        let held = state.vectors.0.get(&place(scope, namespace, space)).into_iter();
        let held = held.flat_map(|held| &held.by_key).filter(|(_, vector)| !is_zero(vector));
        Ok(held.map(|(key, _)| *key).filter(|key| Some(*key) > after).take(limit).collect())
    }

    async fn index_health(&self) -> Result<Health> {
        Ok(Health { backend: "memory".to_owned(), schema_version: 0, problems: Vec::new() })
    }

    async fn watermark(
        &self,
        scope: &Scope,
        namespace: Namespace,
        space: &VectorSpace,
    ) -> Result<u64> {
        Ok(self.state().vectors.watermark(scope, namespace, space))
    }

    async fn search(
        &self,
        scope: &Scope,
        namespace: Namespace,
        space: &VectorSpace,
        query: &[f32],
        limit: usize,
        also: &[UnitKey],
    ) -> Result<Vec<VectorHit>> {
        space.check(query)?;
        if is_zero(query) {
            return Ok(Vec::new());
        }
        let state = self.state();
        let held = state.vectors.0.get(&place(scope, namespace, space));
        let mut hits: Vec<VectorHit> = held
            .iter()
            .flat_map(|held| &held.by_key)
            .filter(|(_, vector)| !is_zero(vector))
            .map(|(key, vector)| VectorHit { key: *key, score: score(query, vector) })
            .collect();
        hits.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.key.cmp(&b.key)));
        let mut rank = 0;
        hits.retain(|hit| {
            rank += 1;
            rank <= limit || also.contains(&hit.key)
        });
        Ok(hits)
    }
}
