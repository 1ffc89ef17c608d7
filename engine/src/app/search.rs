//! One search over messages, facts and documents.

use throughline_core::context::{
    Candidates, DocumentCandidate, FactCandidate, MessageCandidate, Source,
};
use throughline_core::ids::SessionId;
use throughline_core::services::contexts::MessageSearch;
use throughline_core::time::Timestamp;
use throughline_core::{Error, Result, Scope};

use super::facts::MOST_SEARCHED;
use super::{App, FactSearch};
use crate::identity::Identity;

/// Most hits.
const MAX_HITS: usize = 100;
/// Passages of documents of which a time chooses.
const DOCUMENTS_LOOKED_AT: usize = 512;
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
    /// What it is.
    pub source: Source,
    /// The session of a message, or in which a fact was first stated.
    pub session: Option<SessionId>,
    /// When it was said, last stated or put.
    pub at: Timestamp,
    /// Its text, as a model may read it.
    pub text: String,
    /// Its relevance among hits of its kind.
    pub score: f32,
}

impl App {
    /// What bears on a question: of each kind the most relevant first, kinds in turn, since their scores do not compare.
    /// What does not hold any more or was rejected is treated as in a context. It is no turn: no setting of the tenant turns
    /// it off, and it counts as no use.
    ///
    /// # Errors
    /// `InvalidInput` for a number or a question out of bounds; those of the store and of the index.
    pub async fn search(&self, caller: &Identity, search: Search) -> Result<Vec<Hit>> {
        if !(1..=MAX_HITS).contains(&search.k) {
            return Err(Error::invalid(format!("k (or `limit`) must be 1 to {MAX_HITS}")));
        }
        let query = search.query.trim();
        if !(1..=MAX_QUERY_CHARS).contains(&query.chars().count()) {
            return Err(Error::invalid(format!("query: 1 to {MAX_QUERY_CHARS} characters")));
        }
        let scope = caller.scope()?;
        let mut found = Candidates::default();
        if search.wants(HitKind::Message) {
            let messages = self.messages(caller, &scope, query, &search).await?;
            found.messages = messages;
        }
        if search.wants(HitKind::Fact) {
            found.facts = self.facts(&scope, query, &search).await?;
        }
        // Documents were said in no session.
        if search.wants(HitKind::Document) && search.session.is_none() {
            found.documents = self.documents(&scope, query, &search).await?;
        }
        let found = self.engine.contexts.without_superseded(&scope, query, &found).await?;
        let mut kinds = [
            found.messages.into_iter().map(Hit::from).collect::<Vec<_>>().into_iter(),
            found.facts.into_iter().map(Hit::from).collect::<Vec<_>>().into_iter(),
            found.documents.into_iter().map(Hit::from).collect::<Vec<_>>().into_iter(),
        ];
        let mut hits = Vec::with_capacity(search.k);
        loop {
            let before = hits.len();
            hits.extend(kinds.iter_mut().filter_map(Iterator::next));
            if hits.len() == before || hits.len() >= search.k {
                hits.truncate(search.k);
                return Ok(hits);
            }
        }
    }

    async fn messages(
        &self,
        caller: &Identity,
        scope: &Scope,
        query: &str,
        search: &Search,
    ) -> Result<Vec<MessageCandidate>> {
        let settings = self.engine.settings.get(&caller.principal.tenant).await?;
        self.engine.contexts.search_messages(scope, &search.among(query), settings.recall()).await
    }

    async fn facts(
        &self,
        scope: &Scope,
        query: &str,
        search: &Search,
    ) -> Result<Vec<FactCandidate>> {
        let filtered = search.session.is_some() || search.is_timed();
        let facts = FactSearch {
            query: query.to_owned(),
            session: search.session.clone(),
            tags: Vec::new(),
            k: if filtered { MOST_SEARCHED } else { search.k },
        };
        let mut found = self.ranked_facts(scope, &facts).await?;
        found.retain(|found| search.among(query).is_within(found.fact.observed_at));
        found.truncate(search.k);
        Ok(found)
    }

    async fn documents(
        &self,
        scope: &Scope,
        query: &str,
        search: &Search,
    ) -> Result<Vec<DocumentCandidate>> {
        let most = if search.is_timed() { DOCUMENTS_LOOKED_AT } else { search.k };
        let mut found = self.engine.documents.search(scope, None, query, most).await?;
        found.retain(|found| search.among(query).is_within(found.snapshot.info.created_at));
        found.truncate(search.k);
        Ok(found)
    }
}

impl Search {
    fn wants(&self, kind: HitKind) -> bool {
        self.kinds.is_empty() || self.kinds.contains(&kind)
    }

    fn is_timed(&self) -> bool {
        self.since.is_some() || self.until.is_some()
    }

    fn among<'s>(&'s self, query: &'s str) -> MessageSearch<'s> {
        let Self { session, since, until, k, .. } = self;
        MessageSearch { query, session: session.as_ref(), since: *since, until: *until, limit: *k }
    }
}

impl From<MessageCandidate> for Hit {
    fn from(found: MessageCandidate) -> Self {
        Self {
            kind: HitKind::Message,
            source: Source::Message(found.message.id),
            session: Some(found.message.session.clone()),
            at: found.message.created_at,
            text: found.text(),
            score: found.score,
        }
    }
}

impl From<FactCandidate> for Hit {
    fn from(FactCandidate { fact, score }: FactCandidate) -> Self {
        Self {
            kind: HitKind::Fact,
            source: Source::Fact(fact.id),
            session: fact.session,
            at: fact.observed_at,
            text: fact.text,
            score,
        }
    }
}

impl From<DocumentCandidate> for Hit {
    fn from(found: DocumentCandidate) -> Self {
        Self {
            kind: HitKind::Document,
            source: found.source(),
            session: None,
            at: found.snapshot.info.created_at,
            text: found.text().into_owned(),
            score: found.score,
        }
    }
}
