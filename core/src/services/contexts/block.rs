//! Parts of recall for those who assemble what they send by themselves: the block of what is relevant to a
//! turn, and the search within one session.

use std::collections::HashSet;

use futures_util::future::try_join_all;
use futures_util::try_join;

use super::messages::Sessions;
use super::{AssembleRequest, ContextService, MOST_POSTINGS};
use crate::context::{Bm25, LEAST_RECALL, Query, Ranking, Superseded, select};
use crate::error::Result;
use crate::ids::{MessageId, SessionId, UserId};
use crate::index::{Namespace, Posting, TermId, UnitKey};
use crate::page::{MAX_PAGE, PageRequest};
use crate::scope::Scope;
use crate::session::{Message, Session};
use crate::tokens::PER_MESSAGE;
use crate::turn::{Intent, RecallOptions, Weights};

/// A message that has words of a search.
#[derive(Debug, Clone, PartialEq)]
pub struct Found {
    /// The message.
    pub message: Message,
    /// Its passage that matches best.
    pub passage: String,
    /// How well; comparable within one search only.
    pub score: f32,
}

impl ContextService {
    /// The fenced block of what a turn of a session should recall, in all sessions and documents of the scope,
    /// with the warnings that came with it. It takes at most `room` tokens as a message, and is empty where nothing
    /// is relevant or fits. `shown` are messages that are sent anyway. A guest is shown what was said in this session.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn recalled_block(
        &self,
        scope: &Scope,
        (session, turn): (&SessionId, &str),
        guest: Option<&UserId>,
        shown: &HashSet<MessageId>,
        room: u32,
        recall: RecallOptions,
    ) -> Result<(String, Vec<String>)> {
        if room < LEAST_RECALL + PER_MESSAGE || !recall.enabled {
            return Ok((String::new(), Vec::new()));
        }
        let guest = guest.map(|user| Scope { user: user.clone(), ..scope.clone() });
        let request =
            AssembleRequest { recall, guest, ..AssembleRequest::new(session.clone(), turn) };
        let query = Query::of(turn);
        let (mut found, (_, documents), ledger) = try_join!(
            self.candidates(scope, &query, &request, Intent::detect(turn), room),
            self.totals_and_documents(scope, &query, &request),
            self.ledger(scope, &request),
        )?;
        found.add_documents(documents);
        let (candidates, _) = Superseded::of(turn, &ledger.superseded).without(&found);
        let room = room - PER_MESSAGE;
        let recalled = select(&candidates, shown, room, &request.recall, &*self.tokenizer);
        Ok((recalled.text, found.warnings))
    }

    /// The messages of some sessions that have words of a query, the best first; a session that does not exist has
    /// none. Where the scope has too many occurrences of a word to read, the messages themselves are read.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn search_sessions(
        &self,
        scope: &Scope,
        sessions: &[SessionId],
        query: &str,
        limit: usize,
    ) -> Result<Vec<Found>> {
        let held = try_join_all(sessions.iter().map(|id| self.store.session(scope, id))).await?;
        let mut held: Vec<Session> = held.into_iter().flatten().collect();
        // Lists of postings are in order.
        held.sort_unstable_by_key(|session| session.number);
        let Some(first) = held.first() else { return Ok(Vec::new()) };
        let query = Query::of(query).without_marks();
        let terms: Vec<TermId> = query.terms().iter().map(|term| TermId::of(term)).collect();
        let mut found =
            self.store.postings(scope, Namespace::Message, &terms, MOST_POSTINGS).await?;
        if found.unread.iter().any(|unread| *unread > 0) {
            // A word that is too frequent in the scope may be rare in these sessions.
            found.lists = vec![Vec::new(); terms.len()];
            for session in &held {
                let of_it = self.occurrences(scope, session, &terms).await?;
                for (list, more) in found.lists.iter_mut().zip(of_it) {
                    list.extend(more);
                }
            }
            found.unread.fill(0);
        } else {
            Sessions::Only(held.iter().map(|session| session.number).collect()).keep(&mut found);
        }
        let best = Ranking::new(&query, found, &Bm25::SINGLE, &Weights::NONE)
            .best(limit.saturating_mul(4));
        let candidates = self.hydrate(scope, &best, &first.id).await?;
        let mut seen = HashSet::new();
        let each = candidates.into_iter().filter(|candidate| seen.insert(candidate.message.id));
        Ok(each
            .take(limit)
            .map(|candidate| Found {
                passage: candidate.passage().to_owned(),
                score: candidate.score,
                message: Message::clone(&candidate.message),
            })
            .collect())
    }

    /// Where each of some terms stands in a session, by its messages.
    pub(super) async fn occurrences(
        &self,
        scope: &Scope,
        session: &Session,
        terms: &[TermId],
    ) -> Result<Vec<Vec<Posting>>> {
        let mut lists = vec![Vec::new(); terms.len()];
        let mut page = PageRequest::first(MAX_PAGE)?;
        loop {
            let found = self.store.messages(scope, &session.id, &page).await?;
            for message in &found.items {
                let units = message.index_units();
                for (unit, position) in units.iter().zip(message.position..) {
                    let key = UnitKey::message(session.number, position);
                    for (term, list) in terms.iter().zip(&mut lists) {
                        let held = unit.terms.binary_search_by_key(term, |(held, _)| *held);
                        let count = held.map(|at| unit.terms[at].1);
                        let length = unit.length;
                        list.extend(count.map(|count| Posting { key, count, length }));
                    }
                }
            }
            match found.next_cursor {
                Some(cursor) => page = PageRequest::first(MAX_PAGE)?.after(&cursor)?,
                None => return Ok(lists),
            }
        }
    }
}
