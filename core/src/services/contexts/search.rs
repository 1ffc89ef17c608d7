//! Messages that match a search. Filters choose before the ranking is cut off, so that what fits is found in a memory of
//! any size.

use std::cmp::Reverse;
use std::collections::HashSet;

use super::messages::FoundPassages;
use super::{AssembleRequest, ContextService};
use crate::context::{Candidates, MessageCandidate, Query, Ranked, Superseded, relevance_step};
use crate::error::Result;
use crate::ids::{MessageId, SessionId};
use crate::scope::Scope;
use crate::services::facts::superseded;
use crate::time::Timestamp;
use crate::turn::{Intent, RecallOptions};

/// The session of a search that names none.
const NO_SESSION: &str = "-";
/// Passages that are ranked where a time chooses among them.
const MOST_RANKED: usize = 65_536;
/// Passages that are read at once.
const AT_ONCE: usize = 256;
/// Passages of a message that are ranked for each hit, of which the best is the hit.
const PASSAGES_OF_A_HIT: usize = 4;

/// A search among messages.
#[derive(Debug, Clone, Copy)]
pub struct MessageSearch<'a> {
    /// A question or words.
    pub query: &'a str,
    /// Only those of this session.
    pub session: Option<&'a SessionId>,
    /// Only those of this time or later.
    pub since: Option<Timestamp>,
    /// Only those before this time.
    pub until: Option<Timestamp>,
    /// Most messages.
    pub limit: usize,
}

impl MessageSearch<'_> {
    /// Whether a time is within the bounds.
    #[must_use]
    pub fn is_within(&self, at: Timestamp) -> bool {
        self.since.is_none_or(|since| at >= since) && self.until.is_none_or(|until| at < until)
    }
}

impl ContextService {
    /// The messages that match a search, each by its best passage, best first; none where there is no such session. Other
    /// contexts (personas) are kept apart as in a turn.
    ///
    /// # Errors
    /// Those of the store and of the index.
    pub async fn search_messages(
        &self,
        scope: &Scope,
        search: &MessageSearch<'_>,
        recall: RecallOptions,
    ) -> Result<Vec<MessageCandidate>> {
        let within = match search.session {
            Some(id) => match self.store.session(scope, id).await? {
                Some(held) => Some(held),
                None => return Ok(Vec::new()),
            },
            None => None,
        };
        let session = match search.session {
            Some(id) => id.clone(),
            None => SessionId::new(NO_SESSION)?,
        };
        let request = AssembleRequest { recall, ..AssembleRequest::new(session, search.query) };
        let timed = search.since.is_some() || search.until.is_some();
        let ranked =
            if timed { MOST_RANKED } else { search.limit.saturating_mul(PASSAGES_OF_A_HIT) };
        let query = Query::of(search.query);
        let intent = Intent::ContextLookup;
        let FoundPassages { judged, bearing, .. } =
            self.judged(scope, &query, &request, intent, ranked, within.as_ref()).await?;
        // What has a word of the search is found however many other words it lacks.
        if bearing.words <= 0.0 && !bearing.is_enough() {
            return Ok(Vec::new());
        }
        let ranked: Vec<Ranked> = judged.iter().map(Ranked::from).collect();
        let mut seen = HashSet::<MessageId>::new();
        let mut found = Vec::new();
        for chunk in ranked.chunks(AT_ONCE) {
            let mut messages = self.hydrate(scope, chunk, &request.session).await?;
            messages.retain(|candidate| search.is_within(candidate.message.created_at));
            messages.retain(|candidate| seen.insert(candidate.message.id));
            found.extend(messages);
            if found.len() >= search.limit {
                break;
            }
        }
        // Of messages that match equally well the newer one comes first, as with facts.
        let best = found.iter().map(|found| found.score).fold(0.0, f32::max);
        let order = |found: &MessageCandidate| {
            (relevance_step(found.score, best), found.message.created_at, found.message.seq)
        };
        found.sort_by_key(|found| Reverse(order(found)));
        found.truncate(search.limit);
        Ok(found)
    }

    /// The same candidates as a turn with these words would show them: what does not hold any more is marked, and what was
    /// rejected is left out.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn without_superseded(
        &self,
        scope: &Scope,
        query: &str,
        candidates: &Candidates,
    ) -> Result<Candidates> {
        let superseded = superseded(&*self.store, scope).await?;
        Ok(Superseded::of(query, &superseded).without(candidates).0)
    }
}
