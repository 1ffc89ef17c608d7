//! Erasing: recorded, applied, carried to what lies beside the store.

mod replay;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use crate::access::KeyUser;
use crate::document::{Expected, check_expected, no_document};
use crate::erase::ErasedBefore;
use crate::error::{Error, Result};
use crate::ids::{ExternalId, JobId, MemoryId, MessageId, SessionId, TenantId, UserId, VaultId};
use crate::index::{Namespace, UnitKey};
use crate::job::{Job, NewJob, Outcome, backoff};
use crate::page::{MAX_PAGE, PageRequest};
use crate::ports::{
    Cache, Clock, Erased, Erasure, ErasureLedger, IdGen, LedgerEntry, LedgerIdentity, NameHash,
    ScopeEnd, ScopeTotals, SessionCache, Store, TenantBatch, TenantWrite, VectorIndex, Write,
    WriteBatch,
};
use crate::scope::Scope;
use crate::services::embeddings::EmbeddingService;
use crate::services::facts::FactService;
use crate::services::sessions::SessionService;
use crate::time::Timestamp;

pub use replay::{Replayed, copy_ledger};

/// Kind of the jobs that carry an erasure to what lies beside the store.
pub const FORGET_JOB: &str = "forget";
/// The tag that every cached value of a scope bears, beside others: an erasure invalidates them all.
pub const SCOPE_TAG: &str = "scope";

/// Messages of one entry of the ledger, and of one batch.
const MESSAGES_AT_ONCE: usize = 1_000;
/// Entries of the ledger that are read at once.
const ENTRIES_AT_ONCE: usize = 1_000;
/// How long the caller of an erasure has to finish it before a worker takes the job.
const GRACE: Duration = Duration::from_secs(60);
/// How long an attempt may take.
const LEASE: Duration = Duration::from_secs(300);
/// Above the default, because other jobs may depend on it.
const PRIORITY: i16 = 9;
/// How often a batch is applied again when another writer came first.
const ATTEMPTS: usize = 4;

/// Erasure over its ports.
#[derive(Clone)]
pub struct EraseService {
    store: Arc<dyn Store>,
    ledger: Arc<dyn ErasureLedger>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGen>,
    sessions: SessionService,
    embeddings: Option<EmbeddingService>,
    facts: Option<FactService>,
    index: Option<Arc<dyn VectorIndex>>,
    heads: Option<Arc<dyn SessionCache>>,
    cache: Option<Arc<dyn Cache>>,
}

