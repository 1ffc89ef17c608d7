//! What the sentences of a message state, and whether it is the user's own statement: a small network
//! that was trained on messages of many hands (`distill/reader`), with its weights in the binary.
//!
//! Word vectors, six layers of convolution over a message's tokens, and what is largest and what is
//! usual within each sentence (Kim 2014; dilated as in Strubell et al. 2017). About 5 µs a token,
//! pure, and the same on every run of a machine.

mod table;
#[cfg(test)]
mod tests;
mod words;

use std::ops::Range;
use std::sync::LazyLock;

use ndarray::{Array1, Array2, ArrayView2, Axis, s};

use super::FactKind;
use table::{KERNEL, Layer, SENTENCE_LABELS, TOKEN_LABELS, Table};
use words::{folded, sentence_ends, shapes, suffix, tokens};

/// The kinds, in the order of the labels that they were trained as.
const KINDS: [FactKind; 9] = [
    FactKind::Instruction,
    FactKind::Preference,
    FactKind::Fact,
    FactKind::Decision,
    FactKind::Task,
    FactKind::Metric,
    FactKind::Link,
    FactKind::Entity,
    FactKind::Retraction,
];
/// The label of what is not the user's own.
const OTHERS: usize = 9;
/// Tokens read together: as many as the messages have that it was trained on.
const WINDOW: usize = 96;
/// Tokens of a message that are read: what is longer is a document.
const MOST_TOKENS: usize = 4_096;
/// Tokens between two parts of one value.
const GAP: usize = 2;

static TABLE: LazyLock<Table> = LazyLock::new(|| {
    #[expect(clippy::expect_used, reason = "the file is part of the binary and tested")]
    Table::parse(include_bytes!("../../../assets/reader.tlrdr")).expect("the reader's weights")
});

/// What was read of a sentence.
#[derive(Debug, Clone)]
pub(super) struct ReadSentence {
    /// Its place in the message, without white space around it.
    pub(super) range: Range<usize>,
    labels: [f32; SENTENCE_LABELS],
    spans: Vec<Span>,
}

#[derive(Debug, Clone)]
struct Span {
    label: usize,
    range: Range<usize>,
    probability: f32,
}

impl ReadSentence {
    /// How probable it is that the sentence states something of a kind, 0 to 1.
    pub(super) fn states(&self, kind: FactKind) -> f32 {
        KINDS.iter().position(|known| *known == kind).map_or(0.0, |label| self.labels[label])
    }

    /// How probable it is that it quotes, reports of others or imagines something, 0 to 1.
    pub(super) fn is_of_others(&self) -> f32 {
        self.labels[OTHERS]
    }

    /// The parts of the message that carry what it states of a kind, each at least so probable.
    pub(super) fn values(&self, kind: FactKind, least: f32) -> Vec<Range<usize>> {
        let of_kind = |span: &&Span| {
            span.label.checked_sub(1).is_some_and(|label| KINDS.get(label) == Some(&kind))
                && span.probability >= least
        };
        self.spans.iter().filter(of_kind).map(|span| span.range.clone()).collect()
    }
}

struct Token {
    range: Range<usize>,
    sentence: usize,
}

/// The sentences of a message.
pub(super) fn read(text: &str) -> Vec<ReadSentence> {
    let ends = sentence_ends(text);
    let mut sentence = 0;
    let mut all: Vec<Token> = Vec::new();
    for range in tokens(text).take(MOST_TOKENS) {
        while ends.get(sentence).is_some_and(|end| range.start >= *end) {
            sentence += 1;
        }
        all.push(Token { range, sentence });
    }
    let mut found = Vec::new();
    let mut rest = all.as_slice();
    while !rest.is_empty() {
        let (window, left) = rest.split_at(window(rest));
        read_window(text, window, &mut found);
        rest = left;
    }
    found
}

/// How many tokens are read together: whole sentences, where they are not endless.
fn window(tokens: &[Token]) -> usize {
    if tokens.len() <= WINDOW {
        return tokens.len();
    }
    let cut = tokens[WINDOW].sentence;
    let whole = tokens[..WINDOW].partition_point(|token| token.sentence < cut);
    if whole == 0 { WINDOW } else { whole }
}

fn read_window(text: &str, tokens: &[Token], found: &mut Vec<ReadSentence>) {
    let table = &*TABLE;
    let states = understood(table, text, tokens);
    let labels = softmax(&table.token.of(&states.view()));
    let mut from = 0;
    for group in tokens.chunk_by(|a, b| a.sentence == b.sentence) {
        let part = from..from + group.len();
        from = part.end;
        let own = states.slice(s![part.clone(), ..]);
        let largest = own.fold_axis(Axis(0), 0.0_f32, |most, value| most.max(*value));
        let mean = own.sum_axis(Axis(0)) / group.len() as f32;
        let pooled = ndarray::concatenate![Axis(0), largest, mean].insert_axis(Axis(0));
        let scores = table.sentence.of(&pooled.view());
        let mut probabilities = [0.0; SENTENCE_LABELS];
        for (probability, score) in probabilities.iter_mut().zip(&scores) {
            *probability = 1.0 / (1.0 + (-score).exp());
        }
        let range = trimmed(
            text,
            group[0].range.start..group[group.len() - 1].range.end,
            char::is_whitespace,
        );
        if !range.is_empty() {
            let spans = spans(text, group, &labels.slice(s![part, ..]));
            found.push(ReadSentence { range, labels: probabilities, spans });
        }
    }
}

