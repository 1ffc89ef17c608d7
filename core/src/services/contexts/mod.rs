//! Assembling contexts: gathers through the ports what [`crate::context`] decides over.

mod block;
mod documents;
mod facts;
mod messages;
mod search;

use std::sync::Arc;

use futures_util::try_join;

use crate::context::{
    AssembledContext, Candidates, Gathered, NEWEST_READ, Query, REJECTED_READ, STANDING_READ,
    SUPERSEDED_READ, ToolLine, Turn, Window, assemble, least_default, window,
};
use crate::error::{Error, Result};
use crate::fact::Fact;
use crate::ids::{MAX_NAME_BYTES, SessionId};
use crate::index::{Namespace, UnitKey};
use crate::ports::{HeadLimits, Ledger, LedgerLimits, SessionCache, SessionHead, Store, VectorHit};
use crate::scope::{Profile, Scope};
use crate::secret::SecretPolicy;
use crate::services::embeddings::EmbeddingService;
use crate::services::facts::rejected_everywhere;
use crate::session::{MAX_CONTENT_BYTES, Message, Reader, Role, no_session};
use crate::tokens::Tokenizer;
use crate::turn::{Fading, Intent, MAX_BUDGET, RecallOptions, Tier};

pub use block::Found;
pub use facts::sort_by_relevance;
pub use search::MessageSearch;

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
    /// Tokens of the whole payload; the tier's when not given, and more where a turn does not fit into these.
    pub token_budget: Option<u32>,
    /// Topics that facts are looked for by, beside the words of the turn.
    pub topic_tags: Vec<String>,
    /// Most items of the recalled block, beside its tokens; as many as fit when not given.
    pub max_items: Option<usize>,
    /// Read everything from the store, nothing from a cache.
    pub force_refresh: bool,
    /// The user for whom it is, where the scope's owner shares the session with them: they are shown that
    /// session alone, under their own profile and standing instructions.
    pub guest: Option<Scope>,
    /// Whether only what is recalled is wanted: nothing of the session as such, and no rules or instructions of the
    /// user, which whoever asks has elsewhere.
    pub recall_only: bool,
    /// Tools to name in the header.
    pub tools: Vec<ToolLine>,
    /// Tokens of what is sent beside the payload, which the budget holds, too.
    pub beside: u32,
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
            max_items: None,
            force_refresh: false,
            guest: None,
            recall_only: false,
            tools: Vec::new(),
            beside: 0,
            recall: RecallOptions::default(),
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
    secrets: SecretPolicy,
    fading: Fading,
}

