//! An embedder without a model.

use async_trait::async_trait;
use throughline_core::Result;
use throughline_core::ports::{Embedder, TermId, VectorSpace};
use throughline_core::text::terms;

/// Hashes the terms of a text into a vector of length 1: texts that share terms are near, and equal
/// texts are equal in every run.
#[derive(Debug, Clone)]
pub struct HashEmbedder {
    space: VectorSpace,
}

impl HashEmbedder {
    /// An embedder whose vectors have `dimensions` values.
    #[must_use]
    pub fn new(dimensions: usize) -> Self {
        Self { space: VectorSpace { id: format!("hash-{dimensions}"), dimensions } }
    }

    fn vector(&self, text: &str) -> Vec<f32> {
        let mut vector = vec![0.0; self.space.dimensions];
        for term in terms(text) {
            let bits = TermId::of(&term).to_bits();
            // The top bit is the sign, so that terms that meet in a dimension can cancel out.
            let sign = if bits >> 63 == 0 { 1.0 } else { -1.0 };
            let slot = (bits & 0xffff_ffff) % self.space.dimensions as u64;
            vector[usize::try_from(slot).expect("an index")] += sign;
        }
        let norm = vector.iter().map(|value| value * value).sum::<f32>().sqrt();
        if norm > 0.0 {
            vector.iter_mut().for_each(|value| *value /= norm);
        }
        vector
    }
}

#[async_trait]
impl Embedder for HashEmbedder {
    fn space(&self) -> &VectorSpace {
        &self.space
    }

    fn is_instant(&self) -> bool {
        true
    }

    async fn embed(&self, texts: &[&str]) -> Result<Vec<Vec<f32>>> {
        Ok(texts.iter().map(|text| self.vector(text)).collect())
    }
}
