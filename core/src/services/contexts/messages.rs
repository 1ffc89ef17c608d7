//! Passages of messages for recall: found by words, asked for again, joined with meaning, and judged.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::try_join;

use super::{AssembleRequest, ContextService, MOST_POSTINGS};
use crate::context::{
    Bearing, Bm25, Candidates, Judged, LOOK_AT, MessageCandidate, Nearness, Query, Ranked, Ranking,
    choose, judge, shared_terms,
};
use crate::error::Result;
use crate::fact::Fact;
use crate::ids::SessionId;
use crate::index::{Namespace, TermId, UnitKey};
use crate::persona::{Persona, PersonaSession};
use crate::ports::{Ledger, PostingLists, VectorHit};
use crate::scope::Scope;
use crate::session::{Message, Session};
use crate::turn::{Intent, Weights};

/// A question whose words have more postings than this is not asked again: it has cost enough. A
/// scope has to hold tens of thousands of messages for that.
const FEEDBACK_POSTINGS: usize = 16_384;
/// Passages nearest in meaning that are looked at.
const NEAREST_MESSAGES: usize = 384;
/// Passages best by words whose meaning is looked at: about as many as a context can show.
const LOOKED_AT_FOR_MEANING: usize = 288;
/// Passages of a session whose meaning is looked at where that session alone is shown.
const MEANT_OF_SESSION: u32 = 512;
/// Passages that are candidates however few may fit.
const LEAST_CANDIDATES: usize = 50;
/// Statements of the user that may be shown for being new.
const NEWEST_STATEMENTS: usize = 24;

/// The messages found for a turn.
#[derive(Default)]
pub(super) struct FoundPassages {
    /// Passages, best first.
    pub(super) judged: Vec<Judged>,
    pub(super) bearing: Bearing,
    /// Terms of a passage of the scope, on average.
    terms_of_each: f32,
    /// The latest facts that the user stated, newest first.
    newest: Vec<UnitKey>,
    warning: Option<String>,
}

/// The sessions of which passages may be shown.
pub(super) enum Sessions {
    /// These.
    Only(HashSet<u32>),
    /// All but these. Ranking them first and leaving them out later would leave a turn with few passages.
    Except(HashSet<u32>),
}

impl Sessions {
    fn hold(&self, key: UnitKey) -> bool {
        match self {
            Self::Only(numbers) => numbers.contains(&key.session_number()),
            Self::Except(numbers) => !numbers.contains(&key.session_number()),
        }
    }

    /// Leaves out the postings of other sessions.
    pub(super) fn keep(&self, found: &mut PostingLists) {
        if matches!(self, Self::Except(numbers) if numbers.is_empty()) {
            return;
        }
        for list in &mut found.lists {
            list.retain(|posting| self.hold(posting.key));
        }
    }
}

/// The passages of one session whose meaning is looked at whatever their words, since others are nearer in a large scope.
fn newest_passages(session: &Session) -> impl Iterator<Item = UnitKey> {
    let end = session.next_position;
    let number = session.number;
    (end.saturating_sub(MEANT_OF_SESSION)..end).map(move |at| UnitKey::message(number, at))
}

impl ContextService {
    pub(super) async fn message_candidates(
        &self,
        scope: &Scope,
        query: &Query,
        request: &AssembleRequest,
        intent: Intent,
        budget: u32,
    ) -> Result<(Vec<MessageCandidate>, Option<String>)> {
        // A message rarely takes less than a dozen tokens: more candidates could not be shown.
        let limit = (budget as usize / 12).clamp(LEAST_CANDIDATES, 1_000);
        let Some(within) = self.of_guest(scope, request).await? else {
            return Ok((Vec::new(), None));
        };
        let within = within.as_ref();
        let mut found = self.judged(scope, query, request, intent, limit, within).await?;
        if !found.bearing.is_enough() {
            return Ok((Vec::new(), found.warning));
        }
        // A term takes two tokens or more, so this is three times as many long passages as fit.
        let most = (1.5 * budget as f32 / found.terms_of_each.max(1.0)) as usize;
        found.judged.truncate(most.max(LEAST_CANDIDATES));
        let mut ranked: Vec<Ranked> = found.judged.iter().map(Ranked::from).collect();
        let known: HashSet<UnitKey> = ranked.iter().map(|ranked| ranked.key).collect();
        let unranked = found.newest.iter().filter(|key| !known.contains(key));
        ranked.extend(unranked.map(|key| Ranked { key: *key, score: 0.0 }));
        let mut messages = self.hydrate(scope, &ranked, &request.session).await?;
        for candidate in &mut messages {
            candidate.is_new = found.newest.contains(&candidate.key);
        }
        Ok((messages, found.warning))
    }