/// What the network makes of each token.
fn understood(table: &Table, text: &str, tokens: &[Token]) -> Array2<f32> {
    let mut input = Array2::zeros((tokens.len(), table.dimensions()));
    for (token, mut row) in tokens.iter().zip(input.rows_mut()) {
        let word = &text[token.range.clone()];
        let lower = word.to_lowercase();
        row += &table.suffixes.row(suffix(&lower, table.suffixes.nrows()));
        for (shape, vector) in shapes(word).into_iter().zip(table.shapes.rows()) {
            if shape {
                row += &vector;
            }
        }
        if let Some(row) = row.as_slice_mut() {
            table.add_word(&folded(word), row);
        }
    }
    let mut states = positive(around(&table.input, &input, 1));
    for (distance, layer) in &table.middle {
        states += &positive(around(layer, &states, *distance));
    }
    let largest = states.fold_axis(Axis(0), f32::NEG_INFINITY, |most, value| most.max(*value));
    let mean = states.sum_axis(Axis(0)) / tokens.len() as f32;
    let whole = ndarray::concatenate![Axis(0), largest, mean].insert_axis(Axis(0));
    let whole = table.whole.of(&whole.view());
    positive(around(&table.last, &states, 1) + &states + &whole)
}

impl Layer {
    fn of(&self, inputs: &ArrayView2<'_, f32>) -> Array2<f32> {
        inputs.dot(&self.weights) + &self.offset
    }
}

/// A layer over each token with those `distance` before and after it.
fn around(layer: &Layer, states: &Array2<f32>, distance: usize) -> Array2<f32> {
    let (count, width) = states.dim();
    let mut near = Array2::zeros((count, KERNEL * width));
    near.slice_mut(s![.., width..2 * width]).assign(states);
    if distance < count {
        near.slice_mut(s![distance.., ..width]).assign(&states.slice(s![..count - distance, ..]));
        near.slice_mut(s![..count - distance, 2 * width..])
            .assign(&states.slice(s![distance.., ..]));
    }
    layer.of(&near.view())
}

fn positive(mut states: Array2<f32>) -> Array2<f32> {
    states.mapv_inplace(|value| value.max(0.0));
    states
}

fn softmax(scores: &Array2<f32>) -> Array2<f32> {
    let mut shares = scores.clone();
    for mut row in shares.rows_mut() {
        let most = row.fold(f32::NEG_INFINITY, |most, value| most.max(*value));
        row.mapv_inplace(|value| (value - most).exp());
        let sum = row.sum();
        row /= sum;
    }
    shares
}

/// Runs of tokens with one label, over small gaps, without marks at their ends.
fn spans(text: &str, tokens: &[Token], shares: &ArrayView2<'_, f32>) -> Vec<Span> {
    let best: Vec<usize> = shares.rows().into_iter().map(|row| largest(&row.to_owned())).collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < best.len() {
        let label = best[at];
        if label == 0 {
            at += 1;
            continue;
        }
        let mut end = at + 1;
        while end < best.len() {
            let gap = best[end..].iter().take(GAP).take_while(|label| **label == 0).count();
            if best.get(end + gap) != Some(&label) {
                break;
            }
            end += gap + 1;
        }
        let sum: f32 = (at..end).map(|token| shares[(token, label)]).sum();
        let probability = sum / (end - at) as f32;
        let loose = |c: char| c.is_whitespace() || ",;:.!?-–—(".contains(c);
        let range = trimmed(text, tokens[at].range.start..tokens[end - 1].range.end, loose);
        if !range.is_empty() {
            found.push(Span { label, range, probability });
        }
        at = end;
    }
    found
}

fn largest(row: &Array1<f32>) -> usize {
    let mut best = 0;
    for label in 1..TOKEN_LABELS.min(row.len()) {
        if row[label] > row[best] {
            best = label;
        }
    }
    best
}

/// A place without what is loose at its ends.
fn trimmed(text: &str, range: Range<usize>, loose: impl Fn(char) -> bool) -> Range<usize> {
    let part = &text[range.clone()];
    let start = range.start + part.len() - part.trim_start_matches(&loose).len();
    let end = range.end - (part.len() - part.trim_end_matches(&loose).len());
    start..end.max(start)
}
