//! The lexical index: a look through all units.

use async_trait::async_trait;
use throughline_core::index::{Namespace, Posting, TermId};
use throughline_core::ports::{LexicalIndex, PostingLists};
use throughline_core::{Result, Scope};

use super::MemoryStore;

#[async_trait]
impl LexicalIndex for MemoryStore {
    async fn postings(
        &self,
        scope: &Scope,
        namespace: Namespace,
        terms: &[TermId],
        most: usize,
    ) -> Result<PostingLists> {
        Ok(self.read(scope, |held| {
            let mut found = PostingLists::none(terms.len());
            for ((within, key), unit) in &held.index {
                if *within != namespace {
                    continue;
                }
                found.stats.units += 1;
                found.stats.length += u64::from(unit.length);
                for (term, list) in terms.iter().zip(&mut found.lists) {
                    let occurs = unit.terms.iter().find(|(held, _)| held == term);
                    list.extend(occurs.map(|(_, count)| Posting {
                        key: *key,
                        count: *count,
                        length: unit.length,
                    }));
                }
            }
            let mut order: Vec<usize> = (0..terms.len()).collect();
            order.sort_by_key(|at| found.lists[*at].len());
            let mut read = 0;
            for at in order {
                read += found.lists[at].len();
                if read > most {
                    found.unread[at] = std::mem::take(&mut found.lists[at]).len() as u64;
                }
            }
            found
        }))
    }

    async fn frequencies(
        &self,
        scope: &Scope,
        namespace: Namespace,
        terms: &[TermId],
    ) -> Result<Vec<u64>> {
        let found = self.postings(scope, namespace, terms, usize::MAX).await?;
        Ok(found.lists.iter().map(|list| list.len() as u64).collect())
    }
}
