//! Ranking: from posting lists to scored passages. Pure, and the same over every store.
//!
//! BM25 over *smoothed* counts: an occurrence counts in full for its own passage and less for its
//! neighbours within the session, and saturation comes after (a window of nine passages, weighted
//! by distance). A conversation spreads one thought over several messages, and the reply rarely
//! repeats the words of the question. On top of it the passage's own BM25, and three signals of
//! dialogue: who is named, what was asked just before, which month is named.

use std::borrow::Cow;

use super::question::asks_for_both_sides;
use super::score_accumulator::{ScoreAccumulator, Scores};
use crate::index::{Posting, UnitKey};
use crate::ports::PostingLists;
use crate::text::{QUESTION_TERM, USER_TERM, asked_dates, query_terms, terms};
use crate::turn::{SIGNALS, Weights};

/// The constants of the ranking. Measured on conversations; none is critical by itself.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Bm25 {
    /// Weight of an occurrence at distance 1, 2, … at most; empty scores passages alone.
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
    /// Share of a question's score that its reply inherits.
    pub(super) reply: f32,
}

impl Bm25 {
    /// Messages, with neighbours.
    pub(crate) const MESSAGES: Self = Self {
        neighbours: &[0.6, 0.4, 0.2, 0.1],
        k1: 1.0,
        b: 0.9,
        own: 0.3,
        own_b: 0.5,
        name_weight: 0.2,
        reply: 0.15,
    };

    /// Each passage by itself, with no signal of dialogue: plain BM25.
    pub(crate) const SINGLE: Self = Self {
        neighbours: &[],
        k1: 1.2,
        b: 0.75,
        own: 0.0,
        own_b: 0.0,
        name_weight: 1.0,
        reply: 0.0,
    };
}

/// A question, analyzed: the terms whose postings are wanted, in the order of [`PostingLists`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Query {
    /// What was asked; of a long turn, its ends.
    text: String,
    /// Content terms, marks of speakers (one for each content term), then the other marks.
    terms: Vec<String>,
    content: usize,
    has_marks: bool,
    both_sides: bool,
}

/// The marks that every question looks up, behind all others.
const MARKS: [&str; 2] = [QUESTION_TERM, USER_TERM];

/// Most distinct content terms of a turn that are looked up; longer turns use their first ones and
/// last ones, where people say what they want.
const MAX_QUERY_TERMS: usize = 48;

impl Query {
    pub(crate) fn of(turn: &str) -> Self {
        let turn = ends_of(turn);
        let mut content = query_terms(&turn);
        if content.len() > MAX_QUERY_TERMS {
            content.drain(MAX_QUERY_TERMS / 2..content.len() - MAX_QUERY_TERMS / 2);
        }
        let count = content.len();
        let dates = asked_dates(&turn);
        let mut terms = content;
        terms.extend((0..count).map(|at| format!("@by:{}", terms[at])).collect::<Vec<_>>());
        terms.extend(dates);
        terms.extend(MARKS.map(str::to_owned));
        let both_sides = asks_for_both_sides(&turn);
        Self { text: turn.into_owned(), terms, content: count, has_marks: true, both_sides }
    }

