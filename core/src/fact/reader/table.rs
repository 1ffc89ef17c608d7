//! The file of the reader's weights: a header, the vocabulary, word vectors as signed bytes with a
//! scale each, then the layers as 32-bit floats in the order in which they are used.

use ndarray::{Array1, Array2};
use rustc_hash::FxHashMap;

/// First bytes of the file; the last is the version of its format.
const MAGIC: &[u8; 8] = b"TLRDR\0\0\x01";
/// What a layer of convolution sees at once: a token and its two neighbours.
pub(super) const KERNEL: usize = 3;
/// Shapes of a word.
pub(super) const SHAPES: usize = 12;
/// What a sentence may be: nine kinds of facts, the words of others, and a change of what was said. The
/// last is learned beside the rest and not asked for.
pub(super) const SENTENCE_LABELS: usize = 11;
/// What a token may be: part of nothing, of a fact of nine kinds, or of the words of others.
pub(super) const TOKEN_LABELS: usize = 11;

/// A layer: inputs × outputs, and an offset for each output.
#[derive(Debug)]
pub(super) struct Layer {
    pub(super) weights: Array2<f32>,
    pub(super) offset: Array1<f32>,
}

/// All weights.
#[derive(Debug)]
pub(super) struct Table {
    words: FxHashMap<&'static str, usize>,
    /// The vector of no known word, then one for each word.
    vectors: &'static [u8],
    scales: Vec<f32>,
    dimensions: usize,
    pub(super) suffixes: Array2<f32>,
    pub(super) shapes: Array2<f32>,
    pub(super) input: Layer,
    /// Layers that look further and further, each with its distance.
    pub(super) middle: Vec<(usize, Layer)>,
    pub(super) whole: Layer,
    pub(super) last: Layer,
    pub(super) token: Layer,
    pub(super) sentence: Layer,
}

impl Table {
    /// Reads a table; `None` for bytes that are none.
    pub(super) fn parse(bytes: &'static [u8]) -> Option<Self> {
        let mut rest = bytes.strip_prefix(MAGIC)?;
        let header = [(); 5].map(|()| number(&mut rest));
        let [count, text, dimensions, width, suffixes] = header;
        let (count, text, dimensions) = (count?, text?, dimensions?);
        let (width, suffixes) = (width?, suffixes?);
        let text = std::str::from_utf8(take(&mut rest, text)?).ok()?;
        if text.split('\n').count() != count {
            return None;
        }
        let words: FxHashMap<_, _> = text.split('\n').zip(1..).collect();
        let vectors = take(&mut rest, (count + 1).checked_mul(dimensions)?)?;
        let scales = floats(&mut rest, count + 1)?;
        let mut matrix = |rows: usize, columns: usize| {
            Array2::from_shape_vec((rows, columns), floats(&mut rest, rows * columns)?).ok()
        };
        let (suffixes, shapes) = (matrix(suffixes, dimensions)?, matrix(SHAPES, dimensions)?);
        let mut layer = |inputs: usize, outputs: usize| {
            let weights = matrix(inputs, outputs)?;
            Some(Layer { weights, offset: matrix(1, outputs)?.row(0).to_owned() })
        };
        let table = Self {
            words,
            vectors,
            scales,
            dimensions,
            suffixes,
            shapes,
            input: layer(KERNEL * dimensions, width)?,
            middle: [1, 2, 4, 8]
                .into_iter()
                .map(|distance| Some((distance, layer(KERNEL * width, width)?)))
                .collect::<Option<_>>()?,
            whole: layer(2 * width, width)?,
            last: layer(KERNEL * width, width)?,
            token: layer(width, TOKEN_LABELS)?,
            sentence: layer(2 * width, SENTENCE_LABELS)?,
        };
        rest.is_empty().then_some(table)
    }

    /// Values of a word's vector.
    pub(super) fn dimensions(&self) -> usize {
        self.dimensions
    }

    /// Adds the vector of a word, in lower case, to `sum`.
    pub(super) fn add_word(&self, word: &str, sum: &mut [f32]) {
        let row = self.words.get(word).copied().unwrap_or_default();
        let (from, scale) = (row * self.dimensions, self.scales[row]);
        for (sum, byte) in sum.iter_mut().zip(&self.vectors[from..from + self.dimensions]) {
            *sum += f32::from(byte.cast_signed()) * scale;
        }
    }
}

fn take<'a>(rest: &mut &'a [u8], length: usize) -> Option<&'a [u8]> {
    let (taken, left) = rest.split_at_checked(length)?;
    *rest = left;
    Some(taken)
}

fn number(rest: &mut &[u8]) -> Option<usize> {
    let bytes = take(rest, 4)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(bytes)).ok()
}

fn floats(rest: &mut &[u8], count: usize) -> Option<Vec<f32>> {
    let bytes = take(rest, count.checked_mul(4)?)?;
    Some(bytes.as_chunks::<4>().0.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect())
}
