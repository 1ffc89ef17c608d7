//! Passages of documents for recall. Nothing is read where a scope has no document.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::{AssembleRequest, ContextService, MOST_POSTINGS};
use crate::context::{Bm25, DocumentCandidate, Nearness, Query, Ranked, Ranking, blend};
use crate::document::{DocumentPassage, Snapshot, document_passages};
use crate::error::Result;
use crate::ids::VaultId;
use crate::index::{Namespace, TermId, UnitKey};
use crate::ports::{PostingLists, ScopeTotals};
use crate::scope::Scope;
use crate::turn::{RecallOptions, Weights};

/// Passages ranked for one question.
const RANKED: usize = 512;
/// Passages nearest in meaning that are looked at, and passages best by words whose meaning is.
const NEAREST: usize = 64;
/// Passages that are joined with their documents at once.
const AT_ONCE: usize = 64;
/// Bytes of documents that are read and cut for one question: past that, what is ranked lower falls out.
const MOST_READ: u64 = 4 << 20;
/// Passages nearest in meaning that are looked at where those of one vault are searched for: others are nearer.
const NEAREST_OF_VAULT: usize = 512;
/// Passages of a small vault whose meaning is looked at in any case.
const MEANT_OF_VAULT: usize = 512;
/// Candidates of one turn.
const CANDIDATES: usize = 24;

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
        query: &Query,
        request: &AssembleRequest,
    ) -> Result<(ScopeTotals, (Vec<DocumentCandidate>, Option<String>))> {
        let totals = self.store.totals(scope).await?;
        let options = &request.recall;
        let shown = options.enabled && options.documents && request.guest.is_none();
        if totals.documents == 0 || !shown {
            return Ok((totals, (Vec::new(), None)));
        }
        let found = self.document_candidates(scope, None, query, options, CANDIDATES).await?;
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
        let mut found =
            self.store.postings(scope, Namespace::Document, &terms, MOST_POSTINGS).await?;
        if found.stats.units == 0 {
            return Ok((Vec::new(), None));
        }
        let only = match vault {
            Some(_) => Some(self.store.latest_numbers(scope, vault).await?),
            None => None,
        };
        if only.as_ref().is_some_and(Vec::is_empty) {
            return Ok((Vec::new(), None));
        }
        keep_snapshots(&mut found, only.as_deref());
        let words = query.without_marks();
        let mut ranked = Ranking::new(&words, found, &Bm25::SINGLE, &Weights::NONE).best(RANKED);
        let mut also: Vec<UnitKey> = ranked.iter().take(NEAREST).map(|ranked| ranked.key).collect();
        also.extend(first_passages(only.as_deref().unwrap_or_default()));
        let nearest = if only.is_some() { NEAREST_OF_VAULT } else { NEAREST };
        let (mut hits, warning) =
            self.nearest(scope, Namespace::Document, query.text(), nearest, &also, options).await?;
        hits.retain(|hit| is_of(hit.key, only.as_deref()));
        if !hits.is_empty() {
            ranked = blend(&ranked, &hits, Nearness::DOCUMENTS);
        }
        Ok((self.join_documents(scope, &ranked, limit).await?, warning))
    }

    /// Joins the best ranked keys with the documents they stand for; keys that nothing stands for any more
    /// fall out. Documents are read in the order of their best passages.
    async fn join_documents(
        &self,
        scope: &Scope,
        ranked: &[Ranked],
        limit: usize,
    ) -> Result<Vec<DocumentCandidate>> {
        // Cutting reads the whole document, so it is done once for all of its passages.
        let mut held: HashMap<u32, (Arc<Snapshot>, Vec<DocumentPassage>)> = HashMap::new();
        let (mut asked, mut seen) = (HashSet::new(), HashSet::new());
        let (mut candidates, mut left) = (Vec::new(), MOST_READ);
        for chunk in ranked.chunks(AT_ONCE) {
            let numbers: Vec<u32> = chunk
                .iter()
                .map(|ranked| ranked.key.session_number())
                .filter(|number| asked.insert(*number))
                .collect();
            if left > 0 && !numbers.is_empty() {
                for snapshot in self.store.latest_documents(scope, &numbers, left).await? {
                    left = left.saturating_sub(snapshot.info.bytes);
                    let cut = document_passages(&snapshot.text);
                    held.insert(snapshot.info.number, (Arc::new(snapshot), cut));
                }
            }
            candidates.extend(chunk.iter().filter_map(|Ranked { key, score }| {
                let (snapshot, cut) = held.get(&key.session_number())?;
                let passage = cut.get(usize::try_from(key.position()).ok()?)?.clone();
                let (key, score, snapshot) = (*key, *score, Arc::clone(snapshot));
                let secrets = self.secrets;
                let found = || DocumentCandidate { key, snapshot, passage, score, secrets };
                seen.insert(key).then(found)
            }));
            if candidates.len() >= limit {
                break;
            }
        }
        candidates.truncate(limit);
        Ok(candidates)
    }
}

/// Whether a passage is of these snapshots, where it is only some; they are sorted.
fn is_of(key: UnitKey, only: Option<&[u32]>) -> bool {
    only.is_none_or(|only| only.binary_search(&key.session_number()).is_ok())
}

fn keep_snapshots(found: &mut PostingLists, only: Option<&[u32]>) {
    if only.is_some() {
        for list in &mut found.lists {
            list.retain(|posting| is_of(posting.key, only));
        }
    }
}

/// The first passages of each snapshot, about [`MEANT_OF_VAULT`] together; none of more snapshots than that.
fn first_passages(numbers: &[u32]) -> impl Iterator<Item = UnitKey> {
    let each = MEANT_OF_VAULT.checked_div(numbers.len()).unwrap_or_default();
    let each = u32::try_from(each).unwrap_or_default();
    numbers
        .iter()
        .flat_map(move |number| (0..each).map(move |ordinal| UnitKey::document(*number, ordinal)))
}