    /// What was asked.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// What was asked, without the words that name a speaker of the scope, by the postings of
    /// [`Self::terms`]: who speaks is told by marks, and a name's meaning is nothing but a name.
    pub(crate) fn text_without_names(&self, found: &PostingLists) -> Cow<'_, str> {
        let marks = found.lists.iter().zip(&found.unread).skip(self.content);
        let names: Vec<&String> = self
            .content()
            .iter()
            .zip(marks)
            .filter(|(_, (list, unread))| self.has_marks && (!list.is_empty() || **unread > 0))
            .map(|(term, _)| term)
            .collect();
        if names.is_empty() {
            return Cow::Borrowed(&self.text);
        }
        let is_name = |word: &&str| matches!(&terms(word)[..], [term] if names.contains(&term));
        let kept: Vec<&str> = self.text.split_whitespace().filter(|word| !is_name(word)).collect();
        Cow::Owned(kept.join(" "))
    }

    /// Every term and mark, in the order in which their lists are expected.
    pub(crate) fn terms(&self) -> &[String] {
        &self.terms
    }

    /// Passages in which the user states something and asks nothing, by the postings of
    /// [`Self::terms`]; the newest `limit`, newest first.
    pub(crate) fn newest_statements(&self, found: &PostingLists, limit: usize) -> Vec<UnitKey> {
        let marks = found.lists.get(self.terms.len() - MARKS.len()..self.terms.len());
        let Some([asked, said]) = marks.filter(|_| self.has_marks) else {
            return Vec::new();
        };
        let asks = |key: UnitKey| asked.binary_search_by_key(&key, |held| held.key).is_ok();
        said.iter().rev().map(|held| held.key).filter(|key| !asks(*key)).take(limit).collect()
    }

    /// The same question for an index whose units bear no marks.
    pub(crate) fn without_marks(&self) -> Self {
        Self {
            text: self.text.clone(),
            terms: self.content().to_vec(),
            content: self.content,
            has_marks: false,
            both_sides: true,
        }
    }

    /// The content terms alone.
    pub(crate) fn content(&self) -> &[String] {
        &self.terms[..self.content]
    }
}

/// Bytes at each end of a turn that are looked at: what a person wants stands at the beginning or the
/// end of what they paste.
const ENDS_BYTES: usize = 4_096;

fn ends_of(turn: &str) -> Cow<'_, str> {
    if turn.len() <= 2 * ENDS_BYTES {
        return turn.into();
    }
    let head = &turn[..turn.floor_char_boundary(ENDS_BYTES)];
    let tail = &turn[turn.ceil_char_boundary(turn.len() - ENDS_BYTES)..];
    format!("{head}\n{tail}").into()
}

/// A passage and its score, which compares within one query only.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Ranked {
    /// The passage.
    pub(crate) key: UnitKey,
    /// Higher is more relevant; always above 0.
    pub(crate) score: f32,
}

/// The ranking of one question: postings come in, the best passages come out, and more terms may be
/// added in between.
pub(crate) struct Ranking<'b> {
    bm25: &'b Bm25,
    units: f32,
    pages: ScoreAccumulator,
    /// Passages by the one speaker whom the question names.
    spoken: Vec<Posting>,
    /// Passages that ask something.
    asked: Vec<Posting>,
    /// Passages of a month or year that the question names.
    dated: Vec<Posting>,
    /// Passages that the user said, where it matters who did.
    said: Vec<Posting>,
    /// How rare what the user said is, against what others did.
    voice: f32,
    kernel: Vec<f32>,
    weights: Weights,
    /// The score of a passage that has every word of the question once.
    whole: f32,
}

/// Terms over which what is said together thins out: a neighbour at this distance has 1 ÷ *e* of the
/// weight of the passage itself, whatever number of messages lie between. Some sixty tokens.
const NEAR_TERMS: f32 = 27.0;
/// Neighbours with less weight are none.
const LEAST_NEIGHBOUR: f32 = 0.02;

/// Of two sides, one that said up to so many times as much as the other said about as much.
const EVEN: f32 = 3.0;

/// How rare a side's text is that has this share of a scope: the logarithm of how many times more the
/// others said, beyond [`EVEN`]; below 0 where it is the side that said more.
fn voice(share: f32) -> f32 {
    let times = ((1.0 - share) / share).ln();
    (times.abs() - EVEN.ln()).max(0.0).copysign(times)
}

/// The weights of neighbours in a scope whose passages have `average` terms.
fn kernel(neighbours: &[f32], average: f32) -> Vec<f32> {
    (1_u8..)
        .zip(neighbours)
        .map(|(distance, most)| most.min((-f32::from(distance) * average / NEAR_TERMS).exp()))
        .take_while(|weight| *weight >= LEAST_NEIGHBOUR)
        .collect()
}

