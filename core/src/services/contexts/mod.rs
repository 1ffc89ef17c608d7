//! Assembling contexts: gathers through the ports what [`crate::context`] decides over.

mod block;
mod documents;

pub use block::Found;

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::try_join;

use crate::context::{
    AssembledContext, Bearing, Bm25, Candidates, FactCandidate, Gathered, Judged, LOOK_AT,
    MessageCandidate, NEWEST_READ, Nearness, Query, Ranked, Ranking, STANDING_READ,
    SUPERSEDED_READ, ToolLine, Window, assemble, blend, choose, judge, shared_terms, window,
};
use crate::error::{Error, Result};
use crate::fact::Fact;
use crate::ids::{MAX_NAME_BYTES, SessionId};
use crate::index::{Namespace, TermId, UnitKey};
use crate::ports::{
    HeadLimits, Ledger, LedgerLimits, PostingLists, SessionCache, SessionHead, Store, VectorHit,
};
use crate::scope::Scope;
use crate::services::embeddings::EmbeddingService;
use crate::session::{MAX_CONTENT_BYTES, Message, no_session};
use crate::tokens::Tokenizer;
use crate::turn::{Intent, MAX_BUDGET, RecallOptions, Tier, Weights};

/// Fact candidates of one turn.
const FACT_CANDIDATES: usize = 24;
/// Facts ranked for one turn: superseded ones are among them.
const FACTS_RANKED: usize = 1_024;
/// A question whose words have more postings than this is not asked again: it has cost enough. A
/// scope has to hold tens of thousands of messages for that.
const FEEDBACK_POSTINGS: usize = 16_384;
/// Passages nearest in meaning that are looked at.
const NEAREST_MESSAGES: usize = 384;
/// Passages best by words whose meaning is looked at: about as many as a context can show.
const LOOKED_AT_FOR_MEANING: usize = 288;
/// Passages that are candidates however few may fit.
const LEAST_CANDIDATES: usize = 50;
/// Statements of the user that may be shown for being new.
const NEWEST_STATEMENTS: usize = 24;
/// Facts nearest in meaning that are looked at.
const NEAREST_FACTS: usize = 64;
/// Postings that are read for one turn, from the rarest word on: what half a million messages share
/// tells nothing, and reading it takes longer than everything else.
const MOST_POSTINGS: usize = 32_768;
/// Entities looked at for one turn.
const ENTITY_CANDIDATES: usize = 40;
/// Files of a window.
const WINDOW_FILES: usize = 40;

/// The request of a caller.
#[derive(Debug, Clone, PartialEq)]
pub struct AssembleRequest {
    /// The thread of the turn; it need not exist yet.
    pub session: SessionId,
    /// The user's message.
    pub user_turn: String,
    /// The intent of the turn; detected when not given.
    pub intent: Option<Intent>,
    /// The size of the context; `full` when not given.
    pub tier: Option<Tier>,
    /// Tokens of the whole payload; the tier's when not given.
    pub token_budget: Option<u32>,
    /// Topics that facts are looked for by, beside the words of the turn.
    pub topic_tags: Vec<String>,
    /// Read everything from the store, nothing from a cache.
    pub force_refresh: bool,
    /// The user for whom it is, where the scope's owner shares the session with them: they are shown that
    /// session alone, under their own profile and standing instructions.
    pub guest: Option<Scope>,
    /// Tools to name in the header.
    pub tools: Vec<ToolLine>,
    /// The parts of recall to use.
    pub recall: RecallOptions,
}

/// Most topics of a request.
const MAX_TOPICS: usize = 16;

impl AssembleRequest {
    /// A request with every default.
    pub fn new(session: SessionId, user_turn: impl Into<String>) -> Self {
        Self {
            session,
            user_turn: user_turn.into(),
            intent: None,
            tier: None,
            token_budget: None,
            topic_tags: Vec::new(),
            force_refresh: false,
            guest: None,
            tools: Vec::new(),
            recall: RecallOptions::default(),
        }
    }
}

/// The messages found for a turn.
#[derive(Default)]
struct FoundPassages {
    /// Passages, best first.
    judged: Vec<Judged>,
    bearing: Bearing,
    /// Terms of a passage of the scope, on average.
    terms_of_each: f32,
    /// The latest facts that the user stated, newest first.
    newest: Vec<UnitKey>,
    warning: Option<String>,
}