impl ContextService {
    /// A service over its ports; without embeddings, recall uses keyword search only.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        tokenizer: Arc<dyn Tokenizer>,
        embeddings: Option<EmbeddingService>,
    ) -> Self {
        let (heads, secrets, fading) = (None, SecretPolicy::default(), Fading::default());
        Self { store, tokenizer, embeddings, heads, secrets, fading }
    }

    /// The same, with another policy for the secrets in profiles and documents.
    #[must_use]
    pub fn with_secrets(self, secrets: SecretPolicy) -> Self {
        Self { secrets, ..self }
    }

    /// The same, with history shortened in another form.
    #[must_use]
    pub fn with_fading(self, fading: Fading) -> Self {
        Self { fading, ..self }
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
        let mut budget = request.token_budget.unwrap_or(tier.budget());
        if budget > MAX_BUDGET {
            return Err(Error::invalid(format!("token_budget must be at most {MAX_BUDGET}")));
        }
        budget = budget.saturating_sub(request.beside);
        if request.topic_tags.len() > MAX_TOPICS
            || request.topic_tags.iter().any(|tag| tag.len() > MAX_NAME_BYTES)
        {
            return Err(Error::invalid(format!(
                "topic_tags: at most {MAX_TOPICS}, of at most {MAX_NAME_BYTES} bytes each"
            )));
        }
        if request.max_items == Some(0) {
            return Err(Error::invalid("k must be at least 1"));
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
        self.keep_contexts_apart(scope, &request.session, &mut candidates, &mut ledger).await?;
        let mut head = head;
        let mut baseline = totals.tokens;
        if let Some(head) = &mut head {
            // A turn that was appended before its context is asked for is sent once, as the turn.
            let reader = request.guest.as_ref().map(|guest| guest.user.as_str());
            let is_turn = |message: &mut Message| {
                message.role == Role::User
                    && message.guest() == reader
                    && [message.content.trim(), message.said().trim()].contains(&turn.trim())
            };
            if let Some(appended) = head.recent.pop_if(is_turn) {
                head.session.messages = head.session.messages.saturating_sub(1);
                head.session.tokens = head.session.tokens.saturating_sub(appended.tokens.into());
                baseline = baseline.saturating_sub(appended.tokens.into());
                candidates.messages.retain(|found| found.message.id != appended.id);
                candidates.facts.retain(|found| !found.fact.sources.contains(&appended.id));
                ledger.newest.retain(|fact| !fact.sources.contains(&appended.id));
            }
        }
        if candidates.is_empty() {
            // Nothing is relevant to this turn, so the newest statements are not, either.
            ledger.newest.clear();
        }
        // For a guest the whole history is the session.
        let shown = head.as_ref().map_or(0, |head| head.session.tokens);
        let scope_tokens = if request.guest.is_some() { shown } else { baseline };
        let (session_messages, recent, summary, entities) = match head {
            Some(head) => (head.session.messages, head.recent, head.summary, head.entities),
            None => Default::default(),
        };
        let mut profile = own.unwrap_or_default().or_of(inherited).for_model(self.secrets);
        if request.recall_only {
            profile = Profile::default();
            ledger.standing.clear();
        }
        let mut gathered = Gathered {
            profile,
            tools: request.tools.clone(),
            reader: match &request.guest {
                Some(Scope { user, .. }) => {
                    Reader::Guest { guest: user.clone(), owner: scope.user.clone() }
                }
                None => Reader::Owner,
            },
            session_messages,
            recent,
            summary,
            entities,
            candidates,
            ledger,
            scope_tokens,
        };
        let recall = RecallOptions {
            max_items: request.max_items.unwrap_or(request.recall.max_items),
            ..request.recall
        };
        if request.token_budget.is_none() {
            // Nobody chose this budget, so a long turn is answered with little else instead of refused.
            let least = least_default(turn, &gathered, &*self.tokenizer).min(MAX_BUDGET);
            if least > budget {
                gathered.candidates.warnings.push(format!(
                    "degraded: this turn needs more than the default budget of {budget} tokens, so \
                     {least} are used: room for the rules, the turn and the last answer"
                ));
                budget = least;
            }
        }
        let turn = Turn { text: turn, intent, tier, budget, fading: self.fading, options: recall };
        assemble(&turn, &gathered, &*self.tokenizer)
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
        if request.recall_only {
            return Ok(None);
        }
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
            // If the cache cannot keep it, the next turn reads it again.
            let _ = heads.put(scope, limits, head).await;
        }
        Ok(head)
    }

    /// Instructions and preferences that hold in the scope (in a workspace, the user's own apply too),
    /// what was stated last, and what does not hold any more.
    async fn ledger(&self, scope: &Scope, request: &AssembleRequest) -> Result<Ledger> {
        if request.guest.is_some() {
            // A guest's statements elsewhere do not apply to the session of another user.
            let standing = LedgerLimits { standing: STANDING_READ, ..LedgerLimits::default() };
            return self.store.ledger(scope, standing).await;
        }
        let options = &request.recall;
        let newest = if options.enabled && options.facts { NEWEST_READ } else { 0 };
        let limits = LedgerLimits {
            standing: STANDING_READ,
            newest,
            superseded: SUPERSEDED_READ,
            rejected: REJECTED_READ,
        };
        if scope.workspace.is_none() {
            return self.store.ledger(scope, limits).await;
        }
        let of_user = scope.without_workspace();
        let standing = LedgerLimits { standing: STANDING_READ, ..LedgerLimits::default() };
        let (mut held, inherited, rejected) = try_join!(
            self.store.ledger(scope, limits),
            self.store.ledger(&of_user, standing),
            rejected_everywhere(&*self.store, scope)
        )?;
        held.superseded.extend(rejected);
        // Where both have a fact of the same slot, the workspace's holds.
        let slots: Vec<_> = held.standing.iter().filter_map(Fact::slot).collect();
        let new = |fact: &Fact| fact.slot().is_none_or(|slot| !slots.contains(&slot));
        held.standing.extend(inherited.standing.into_iter().filter(new));
        Ok(held)
    }

    async fn user_profile(&self, scope: &Scope) -> Result<Option<Profile>> {
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
                    Some(_) => Ok((Vec::new(), None)),
                    None if request.topic_tags.is_empty() => {
                        self.facts_that_hold(scope, query, options).await
                    }
                    None => {
                        let tags = request.topic_tags.join(" ");
                        let tagged = Query::of(&format!("{} {tags}", request.user_turn));
                        self.facts_that_hold(scope, &tagged, options).await
                    }
                }
            },)?;
        let ((messages, late), (facts, later)) = (messages, facts);
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
            Err(error) => (Vec::new(), Some(format!("recall used keyword search only: {error}"))),
        })
    }
}