impl<'b> Ranking<'b> {
    /// Ranks by the postings of `query.terms()`.
    pub(crate) fn new(
        query: &Query,
        found: PostingLists,
        bm25: &'b Bm25,
        weights: &Weights,
    ) -> Self {
        let PostingLists { stats, mut lists, unread } = found;
        let units = stats.units as f32;
        let average = (stats.length as f32 / units.max(1.0)).max(1.0);
        lists.resize_with(query.terms.len(), Vec::new);
        let mut marks = lists.split_off(query.content);
        let content = lists;
        let kernel = kernel(bm25.neighbours, average);
        let mut pages = ScoreAccumulator::of(&content, &kernel, average);
        for list in content.iter().chain(&marks) {
            pages.learn_lengths(list);
        }
        pages.weigh_lengths(bm25);
        let frequent = |at: usize| unread.get(at).copied().filter(|unread| *unread > 0);
        let mut whole = 0.0;
        for (at, list) in content.iter().enumerate() {
            let is_name = query.has_marks
                && (frequent(query.content + at).is_some() || !marks[at].is_empty());
            let weight = if is_name { bm25.name_weight } else { 1.0 };
            let held =
                frequent(at).map_or(list.len(), |n| usize::try_from(n).unwrap_or(usize::MAX));
            whole += weight * idf(units, held);
            pages.add_term(list, weight * idf(units, list.len()), bm25);
        }
        let mut ranking = Self {
            bm25,
            units,
            pages,
            spoken: Vec::new(),
            asked: Vec::new(),
            dated: Vec::new(),
            said: Vec::new(),
            voice: 0.0,
            kernel,
            weights: *weights,
            whole,
        };
        if query.has_marks {
            let said = marks.pop().unwrap_or_default();
            if !query.both_sides && !said.is_empty() {
                ranking.voice = voice((said.len() as f32 + 1.0) / (units + 2.0));
                ranking.said = said;
            }
            ranking.asked = marks.pop().unwrap_or_default();
            let mut dated = marks.split_off(query.content).concat();
            dated.sort_unstable_by_key(|posting| posting.key);
            dated.dedup_by_key(|posting| posting.key);
            ranking.dated = dated;
            let mut named = marks.into_iter().filter(|list| !list.is_empty());
            if let (Some(spoken), None) = (named.next(), named.next()) {
                ranking.spoken = spoken;
            }
        }
        ranking
    }

    /// Adds terms that the question does not have, each at a weight; passages far from all that was
    /// ranked so far stay out.
    pub(crate) fn expand(&mut self, weighted: &[f32], found: &PostingLists) {
        for (weight, list) in weighted.iter().zip(&found.lists) {
            self.pages.add_term(list, weight * idf(self.units, list.len()), self.bm25);
        }
    }

    /// The best `limit` passages by words and marks, best first, ties by key.
    pub(crate) fn best(&self, limit: usize) -> Vec<Ranked> {
        let mut scores = self.scores();
        let [speaker, absent, dated, voice] = self.weights.0;
        if !self.spoken.is_empty() {
            scores.multiply(&self.spoken, speaker.exp());
            scores.multiply_sessions_without(&self.spoken, absent.exp());
        }
        scores.multiply(&self.dated, dated.exp());
        scores.multiply(&self.said, (voice * self.voice).exp());
        scores.best(limit)
    }

