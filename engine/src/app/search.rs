//! One search over messages, facts and documents.

use throughline_core::context::{Item, ItemKind};
use throughline_core::ids::SessionId;
use throughline_core::time::Timestamp;
use throughline_core::{Error, Result};

use super::{App, Recalling};
use crate::identity::Identity;

/// Most hits.
const MAX_HITS: usize = 100;
/// Tokens of what is looked through, of which filters choose.
const LOOKED_THROUGH: u32 = 32_000;
/// Most characters of a search.
const MAX_QUERY_CHARS: usize = 10_000;

/// What is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HitKind {
    /// A message, or a passage of one.
    Message,
    /// A fact.
    Fact,
    /// A passage of a document.
    Document,
}

/// A search with its filters.
#[derive(Debug, Clone, Default)]
pub struct Search {
    /// A question or words.
    pub query: String,
    /// Only these kinds; all where there are none.
    pub kinds: Vec<HitKind>,
    /// Only what was said in this session.
    pub session: Option<SessionId>,
    /// Only what was said at this time or later.
    pub since: Option<Timestamp>,
    /// Only what was said before this time.
    pub until: Option<Timestamp>,
    /// Most hits.
    pub k: usize,
}

/// Something that was found.
#[derive(Debug, Clone)]
pub struct Hit {
    /// Its kind.
    pub kind: HitKind,
    /// What it is, with its relevance.
    pub item: Item,
    /// Its text, as a model may read it.
    pub text: String,
}

impl App {
    /// What bears on a question: of each kind the most relevant first, kinds in turn, since their scores do not compare.
    /// What does not hold any more or was rejected is treated as in a context.
    ///
    /// # Errors
    /// `InvalidInput` for a number or a question out of bounds; as [`App::recall`].
    pub async fn search(&self, caller: &Identity, search: Search) -> Result<Vec<Hit>> {
        if !(1..=MAX_HITS).contains(&search.k) {
            return Err(Error::invalid(format!("k must be 1 to {MAX_HITS}")));
        }
        let query = search.query.trim();
        if !(1..=MAX_QUERY_CHARS).contains(&query.chars().count()) {
            return Err(Error::invalid(format!("query: 1 to {MAX_QUERY_CHARS} characters")));
        }
        let asked = Recalling {
            query: query.to_owned(),
            max_tokens: LOOKED_THROUGH,
            ..Recalling::default()
        };
        let context = self.recall(caller, asked).await?;
        let mut hits: Vec<Hit> = context
            .recalled()
            .into_iter()
            .filter_map(|(item, text)| {
                let kind = kind(item.kind)?;
                let text = text.trim().to_owned();
                search.takes(kind, item).then(|| Hit { kind, item: item.clone(), text })
            })
            .collect();
        hits.sort_by(|a, b| {
            let score = |hit: &Hit| hit.item.score.unwrap_or_default();
            a.kind.cmp(&b.kind).then_with(|| score(b).total_cmp(&score(a)))
        });
        let mut rank = (None, 0);
        let mut ranked: Vec<(usize, Hit)> = Vec::with_capacity(hits.len());
        for hit in hits {
            rank =
                if rank.0 == Some(hit.kind) { (rank.0, rank.1 + 1) } else { (Some(hit.kind), 0) };
            ranked.push((rank.1, hit));
        }
        ranked.sort_by_key(|(rank, hit)| (*rank, hit.kind));
        Ok(ranked.into_iter().take(search.k).map(|(_, hit)| hit).collect())
    }
}

impl Search {
    fn takes(&self, kind: HitKind, item: &Item) -> bool {
        let within = |at: Timestamp| {
            self.since.is_none_or(|since| at >= since) && self.until.is_none_or(|until| at < until)
        };
        let timed = self.since.is_some() || self.until.is_some();
        (self.kinds.is_empty() || self.kinds.contains(&kind))
            && (self.session.is_none() || item.session == self.session)
            && (!timed || item.at.is_some_and(within))
    }
}

fn kind(kind: ItemKind) -> Option<HitKind> {
    match kind {
        ItemKind::Message | ItemKind::Passage => Some(HitKind::Message),
        ItemKind::Fact => Some(HitKind::Fact),
        ItemKind::Document => Some(HitKind::Document),
        _ => None,
    }
}