impl EraseService {
    /// A service over its ports; `sessions` rolls summaries anew, `embeddings` embeds what is read anew.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        ledger: Arc<dyn ErasureLedger>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdGen>,
        sessions: SessionService,
        embeddings: Option<EmbeddingService>,
    ) -> Self {
        let (facts, index, heads, cache) = (None, None, None, None);
        Self { store, ledger, clock, ids, sessions, embeddings, facts, index, heads, cache }
    }

    /// The same with the ledger of facts, in which a replay rejects again what was rejected.
    #[must_use]
    pub fn with_facts(self, facts: FactService) -> Self {
        Self { facts: Some(facts), ..self }
    }

    /// The same with what lies beside the store: an index apart from it, heads and other cached values.
    #[must_use]
    pub fn with_beside(
        self,
        index: Option<Arc<dyn VectorIndex>>,
        heads: Option<Arc<dyn SessionCache>>,
        cache: Option<Arc<dyn Cache>>,
    ) -> Self {
        Self { index, heads, cache, ..self }
    }

    /// Erases messages of a session. Ids of other messages are ignored.
    ///
    /// # Errors
    /// `NotFound` when there is no such session; those of ledger and store. What was recorded before is
    /// erased at the next start at the latest.
    pub async fn messages(
        &self,
        scope: &Scope,
        session: &SessionId,
        ids: &[MessageId],
    ) -> Result<Erased> {
        self.sessions.get(scope, session).await?;
        let mut erased = Erased::default();
        for ids in ids.chunks(MESSAGES_AT_ONCE) {
            let held = self.store.held_messages(scope, session, ids).await?;
            if held.is_empty() {
                continue;
            }
            let names = self.ledger.identity().await?;
            let hash = names.scope(scope);
            let external = |id: &ExternalId| names.external(scope, session, id);
            let (held, theirs): (Vec<MessageId>, Vec<Option<ExternalId>>) =
                held.into_iter().unzip();
            let external: Vec<NameHash> = theirs.iter().flatten().map(external).collect();
            if !external.is_empty() {
                let (scope, messages) = (hash, Vec::new());
                self.record_gone(LedgerEntry::Gone { scope, messages, external }).await?;
            }
            let entry = LedgerEntry::Messages { scope: hash, ids: held.clone() };
            let number = self.ledger.record(&entry, self.clock.now()).await?;
            let targets = vec![(scope.clone(), Erasure::Messages(held.clone()))];
            erased.add(self.carry_out(number, targets, false).await?);
            erased.by_id.extend(held);
        }
        self.store.purge().await?;
        Ok(erased)
    }

    /// Records ids under which erased messages could come back. No store has anything to do for it.
    async fn record_gone(&self, entry: LedgerEntry) -> Result<()> {
        let number = self.ledger.record(&entry, self.clock.now()).await?;
        self.store.note_erasures(&[number]).await
    }

    /// What was erased before, for who takes in what may be older.
    ///
    /// # Errors
    /// Those of the ledger.
    pub async fn erased_before(&self) -> Result<ErasedBefore> {
        let mut erased = ErasedBefore::new(self.ledger.identity().await?);
        let mut after = 0;
        loop {
            let entries = self.ledger.entries(after, ENTRIES_AT_ONCE).await?;
            let Some(last) = entries.last() else { return Ok(erased) };
            after = last.number;
            entries.iter().for_each(|recorded| erased.add(recorded));
        }
    }

    /// Erases the messages of a session that were said before an instant.
    ///
    /// # Errors
    /// As [`Self::messages`].
    pub async fn messages_before(
        &self,
        scope: &Scope,
        session: &SessionId,
        before: Timestamp,
    ) -> Result<Erased> {
        let mut ids = Vec::new();
        let mut page = PageRequest::first(MAX_PAGE)?;
        loop {
            let found = self.sessions.messages(scope, session, &page).await?;
            let early = found.items.iter().filter(|message| message.created_at < before);
            ids.extend(early.map(|message| message.id));
            match found.next_cursor {
                Some(cursor) => page = PageRequest::first(MAX_PAGE)?.after(&cursor)?,
                None => return self.messages(scope, session, &ids).await,
            }
        }
    }

    /// Erases a session with all of its messages.
    ///
    /// # Errors
    /// As [`Self::messages`].
    pub async fn session(&self, scope: &Scope, session: &SessionId) -> Result<Erased> {
        self.sessions.get(scope, session).await?;
        let through = self.store.totals(scope).await?.last_seq;
        let identity = self.ledger.identity().await?;
        let hash = identity.session(scope, session);
        if self.was_shared(&identity, scope, session, &self.shared_before().await?).await? {
            self.record_copies(&identity, scope, session).await?;
        }
        let entry = LedgerEntry::Session { scope: identity.scope(scope), session: hash, through };
        let number = self.ledger.record(&entry, self.clock.now()).await?;
        // Before it counts as applied: a grant must not outlive what it opens.
        self.remove_grant(scope, session).await?;
        let erasure = Erasure::Session { id: session.clone(), through };
        let erased = self.carry_out(number, vec![(scope.clone(), erasure)], false).await?;
        self.store.purge().await?;
        Ok(erased)
    }

    /// The sessions that were ever shared, as far as the ledger knows.
    async fn shared_before(&self) -> Result<HashSet<NameHash>> {
        let mut shared = HashSet::new();
        let mut after = 0;
        loop {
            let entries = self.ledger.entries(after, ENTRIES_AT_ONCE).await?;
            let Some(last) = entries.last() else { return Ok(shared) };
            after = last.number;
            shared.extend(entries.into_iter().filter_map(|recorded| match recorded.entry {
                LedgerEntry::Shared { session } => Some(session),
                _ => None,
            }));
        }
    }

    /// Whether others can read a session or once could. A new ledger knows the grants of its store only by these.
    async fn was_shared(
        &self,
        names: &LedgerIdentity,
        scope: &Scope,
        session: &SessionId,
        before: &HashSet<NameHash>,
    ) -> Result<bool> {
        Ok(before.contains(&names.session(scope, session))
            || self.store.share_of(scope, session).await?.is_some())
    }

    /// Of the sessions of a user that is erased, records the messages that others may have copies of.
    async fn record_copies_of_user(
        &self,
        names: &LedgerIdentity,
        scopes: &[(Scope, ScopeTotals)],
    ) -> Result<()> {
        let before = self.shared_before().await?;
        for (scope, _) in scopes {
            let mut page = PageRequest::first(MAX_PAGE)?;
            loop {
                let sessions = self.store.sessions(scope, &page).await?;
                for session in &sessions.items {
                    if self.was_shared(names, scope, &session.id, &before).await? {
                        self.record_copies(names, scope, &session.id).await?;
                    }
                }
                match sessions.next_cursor {
                    Some(cursor) => page = PageRequest::first(MAX_PAGE)?.after(&cursor)?,
                    None => break,
                }
            }
        }
        Ok(())
    }

    /// Records what names a user who may have no scope by which a replay would find it: a place in the grants of
    /// others, and keys.
    async fn record_user(
        &self,
        names: &LedgerIdentity,
        tenant: &TenantId,
        user: &UserId,
    ) -> Result<Vec<u64>> {
        let hash = names.tenant(tenant);
        let mut entries = Vec::new();
        let mut page = PageRequest::first(MAX_PAGE)?;
        loop {
            let shares = self.store.shared_with(tenant, user, &page).await?;
            entries.extend(shares.items.into_iter().map(|share| LedgerEntry::NarrowedGrant {
                tenant: hash,
                share: share.id,
                users: vec![names.user(tenant, user)],
                read_only: false,
            }));
            match shares.next_cursor {
                Some(cursor) => page = PageRequest::first(MAX_PAGE)?.after(&cursor)?,
                None => break,
            }
        }
        let mut page = PageRequest::first(MAX_PAGE)?;
        loop {
            let keys = self.store.keys(tenant, &page).await?;
            let of_user =
                keys.items.into_iter().filter(|key| key.user == KeyUser::Is(user.clone()));
            entries
                .extend(of_user.map(|key| LedgerEntry::RevokedKey { tenant: hash, key: key.id }));
            match keys.next_cursor {
                Some(cursor) => page = PageRequest::first(MAX_PAGE)?.after(&cursor)?,
                None => break,
            }
        }
        let mut numbers = Vec::with_capacity(entries.len());
        for entry in &entries {
            numbers.push(self.ledger.record(entry, self.clock.now()).await?);
        }
        Ok(numbers)
    }

    /// Records the messages of a session by id.
    async fn record_copies(
        &self,
        names: &LedgerIdentity,
        scope: &Scope,
        session: &SessionId,
    ) -> Result<()> {
        let mut page = PageRequest::first(MAX_PAGE)?;
        loop {
            let found = self.store.messages(scope, session, &page).await?;
            let messages = found.items.iter().map(|message| message.id).collect();
            let (scope, external) = (names.scope(scope), Vec::new());
            self.record_gone(LedgerEntry::Gone { scope, messages, external }).await?;
            match found.next_cursor {
                Some(cursor) => page = PageRequest::first(MAX_PAGE)?.after(&cursor)?,
                None => return Ok(()),
            }
        }
    }

    /// Takes back the grant of a session that goes, if it is shared.
    async fn remove_grant(&self, scope: &Scope, session: &SessionId) -> Result<()> {
        let Some(share) = self.store.share_of(scope, session).await? else { return Ok(()) };
        let batch = TenantBatch::new(scope.tenant.clone());
        self.store.apply_tenant(batch.with(TenantWrite::RemoveShare(share.id))).await
    }

    /// Erases the document of a memory with its history.
    ///
    /// # Errors
    /// `NotFound` when there is none; as [`Self::messages`].
    pub async fn document(
        &self,
        scope: &Scope,
        vault: &VaultId,
        memory: &MemoryId,
    ) -> Result<Erased> {
        self.document_if(scope, vault, memory, &Expected::Anything).await
    }

    /// The same where the latest snapshot is what was expected: it goes with all before it. One that is put
    /// meanwhile stays, for it is none of what the caller has seen.
    ///
    /// # Errors
    /// `PreconditionFailed` when the latest snapshot is another: nothing is recorded then; as
    /// [`Self::document`].
    pub async fn document_if(
        &self,
        scope: &Scope,
        vault: &VaultId,
        memory: &MemoryId,
        expected: &Expected,
    ) -> Result<Erased> {
        let held = self.store.document(scope, vault, memory).await?.ok_or_else(no_document)?;
        check_expected(expected, Some(&held))?;
        let through = u64::from(held.info.number);
        let identity = self.ledger.identity().await?;
        let document = identity.document(scope, vault, memory);
        let entry = LedgerEntry::Document { scope: identity.scope(scope), document, through };
        let number = self.ledger.record(&entry, self.clock.now()).await?;
        let (vault, memory) = (vault.clone(), memory.clone());
        let erasure = Erasure::Document { vault, memory, through };
        let erased = self.carry_out(number, vec![(scope.clone(), erasure)], false).await?;
        self.store.purge().await?;
        Ok(erased)
    }

    /// Erases a user: every scope, with and without a workspace, and what names the user in the tenant.
    ///
    /// # Errors
    /// Those of ledger and store, as [`Self::messages`]. A user who has nothing is no error.
    pub async fn user(&self, tenant: &TenantId, user: &UserId) -> Result<Erased> {
        let scopes = self.store.scopes_of(tenant, user).await?;
        let identity = self.ledger.identity().await?;
        self.record_copies_of_user(&identity, &scopes).await?;
        let named = self.record_user(&identity, tenant, user).await?;
        let hashed = scopes.iter().map(|(scope, held)| ScopeEnd {
            scope: identity.scope(scope),
            through: held.last_seq,
            documents: held.documents,
        });
        let entry =
            LedgerEntry::User { user: identity.user(tenant, user), scopes: hashed.collect() };
        let number = self.ledger.record(&entry, self.clock.now()).await?;
        let targets = scopes.into_iter().map(|(scope, held)| {
            (scope, Erasure::Scope { through: held.last_seq, documents: held.documents })
        });
        self.remove_user(tenant, user).await?;
        self.store.note_erasures(&named).await?;
        let erased = self.carry_out(number, targets.collect(), true).await?;
        self.store.purge().await?;
        Ok(erased)
    }

    /// Removes what names a user beside its scopes.
    async fn remove_user(&self, tenant: &TenantId, user: &UserId) -> Result<()> {
        let batch = TenantBatch::new(tenant.clone()).with(TenantWrite::RemoveUser(user.clone()));
        self.store.apply_tenant(batch).await
    }

    /// The number of the last entry of the ledger; 0 when there is none.
    ///
    /// # Errors
    /// Those of the ledger.
    pub async fn last_entry(&self) -> Result<u64> {
        self.ledger.last().await
    }

    /// The users whom the entries above `after` erased, with the times at which that was recorded, and the
    /// number of the last entry.
    ///
    /// # Errors
    /// Those of the ledger.
    pub async fn users_since(&self, mut after: u64) -> Result<(Vec<(NameHash, Timestamp)>, u64)> {
        let mut users = Vec::new();
        loop {
            let entries = self.ledger.entries(after, ENTRIES_AT_ONCE).await?;
            let Some(last) = entries.last() else { return Ok((users, after)) };
            after = last.number;
            users.extend(entries.into_iter().filter_map(|recorded| match recorded.entry {
                LedgerEntry::User { user, .. } => Some((user, recorded.at)),
                _ => None,
            }));
        }
    }

    /// Applies what an entry of the ledger says and carries it to what lies beside the store. With
    /// `drop`, scopes that hold nothing any more are no more.
    async fn carry_out(
        &self,
        number: u64,
        targets: Vec<(Scope, Erasure)>,
        drop: bool,
    ) -> Result<Erased> {
        if targets.is_empty() {
            self.store.note_erasures(&[number]).await?;
        }
        let mut done = Vec::with_capacity(targets.len());
        let last = targets.len().saturating_sub(1);
        for (nth, (scope, erasure)) in targets.into_iter().enumerate() {
            // Noted with the last target, so that after a crash all of them are applied again.
            let noted = (nth == last).then_some(number);
            let (erased, job) = self.apply(&scope, erasure, number, noted).await?;
            done.push((scope, erased, job));
        }
        // Numbers may be given again only after every target is erased.
        let mut all = Erased::default();
        for (scope, mut erased, job) in done {
            erased.waiting = !self.finish(&scope, &erased, job, drop).await?;
            all.add(erased);
        }
        Ok(all)
    }

    async fn apply(
        &self,
        scope: &Scope,
        erasure: Erasure,
        number: u64,
        noted: Option<u64>,
    ) -> Result<(Erased, JobId)> {
        let now = self.clock.now();
        let job = self.job(number, now.plus(GRACE));
        let id = job.id;
        let mut batch = WriteBatch::new(scope.clone(), now)
            .with(Write::Erase { erasure, seed: self.ids.next() })
            .with(Write::EnqueueJob(job));
        if let Some(number) = noted {
            batch = batch.with(Write::NoteErasure(number));
        }
        // Facts that were extracted again have no vectors yet.
        if let Some(embeddings) = &self.embeddings {
            batch = batch.with(Write::EnqueueJob(embeddings.job_of_erasure(now)));
        }
        let mut attempt = 1;
        loop {
            match self.store.apply(batch.clone()).await {
                Err(error) if error.is_lost_race() && attempt < ATTEMPTS => attempt += 1,
                applied => return Ok((applied?.erased, id)),
            }
        }
    }

    fn job(&self, number: u64, due_at: Timestamp) -> NewJob {
        NewJob {
            id: JobId::from_uuid(self.ids.next()),
            kind: FORGET_JOB.to_owned(),
            // A job must not hold the name of what it erases.
            subject: number.to_string(),
            priority: PRIORITY,
            due_at,
        }
    }

    /// What follows from an erasure that was applied. Returns whether all of it was done: what lies beside
    /// the store and is away is left to the job.
    async fn finish(&self, scope: &Scope, erased: &Erased, job: JobId, drop: bool) -> Result<bool> {
        for session in &erased.touched {
            self.sessions.roll_again(scope, session).await?;
        }
        if self.forget(scope, erased).await.is_err() {
            return Ok(false);
        }
        if let Some(embeddings) = &self.embeddings {
            // Texts that cannot be embedded now are left to the embedding job.
            let _ = embeddings.catch_up_if_instant(scope).await;
        }
        let mut batch = WriteBatch::new(scope.clone(), self.clock.now()).with(Write::DropJob(job));
        if drop {
            batch = batch.with(Write::DropScope);
        }
        self.store.apply(batch).await.map(|_| true)
    }

    async fn forget(&self, scope: &Scope, erased: &Erased) -> Result<()> {
        if let Some(index) = &self.index {
            if erased.whole_scope {
                index.forget(scope).await?;
            } else {
                for namespace in Namespace::ALL {
                    let of = erased.units.iter().filter(|(within, _)| *within == namespace);
                    let keys: Vec<UnitKey> = of.map(|(_, key)| *key).collect();
                    if !keys.is_empty() {
                        index.remove(scope, namespace, &keys).await?;
                    }
                }
                let of_documents = erased.units.iter().any(|(of, _)| *of == Namespace::Document);
                // Keys of snapshots that were replaced and dropped meanwhile are not known any more.
                if let Some(embeddings) = self.embeddings.as_ref().filter(|_| of_documents) {
                    embeddings.forget_dead_documents(scope).await?;
                }
            }
        }
        self.forget_cached(scope).await
    }

    async fn forget_cached(&self, scope: &Scope) -> Result<()> {
        if let Some(heads) = &self.heads {
            heads.forget(scope).await?;
        }
        if let Some(cache) = &self.cache {
            cache.invalidate(scope, SCOPE_TAG).await?;
        }
        Ok(())
    }

    /// Attempts up to `limit` jobs of erasures that did not get so far themselves. Returns how many are
    /// done.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn work(&self, limit: usize) -> Result<u64> {
        let now = self.clock.now();
        let jobs = self.store.claim_jobs(&[FORGET_JOB], now, LEASE, limit).await?;
        let mut done = 0;
        for job in jobs {
            let batch = WriteBatch::new(job.scope.clone(), self.clock.now());
            let batch = match self.attempt(&job).await {
                Ok(drop) => {
                    done += 1;
                    let batch = batch.with(Write::DropJob(job.id));
                    if drop { batch.with(Write::DropScope) } else { batch }
                }
                // Retried without limit: the backend may be reachable again later.
                Err(error) => {
                    let again = self.clock.now().plus(backoff(u32::MAX));
                    let again = NewJob { subject: job.subject.clone(), ..self.job(0, again) };
                    batch
                        .with(Write::FinishJob(job.id, Outcome::Skipped(error.to_string())))
                        .with(Write::EnqueueJob(again))
                }
            };
            self.store.apply(batch).await?;
        }
        if done > 0 {
            self.store.purge().await?;
        }
        Ok(done)
    }

    /// Whether nothing is left of a scope that an index could hold.
    async fn holds_no_text(&self, scope: &Scope) -> Result<bool> {
        for namespace in Namespace::ALL {
            if !self.store.texts_after(scope, namespace, 0, 1).await?.is_empty() {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Does what follows from an erasure without knowing what it took. Returns whether the scope is to go
    /// if it holds nothing.
    async fn attempt(&self, job: &Job) -> Result<bool> {
        let scope = &job.scope;
        let mut page = PageRequest::first(MAX_PAGE)?;
        loop {
            let sessions = self.store.sessions(scope, &page).await?;
            for session in &sessions.items {
                self.sessions.roll_again(scope, &session.id).await?;
            }
            match sessions.next_cursor {
                Some(cursor) => page = PageRequest::first(MAX_PAGE)?.after(&cursor)?,
                None => break,
            }
        }
        if let Some(index) = &self.index {
            match &self.embeddings {
                _ if self.holds_no_text(scope).await? => index.forget(scope).await?,
                Some(embeddings) => drop(embeddings.reconcile(scope).await?),
                None => {
                    return Err(Error::invalid(
                        "erasing from a separate vector index needs an embedder: set `embedder`",
                    ));
                }
            }
        }
        self.forget_cached(scope).await?;
        let number: u64 = job.subject.parse().unwrap_or(0);
        let entry = self.ledger.entries(number.saturating_sub(1), 1).await?.pop();
        Ok(entry.is_some_and(|recorded| matches!(recorded.entry, LedgerEntry::User { .. })))
    }
}