/// Whether a passage is of the one session that is shown, where it is only one.
fn is_within(key: UnitKey, only: Option<u32>) -> bool {
    only.is_none_or(|number| key.session_number() == number)
}

fn keep_session(found: &mut PostingLists, only: Option<u32>) {
    if only.is_some() {
        for list in &mut found.lists {
            list.retain(|posting| is_within(posting.key, only));
        }
    }
}

/// Assembles contexts. It only reads.
#[derive(Clone)]
pub struct ContextService {
    store: Arc<dyn Store>,
    tokenizer: Arc<dyn Tokenizer>,
    embeddings: Option<EmbeddingService>,
    heads: Option<Arc<dyn SessionCache>>,
}

impl ContextService {
    /// A service over its ports; without embeddings, recall uses words only.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        tokenizer: Arc<dyn Tokenizer>,
        embeddings: Option<EmbeddingService>,
    ) -> Self {
        Self { store, tokenizer, embeddings, heads: None }
    }

    /// The same, with the heads of sessions that are in use kept beside the store.
    #[must_use]
    pub fn with_heads(self, heads: Option<Arc<dyn SessionCache>>) -> Self {
        Self { heads, ..self }
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
        if request.topic_tags.len() > MAX_TOPICS
            || request.topic_tags.iter().any(|tag| tag.len() > MAX_NAME_BYTES)
        {
            return Err(Error::invalid(format!(
                "topic_tags: at most {MAX_TOPICS}, of at most {MAX_NAME_BYTES} bytes each"
            )));
        }
        let reader = request.guest.as_ref().unwrap_or(scope);
        let intent = request.intent.unwrap_or_else(|| Intent::detect(turn));
        let query = Query::of(turn);
        let limits = HeadLimits { messages: tier.messages(), entities: ENTITY_CANDIDATES };
        let (own, inherited, head, mut candidates, (totals, documents), mut ledger) = try_join!(
            self.store.profile(reader),
            self.user_profile(reader),
            self.head(scope, request, limits),
            self.candidates(scope, &query, request, intent, budget),
            self.totals_and_documents(scope, &query, request),
            self.ledger(reader, request),
        )?;
        candidates.add_documents(documents);
        if candidates.is_empty() {
            // What was stated last bears on this turn as little as the rest.
            ledger.newest.clear();
        }
        // The whole history of a guest is the session.
        let shown = head.as_ref().map_or(0, |head| head.session.tokens);
        let scope_tokens = if request.guest.is_some() { shown } else { totals.tokens };
        let (session_messages, recent, summary, entities) = match head {
            Some(head) => (head.session.messages, head.recent, head.summary, head.entities),
            None => Default::default(),
        };
        let gathered = Gathered {
            profile: own.unwrap_or_default().or_of(inherited),
            tools: request.tools.clone(),
            session_messages,
            recent,
            summary,
            entities,
            candidates,
            ledger,
            scope_tokens,
        };
        assemble(turn, intent, tier, budget, request.recall, &gathered, &*self.tokenizer)
    }

    /// The window of a session, within the tokens of the tier.
    ///
    /// # Errors
    /// `NotFound` when there is no such session; those of the store.
    pub async fn window(&self, scope: &Scope, session: &SessionId, tier: Tier) -> Result<Window> {
        let limits = HeadLimits { messages: tier.messages(), entities: ENTITY_CANDIDATES };
        let (head, files) = try_join!(
            self.store.head(scope, session, limits),
            self.store.files(scope, session, WINDOW_FILES),
        )?;
        let head = head.ok_or_else(no_session)?;
        Ok(window(tier, head, files, &*self.tokenizer))
    }

    /// What the turn needs of its session: a hot head of the version that the store has, else read.
    async fn head(
        &self,
        scope: &Scope,
        request: &AssembleRequest,
        limits: HeadLimits,
    ) -> Result<Option<SessionHead>> {
        let session = &request.session;
        let Some(heads) = self.heads.as_ref().filter(|_| !request.force_refresh) else {
            return self.store.head(scope, session, limits).await;
        };
        let Some(held) = self.store.session(scope, session).await? else {
            return Ok(None);
        };
        if let Ok(Some(head)) = heads.get(scope, session, held.version, limits).await {
            return Ok(Some(head));
        }
        let head = self.store.head(scope, session, limits).await?;
        if let Some(head) = &head {
            // What is not kept is read again.
            let _ = heads.put(scope, limits, head).await;
        }
        Ok(head)
    }

    /// Instructions and preferences that hold in the scope (in a workspace, the user's own apply too),
    /// what was stated last, and what does not hold any more.
    async fn ledger(&self, scope: &Scope, request: &AssembleRequest) -> Result<Ledger> {
        if request.guest.is_some() {
            // What a guest has stated elsewhere says nothing about the session of another.
            let standing = LedgerLimits { standing: STANDING_READ, ..LedgerLimits::default() };
            return self.store.ledger(scope, standing).await;
        }
        let options = &request.recall;
        let newest = if options.enabled && options.facts { NEWEST_READ } else { 0 };
        let limits = LedgerLimits { standing: STANDING_READ, newest, superseded: SUPERSEDED_READ };
        if scope.workspace.is_none() {
            return self.store.ledger(scope, limits).await;
        }
        let of_user = scope.without_workspace();
        let standing = LedgerLimits { standing: STANDING_READ, ..LedgerLimits::default() };
        let (mut held, inherited) =
            try_join!(self.store.ledger(scope, limits), self.store.ledger(&of_user, standing))?;
        // What the workspace says about the same goes first there.
        let slots: Vec<_> = held.standing.iter().filter_map(Fact::slot).collect();
        let new = |fact: &Fact| fact.slot().is_none_or(|slot| !slots.contains(&slot));
        held.standing.extend(inherited.standing.into_iter().filter(new));
        Ok(held)
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
        query: &Query,
        request: &AssembleRequest,
        intent: Intent,
        budget: u32,
    ) -> Result<Candidates> {
        let options = &request.recall;
        if !options.enabled {
            return Ok(Candidates::default());
        }
        let (messages, facts) =
            try_join!(self.message_candidates(scope, query, request, intent, budget), async {
                match request.guest {
                    Some(_) => Ok((Vec::new(), Bearing::default(), None)),
                    None if request.topic_tags.is_empty() => {
                        self.fact_candidates(scope, query, options).await
                    }
                    None => {
                        let tags = request.topic_tags.join(" ");
                        let tagged = Query::of(&format!("{} {tags}", request.user_turn));
                        self.fact_candidates(scope, &tagged, options).await
                    }
                }
            },)?;
        let ((messages, late), (mut facts, bearing, later)) = (messages, facts);
        if !bearing.is_enough() {
            facts.clear();
        }
        let warnings = late.or(later).into_iter().collect();
        Ok(Candidates { messages, facts, documents: Vec::new(), warnings })
    }

    /// What is nearest to a question in meaning, and how near `also` are; nothing where there is no
    /// embedder or the question means nothing to it. An embedder or an index that fails or is late costs
    /// the meaning, not the turn: it becomes a warning.
    async fn nearest(
        &self,
        scope: &Scope,
        namespace: Namespace,
        question: &str,
        limit: usize,
        also: &[UnitKey],
        options: &RecallOptions,
    ) -> Result<(Vec<VectorHit>, Option<String>)> {
        let Some(embeddings) = self.embeddings.as_ref().filter(|_| options.meaning) else {
            return Ok((Vec::new(), None));
        };
        let near = async {
            match embeddings.question(question).await? {
                Some(vector) => embeddings.nearest(scope, namespace, &vector, limit, also).await,
                None => Ok(Vec::new()),
            }
        };
        Ok(match near.await {
            Ok(hits) => (hits, None),
            Err(error) => (Vec::new(), Some(format!("recall used words only: {error}"))),
        })
    }

    async fn message_candidates(
        &self,
        scope: &Scope,
        query: &Query,
        request: &AssembleRequest,
        intent: Intent,
        budget: u32,
    ) -> Result<(Vec<MessageCandidate>, Option<String>)> {
        // A message rarely takes less than a dozen tokens: more candidates could not be shown.
        let limit = (budget as usize / 12).clamp(LEAST_CANDIDATES, 1_000);
        let mut found = self.judged(scope, query, request, intent, limit).await?;
        if !found.bearing.is_enough() {
            return Ok((Vec::new(), found.warning));
        }
        // A term takes two tokens or more: of long passages, three times what fits.
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
            self.judged(scope, &query, request, intent, limit).await?;
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

    async fn judged(
        &self,
        scope: &Scope,
        query: &Query,
        request: &AssembleRequest,
        intent: Intent,
        limit: usize,
    ) -> Result<FoundPassages> {
        let (current, options) = (&request.session, &request.recall);
        let terms: Vec<TermId> = query.terms().iter().map(|term| TermId::of(term)).collect();
        let mut found =
            self.store.postings(scope, Namespace::Message, &terms, MOST_POSTINGS).await?;
        let only = match request.guest {
            Some(_) => match self.store.session(scope, current).await? {
                Some(session) => Some(session.number),
                None => return Ok(FoundPassages::default()),
            },
            None => None,
        };
        keep_session(&mut found, only);
        let question = query.text_without_names(&found).into_owned();
        let newest = query.newest_statements(&found, NEWEST_STATEMENTS);
        let (bm25, weights) = match options.neighbours {
            true => (&Bm25::MESSAGES, &options.weights),
            false => (&Bm25::SINGLE, &Weights::NONE),
        };
        let words = query.content().len();
        let worth_asking_again = options.feedback
            && found.unread.iter().take(words).all(|unread| *unread == 0)
            && found.lists.iter().take(words).map(Vec::len).sum::<usize>() <= FEEDBACK_POSTINGS;
        let units = found.stats.units;
        let terms_of_each = found.stats.length as f32 / units.max(1) as f32;
        let mut ranking = Ranking::new(query, found, bm25, weights);
        let also: Vec<UnitKey> =
            ranking.best(LOOKED_AT_FOR_MEANING).iter().map(|ranked| ranked.key).collect();
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
            keep_session(&mut found, only);
            ranking.expand(&weights, &found);
        }
        let hits: Vec<VectorHit> =
            hits.into_iter().filter(|hit| is_within(hit.key, only)).collect();
        // Neighbours are scored without knowing where a session ends: some keys stand for nothing.
        let limit = limit + limit / 8;
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
    async fn hydrate(
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

    /// The active facts that a question is about, best first: by words and, where there is an
    /// embedder, by meaning.
    ///
    /// # Errors
    /// Those of the store and of the index.
    pub async fn recall_facts(
        &self,
        scope: &Scope,
        question: &str,
        limit: usize,
    ) -> Result<Vec<FactCandidate>> {
        let query = Query::of(question);
        let options = RecallOptions::default();
        let (mut found, _, _) = self.fact_candidates(scope, &query, &options).await?;
        found.truncate(limit);
        Ok(found)
    }

    async fn fact_candidates(
        &self,
        scope: &Scope,
        query: &Query,
        options: &RecallOptions,
    ) -> Result<(Vec<FactCandidate>, Bearing, Option<String>)> {
        if !options.facts {
            return Ok((Vec::new(), Bearing::default(), None));
        }
        let terms: Vec<TermId> = query.content().iter().map(|term| TermId::of(term)).collect();
        let found = self.store.postings(scope, Namespace::Fact, &terms, MOST_POSTINGS).await?;
        let words = query.without_marks();
        let ranking = Ranking::new(&words, found, &Bm25::SINGLE, &Weights::NONE);
        let mut ranked = ranking.best(FACTS_RANKED);
        let keys: Vec<UnitKey> = ranked.iter().map(|ranked| ranked.key).collect();
        let also: Vec<UnitKey> =
            ranked.iter().take(NEAREST_FACTS).map(|ranked| ranked.key).collect();
        let matched: HashSet<UnitKey> = ranked.iter().map(|ranked| ranked.key).collect();
        let (hits, warning) = self
            .nearest(scope, Namespace::Fact, query.text(), NEAREST_FACTS, &also, options)
            .await?;
        if !hits.is_empty() {
            ranked = blend(&ranked, &hits, Nearness::ANY);
        }
        let bearing = Bearing::of(&ranking, &keys, &hits);
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
                // What others do or like is recalled where the turn speaks of it.
                if matched.contains(&UnitKey::fact(fact.number)) || fact.is_of_the_user() {
                    candidates.push(FactCandidate { fact, score });
                }
            }
            if candidates.len() >= FACT_CANDIDATES {
                break;
            }
        }
        candidates.truncate(FACT_CANDIDATES);
        Ok((candidates, bearing, warning))
    }
}
