//! The documents of memories: a list of snapshots for each.

use async_trait::async_trait;
use throughline_core::document::{
    Etag, Memory, NewSnapshot, Snapshot, SnapshotInfo, Vault, document_passages,
};
use throughline_core::ids::{ContextId, MemoryId, VaultId};
use throughline_core::index::{Namespace, UnitKey};
use throughline_core::page::{Page, PageRequest};
use throughline_core::ports::{DocumentRepo, Erased, Erasure, OutboxText, VectorSpace};
use throughline_core::{Result, Scope};

use super::sessions::page;
use super::vector::Vectors;
use super::{MemoryStore, ScopeState};

/// A memory's document.
#[derive(Debug, Clone)]
pub(super) struct Document {
    vault: VaultId,
    memory: MemoryId,
    /// Number of the first snapshot that it ever had.
    first: u32,
    /// By number; never empty.
    snapshots: Vec<Snapshot>,
}

impl Document {
    fn is(&self, vault: &VaultId, memory: &MemoryId) -> bool {
        (&self.vault, &self.memory) == (vault, memory)
    }

    pub(super) fn latest(&self) -> &Snapshot {
        self.snapshots.last().expect("a document has a snapshot")
    }
}

impl ScopeState {
    pub(super) fn document_of(&self, vault: &VaultId, memory: &MemoryId) -> Option<&Document> {
        self.documents.iter().find(|document| document.is(vault, memory))
    }

    /// Adds a snapshot; returns the keys of the one that it replaces.
    pub(super) fn put_document(&mut self, new: &NewSnapshot) -> Result<Vec<UnitKey>> {
        let place = self.documents.iter().position(|held| held.is(&new.vault, &new.memory));
        let taken = place.is_some_and(|place| {
            let mut held = self.documents[place].snapshots.iter();
            held.any(|held| held.info.context == new.context)
        });
        let number = self.counters.next_snapshot(taken)?;
        let replaced = place.map_or(Vec::new(), |place| self.documents[place].latest().keys());
        for key in &replaced {
            self.index.remove(&(Namespace::Document, *key));
        }
        for (unit, ordinal) in new.units.iter().zip(0..) {
            let key = (Namespace::Document, UnitKey::document(number, ordinal));
            self.index.insert(key, unit.clone());
        }
        let info = SnapshotInfo {
            vault: new.vault.clone(),
            memory: new.memory.clone(),
            context: new.context.clone(),
            actor: new.actor.clone(),
            number,
            etag: Etag::of(&new.text),
            bytes: new.text.len() as u64,
            created_at: new.created_at,
        };
        let held = Snapshot { info, text: new.text.clone() };
        match place {
            Some(place) => {
                let snapshots = &mut self.documents[place].snapshots;
                snapshots.push(held);
                let most = usize::try_from(new.keep.max(1)).unwrap_or(usize::MAX);
                snapshots.drain(..snapshots.len().saturating_sub(most));
            }
            None => self.documents.push(Document {
                vault: new.vault.clone(),
                memory: new.memory.clone(),
                first: number,
                snapshots: vec![held],
            }),
        }
        Ok(replaced)
    }

    pub(super) fn erase_documents(&mut self, erasure: &Erasure, erased: &mut Erased) {
        let goes = |document: &Document, held: &Snapshot| match erasure {
            Erasure::Document { vault, memory, through } => {
                document.is(vault, memory) && u64::from(held.info.number) <= *through
            }
            Erasure::Scope { documents, .. } => u64::from(held.info.number) <= *documents,
            Erasure::Messages(_) | Erasure::Session { .. } => false,
        };
        let mut units = Vec::new();
        self.documents.retain_mut(|document| {
            let (gone, kept): (Vec<_>, Vec<_>) =
                document.snapshots.iter().cloned().partition(|held| goes(document, held));
            units.extend(gone.iter().flat_map(Snapshot::keys));
            document.snapshots = kept;
            !document.snapshots.is_empty() || {
                erased.documents += 1;
                false
            }
        });
        for key in units {
            self.index.remove(&(Namespace::Document, key));
            erased.units.push((Namespace::Document, key));
        }
    }

    /// The passages of latest snapshots, by number.
    pub(super) fn document_texts(&self) -> Vec<OutboxText> {
        let mut latest: Vec<&Snapshot> = self.documents.iter().map(Document::latest).collect();
        latest.sort_by_key(|snapshot| snapshot.info.number);
        latest
            .into_iter()
            .flat_map(|snapshot| {
                let number = snapshot.info.number;
                document_passages(&snapshot.text).into_iter().zip(0..).map(
                    move |(passage, ordinal)| OutboxText {
                        key: UnitKey::document(number, ordinal),
                        seq: number.into(),
                        text: passage.indexed(&snapshot.text),
                    },
                )
            })
            .collect()
    }
}

