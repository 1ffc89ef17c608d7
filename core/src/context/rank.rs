//! Ranking: from posting lists to scored passages. Pure, and the same over every store.
//!
//! BM25 over *smoothed* counts: an occurrence counts in full for its own passage and less for its
//! neighbours within the session, and saturation comes after (a window of nine passages, weighted
//! by distance). A conversation spreads one thought over several messages, and the reply rarely
//! repeats the words of the question. On top of it the passage's own BM25, and three signals of
//! dialogue: who is named, what was asked just before, which month is named.

use std::ops::Range;

use rustc_hash::FxHashSet;

use crate::ports::{Posting, PostingLists, UnitKey};
use crate::text::{QUESTION_TERM, asked_dates, query_terms};

/// Passages of one page of the accumulator.
const PAGE: u64 = 32;

/// The constants of the ranking. Measured on conversations; none is critical by itself.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Bm25 {
    /// Weight of an occurrence at distance 1, 2, …; empty scores passages alone.
    pub(super) neighbours: &'static [f32],
    /// Saturation of smoothed counts.
    pub(super) k1: f32,
    /// Length normalization of smoothed counts.
    pub(super) b: f32,
    /// Weight of the passage's own BM25, with `own_b`.
    pub(super) own: f32,
    /// Length normalization of own counts.
    pub(super) own_b: f32,
    /// Weight of a term that is also a speaker's name: it says who, not what.
    pub(super) name_weight: f32,
    /// Factor for passages by the one speaker that the question names.
    pub(super) speaker: f32,
    /// Factor for sessions in which that speaker never speaks.
    pub(super) absent: f32,
    /// Share of a question's score that its reply inherits.
    pub(super) reply: f32,
    /// Factor for passages of a month or year that the question names.
    pub(super) dated: f32,
}

impl Bm25 {
    /// Messages, with neighbours.
    pub(super) const MESSAGES: Self = Self {
        neighbours: &[0.6, 0.4, 0.2, 0.1],
        k1: 1.0,
        b: 0.9,
        own: 0.3,
        own_b: 0.5,
        name_weight: 0.2,
        speaker: 1.5,
        absent: 0.4,
        reply: 0.15,
        dated: 2.5,
    };

    /// Each passage by itself, with no signal of dialogue: plain BM25.
    pub(super) const SINGLE: Self = Self {
        neighbours: &[],
        k1: 1.2,
        b: 0.75,
        own: 0.0,
        own_b: 0.0,
        name_weight: 1.0,
        speaker: 1.0,
        absent: 1.0,
        reply: 0.0,
        dated: 1.0,
    };
}

/// A question, analyzed: the terms whose postings are wanted, in the order of [`PostingLists`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Query {
    /// Content terms, marks of speakers (one for each content term), then the other marks.
    terms: Vec<String>,
    content: usize,
    dates: usize,
}

/// Most distinct content terms of a turn that are looked up; longer turns use their first ones and
/// last ones, where people say what they want.
const MAX_QUERY_TERMS: usize = 48;

impl Query {
    pub(super) fn of(turn: &str) -> Self {
        let mut content = query_terms(turn);
        if content.len() > MAX_QUERY_TERMS {
            content.drain(MAX_QUERY_TERMS / 2..content.len() - MAX_QUERY_TERMS / 2);
        }
        let count = content.len();
        let dates = asked_dates(turn);
        let mut terms = content;
        terms.extend((0..count).map(|at| format!("@by:{}", terms[at])).collect::<Vec<_>>());
        let date_count = dates.len();
        terms.extend(dates);
        terms.push(QUESTION_TERM.to_owned());
        Self { terms, content: count, dates: date_count }
    }

    /// Every term and mark, in the order in which their lists are expected.
    pub(super) fn terms(&self) -> &[String] {
        &self.terms
    }

    /// The same question for an index whose units bear no marks.
    pub(super) fn without_marks(&self) -> Self {
        Self { terms: self.content().to_vec(), content: self.content, dates: 0 }
    }

    /// The content terms alone.
    pub(super) fn content(&self) -> &[String] {
        &self.terms[..self.content]
    }
}

/// A passage and its score, which compares within one query only.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Ranked {
    /// The passage.
    pub(super) key: UnitKey,
    /// Higher is more relevant; always above 0.
    pub(super) score: f32,
}

