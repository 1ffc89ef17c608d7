//! Putting, reading and searching documents.

use std::sync::Arc;

use crate::context::DocumentCandidate;
use crate::document::{
    DocumentLimits, Etag, Expected, Memory, NewSnapshot, Section, Snapshot, SnapshotInfo, Vault,
    check_expected, check_text, find_section, index_document, no_document, sections, unified_diff,
};
use crate::error::{Error, ErrorKind, Result};
use crate::ids::{ActorId, ContextId, MemoryId, VaultId};
use crate::page::{Page, PageRequest};
use crate::ports::{Clock, IdGen, Precondition, RecordKey, Store, Write, WriteBatch};
use crate::scope::Scope;
use crate::services::contexts::ContextService;
use crate::services::embeddings::EmbeddingService;

/// How often a put is built again when another writer came first.
const ATTEMPTS: usize = 8;
/// After how many attempts a put that expects nothing is applied without a precondition: it was told what it
/// can be told of the one before it, and comes after whichever is the latest by then.
const ATTEMPTS_BY_VERSION: usize = 3;

/// A document to put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutDocument {
    /// The vault of the memory.
    pub vault: VaultId,
    /// The memory.
    pub memory: MemoryId,
    /// The caller's id of the snapshot; one is made where it is not given.
    pub context: Option<ContextId>,
    /// Who writes.
    pub actor: ActorId,
    /// The whole document.
    pub text: String,
    /// The required current state.
    pub expected: Expected,
}

/// The result of a put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    /// The memory has its first snapshot.
    Created,
    /// The memory has a new snapshot.
    Added,
    /// The latest snapshot has this text already: nothing was written.
    Unchanged,
    /// The context id stands for this text already: nothing was written. Meanwhile others may be later.
    Repeated,
}

/// The answer to a put.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// What happened.
    pub outcome: PutOutcome,
    /// The snapshot that has the text.
    pub snapshot: Snapshot,
}

/// A section with its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SectionText {
    /// The snapshot that it is of.
    pub info: SnapshotInfo,
    /// Where it stands.
    pub section: Section,
    /// The section with its heading and subsections, as it is stored.
    pub text: String,
}

/// The difference between two snapshots.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DocumentDiff {
    /// The one that it starts from.
    pub from: SnapshotInfo,
    /// The one that it leads to.
    pub to: SnapshotInfo,
    /// In the unified format; empty where the texts are equal.
    pub diff: String,
}

/// The documents of memories.
#[derive(Clone)]
pub struct DocumentService {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGen>,
    embeddings: Option<EmbeddingService>,
    contexts: ContextService,
    limits: DocumentLimits,
}