/// Takes what a put replaced out of the vectors, and adds its own where nothing was missing before.
pub(super) fn index_vectors(
    (scope, held): (&Scope, &mut ScopeState),
    vectors: &mut Vectors,
    space: Option<&VectorSpace>,
    (before, replaced): (u64, &[UnitKey]),
) {
    vectors.remove(scope, Namespace::Document, replaced);
    let Some(space) = space.filter(|_| held.counters.documents > before) else {
        return;
    };
    let units = held.index.iter_mut().filter(|((within, _), _)| *within == Namespace::Document);
    let new: Vec<_> =
        units.filter_map(|((_, key), unit)| Some((*key, unit.vector.take()?))).collect();
    let complete = vectors.watermark(scope, Namespace::Document, space) == before;
    let through = if complete { held.counters.documents } else { 0 };
    vectors.put(scope, Namespace::Document, space, new.into_iter(), through);
}

#[async_trait]
impl DocumentRepo for MemoryStore {
    async fn document(
        &self,
        scope: &Scope,
        vault: &VaultId,
        memory: &MemoryId,
    ) -> Result<Option<Snapshot>> {
        Ok(self.read(scope, |held| held.document_of(vault, memory).map(|of| of.latest().clone())))
    }

    async fn snapshot(
        &self,
        scope: &Scope,
        vault: &VaultId,
        memory: &MemoryId,
        context: &ContextId,
    ) -> Result<Option<Snapshot>> {
        Ok(self.read(scope, |held| {
            let mut all = held.document_of(vault, memory)?.snapshots.iter();
            all.find(|held| held.info.context == *context).cloned()
        }))
    }

    async fn snapshots(
        &self,
        scope: &Scope,
        vault: &VaultId,
        memory: &MemoryId,
        request: &PageRequest,
    ) -> Result<Page<SnapshotInfo>> {
        Ok(self.read(scope, |held| {
            let all = held.document_of(vault, memory).into_iter();
            let all = all.flat_map(|document| document.snapshots.iter().rev());
            let before = request.position().unwrap_or(u64::MAX);
            let rows = all
                .map(|held| (u64::from(held.info.number), held.info.clone()))
                .filter(|(number, _)| *number < before);
            Page::from_rows(rows.take(request.limit() + 1).collect(), request.limit())
        }))
    }

    async fn latest_documents(
        &self,
        scope: &Scope,
        numbers: &[u32],
        most_bytes: u64,
    ) -> Result<Vec<Snapshot>> {
        Ok(self.read(scope, |held| {
            let find = |number: &u32| {
                let mut latest = held.documents.iter().map(Document::latest);
                latest.find(|snapshot| snapshot.info.number == *number).cloned()
            };
            let mut before = 0;
            let found = numbers.iter().filter_map(find).take_while(|snapshot| {
                let within = before < most_bytes;
                before += snapshot.info.bytes;
                within
            });
            found.collect()
        }))
    }

    async fn latest_numbers(&self, scope: &Scope, vault: Option<&VaultId>) -> Result<Vec<u32>> {
        Ok(self.read(scope, |held| {
            let all = held.documents.iter();
            let all = all.filter(|held| vault.is_none_or(|vault| held.vault == *vault));
            let mut numbers: Vec<u32> = all.map(|held| held.latest().info.number).collect();
            numbers.sort_unstable();
            numbers
        }))
    }

    async fn vaults(&self, scope: &Scope, request: &PageRequest) -> Result<Page<Vault>> {
        Ok(self.read(scope, |held| {
            let mut vaults: Vec<(u64, Vault)> = Vec::new();
            for document in &held.documents {
                let updated_at = document.latest().info.created_at;
                match vaults.iter_mut().find(|(_, vault)| vault.id == document.vault) {
                    Some((_, vault)) => {
                        vault.memories += 1;
                        vault.updated_at = vault.updated_at.max(updated_at);
                    }
                    None => {
                        let id = document.vault.clone();
                        let vault = Vault { id, memories: 1, updated_at };
                        vaults.push((document.first.into(), vault));
                    }
                }
            }
            page(vaults.into_iter(), request)
        }))
    }

    async fn memories(
        &self,
        scope: &Scope,
        vault: Option<&VaultId>,
        request: &PageRequest,
    ) -> Result<Page<Memory>> {
        Ok(self.read(scope, |held| {
            let all = held.documents.iter();
            let all = all.filter(|held| vault.is_none_or(|vault| held.vault == *vault));
            let rows = all.map(|document| {
                let latest = document.latest().info.clone();
                let snapshots = document.snapshots.len() as u64;
                (u64::from(document.first), Memory { latest, snapshots })
            });
            page(rows, request)
        }))
    }
}