/// The best `limit` passages of a question, best first, ties by key.
pub(super) fn rank(query: &Query, found: &PostingLists, bm25: &Bm25, limit: usize) -> Vec<Ranked> {
    let units = found.stats.units as f32;
    if units == 0.0 || limit == 0 {
        return Vec::new();
    }
    let average = (found.stats.length as f32 / units).max(1.0);
    let (content, marks) = found.lists.split_at(query.content.min(found.lists.len()));
    let (speakers, marks) = marks.split_at(query.content.min(marks.len()));
    let (dates, rest) = marks.split_at(query.dates.min(marks.len()));
    let mut pages = Pages::of(content, bm25.neighbours.len() as u64);
    for list in found.lists.iter() {
        pages.learn_lengths(list);
    }
    pages.weigh_lengths(average, bm25);
    for (at, list) in content.iter().enumerate() {
        let frequency = list.len() as f32;
        let idf = (1.0 + (units - frequency + 0.5) / (frequency + 0.5)).ln();
        let is_name = speakers.get(at).is_some_and(|spoken| !spoken.is_empty());
        let weight = if is_name { bm25.name_weight } else { 1.0 };
        pages.add_term(list, idf * weight, bm25);
    }
    let asked = rest.first().map_or(&[][..], Vec::as_slice);
    pages.pass_to_replies(asked, bm25.reply);
    let mut named = speakers.iter().filter(|list| !list.is_empty());
    if let (Some(spoken), None) = (named.next(), named.next()) {
        pages.multiply(spoken, bm25.speaker);
        pages.multiply_sessions_without(spoken, bm25.absent);
    }
    match dates {
        [] => {}
        [one] => pages.multiply(one, bm25.dated),
        several => {
            let mut all: Vec<Posting> = several.concat();
            all.sort_unstable_by_key(|posting| posting.key);
            all.dedup_by_key(|posting| posting.key);
            pages.multiply(&all, bm25.dated);
        }
    }
    pages.best(limit)
}

/// A sparse array over passages: pages of 32 neighbouring passages, in order of key. Pages that
/// follow each other in a session lie next to each other, so that a window is a slice; between
/// others lies a margin that no window reaches over.
struct Pages {
    ids: Vec<u64>,
    starts: Vec<usize>,
    scores: Vec<f32>,
    /// Length of each passage where some list told it, else 0.
    lengths: Vec<f32>,
    /// What each window's length adds below the line of BM25.
    norms: Vec<f32>,
    counts: Vec<f32>,
    reach: usize,
}

impl Pages {
    /// Room for every passage that a posting touches or stands within `reach` of.
    fn of(lists: &[Vec<Posting>], reach: u64) -> Self {
        let mut ids: Vec<u64> = Vec::new();
        for posting in lists.iter().flatten() {
            let key = posting.key.to_bits();
            let first = key - reach.min(u64::from(posting.key.position()));
            for near in [first, key, key + reach] {
                if ids.last() != Some(&(near / PAGE)) {
                    ids.push(near / PAGE);
                }
            }
        }
        ids.sort_unstable();
        ids.dedup();
        let reach = usize::try_from(reach).unwrap_or(0);
        let page = PAGE as usize;
        let mut starts = Vec::with_capacity(ids.len());
        let mut end = reach;
        let mut before = None;
        for id in &ids {
            if before.is_some_and(|before| before + 1 != *id) {
                end += reach;
            }
            starts.push(end);
            end += page;
            before = Some(*id);
        }
        let slots = end + reach;
        Self {
            ids,
            starts,
            scores: vec![0.0; slots],
            lengths: vec![0.0; slots],
            norms: Vec::new(),
            counts: vec![0.0; slots],
            reach,
        }
    }

    /// Calls `each` with the slot of every posting whose page is there.
    fn for_slots(
        ids: &[u64],
        starts: &[usize],
        list: &[Posting],
        mut each: impl FnMut(usize, &Posting),
    ) {
        let mut page = 0;
        for posting in list {
            let key = posting.key.to_bits();
            let id = key / PAGE;
            // Lists are sorted, and so are pages: gallop forward.
            if ids.get(page).is_some_and(|here| *here < id) {
                page += ids[page..].partition_point(|here| *here < id);
            }
            match ids.get(page) {
                Some(here) if *here == id => each(starts[page] + (key % PAGE) as usize, posting),
                Some(_) => {}
                None => break,
            }
        }
    }

