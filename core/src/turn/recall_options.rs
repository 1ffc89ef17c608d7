//! Which parts of recall a turn uses, and how passages are weighed.

/// The parts of recall; each can be switched off, so that its benefit can be measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RecallOptions {
    /// Recall at all.
    pub enabled: bool,
    /// Score passages together with their neighbours, and by the signals of dialogue.
    pub neighbours: bool,
    /// Ask for words, too, that the best passages share and the question lacks.
    pub feedback: bool,
    /// Look for what is near in meaning, too, where there is an embedder.
    pub meaning: bool,
    /// Add facts of the ledger.
    pub facts: bool,
    /// Add passages of documents.
    pub documents: bool,
    /// Most items that are added.
    pub max_items: usize,
    /// Adding stops below this share of the best score.
    pub relevance_floor: f32,
    /// How passages are judged.
    pub weights: Weights,
}

impl Default for RecallOptions {
    fn default() -> Self {
        Self {
            enabled: true,
            neighbours: true,
            feedback: true,
            meaning: true,
            facts: true,
            documents: true,
            max_items: usize::MAX,
            relevance_floor: 0.08,
            weights: Weights::SHIPPED,
        }
    }
}

/// How many signals weigh a blend.
pub const SIGNALS: usize = 4;

/// One weight for each signal: the relevance of a passage is its blend × *e*^(sum of signal × weight).
///
/// Signals of the passage alone (its own words, its cosine, its length, whether it asks) and of its
/// session were learnt as well, and gained nothing on a set that they were not learnt from.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Weights(pub [f32; SIGNALS]);

impl Weights {
    /// Names of the signals, in the order of the weights.
    ///
    /// | signal | what it is |
    /// |---|---|
    /// | `speaker` | 1 where the one speaker whom the turn names said it |
    /// | `absent` | 1 where that speaker never speaks in its session |
    /// | `dated` | 1 in a month or year that the turn names |
    /// | `voice` | of the user's own words, the logarithm of how many times more others said, beyond 3 |
    pub const NAMES: [&str; SIGNALS] = ["speaker", "absent", "dated", "voice"];

    /// The weights that ship: learnt from LoCoMo, RealTalk and BEAM.
    pub const SHIPPED: Self = Self([0.49, -0.9, 0.92, 0.9]);

    /// Where learning starts: what was reasoned before any weight was learnt. A speaker who is named
    /// counts half as much again, a date one and a half times as much again, and a side's words as if
    /// the others had said no more than three times as much.
    pub const REASONED: Self = Self([0.4, -0.9, 0.9, 1.0]);

    /// Words and meaning, and nothing else.
    pub const NONE: Self = Self([0.0; SIGNALS]);

    /// What the signals make of a blend.
    pub(crate) fn factor(&self, signals: &[f32; SIGNALS]) -> f32 {
        self.0.iter().zip(signals).map(|(weight, signal)| weight * signal).sum::<f32>().exp()
    }
}
