//! Gathering, through the ports; everything else is pure.

use std::sync::Arc;

use futures_util::try_join;

use super::account::AssembledContext;
use super::assemble::{Gathered, assemble};
use super::feedback::{LOOK_AT, choose, shared_terms};
use super::header::ToolLine;
use super::pack::MAX_BUDGET;
use super::rank::{Bm25, Query, Ranking};
use super::recall::{Candidates, FactCandidate, MessageCandidate, RecallOptions};
use super::{Intent, Tier};
use crate::error::{Error, Result};
use crate::ids::SessionId;
use crate::ports::{Namespace, Store, TermId, Tokenizer, UnitKey};
use crate::scope::Scope;
use crate::session::MAX_CONTENT_BYTES;

/// Fact candidates of one turn.
const FACT_CANDIDATES: usize = 24;
/// Facts ranked for one turn: superseded ones are among them.
const FACTS_RANKED: usize = 1_024;
/// A question whose words have more postings than this is not asked again: it has cost enough. A
/// scope has to hold tens of thousands of messages for that.
const FEEDBACK_POSTINGS: usize = 16_384;
/// Entities looked at for one turn.
const ENTITY_CANDIDATES: usize = 40;

/// What a caller asks for (seed 002, 4.1).
#[derive(Debug, Clone, PartialEq)]
pub struct AssembleRequest {
    /// The thread of the turn; it need not exist yet.
    pub session: SessionId,
    /// What the user says now.
    pub user_turn: String,
    /// What the turn wants; detected when not given.
    pub intent: Option<Intent>,
    /// The size of the context; `full` when not given.
    pub tier: Option<Tier>,
    /// Tokens of the whole payload; the tier's when not given.
    pub token_budget: Option<u32>,
    /// Tools to name in the header.
    pub tools: Vec<ToolLine>,
    /// What recall does.
    pub recall: RecallOptions,
}

impl AssembleRequest {
    /// A request with every default.
    pub fn new(session: SessionId, user_turn: impl Into<String>) -> Self {
        Self {
            session,
            user_turn: user_turn.into(),
            intent: None,
            tier: None,
            token_budget: None,
            tools: Vec::new(),
            recall: RecallOptions::default(),
        }
    }
}

/// Assembles contexts. It only reads.
#[derive(Clone)]
pub struct ContextService {
    store: Arc<dyn Store>,
    tokenizer: Arc<dyn Tokenizer>,
}