    fn learn_lengths(&mut self, list: &[Posting]) {
        let lengths = &mut self.lengths;
        Self::for_slots(&self.ids, &self.starts, list, |slot, posting| {
            // A passage of function words only has length 0; 1 keeps it apart from unknown.
            lengths[slot] = f32::from(posting.length).max(1.0);
        });
    }

    /// A passage whose length no list told counts as an average one: within measurement that is as
    /// good as knowing it, and it keeps the cost with the postings of the question.
    fn weigh_lengths(&mut self, average: f32, bm25: &Bm25) {
        for length in &mut self.lengths {
            *length = if *length > 0.0 { *length / average } else { 1.0 };
        }
        let spread: f32 = 1.0 + 2.0 * bm25.neighbours.iter().sum::<f32>();
        let norm = |window: f32| bm25.k1 * (1.0 - bm25.b + bm25.b * window / spread);
        self.norms = (0..self.lengths.len())
            .map(|slot| norm(smoothed(&self.lengths, slot, bm25.neighbours, 1.0)))
            .collect();
    }

    /// Adds one term's score to every passage in reach of an occurrence.
    fn add_term(&mut self, list: &[Posting], weight: f32, bm25: &Bm25) {
        let reach = self.reach;
        let mut ranges: Vec<Range<usize>> = Vec::new();
        let counts = &mut self.counts;
        Self::for_slots(&self.ids, &self.starts, list, |slot, posting| {
            counts[slot] = f32::from(posting.count);
            match ranges.last_mut() {
                Some(last) if slot - reach <= last.end => last.end = slot + reach + 1,
                _ => ranges.push(slot - reach..slot + reach + 1),
            }
        });
        for range in &ranges {
            for slot in range.clone() {
                let count = smoothed(&self.counts, slot, bm25.neighbours, 0.0);
                let mut score = count * (bm25.k1 + 1.0) / (count + self.norms[slot]);
                let own = self.counts[slot];
                if own > 0.0 {
                    let norm = 1.0 - bm25.own_b + bm25.own_b * self.lengths[slot];
                    score += bm25.own * 2.0 * own / (own + norm);
                }
                self.scores[slot] += weight * score;
            }
        }
        for range in ranges {
            self.counts[range].fill(0.0);
        }
    }

    /// The passage after one that asks inherits a share of its score.
    fn pass_to_replies(&mut self, asked: &[Posting], share: f32) {
        if share == 0.0 {
            return;
        }
        let mut replies: Vec<(usize, f32)> = Vec::new();
        let scores = &self.scores;
        Self::for_slots(&self.ids, &self.starts, asked, |slot, _| {
            if scores[slot] > 0.0 && slot + 1 < scores.len() && scores[slot + 1] > 0.0 {
                replies.push((slot + 1, share * scores[slot]));
            }
        });
        for (slot, inherited) in replies {
            self.scores[slot] += inherited;
        }
    }

    fn multiply(&mut self, list: &[Posting], factor: f32) {
        let scores = &mut self.scores;
        Self::for_slots(&self.ids, &self.starts, list, |slot, _| scores[slot] *= factor);
    }

    fn multiply_sessions_without(&mut self, spoken: &[Posting], factor: f32) {
        if factor == 1.0 {
            return;
        }
        let sessions: FxHashSet<u32> =
            spoken.iter().map(|posting| posting.key.session_number()).collect();
        for (id, start) in self.ids.iter().zip(&self.starts) {
            if !sessions.contains(&UnitKey::from_bits(id * PAGE).session_number()) {
                for score in &mut self.scores[*start..start + PAGE as usize] {
                    *score *= factor;
                }
            }
        }
    }

    fn best(self, limit: usize) -> Vec<Ranked> {
        let mut ranked: Vec<Ranked> = Vec::new();
        for (id, start) in self.ids.iter().zip(&self.starts) {
            let page = &self.scores[*start..start + PAGE as usize];
            ranked.extend(
                page.iter()
                    .zip(id * PAGE..)
                    .filter(|(score, _)| **score > 0.0)
                    .map(|(score, key)| Ranked { key: UnitKey::from_bits(key), score: *score }),
            );
        }
        let order =
            |a: &Ranked, b: &Ranked| b.score.total_cmp(&a.score).then_with(|| a.key.cmp(&b.key));
        if ranked.len() > limit {
            ranked.select_nth_unstable_by(limit, order);
            ranked.truncate(limit);
        }
        ranked.sort_unstable_by(order);
        ranked
    }
}

