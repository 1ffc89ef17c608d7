//! A sparse array over passages, the accumulator of ranking.
//!
//! Pages of 32 neighbouring passages lie in order of key. Pages that follow each other in a session lie
//! next to each other, so that a window is a slice; between others lies a margin that no window
//! reaches over. Inner loops run over slices, so that the compiler can make vectors of them.

use std::ops::Range;

use super::rank::{Bm25, Ranked};
use crate::index::{Posting, UnitKey};

/// Passages of one page.
const PAGE: u64 = 32;

/// Scores and lengths of every passage that a question touches.
pub(super) struct ScoreAccumulator {
    layout: Layout,
    /// Scores of windows.
    scores: Vec<f32>,
    /// Scores of passages by themselves.
    own: Vec<f32>,
    /// Lengths in averages; a passage whose length no list told counts as an average one: within
    /// measurement that is as good as knowing it, and it keeps the cost with the postings.
    lengths: Vec<f32>,
    /// What each window's length adds below the line of BM25.
    norms: Vec<f32>,
    /// Smoothed counts of the term at hand; all zero in between.
    counts: Vec<f32>,
    /// Weights of a window, from its first passage to its last.
    kernel: Vec<f32>,
    average: f32,
}

/// Where passages lie.
#[derive(Clone)]
struct Layout {
    ids: Vec<u64>,
    starts: Vec<usize>,
    slots: usize,
}

impl ScoreAccumulator {
    /// Room for every passage that a posting touches or is a neighbour of.
    pub(super) fn of(lists: &[Vec<Posting>], neighbours: &[f32], average: f32) -> Self {
        let layout = Layout::of(lists, neighbours.len());
        let slots = layout.slots;
        let kernel: Vec<f32> =
            neighbours.iter().rev().chain(&[1.0]).chain(neighbours).copied().collect();
        Self {
            layout,
            scores: vec![0.0; slots],
            own: vec![0.0; slots],
            lengths: vec![1.0; slots],
            norms: vec![0.0; slots],
            counts: vec![0.0; slots],
            kernel,
            average,
        }
    }

    pub(super) fn learn_lengths(&mut self, list: &[Posting]) {
        let (lengths, average) = (&mut self.lengths, self.average);
        self.layout.for_slots(list, |slot, posting| {
            lengths[slot] = f32::from(posting.length) / average;
        });
    }

    /// To be called once, after all lengths are learnt.
    pub(super) fn weigh_lengths(&mut self, bm25: &Bm25) {
        let spread: f32 = self.kernel.iter().sum();
        let reach = self.reach();
        let inner = reach..self.layout.slots - reach;
        smooth(&self.lengths, &self.kernel, inner.clone(), &mut self.norms[inner]);
        for norm in &mut self.norms {
            *norm = bm25.k1 * (1.0 - bm25.b + bm25.b * *norm / spread);
        }
    }

    /// Adds one term's score to every passage in reach of an occurrence.
    pub(super) fn add_term(&mut self, list: &[Posting], weight: f32, bm25: &Bm25) {
        let reach = self.reach();
        let mut windows: Vec<Range<usize>> = Vec::new();
        let Self { layout, scores, own: alone, lengths, norms, counts, kernel, .. } = self;
        layout.for_slots(list, |slot, posting| {
            let own = f32::from(posting.count);
            let norm = 1.0 - bm25.own_b + bm25.own_b * lengths[slot];
            alone[slot] += weight * 2.0 * own / (own + norm);
            let window = slot - reach..slot + reach + 1;
            for (count, share) in counts[window.clone()].iter_mut().zip(&*kernel) {
                *count += share * own;
            }
            match windows.last_mut() {
                Some(last) if window.start <= last.end => last.end = window.end,
                _ => windows.push(window),
            }
        });
        for window in windows {
            let counts = &mut counts[window.clone()];
            let scores = scores[window.clone()].iter_mut();
            for ((score, count), norm) in scores.zip(&*counts).zip(&norms[window]) {
                *score += weight * (bm25.k1 + 1.0) * count / (count + norm);
            }
            counts.fill(0.0);
        }
    }

    /// The scores so far, to be adjusted and read: of windows, and a share `own` of the passages' own.
    pub(super) fn scores(&self, own: f32) -> Scores<'_> {
        let scores = self.scores.iter().zip(&self.own).map(|(score, alone)| score + own * alone);
        Scores { layout: &self.layout, scores: scores.collect() }
    }

    /// A passage's score by itself, 0 where no word of the question is in it.
    pub(super) fn own(&self, key: UnitKey) -> f32 {
        self.layout.slot(key).map_or(0.0, |slot| self.own[slot])
    }

    fn reach(&self) -> usize {
        self.kernel.len() / 2
    }
}

/// The weighted sum of the window around each slot of `range`.
fn smooth(values: &[f32], kernel: &[f32], range: Range<usize>, sums: &mut [f32]) {
    let reach = kernel.len() / 2;
    for (offset, share) in kernel.iter().enumerate() {
        let from = range.start + offset - reach;
        let shifted = &values[from..from + range.len()];
        for (sum, value) in sums.iter_mut().zip(shifted) {
            *sum += share * value;
        }
    }
}