impl ContextService {
    /// A service over its ports.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, tokenizer: Arc<dyn Tokenizer>) -> Self {
        Self { store, tokenizer }
    }

    /// The context of one turn, within its budget.
    ///
    /// # Errors
    /// `InvalidInput` for an empty or over-long turn or a budget out of range; `BudgetTooSmall`
    /// with the least that works; those of the store.
    pub async fn assemble(
        &self,
        scope: &Scope,
        request: &AssembleRequest,
    ) -> Result<AssembledContext> {
        let turn = request.user_turn.as_str();
        if turn.trim().is_empty() || turn.len() > MAX_CONTENT_BYTES {
            return Err(Error::invalid("user_turn must have 1 byte to 1 MiB of text"));
        }
        let tier = request.tier.unwrap_or(Tier::Full);
        let budget = request.token_budget.unwrap_or(tier.budget());
        if budget > MAX_BUDGET {
            return Err(Error::invalid(format!("token_budget must be at most {MAX_BUDGET}")));
        }
        let intent = request.intent.unwrap_or_else(|| Intent::detect(turn));
        let (own, inherited, head, recent, summary, entities, candidates, totals) = try_join!(
            self.store.profile(scope),
            self.user_profile(scope),
            self.store.session(scope, &request.session),
            self.store.recent_messages(scope, &request.session, tier.messages()),
            self.store.latest_summary(scope, &request.session),
            self.store.entities(scope, &request.session, ENTITY_CANDIDATES),
            self.candidates(scope, request, budget),
            self.store.totals(scope),
        )?;
        let gathered = Gathered {
            profile: own.unwrap_or_default().or_of(inherited),
            tools: request.tools.clone(),
            session_messages: head.map_or(0, |head| head.messages).max(recent.len() as u64),
            recent,
            summary,
            entities,
            candidates,
            scope_tokens: totals.tokens,
        };
        assemble(turn, intent, tier, budget, request.recall, &gathered, &*self.tokenizer)
    }

    async fn user_profile(&self, scope: &Scope) -> Result<Option<crate::scope::Profile>> {
        match scope.workspace {
            Some(_) => self.store.profile(&scope.without_workspace()).await,
            None => Ok(None),
        }
    }

    async fn candidates(
        &self,
        scope: &Scope,
        request: &AssembleRequest,
        budget: u32,
    ) -> Result<Candidates> {
        let query = Query::of(&request.user_turn);
        let options = &request.recall;
        if !options.enabled || query.content().is_empty() {
            return Ok(Candidates::default());
        }
        let (messages, facts) = try_join!(
            self.message_candidates(scope, &query, &request.session, budget, options),
            self.fact_candidates(scope, &query, options),
        )?;
        Ok(Candidates { messages, facts })
    }

    async fn message_candidates(
        &self,
        scope: &Scope,
        query: &Query,
        current: &SessionId,
        budget: u32,
        options: &RecallOptions,
    ) -> Result<Vec<MessageCandidate>> {
        let terms: Vec<TermId> = query.terms().iter().map(|term| TermId::of(term)).collect();
        let found = self.store.postings(scope, Namespace::Message, &terms).await?;
        let units = found.stats.units;
        let postings: usize = found.lists.iter().map(Vec::len).sum();
        let bm25 = if options.neighbours { &Bm25::MESSAGES } else { &Bm25::SINGLE };
        let mut ranking = Ranking::new(query, found, bm25);
        if options.feedback && postings <= FEEDBACK_POSTINGS {
            let best = self.hydrate(scope, &ranking, current, LOOK_AT).await?;
            let shared = shared_terms(query, &best);
            if !shared.is_empty() {
                let terms: Vec<TermId> = shared.iter().map(|shared| shared.term).collect();
                let frequencies = self.store.frequencies(scope, Namespace::Message, &terms).await?;
                let (terms, weights): (Vec<TermId>, Vec<f32>) =
                    choose(&shared, &frequencies, units).into_iter().unzip();
                let found = self.store.postings(scope, Namespace::Message, &terms).await?;
                ranking.expand(&weights, &found);
            }
        }
        // A message rarely takes less than a dozen tokens: more candidates could not be shown.
        let limit = usize::try_from((budget / 12).clamp(50, 1_000)).unwrap_or(1_000);
        self.hydrate(scope, &ranking, current, limit).await
    }

    /// The best `limit` passages with their messages, read in the order in which they are stored.
    async fn hydrate(
        &self,
        scope: &Scope,
        ranking: &Ranking<'_>,
        current: &SessionId,
        limit: usize,
    ) -> Result<Vec<MessageCandidate>> {
        // Neighbours are scored without knowing where a session ends: some keys stand for nothing.
        let ranked = ranking.best(limit + limit / 8);
        if ranked.is_empty() {
            return Ok(Vec::new());
        }
        let mut keys: Vec<UnitKey> = ranked.iter().map(|ranked| ranked.key).collect();
        keys.sort_unstable();
        let messages = self.store.messages_at(scope, &keys).await?;
        Ok(Candidates::join(&ranked, messages, current, limit))
    }

    async fn fact_candidates(
        &self,
        scope: &Scope,
        query: &Query,
        options: &RecallOptions,
    ) -> Result<Vec<FactCandidate>> {
        if !options.facts {
            return Ok(Vec::new());
        }
        let terms: Vec<TermId> = query.content().iter().map(|term| TermId::of(term)).collect();
        let found = self.store.postings(scope, Namespace::Fact, &terms).await?;
        let query = query.without_marks();
        let mut ranked = Ranking::new(&query, found, &Bm25::SINGLE).best(FACTS_RANKED);
        // Of facts that match equally well, the newest: older ones may be superseded.
        ranked.sort_by(|a, b| b.score.total_cmp(&a.score).then_with(|| b.key.cmp(&a.key)));
        let mut candidates = Vec::new();
        for chunk in ranked.chunks(2 * FACT_CANDIDATES) {
            let numbers: Vec<u32> = chunk.iter().map(|ranked| ranked.key.position()).collect();
            let mut scored = chunk.iter();
            for fact in self.store.active_facts(scope, &numbers).await? {
                // Both are in the order asked, superseded facts left out.
                let found = scored.find(|ranked| ranked.key.position() == fact.number);
                let score = found.map_or(0.0, |ranked| ranked.score);
                candidates.push(FactCandidate { fact, score });
            }
            if candidates.len() >= FACT_CANDIDATES {
                break;
            }
        }
        candidates.truncate(FACT_CANDIDATES);
        Ok(candidates)
    }
}