/// The value at `slot` and, by distance, shares of those around it; `outside` stands for what lies
/// beyond the ends.
fn smoothed(values: &[f32], slot: usize, shares: &[f32], outside: f32) -> f32 {
    let mut sum = values[slot];
    for (distance, share) in (1..).zip(shares) {
        let before = slot.checked_sub(distance).map_or(outside, |at| values[at]);
        let after = values.get(slot + distance).copied().unwrap_or(outside);
        sum += share * (before + after);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ports::IndexStats;

    fn posting(session: u32, position: u32, count: u16) -> Posting {
        Posting { key: UnitKey::message(session, position), count, length: 10 }
    }

    fn lists(query: &Query, lists: &[(&str, &[Posting])]) -> PostingLists {
        let list = |term: &String| {
            let found = lists.iter().find(|(name, _)| name == term);
            found.map_or(Vec::new(), |(_, postings)| postings.to_vec())
        };
        PostingLists {
            stats: IndexStats { units: 1_000, length: 10_000 },
            lists: query.terms().iter().map(list).collect(),
        }
    }

    fn keys(ranked: &[Ranked]) -> Vec<(u32, u32)> {
        ranked.iter().map(|r| (r.key.session_number(), r.key.position())).collect()
    }

    #[test]
    fn neighbours_count_within_their_session_only() {
        let query = Query::of("harbour");
        let found = lists(&query, &[("harbour", &[posting(1, 0, 1), posting(2, 31, 1)])]);
        let ranked = rank(&query, &found, &Bm25::MESSAGES, 100);
        let mut found_keys = keys(&ranked);
        found_keys.sort_unstable();
        let first: Vec<_> = (0..=4).map(|at| (1, at)).collect();
        let second: Vec<_> = (27..=35).map(|at| (2, at)).collect();
        assert_eq!(found_keys, [first, second].concat());
        assert_eq!(keys(&ranked[..2]), [(1, 0), (2, 31)]);
        let single = rank(&query, &found, &Bm25::SINGLE, 100);
        assert_eq!(keys(&single), [(1, 0), (2, 31)]);
    }

    #[test]
    fn terms_close_together_beat_terms_apart() {
        let query = Query::of("harbour kitchen");
        let found = lists(
            &query,
            &[
                ("harbour", &[posting(1, 10, 1), posting(3, 10, 1)]),
                ("kitchen", &[posting(1, 12, 1), posting(4, 10, 1)]),
            ],
        );
        let ranked = rank(&query, &found, &Bm25::MESSAGES, 5);
        assert!(keys(&ranked[..3]).iter().all(|(session, _)| *session == 1), "{ranked:?}");
    }

    #[test]
    fn named_speakers_replies_and_dates_weigh_more() {
        let query = Query::of("What did Odile paint in May 2023?");
        let words: &[Posting] = &[posting(1, 5, 1), posting(1, 25, 1), posting(2, 5, 1)];
        let base: &[(&str, &[Posting])] = &[("paint", words)];
        let first = |extra: &[(&str, &[Posting])]| {
            let found = lists(&query, &[base, extra].concat());
            keys(&rank(&query, &found, &Bm25::MESSAGES, 9))[0]
        };
        assert_eq!(first(&[]), (1, 5));
        assert_eq!(first(&[("@by:odil", &[posting(1, 25, 1), posting(2, 9, 1)])]), (1, 25));
        assert_eq!(first(&[("@2023-05", &[posting(2, 5, 1)])]), (2, 5));
        let reply = lists(&query, &[base, &[("@?", &[posting(1, 25, 1)])]].concat());
        let ranked = rank(&query, &reply, &Bm25::MESSAGES, 100);
        let score = |at| ranked.iter().find(|r| r.key == UnitKey::message(1, at)).unwrap().score;
        assert!(score(26) > score(6) && score(26) > score(24));
    }

    #[test]
    fn a_query_without_terms_finds_nothing() {
        let query = Query::of("what did you do?");
        assert!(query.content().is_empty());
        assert!(rank(&query, &lists(&query, &[]), &Bm25::MESSAGES, 10).is_empty());
    }
}