    /// The sessions whose messages a turn may be shown: a guest's one, else all but those of other contexts (personas). A
    /// context never quotes another one, and elsewhere only those are quoted whose `memory` is on.
    async fn sessions(
        &self,
        scope: &Scope,
        current: &SessionId,
        within: Option<&Session>,
    ) -> Result<Sessions> {
        if let Some(session) = within {
            return Ok(Sessions::Only(HashSet::from([session.number])));
        }
        let in_context = Persona::of_session(current);
        let apart = |of: &PersonaSession| match in_context {
            Some(context) => of.persona != context,
            None => !of.memory,
        };
        let all = self.store.persona_sessions(scope).await?;
        Ok(Sessions::Except(all.into_iter().filter(apart).map(|of| of.number).collect()))
    }

    /// Leaves out facts that were stated in other contexts (personas), as [`Self::sessions`] does their messages.
    pub(super) async fn keep_contexts_apart(
        &self,
        scope: &Scope,
        current: &SessionId,
        candidates: &mut Candidates,
        ledger: &mut Ledger,
    ) -> Result<()> {
        let stated_in = |fact: &Fact| {
            fact.session
                .as_ref()
                .filter(|session| *session != current)
                .and_then(Persona::of_session)
        };
        let facts = candidates.facts.iter().map(|found| &found.fact);
        let mut facts = facts.chain(&ledger.newest).chain(&ledger.standing);
        if facts.all(|fact| stated_in(fact).is_none()) {
            return Ok(());
        }
        let mut open = HashSet::new();
        if Persona::of_session(current).is_none() {
            let held = self.store.personas(scope).await?;
            open.extend(held.iter().filter(|held| held.memory).map(|held| held.id));
        }
        let is_open = |fact: &Fact| stated_in(fact).is_none_or(|context| open.contains(&context));
        candidates.facts.retain(|found| is_open(&found.fact));
        ledger.newest.retain(is_open);
        ledger.standing.retain(is_open);
        Ok(())
    }

    /// What is known of the passages that bear on a turn, best first, each beside its message: what
    /// the weights of the ranking are learnt from.
    ///
    /// # Errors
    /// Those of the store and of the index.
    pub async fn judged_messages(
        &self,
        scope: &Scope,
        request: &AssembleRequest,
        limit: usize,
    ) -> Result<(Vec<(Judged, Arc<Message>)>, Bearing)> {
        let intent = request.intent.unwrap_or_else(|| Intent::detect(&request.user_turn));
        let query = Query::of(&request.user_turn);
        let FoundPassages { mut judged, bearing, .. } =
            self.judged(scope, &query, request, intent, limit, None).await?;
        judged.sort_by_key(|one| one.key);
        let keys: Vec<UnitKey> = judged.iter().map(|one| one.key).collect();
        let mut judged = judged.into_iter().peekable();
        let mut found = Vec::new();
        for (key, message) in self.store.messages_at(scope, &keys).await? {
            while judged.next_if(|one| one.key < key).is_some() {}
            found.extend(judged.next_if(|one| one.key == key).map(|one| (one, message)));
        }
        found.sort_by(|(a, _), (b, _)| b.score.total_cmp(&a.score).then(a.key.cmp(&b.key)));
        Ok((found, bearing))
    }

    /// The one session that a guest is shown; nothing at all where it does not exist.
    async fn of_guest(
        &self,
        scope: &Scope,
        request: &AssembleRequest,
    ) -> Result<Option<Option<Session>>> {
        match request.guest {
            Some(_) => Ok(self.store.session(scope, &request.session).await?.map(Some)),
            None => Ok(Some(None)),
        }
    }

