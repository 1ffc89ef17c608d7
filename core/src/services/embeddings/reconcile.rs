//! Comparing an index with the store, and mending what differs: after a restored snapshot, an index that
//! was emptied, or a store that was.

use std::collections::BTreeSet;

use super::EmbeddingService;
use super::{SLICE, SLICES, ends, means_something};
use crate::error::Result;
use crate::index::{Namespace, UnitKey};
use crate::ports::{OutboxText, VectorItem};
use crate::scope::Scope;

/// Keys that are read of an index at once.
const KEYS_COMPARED: usize = 65_536;

/// What a reconciliation mended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reconciled {
    /// Vectors of nothing in the store, removed.
    pub removed: u64,
    /// Texts whose vectors were missing, embedded.
    pub embedded: u64,
    /// Whether the index knew more than the store, and was read anew.
    pub read_anew: bool,
}

impl EmbeddingService {
    /// Makes the index of a scope what the store says: removes vectors of what is not there, embeds what
    /// has none, and reads all anew where the index knows more than the store, which is then another
    /// store's, or was restored.
    ///
    /// # Errors
    /// As [`Self::catch_up`]; what was mended stays.
    pub async fn reconcile(&self, scope: &Scope) -> Result<Reconciled> {
        self.embedder.ready().await?;
        let totals = self.store.totals(scope).await?;
        let mut done = Reconciled::default();
        for (namespace, last) in ends(&totals) {
            let through = self.index.watermark(scope, namespace, self.space()).await?;
            done.read_anew |= through > last && self.is_ahead(scope, namespace, through).await?;
        }
        if done.read_anew {
            self.index.forget(scope).await?;
            while self.catch_up(scope, SLICE * SLICES).await? > 0 {}
            return Ok(done);
        }
        for (namespace, _) in ends(&totals) {
            self.compare(scope, namespace, &mut done).await?;
        }
        Ok(done)
    }

    /// Removes vectors of snapshots that are no document's latest any more. They are removed when they are
    /// replaced; this is for those where that failed, or the process ended before.
    pub(in crate::services) async fn forget_dead_documents(&self, scope: &Scope) -> Result<()> {
        self.embedder.ready().await?;
        let (index, space) = (&self.index, self.space());
        let mut held = BTreeSet::new();
        loop {
            let after = held.last().copied();
            let keys = index.keys(scope, Namespace::Document, space, after, KEYS_COMPARED).await?;
            let more = keys.len() == KEYS_COMPARED;
            held.extend(keys);
            if !more {
                break;
            }
        }
        // Read after the keys, so that documents that are put meanwhile are not removed.
        let latest: BTreeSet<u32> =
            self.store.latest_numbers(scope, None).await?.into_iter().collect();
        let dead: Vec<UnitKey> =
            held.into_iter().filter(|key| !latest.contains(&key.session_number())).collect();
        for keys in dead.chunks(SLICE) {
            index.remove(scope, Namespace::Document, keys).await?;
        }
        Ok(())
    }

    /// Compares what the index holds with the texts up to its watermark.
    async fn compare(
        &self,
        scope: &Scope,
        namespace: Namespace,
        done: &mut Reconciled,
    ) -> Result<()> {
        let (index, space) = (&self.index, self.space());
        let through = index.watermark(scope, namespace, space).await?;
        let mut held = BTreeSet::new();
        loop {
            let after = held.last().copied();
            let keys = index.keys(scope, namespace, space, after, KEYS_COMPARED).await?;
            let more = keys.len() == KEYS_COMPARED;
            held.extend(keys);
            if !more {
                break;
            }
        }
        // All keys, those above the watermark too: their texts are in the store by now.
        let mut after = 0;
        loop {
            let texts = self.store.texts_after(scope, namespace, after, SLICE).await?;
            let Some(last) = texts.last() else { break };
            after = last.seq;
            let missing: Vec<OutboxText> =
                texts.into_iter().filter(|text| !held.remove(&text.key)).collect();
            let missing: Vec<&OutboxText> =
                missing.iter().filter(|text| text.seq <= through).collect();
            let texts: Vec<&str> = missing.iter().map(|text| text.text.as_str()).collect();
            let vectors = self.embed(&texts).await?;
            let items: Vec<VectorItem> = missing
                .iter()
                .zip(vectors)
                .map(|(text, vector)| VectorItem { key: text.key, vector })
                .filter(|item| means_something(&item.vector))
                .collect();
            if !items.is_empty() {
                index.upsert(scope, namespace, space, &items, through).await?;
                done.embedded += items.len() as u64;
            }
        }
        let extra: Vec<UnitKey> = held.into_iter().collect();
        for keys in extra.chunks(SLICE) {
            index.remove(scope, namespace, keys).await?;
            done.removed += keys.len() as u64;
        }
        Ok(())
    }
}