    /// Scores by words alone.
    pub(super) fn scores(&self) -> Scores<'_> {
        let mut scores = self.pages.scores(self.bm25.own);
        if self.bm25.reply > 0.0 {
            scores.pass_to_next(&self.asked, self.bm25.reply);
        }
        scores
    }

    /// A passage's score by its own words.
    pub(super) fn own(&self, key: UnitKey) -> f32 {
        self.pages.own(key)
    }

    /// The score of a passage that has every word of the question once, by [`Self::own`].
    pub(super) fn whole(&self) -> f32 {
        self.whole
    }

    /// Passages of the scope.
    pub(super) fn units(&self) -> f32 {
        self.units
    }

    /// The weights of neighbours at distance 1, 2, … in this scope.
    pub(super) fn kernel(&self) -> &[f32] {
        &self.kernel
    }

    /// What marks tell of a passage, whatever its words, in the order of [`Weights::NAMES`].
    pub(super) fn signals(&self, key: UnitKey) -> [f32; SIGNALS] {
        let holds = |list: &[Posting]| list.binary_search_by_key(&key, |held| held.key).is_ok();
        let flag = |set: bool| if set { 1.0 } else { 0.0 };
        let session = key.session_number();
        let first = self.spoken.partition_point(|held| held.key.session_number() < session);
        let speaks =
            self.spoken.get(first).is_some_and(|held| held.key.session_number() == session);
        let voice = if holds(&self.said) { self.voice } else { 0.0 };
        let absent = !self.spoken.is_empty() && !speaks;
        [flag(holds(&self.spoken)), flag(absent), flag(holds(&self.dated)), voice]
    }
}

/// How much a term tells that is in `frequency` of `units` passages.
pub(super) fn idf(units: f32, frequency: usize) -> f32 {
    let frequency = frequency as f32;
    (1.0 + (units - frequency + 0.5).max(0.0) / (frequency + 0.5)).ln()
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
            unread: vec![0; query.terms().len()],
        }
    }

    fn rank(query: &Query, found: &PostingLists, bm25: &Bm25, limit: usize) -> Vec<Ranked> {
        Ranking::new(query, found.clone(), bm25, &Weights::SHIPPED).best(limit)
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
    fn a_voice_counts_where_one_side_said_far_more() {
        for (share, expected) in [(0.5, 0.0), (0.3, 0.0), (0.74, 0.0), (0.1, 1.1), (0.9, -1.1)] {
            assert!((voice(share) - expected).abs() < 0.01, "{share} {}", voice(share));
        }
        let query = Query::of("harbour");
        let words: &[Posting] = &[posting(1, 5, 1), posting(2, 5, 1)];
        let found = lists(&query, &[("harbour", words), ("@user", &[posting(2, 5, 1)])]);
        assert_eq!(keys(&rank(&query, &found, &Bm25::MESSAGES, 1)), [(2, 5)]);
        let query = Query::of("Summarize the harbour");
        let found = lists(&query, &[("harbour", words), ("@user", &[posting(2, 5, 1)])]);
        assert_eq!(keys(&rank(&query, &found, &Bm25::MESSAGES, 1)), [(1, 5)]);
    }

    #[test]
    fn neighbours_thin_out_with_words_between_them() {
        let base = Bm25::MESSAGES.neighbours;
        assert_eq!(kernel(base, 8.0), [0.6, 0.4, 0.2, 0.1]);
        let long = kernel(base, 60.0);
        assert!(long.len() == 1 && long[0] < 0.12, "{long:?}");
    }

    #[test]
    fn more_terms_lift_what_they_are_in() {
        let query = Query::of("harbour");
        let words: &[Posting] = &[posting(1, 5, 1), posting(2, 5, 1)];
        let found = lists(&query, &[("harbour", words)]);
        let mut ranking = Ranking::new(&query, found.clone(), &Bm25::MESSAGES, &Weights::SHIPPED);
        assert_eq!(keys(&ranking.best(1)), [(1, 5)]);
        ranking.expand(&[0.2], &PostingLists { lists: vec![vec![posting(2, 5, 1)]], ..found });
        assert_eq!(keys(&ranking.best(1)), [(2, 5)]);
    }

    #[test]
    fn a_query_without_terms_finds_nothing() {
        let query = Query::of("what did you do?");
        assert!(query.content().is_empty());
        assert!(rank(&query, &lists(&query, &[]), &Bm25::MESSAGES, 10).is_empty());
    }
}