    /// The passages that bear on a question, of one session or of all.
    pub(super) async fn judged(
        &self,
        scope: &Scope,
        query: &Query,
        request: &AssembleRequest,
        intent: Intent,
        limit: usize,
        within: Option<&Session>,
    ) -> Result<FoundPassages> {
        let (current, options) = (&request.session, &request.recall);
        let terms: Vec<TermId> = query.terms().iter().map(|term| TermId::of(term)).collect();
        let (mut found, sessions) = try_join!(
            self.store.postings(scope, Namespace::Message, &terms, MOST_POSTINGS),
            self.sessions(scope, current, within),
        )?;
        let asked = query.content().len();
        match within {
            // A word that is too frequent in the scope may be rare in this session.
            Some(session) if found.unread.iter().take(asked).any(|unread| *unread > 0) => {
                found.lists = self.occurrences(scope, session, &terms).await?;
                found.unread.fill(0);
            }
            _ => sessions.keep(&mut found),
        }
        let question = query.text_without_names(&found).into_owned();
        let newest = query.newest_statements(&found, NEWEST_STATEMENTS);
        let (bm25, weights) = match options.neighbours {
            true => (&Bm25::MESSAGES, &options.weights),
            false => (&Bm25::SINGLE, &Weights::NONE),
        };
        let worth_asking_again = options.feedback
            && found.unread.iter().take(asked).all(|unread| *unread == 0)
            && found.lists.iter().take(asked).map(Vec::len).sum::<usize>() <= FEEDBACK_POSTINGS;
        let units = found.stats.units;
        let terms_of_each = found.stats.length as f32 / units.max(1) as f32;
        let mut ranking = Ranking::new(query, found, bm25, weights);
        let mut also: Vec<UnitKey> =
            ranking.best(LOOKED_AT_FOR_MEANING).iter().map(|ranked| ranked.key).collect();
        also.extend(within.into_iter().flat_map(newest_passages));
        let (expansion, (hits, warning)) = try_join!(
            async {
                if worth_asking_again {
                    self.expansion(scope, query, &ranking, current, units).await
                } else {
                    Ok(None)
                }
            },
            self.nearest(scope, Namespace::Message, &question, NEAREST_MESSAGES, &also, options),
        )?;
        if let Some((weights, mut found)) = expansion {
            sessions.keep(&mut found);
            ranking.expand(&weights, &found);
        }
        let hits: Vec<VectorHit> = hits.into_iter().filter(|hit| sessions.hold(hit.key)).collect();
        // Neighbours are scored without knowing where a session ends, so some keys have no passage.
        let limit = limit.saturating_add(limit / 8);
        let (judged, bearing) = judge(&ranking, &hits, Nearness::messages(intent), weights, limit);
        Ok(FoundPassages { judged, bearing, terms_of_each, newest, warning })
    }

    /// The terms that the best passages share, weighed, with their postings.
    async fn expansion(
        &self,
        scope: &Scope,
        query: &Query,
        ranking: &Ranking<'_>,
        current: &SessionId,
        units: u64,
    ) -> Result<Option<(Vec<f32>, PostingLists)>> {
        let best = ranking.best(LOOK_AT + LOOK_AT / 8);
        let mut best = self.hydrate(scope, &best, current).await?;
        best.truncate(LOOK_AT);
        let shared = shared_terms(query, &best);
        if shared.is_empty() {
            return Ok(None);
        }
        let terms: Vec<TermId> = shared.iter().map(|shared| shared.term).collect();
        let frequencies = self.store.frequencies(scope, Namespace::Message, &terms).await?;
        let (terms, weights): (Vec<TermId>, Vec<f32>) =
            choose(&shared, &frequencies, units).into_iter().unzip();
        let found = self.store.postings(scope, Namespace::Message, &terms, MOST_POSTINGS).await?;
        Ok(Some((weights, found)))
    }

    /// Passages with their messages, read in the order in which they are stored.
    pub(super) async fn hydrate(
        &self,
        scope: &Scope,
        ranked: &[Ranked],
        current: &SessionId,
    ) -> Result<Vec<MessageCandidate>> {
        if ranked.is_empty() {
            return Ok(Vec::new());
        }
        let mut keys: Vec<UnitKey> = ranked.iter().map(|ranked| ranked.key).collect();
        keys.sort_unstable();
        let messages = self.store.messages_at(scope, &keys).await?;
        Ok(Candidates::join(ranked, messages, current))
    }
}
