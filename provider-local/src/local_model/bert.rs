//! The encoder of BERT with the sizes of MiniLM-L6.

use candle_core::{D, DType, Result, Tensor};
use candle_nn::{Embedding, LayerNorm, Linear, Module, VarBuilder, embedding, layer_norm, linear};

/// Values of a hidden state.
pub(super) const HIDDEN: usize = 384;
const LAYERS: usize = 6;
const HEADS: usize = 12;
const HEAD: usize = HIDDEN / HEADS;
const INNER: usize = 1_536;
const VOCABULARY: usize = 30_522;
const POSITIONS: usize = 512;
const EPSILON: f64 = 1e-12;

/// Turns the ids of a batch into hidden states.
#[derive(Debug)]
pub(super) struct Encoder {
    words: Embedding,
    /// Rows of positions, the type of a first sentence added.
    positions: Tensor,
    norm: LayerNorm,
    layers: Vec<Layer>,
}

#[derive(Debug)]
struct Layer {
    query: Linear,
    key: Linear,
    value: Linear,
    attended: Linear,
    attended_norm: LayerNorm,
    inner: Linear,
    outer: Linear,
    outer_norm: LayerNorm,
}

impl Encoder {
    pub(super) fn new(weights: &VarBuilder<'_>) -> Result<Self> {
        let embeddings = weights.pp("embeddings");
        let types = embeddings.get((2, HIDDEN), "token_type_embeddings.weight")?;
        let positions = embeddings
            .get((POSITIONS, HIDDEN), "position_embeddings.weight")?
            .broadcast_add(&types.get(0)?)?;
        let layers = (0..LAYERS)
            .map(|layer| Layer::new(&weights.pp("encoder").pp("layer").pp(layer)))
            .collect::<Result<_>>()?;
        Ok(Self {
            words: embedding(VOCABULARY, HIDDEN, embeddings.pp("word_embeddings"))?,
            positions,
            norm: norm(&embeddings)?,
            layers,
        })
    }

    /// Hidden states (texts × length × [`HIDDEN`]) of ids (texts × length); the mask is 1 for tokens
    /// and 0 for padding.
    pub(super) fn forward(&self, ids: &Tensor, mask: &Tensor) -> Result<Tensor> {
        let (_, length) = ids.dims2()?;
        let positions = self.positions.narrow(0, 0, length)?;
        let mut states = self.norm.forward(&self.words.forward(ids)?.broadcast_add(&positions)?)?;
        // Nothing for tokens, minus infinity in effect for padding.
        let bias = mask.to_dtype(DType::F32)?.affine(1e9, -1e9)?.unsqueeze(1)?.unsqueeze(1)?;
        for layer in &self.layers {
            states = layer.forward(&states, &bias)?;
        }
        Ok(states)
    }
}

impl Layer {
    fn new(weights: &VarBuilder<'_>) -> Result<Self> {
        let attention = weights.pp("attention");
        let dense = |name| linear(HIDDEN, HIDDEN, attention.pp(name));
        Ok(Self {
            query: dense("self.query")?,
            key: dense("self.key")?,
            value: dense("self.value")?,
            attended: dense("output.dense")?,
            attended_norm: norm(&attention.pp("output"))?,
            inner: linear(HIDDEN, INNER, weights.pp("intermediate.dense"))?,
            outer: linear(INNER, HIDDEN, weights.pp("output.dense"))?,
            outer_norm: norm(&weights.pp("output"))?,
        })
    }

    fn forward(&self, states: &Tensor, bias: &Tensor) -> Result<Tensor> {
        let (texts, length, _) = states.dims3()?;
        let heads = |linear: &Linear| {
            let split = linear.forward(states)?.reshape((texts, length, HEADS, HEAD))?;
            split.transpose(1, 2)?.contiguous()
        };
        let (query, key, value) = (heads(&self.query)?, heads(&self.key)?, heads(&self.value)?);
        let scores = query.affine((HEAD as f64).sqrt().recip(), 0.0)?.matmul(&key.t()?)?;
        let shares = candle_nn::ops::softmax_last_dim(&scores.broadcast_add(bias)?)?;
        let mixed = shares.matmul(&value)?.transpose(1, 2)?.flatten_from(D::Minus2)?;
        let attended = self.attended_norm.forward(&(self.attended.forward(&mixed)? + states)?)?;
        let inner = self.inner.forward(&attended)?.gelu_erf()?;
        self.outer_norm.forward(&(self.outer.forward(&inner)? + attended)?)
    }
}

fn norm(weights: &VarBuilder<'_>) -> Result<LayerNorm> {
    layer_norm(HIDDEN, EPSILON, weights.pp("LayerNorm"))
}
