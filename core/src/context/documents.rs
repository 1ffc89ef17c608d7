//! Passages of documents for recall. Nothing is read where a scope has no document.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use super::meaning::{Meaning, blend};
use super::rank::{Bm25, Query, Ranked, Ranking};
use super::recall::RecallOptions;
use super::service::{AssembleRequest, ContextService, MOST_POSTINGS};
use crate::document::{DocumentPassage, Snapshot, document_passages};
use crate::error::Result;
use crate::ids::VaultId;
use crate::ports::{Namespace, ScopeTotals, TermId, UnitKey};
use crate::scope::Scope;
use crate::text::guarded;

/// Passages ranked for one question.
const RANKED: usize = 512;
/// Passages nearest in meaning that are looked at, and passages best by words whose meaning is.
const NEAREST: usize = 64;
/// Passages that are joined with their documents at once.
const AT_ONCE: usize = 64;
/// Candidates of one turn.
const CANDIDATES: usize = 24;

/// A passage of a document that recall found.
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentCandidate {
    /// What it is indexed under.
    pub key: UnitKey,
    /// The latest snapshot of its memory.
    pub snapshot: Arc<Snapshot>,
    /// Where it stands.
    pub passage: DocumentPassage,
    /// Its score among documents.
    pub score: f32,
}

impl DocumentCandidate {
    /// The passage as it is stored.
    #[must_use]
    pub fn text(&self) -> &str {
        self.snapshot.text.get(self.passage.range.clone()).unwrap_or_default().trim()
    }

    /// The line of the recalled block that shows it: whose document it is, then the passage, with the heading
    /// of its section where it does not begin with it.
    pub(super) fn line(&self) -> String {
        let info = &self.snapshot.info;
        let section = match self.passage.begins_with_heading(&self.snapshot.text) {
            true => String::new(),
            false if self.passage.title.is_empty() => String::new(),
            false => format!(", {}", self.passage.title),
        };
        let of = format!("{}/{}{section}", info.vault, info.memory);
        format!("- {}: {}\n", guarded(&of), guarded(self.text()))
    }

    /// Where it comes from: `doc:<vault>/<memory>/<context>#<section>`.
    #[must_use]
    pub fn source(&self) -> String {
        let info = &self.snapshot.info;
        format!("doc:{}/{}/{}#{}", info.vault, info.memory, info.context, self.passage.slug)
    }
}

impl ContextService {
    /// The passages of latest documents that a question is about, best first, of one vault or of all: by
    /// words and, where there is an embedder, by meaning.
    ///
    /// # Errors
    /// Those of the store and of the index.
    pub async fn recall_documents(
        &self,
        scope: &Scope,
        vault: Option<&VaultId>,
        question: &str,
        limit: usize,
    ) -> Result<Vec<DocumentCandidate>> {
        let query = Query::of(question);
        let options = RecallOptions::default();
        let (found, _) = self.document_candidates(scope, vault, &query, &options, limit).await?;
        Ok(found)
    }

    /// Size of the scope, and what its documents say about a turn: nothing is asked for where it has none.
    /// A guest is shown the session alone.
    pub(super) async fn totals_and_documents(
        &self,
        scope: &Scope,
        request: &AssembleRequest,
    ) -> Result<(ScopeTotals, (Vec<DocumentCandidate>, Option<String>))> {
        let totals = self.store.totals(scope).await?;
        let options = &request.recall;
        let shown = options.enabled && options.documents && request.guest.is_none();
        if totals.documents == 0 || !shown {
            return Ok((totals, (Vec::new(), None)));
        }
        let query = Query::of(&request.user_turn);
        let found = self.document_candidates(scope, None, &query, options, CANDIDATES).await?;
        Ok((totals, found))
    }

    pub(super) async fn document_candidates(
        &self,
        scope: &Scope,
        vault: Option<&VaultId>,
        query: &Query,
        options: &RecallOptions,
        limit: usize,
    ) -> Result<(Vec<DocumentCandidate>, Option<String>)> {
        let terms: Vec<TermId> = query.content().iter().map(|term| TermId::of(term)).collect();
        let found = self.store.postings(scope, Namespace::Document, &terms, MOST_POSTINGS).await?;
        if found.stats.units == 0 {
            return Ok((Vec::new(), None));
        }
        let words = query.without_marks();
        let mut ranked = Ranking::new(&words, found, &Bm25::SINGLE).best(RANKED);
        let also: Vec<UnitKey> = ranked.iter().take(NEAREST).map(|ranked| ranked.key).collect();
        let (hits, warning) =
            self.nearest(scope, Namespace::Document, query.text(), NEAREST, &also, options).await?;
        if !hits.is_empty() {
            ranked = blend(&ranked, &hits, &Meaning::DOCUMENTS, |_| 1.0);
        }
        let mut candidates = Vec::new();
        for chunk in ranked.chunks(AT_ONCE) {
            candidates.extend(self.join_documents(scope, vault, chunk).await?);
            if candidates.len() >= limit {
                break;
            }
        }
        candidates.truncate(limit);
        Ok((candidates, warning))
    }

    /// Joins ranked keys with the documents they stand for; keys that nothing stands for any more fall out.
    async fn join_documents(
        &self,
        scope: &Scope,
        vault: Option<&VaultId>,
        ranked: &[Ranked],
    ) -> Result<Vec<DocumentCandidate>> {
        let mut numbers: Vec<u32> =
            ranked.iter().map(|ranked| ranked.key.session_number()).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let held = self.store.latest_documents(scope, &numbers).await?;
        let held: BTreeMap<u32, Arc<Snapshot>> = held
            .into_iter()
            .filter(|snapshot| vault.is_none_or(|vault| snapshot.info.vault == *vault))
            .map(|snapshot| (snapshot.info.number, Arc::new(snapshot)))
            .collect();
        // Cutting a document costs its length: it is done once for all of its passages.
        let mut cuts: HashMap<u32, Vec<DocumentPassage>> = HashMap::new();
        let mut seen = HashSet::new();
        let joined = ranked.iter().filter_map(|Ranked { key, score }| {
            let number = key.session_number();
            let snapshot = held.get(&number)?;
            let cut = cuts.entry(number).or_insert_with(|| document_passages(&snapshot.text));
            let passage = cut.get(usize::try_from(key.position()).ok()?)?.clone();
            let snapshot = Arc::clone(snapshot);
            seen.insert(*key).then_some(DocumentCandidate {
                key: *key,
                snapshot,
                passage,
                score: *score,
            })
        });
        Ok(joined.collect())
    }
}