impl Layout {
    fn of(lists: &[Vec<Posting>], reach: usize) -> Self {
        let mut ids: Vec<u64> = Vec::new();
        for posting in lists.iter().flatten() {
            let key = posting.key.to_bits();
            let first = key - (reach as u64).min(u64::from(posting.key.position()));
            for near in [first, key, key + reach as u64] {
                if ids.last() != Some(&(near / PAGE)) {
                    ids.push(near / PAGE);
                }
            }
        }
        ids.sort_unstable();
        ids.dedup();
        // A window of the outermost slot, and the windows of its slots, stay inside.
        let mut end = 2 * reach;
        let mut before = None;
        let starts = ids
            .iter()
            .map(|id| {
                if before.is_some_and(|before| before + 1 != *id) {
                    end += reach;
                }
                before = Some(*id);
                end += PAGE as usize;
                end - PAGE as usize
            })
            .collect();
        Self { ids, starts, slots: end + 2 * reach }
    }

    /// Where a passage lies, if its page is there.
    fn slot(&self, key: UnitKey) -> Option<usize> {
        let key = key.to_bits();
        let page = self.ids.binary_search(&(key / PAGE)).ok()?;
        Some(self.starts[page] + (key % PAGE) as usize)
    }

    /// Calls `each` with the slot of every posting whose page is there. Lists and pages are sorted.
    fn for_slots(&self, list: &[Posting], mut each: impl FnMut(usize, &Posting)) {
        let mut pages = self.ids.iter().zip(&self.starts).peekable();
        for posting in list {
            let key = posting.key.to_bits();
            while pages.next_if(|(id, _)| **id < key / PAGE).is_some() {}
            match pages.peek() {
                Some((id, start)) if **id == key / PAGE => {
                    each(**start + (key % PAGE) as usize, posting);
                }
                Some(_) => {}
                None => break,
            }
        }
    }
}

/// Scores that the signals of dialogue adjust.
pub(super) struct Scores<'p> {
    layout: &'p Layout,
    scores: Vec<f32>,
}

impl Scores<'_> {
    /// The passage after each of `list` inherits a share of its score, if it has a score itself.
    pub(super) fn pass_to_next(&mut self, list: &[Posting], share: f32) {
        let mut inherited: Vec<(usize, f32)> = Vec::new();
        let scores = &self.scores;
        self.layout.for_slots(list, |slot, _| {
            if scores[slot] > 0.0 && scores.get(slot + 1).is_some_and(|next| *next > 0.0) {
                inherited.push((slot + 1, share * scores[slot]));
            }
        });
        for (slot, score) in inherited {
            self.scores[slot] += score;
        }
    }

    /// Multiplies the scores of a list's passages.
    pub(super) fn multiply(&mut self, list: &[Posting], factor: f32) {
        let scores = &mut self.scores;
        self.layout.for_slots(list, |slot, _| scores[slot] *= factor);
    }

    /// Multiplies the scores of all sessions in which no passage of the list is.
    pub(super) fn multiply_sessions_without(&mut self, list: &[Posting], factor: f32) {
        // Lists and pages are sorted by key, and so by session.
        let mut sessions: Vec<u32> =
            list.iter().map(|posting| posting.key.session_number()).collect();
        sessions.dedup();
        for (id, start) in self.layout.ids.iter().zip(&self.layout.starts) {
            let session = UnitKey::from_bits(id * PAGE).session_number();
            if sessions.binary_search(&session).is_err() {
                for score in &mut self.scores[*start..start + PAGE as usize] {
                    *score *= factor;
                }
            }
        }
    }

    /// A passage's score.
    pub(super) fn of(&self, key: UnitKey) -> f32 {
        self.layout.slot(key).map_or(0.0, |slot| self.scores[slot])
    }

    /// The best `limit` passages, best first, ties by key.
    pub(super) fn best(self, limit: usize) -> Vec<Ranked> {
        if limit == 0 {
            return Vec::new();
        }
        let order =
            |a: &Ranked, b: &Ranked| b.score.total_cmp(&a.score).then_with(|| a.key.cmp(&b.key));
        let mut ranked: Vec<Ranked> = Vec::with_capacity(4 * limit + PAGE as usize);
        let mut floor = 0.0;
        for (id, start) in self.layout.ids.iter().zip(&self.layout.starts) {
            let page = &self.scores[*start..start + PAGE as usize];
            for (score, key) in page.iter().zip(id * PAGE..) {
                // Keys ascend: of equal scores, the ones that are there already win.
                if *score > floor {
                    ranked.push(Ranked { key: UnitKey::from_bits(key), score: *score });
                }
            }
            if ranked.len() >= 4 * limit {
                ranked.select_nth_unstable_by(limit - 1, order);
                ranked.truncate(limit);
                floor = ranked[limit - 1].score;
            }
        }
        if ranked.len() > limit {
            ranked.select_nth_unstable_by(limit, order);
            ranked.truncate(limit);
        }
        ranked.sort_unstable_by(order);
        ranked
    }
}