impl DocumentService {
    /// A service over its ports; `contexts` searches.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdGen>,
        embeddings: Option<EmbeddingService>,
        contexts: ContextService,
        limits: DocumentLimits,
    ) -> Self {
        Self { store, clock, ids, embeddings, contexts, limits }
    }

    /// The limits of all documents.
    #[must_use]
    pub fn limits(&self) -> DocumentLimits {
        self.limits
    }

    /// Puts a document whole. A repeat is harmless: where its context id stands for this text, or the latest
    /// snapshot has it, nothing is written, whatever was expected. When this returns the text is durable,
    /// and the next recall finds it and nothing of the one before.
    ///
    /// # Errors
    /// `InvalidInput` for a text that is empty, too long or no text; `Conflict` when the context id stands
    /// for another text; `PreconditionFailed` when the latest snapshot is not what was expected; those of
    /// the store.
    pub async fn put(&self, scope: &Scope, put: PutDocument) -> Result<Put> {
        let PutDocument { vault, memory, context, actor, text, expected } = put;
        check_text(&text, self.limits.max_bytes)?;
        let etag = Etag::of(&text);
        let mut new = None;
        for attempt in 0..ATTEMPTS {
            if let Some(id) = &context
                && let Some(held) = self.store.snapshot(scope, &vault, &memory, id).await?
            {
                return repeated(held, &etag);
            }
            let latest = self.store.document(scope, &vault, &memory).await?;
            if let Some(latest) = latest.as_ref().filter(|latest| latest.info.etag == etag) {
                return Ok(Put { outcome: PutOutcome::Unchanged, snapshot: latest.clone() });
            }
            check_expected(&expected, latest.as_ref())?;
            let now = self.clock.now();
            let mut batch = match &new {
                Some(held) => WriteBatch::clone(held),
                None => {
                    let own = || ContextId::new(self.ids.next().to_string());
                    let mut snapshot = NewSnapshot {
                        vault: vault.clone(),
                        memory: memory.clone(),
                        context: context.clone().map_or_else(own, Ok)?,
                        actor: actor.clone(),
                        units: index_document(&text),
                        text: text.clone(),
                        created_at: now,
                        keep: self.limits.kept.max(1),
                    };
                    let mut batch = WriteBatch::new(scope.clone(), now);
                    if let Some(embeddings) = &self.embeddings {
                        batch.space = embeddings
                            .prepare_document(&mut snapshot, &mut batch.writes, now)
                            .await;
                    }
                    batch.writes.push(Write::PutDocument(Box::new(snapshot)));
                    new.insert(batch).clone()
                }
            };
            let key = RecordKey::Document(vault.clone(), memory.clone());
            let over_any = expected == Expected::Anything && attempt >= ATTEMPTS_BY_VERSION;
            batch.preconditions = match &latest {
                _ if over_any => Vec::new(),
                Some(latest) => vec![Precondition::IfVersion(key, latest.info.number.into())],
                None => vec![Precondition::IfAbsent(key)],
            };
            match self.store.apply(batch.clone()).await {
                Err(error) if error.is_lost_race() => continue,
                // Another writer may have used the same id first: its text is compared with this one.
                Err(error) if over_any && error.kind() == ErrorKind::Conflict => continue,
                applied => applied?,
            };
            self.forget_replaced(scope, latest.as_ref()).await;
            let outcome = if latest.is_some() { PutOutcome::Added } else { PutOutcome::Created };
            return Ok(Put { outcome, snapshot: self.written(scope, batch).await? });
        }
        Err(Error::new(
            ErrorKind::Unavailable,
            "other writers keep changing this document: read it again and retry",
        ))
    }

    /// The snapshot that a batch wrote.
    async fn written(&self, scope: &Scope, batch: WriteBatch) -> Result<Snapshot> {
        let new = batch.writes.into_iter().find_map(|write| match write {
            Write::PutDocument(new) => Some(new),
            _ => None,
        });
        let new = new.ok_or_else(|| Error::internal("a put without a snapshot"))?;
        let NewSnapshot { vault, memory, context, actor, text, created_at, .. } = *new;
        if let Some(held) = self.store.snapshot(scope, &vault, &memory, &context).await? {
            return Ok(held);
        }
        // The snapshot was dropped from a short history, or erased, meanwhile.
        let (etag, bytes) = (Etag::of(&text), text.len() as u64);
        let info =
            SnapshotInfo { vault, memory, context, actor, number: 0, etag, bytes, created_at };
        Ok(Snapshot { info, text })
    }

    async fn forget_replaced(&self, scope: &Scope, former: Option<&Snapshot>) {
        if let (Some(embeddings), Some(former)) = (&self.embeddings, former) {
            embeddings.forget_replaced(scope, &former.keys()).await;
        }
    }

    /// The latest snapshot of a memory's document.
    ///
    /// # Errors
    /// `NotFound`; those of the store.
    pub async fn latest(
        &self,
        scope: &Scope,
        vault: &VaultId,
        memory: &MemoryId,
    ) -> Result<Snapshot> {
        self.store.document(scope, vault, memory).await?.ok_or_else(no_document)
    }

    /// The snapshot under a context id.
    ///
    /// # Errors
    /// `NotFound`; those of the store.
    pub async fn snapshot(
        &self,
        scope: &Scope,
        vault: &VaultId,
        memory: &MemoryId,
        context: &ContextId,
    ) -> Result<Snapshot> {
        let found = self.store.snapshot(scope, vault, memory, context).await?;
        found.ok_or_else(|| Error::not_found("this memory has no snapshot with this context_id"))
    }

    /// The snapshots of a memory's document, the newest first.
    ///
    /// # Errors
    /// `NotFound` when the memory has none; those of the store.
    pub async fn history(
        &self,
        scope: &Scope,
        vault: &VaultId,
        memory: &MemoryId,
        page: &PageRequest,
    ) -> Result<Page<SnapshotInfo>> {
        let found = self.store.snapshots(scope, vault, memory, page).await?;
        if found.items.is_empty() {
            self.latest(scope, vault, memory).await?;
        }
        Ok(found)
    }

    /// The difference between a snapshot and another, or the latest.
    ///
    /// # Errors
    /// `NotFound` for a snapshot that is not there; those of the store.
    pub async fn diff(
        &self,
        scope: &Scope,
        vault: &VaultId,
        memory: &MemoryId,
        (from, to): (&ContextId, Option<&ContextId>),
    ) -> Result<DocumentDiff> {
        let from = self.snapshot(scope, vault, memory, from).await?;
        let to = match to {
            Some(to) => self.snapshot(scope, vault, memory, to).await?,
            None => self.latest(scope, vault, memory).await?,
        };
        let name =
            |of: &Snapshot| format!("{} {}", of.info.context, of.info.created_at.to_rfc3339());
        let diff = unified_diff((&name(&from), &from.text), (&name(&to), &to.text));
        Ok(DocumentDiff { from: from.info, to: to.info, diff })
    }

    /// The latest snapshot with its sections.
    ///
    /// # Errors
    /// `NotFound`; those of the store.
    pub async fn sections(
        &self,
        scope: &Scope,
        vault: &VaultId,
        memory: &MemoryId,
    ) -> Result<(Snapshot, Vec<Section>)> {
        let latest = self.latest(scope, vault, memory).await?;
        let sections = sections(&latest.text);
        Ok((latest, sections))
    }

    /// One section of the latest snapshot, by its slug or heading.
    ///
    /// # Errors
    /// `NotFound` that names the sections that there are; those of the store.
    pub async fn section(
        &self,
        scope: &Scope,
        vault: &VaultId,
        memory: &MemoryId,
        name: &str,
    ) -> Result<SectionText> {
        let (latest, sections) = self.sections(scope, vault, memory).await?;
        let Some(section) = find_section(&sections, name).cloned() else {
            let some: Vec<&str> =
                sections.iter().take(20).map(|section| section.slug.as_str()).collect();
            let more = if sections.len() > some.len() { ", …" } else { "" };
            return Err(Error::not_found(format!(
                "the document has no such section; it has: {}{more}",
                some.join(", ")
            )));
        };
        let text = latest.text[section.range.clone()].to_owned();
        Ok(SectionText { info: latest.info, section, text })
    }

    /// The vaults of a scope.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn vaults(&self, scope: &Scope, page: &PageRequest) -> Result<Page<Vault>> {
        self.store.vaults(scope, page).await
    }

    /// The memories of a vault.
    ///
    /// # Errors
    /// `NotFound` for a vault without any; those of the store.
    pub async fn memories(
        &self,
        scope: &Scope,
        vault: &VaultId,
        page: &PageRequest,
    ) -> Result<Page<Memory>> {
        let found = self.store.memories(scope, Some(vault), page).await?;
        if found.items.is_empty() && page.position().is_none() {
            return Err(Error::not_found(
                "there is no vault with this id: put a document into it to create it",
            ));
        }
        Ok(found)
    }

    /// The passages of latest snapshots that a question is about, best first; of one vault, or of all.
    ///
    /// # Errors
    /// `InvalidInput` for an empty question; those of the store and of the index.
    pub async fn search(
        &self,
        scope: &Scope,
        vault: Option<&VaultId>,
        question: &str,
        limit: usize,
    ) -> Result<Vec<DocumentCandidate>> {
        if question.trim().is_empty() {
            return Err(Error::invalid("the query is empty: say what to search for"));
        }
        self.contexts.recall_documents(scope, vault, question, limit).await
    }
}

fn repeated(held: Snapshot, etag: &Etag) -> Result<Put> {
    if held.info.etag != *etag {
        return Err(Error::conflict(
            "this context_id already belongs to a different text: give each changed document a new \
             context_id",
        ));
    }
    Ok(Put { outcome: PutOutcome::Repeated, snapshot: held })
}
