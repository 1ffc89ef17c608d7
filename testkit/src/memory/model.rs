//! An embedder without a model, and a model that answers what a test says.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use throughline_core::chat::{ChatAnswer, ChatModelRequest};
use throughline_core::index::TermId;
use throughline_core::ports::{ChatModel, Embedder, VectorSpace};
use throughline_core::text::terms;
use throughline_core::{Error, ErrorKind, Result};
use tokio::sync::Semaphore;

use crate::conformance::DirectedModel;

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

/// What a [`ScriptedModel`] does at one call.
#[derive(Debug, Clone)]
pub enum Answering {
    /// It answers this.
    Text(String),
    /// It fails so, such as with `Declined` or `Unavailable`.
    Fails(ErrorKind),
    /// It hangs until [`ScriptedModel::release`], and answers this then.
    Hangs(String),
}

/// A chat model that does what its script says, call by call, and remembers what it was asked. Past the end
/// of the script it answers with the number of the call.
#[derive(Debug)]
pub struct ScriptedModel {
    script: Mutex<VecDeque<Answering>>,
    asked: Mutex<Vec<ChatModelRequest>>,
    released: Arc<Semaphore>,
}

impl Default for ScriptedModel {
    fn default() -> Self {
        Self::new(Vec::new())
    }
}

impl ScriptedModel {
    /// A model with a script.
    #[must_use]
    pub fn new(script: Vec<Answering>) -> Self {
        Self {
            script: Mutex::new(script.into()),
            asked: Mutex::default(),
            released: Arc::new(Semaphore::new(0)),
        }
    }

    /// A model that answers these texts.
    #[must_use]
    pub fn answering(texts: &[&str]) -> Self {
        Self::new(texts.iter().map(|text| Answering::Text((*text).to_owned())).collect())
    }

    /// Lets one call go on that hangs, or will.
    pub fn release(&self) {
        self.released.add_permits(1);
    }

    /// What it was asked, in order.
    #[must_use]
    pub fn asked(&self) -> Vec<ChatModelRequest> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl DirectedModel for ScriptedModel {
    fn then(&self, next: Answering) {
        self.script.lock().unwrap_or_else(PoisonError::into_inner).push_back(next);
    }

    fn asked(&self) -> Vec<ChatModelRequest> {
        Self::asked(self)
    }
}

#[async_trait]
impl ChatModel for ScriptedModel {
    async fn complete(&self, request: &ChatModelRequest) -> Result<ChatAnswer> {
        let nth = {
            let mut asked = self.asked.lock().unwrap_or_else(PoisonError::into_inner);
            asked.push(request.clone());
            asked.len()
        };
        let next = self.script.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let text = match next.unwrap_or_else(|| Answering::Text(format!("Answer {nth}."))) {
            Answering::Text(text) => text,
            Answering::Fails(kind) => return Err(Error::new(kind, "the script says so")),
            Answering::Hangs(text) => {
                let released = self.released.acquire().await;
                released.map_err(|_| Error::internal("the model was closed"))?.forget();
                text
            }
        };
        if text.trim().is_empty() {
            return Err(Error::new(ErrorKind::Declined, "the script says nothing"));
        }
        Ok(ChatAnswer { text, stop_reason: Some("endTurn".to_owned()), ..ChatAnswer::default() })
    }
}
