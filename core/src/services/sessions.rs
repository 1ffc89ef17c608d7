//! Appending messages, and reading sessions.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use crate::append::prepare;
use crate::entity::Entity;
use crate::error::{Error, Result};
use crate::fact::{FactExtractor, Forms, Known, Rejections, Said, resolve};
use crate::ids::{ExternalId, FactId, FileRefId, SessionId, SummaryId};
use crate::index::{Namespace, TermId, UnitKey};
use crate::page::{Page, PageRequest};
use crate::ports::{
    Applied, AppliedMessage, Clock, IdGen, Idempotency, LedgerLimits, Precondition, RecordKey,
    Store, VectorSpace, Write, WriteBatch,
};
use crate::scope::Scope;
use crate::services::embeddings::EmbeddingService;
use crate::session::{
    FileRef, MAX_BATCH, MAX_BATCH_BYTES, Message, NewFileRef, NewMessage, PreparedMessage, Role,
    Session, no_session,
};
use crate::summary::{ROLL_EVERY, RolledFrom, Summary, roll};
use crate::text::query_terms;
use crate::time::Timestamp;
use crate::tokens::Tokenizer;

/// How often a batch that rolls a summary is rebuilt when another writer came first. After that
/// the messages are appended alone: the next append rolls.
const ATTEMPTS: usize = 4;

/// Postings of facts that are read to find what a statement refers to, from the rarest word on.
const MOST_POSTINGS: usize = 16_384;
/// Facts of each sort that corrections and retractions of one append are matched with.
const KNOWN_FACTS: usize = 64;
/// Messages that corrections and retractions are matched with, of the session and beyond it.
const SAID_BEFORE: usize = 64;
/// Words that facts are looked up by for it.
const MAX_WORDS: usize = 64;

/// The result of an append: one entry for each message, in order.
pub type Appended = Vec<AppliedMessage>;

/// Options of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AppendOptions {
    /// Makes a repeat harmless.
    pub idempotency: Option<Idempotency>,
    /// The session is somebody else's, who shares it: what a guest says is recalled there, but it is
    /// no fact of the owner.
    pub of_a_guest: bool,
}

/// Messages that are ready for a batch, with what it stores of them.
pub(super) struct Ready {
    pub(super) prepared: Vec<PreparedMessage>,
    /// They as they were before facts of the scope were read, if any were.
    unresolved: Option<Vec<PreparedMessage>>,
    /// The records to write with them.
    beside: Vec<Write>,
    /// The space of their vectors.
    space: Option<VectorSpace>,
    /// The erasures of the scope before facts of it were read, if any were.
    erasures: Option<u64>,
    idempotency: Option<Idempotency>,
    now: Timestamp,
}

/// Threads and messages.
#[derive(Clone)]
pub struct SessionService {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGen>,
    tokenizer: Arc<dyn Tokenizer>,
    embeddings: Option<EmbeddingService>,
    extractor: Arc<dyn FactExtractor>,
    rejections: Option<Rejections>,
}

impl SessionService {
    /// A service over its ports, with the built-in extractor of facts; without embeddings, messages are recalled
    /// by their words alone.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdGen>,
        tokenizer: Arc<dyn Tokenizer>,
        embeddings: Option<EmbeddingService>,
    ) -> Self {
        let extractor = Arc::new(Forms);
        Self { store, clock, ids, tokenizer, embeddings, extractor, rejections: None }
    }

    /// The same, with another extractor of facts.
    #[must_use]
    pub fn with_extractor(self, extractor: Arc<dyn FactExtractor>) -> Self {
        Self { extractor, ..self }
    }

    /// The same, to which what was rejected stays so.
    #[must_use]
    pub fn with_rejections(self, rejections: Rejections) -> Self {
        Self { rejections: Some(rejections), ..self }
    }

    /// Appends messages to a session, which its first message creates. All of them are stored with
    /// their index entries, facts, entities and summaries, or none is. When this returns they are
    /// durable, and the next recall finds them.
    ///
    /// # Errors
    /// `InvalidInput` that names the message and field; `Conflict` when an `external_id` already
    /// stands for other content, and a lost race for messages that correct or take back what keeps being
    /// erased; those of the store.
    pub async fn append(
        &self,
        scope: &Scope,
        session: &SessionId,
        messages: Vec<NewMessage>,
    ) -> Result<Appended> {
        self.append_with(scope, session, messages, AppendOptions::default()).await
    }

    /// As [`Self::append`], with what is special about it.
    ///
    /// # Errors
    /// As [`Self::append`]; `Conflict` when the idempotency key stands for another request.
    pub async fn append_with(
        &self,
        scope: &Scope,
        session: &SessionId,
        messages: Vec<NewMessage>,
        options: AppendOptions,
    ) -> Result<Appended> {
        if messages.is_empty() || messages.len() > MAX_BATCH {
            return Err(Error::invalid(format!(
                "an append takes 1 to {MAX_BATCH} messages, this one has {}",
                messages.len()
            )));
        }
        let bytes: usize = messages.iter().map(|message| message.content.len()).sum();
        if bytes > MAX_BATCH_BYTES {
            return Err(Error::invalid(format!(
                "an append takes at most 16 MiB of contents, this one has {bytes} bytes: append in \
                 several calls"
            )));
        }
        let mut ready = self.ready(scope, session, messages, options).await?;
        for attempt in 1.. {
            let batch = self.batch_of(scope, session, &ready, attempt < ATTEMPTS).await?;
            match self.store.apply(batch).await {
                Err(error) if error.is_lost_race() && attempt < ATTEMPTS => {
                    self.read_again(scope, session, &mut ready).await?;
                }
                applied => return applied.map(|Applied { messages, .. }| messages),
            }
        }
        Err(Error::internal("an append was neither stored nor refused"))
    }

    /// Messages with everything that is derived from them, whatever their number.
    pub(super) async fn ready(
        &self,
        scope: &Scope,
        session: &SessionId,
        messages: Vec<NewMessage>,
        options: AppendOptions,
    ) -> Result<Ready> {
        let now = self.clock.now();
        let count = messages.len();
        let mut prepared = Vec::with_capacity(count);
        for (index, message) in messages.into_iter().enumerate() {
            let prepare = prepare(message, now, &*self.tokenizer, &*self.extractor, &*self.ids);
            let mut ready = prepare.map_err(|error| {
                if count == 1 {
                    error
                } else {
                    Error::new(error.kind(), format!("messages[{index}]: {}", error.message()))
                }
            })?;
            if options.of_a_guest {
                ready.facts.clear();
            }
            prepared.push(ready);
        }
        check_batch(&prepared)?;
        let unresolved = prepared.iter().any(refers).then(|| prepared.clone());
        let mut ready = Ready {
            prepared,
            unresolved,
            beside: Vec::new(),
            space: None,
            erasures: None,
            idempotency: options.idempotency,
            now,
        };
        self.derive(scope, session, &mut ready).await?;
        Ok(ready)
    }

    /// Adds what messages are stored with: what their facts refer to, the keys under which these may have
    /// been rejected, and vectors.
    async fn derive(&self, scope: &Scope, session: &SessionId, ready: &mut Ready) -> Result<()> {
        ready.erasures = self.resolve_facts(scope, session, &mut ready.prepared).await?;
        if let Some(rejections) = &self.rejections {
            for fact in ready.prepared.iter_mut().flat_map(|message| &mut message.facts) {
                fact.rejection = rejections.keys(scope, fact);
            }
        }
        if let Some(embeddings) = &self.embeddings {
            let (prepared, beside) = (&mut ready.prepared, &mut ready.beside);
            ready.space = embeddings.prepare(prepared, beside, ready.now).await;
        }
        Ok(())
    }

    /// After a lost race: reads the facts anew that messages refer to, where something of the scope was
    /// erased since they were read.
    pub(super) async fn read_again(
        &self,
        scope: &Scope,
        session: &SessionId,
        ready: &mut Ready,
    ) -> Result<()> {
        if let Some(unresolved) = &ready.unresolved
            && self.store.erasures(scope).await? != ready.erasures
        {
            ready.prepared.clone_from(unresolved);
            ready.beside.clear();
            self.derive(scope, session, ready).await?;
        }
        Ok(())
    }

    /// The batch that appends what is ready, with the summaries that it makes due, under the version of the
    /// session that these were built on. Others may add to it what is to happen together with the append.
    pub(super) async fn batch_of(
        &self,
        scope: &Scope,
        session: &SessionId,
        ready: &Ready,
        rolls: bool,
    ) -> Result<WriteBatch> {
        let mut batch =
            WriteBatch::new(scope.clone(), ready.now).with_idempotency(ready.idempotency);
        batch.space.clone_from(&ready.space);
        if rolls {
            self.roll_summaries(&mut batch, session, &ready.prepared).await?;
        }
        batch.preconditions.extend(ready.erasures.map(Precondition::IfErasures));
        let appends = ready.prepared.iter().map(|message| Write::AppendMessage {
            session: session.clone(),
            message: Box::new(message.clone()),
        });
        batch.writes.splice(0..0, appends);
        batch.writes.extend(ready.beside.iter().cloned());
        Ok(batch)
    }

    /// Opens a session before its first message. One that is there stays as it is.
    ///
    /// # Errors
    /// `Conflict` when the idempotency key stands for another request; those of the store.
    pub async fn open(
        &self,
        scope: &Scope,
        session: &SessionId,
        idempotency: Option<Idempotency>,
    ) -> Result<Session> {
        let now = self.clock.now();
        let batch = WriteBatch::new(scope.clone(), now)
            .with_idempotency(idempotency)
            .with(Write::OpenSession { session: session.clone(), created_at: now });
        self.store.apply(batch).await?;
        self.get(scope, session).await
    }

    /// Adds a reference to a file. A repeat adds no second one.
    ///
    /// # Errors
    /// `InvalidInput` that names the field; `NotFound` when there is no such session; `Conflict` when
    /// the idempotency key stands for another request; those of the store.
    pub async fn put_file(
        &self,
        scope: &Scope,
        session: &SessionId,
        new: NewFileRef,
        idempotency: Option<Idempotency>,
    ) -> Result<FileRef> {
        let now = self.clock.now();
        // Of a repeat the id is the same, which is how the first one is found again.
        let id = match &idempotency {
            Some(repeat) => uuid::Builder::from_random_bytes(repeat.key).into_uuid(),
            None => self.ids.next(),
        };
        let file = FileRef::of(FileRefId::from_uuid(id), session, new, now);
        file.check()?;
        let batch = WriteBatch::new(scope.clone(), now)
            .with_idempotency(idempotency)
            .with(Write::PutFile(Box::new(file.clone())));
        if !self.store.apply(batch).await?.repeated {
            return Ok(file);
        }
        let held = self.store.files(scope, session, usize::MAX).await?;
        Ok(held.into_iter().find(|held| held.id == file.id).unwrap_or(file))
    }

    /// The files that a session refers to, the newest first.
    ///
    /// # Errors
    /// `NotFound` when there is no such session; those of the store.
    pub async fn files(
        &self,
        scope: &Scope,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<FileRef>> {
        self.get(scope, session).await?;
        self.store.files(scope, session, limit).await
    }

    /// Finds what corrections and retractions speak of, and returns the erasures of the scope before it
    /// was read. They are rare: any other append reads nothing for it.
    async fn resolve_facts(
        &self,
        scope: &Scope,
        session: &SessionId,
        prepared: &mut [PreparedMessage],
    ) -> Result<Option<u64>> {
        let Some(last) = prepared.iter().rposition(refers) else {
            return Ok(None);
        };
        let erasures = self.store.erasures(scope).await?;
        let (mut known, stored) = match erasures {
            Some(_) => (
                self.known_facts(scope, &prepared[..=last]).await?,
                self.said_before(scope, session, &prepared[..=last]).await?,
            ),
            None => (Vec::new(), Vec::new()),
        };
        for at in 0..=last {
            let (before, rest) = prepared.split_at_mut(at);
            let Some(message) = rest.first_mut().filter(|message| !message.facts.is_empty()) else {
                continue;
            };
            let earlier = before.iter().rev().filter(|said| said.role == Role::User);
            let earlier = earlier.take(SAID_BEFORE).map(|said| Said {
                message: said.id,
                here: true,
                at: said.created_at,
                content: &said.content,
            });
            let stored = stored.iter().map(|said| Said {
                message: said.id,
                here: said.session == *session,
                at: said.created_at,
                content: &said.content,
            });
            let mut said: Vec<Said<'_>> = stored.collect();
            said.extend(earlier.collect::<Vec<_>>().into_iter().rev());
            resolve(&mut message.facts, &mut known, &said, || FactId::from_uuid(self.ids.next()));
        }
        Ok(erasures)
    }

    /// Messages of the user that corrections may mean, the newest last: the last ones of the session, and those of
    /// the scope that share the most telling words with a correction.
    async fn said_before(
        &self,
        scope: &Scope,
        session: &SessionId,
        prepared: &[PreparedMessage],
    ) -> Result<Vec<Arc<Message>>> {
        let words: Vec<String> = prepared
            .iter()
            .flat_map(|message| &message.facts)
            .filter(|fact| fact.refers.is_some())
            .flat_map(|fact| query_terms(&fact.text))
            .take(MAX_WORDS)
            .collect();
        let terms: Vec<TermId> = words.iter().map(|word| TermId::of(word)).collect();
        let found = self.store.postings(scope, Namespace::Message, &terms, MOST_POSTINGS).await?;
        let mut shared: BTreeMap<UnitKey, f32> = BTreeMap::new();
        for list in &found.lists {
            for posting in list {
                *shared.entry(posting.key).or_default() += 1.0 / (list.len() as f32).sqrt();
            }
        }
        let mut keys: Vec<(UnitKey, f32)> = shared.into_iter().collect();
        keys.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| b.0.cmp(&a.0)));
        keys.truncate(SAID_BEFORE);
        let keys: Vec<UnitKey> = keys.into_iter().map(|(key, _)| key).collect();
        let found = self.store.messages_at(scope, &keys).await?;
        let mut said: Vec<Arc<Message>> = found.into_iter().map(|(_, message)| message).collect();
        let recent = self.store.recent_messages(scope, session, SAID_BEFORE).await?;
        said.extend(recent.into_iter().map(Arc::new));
        said.retain(|message| message.role == Role::User);
        said.sort_by_key(|message| message.seq);
        said.dedup_by_key(|message| message.seq);
        Ok(said)
    }

    /// The facts of the ledger that statements may refer to, the newest last: the newest ones, those
    /// that belong to every context, and those that share words with the statements.
    async fn known_facts(&self, scope: &Scope, prepared: &[PreparedMessage]) -> Result<Vec<Known>> {
        let referring = prepared.iter().flat_map(|message| &message.facts);
        let words: Vec<String> = referring
            .filter(|fact| fact.refers.is_some())
            .flat_map(|fact| query_terms(&fact.text))
            .take(MAX_WORDS)
            .collect();
        let terms: Vec<TermId> = words.iter().map(|word| TermId::of(word)).collect();
        let found = self.store.postings(scope, Namespace::Fact, &terms, MOST_POSTINGS).await?;
        let mut shared: BTreeMap<u32, usize> = BTreeMap::new();
        for posting in found.lists.iter().flatten() {
            *shared.entry(posting.key.position()).or_default() += 1;
        }
        let mut numbers: Vec<(usize, u32)> =
            shared.into_iter().map(|(number, words)| (words, number)).collect();
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        numbers.truncate(KNOWN_FACTS);
        let numbers: Vec<u32> = numbers.into_iter().map(|(_, number)| number).collect();
        let mut facts = self.store.active_facts(scope, &numbers).await?;
        let limits = LedgerLimits { standing: KNOWN_FACTS, newest: KNOWN_FACTS, superseded: 0 };
        let ledger = self.store.ledger(scope, limits).await?;
        facts.extend(ledger.newest.into_iter().chain(ledger.standing));
        facts.sort_by_key(|fact| fact.number);
        facts.dedup_by_key(|fact| fact.number);
        Ok(facts.iter().map(Known::from).collect())
    }

    /// Adds the summaries that these messages make due, under the version of the session that
    /// they were built on. A session that was erased may begin anew with a version that it had: so
    /// nothing may have been erased, either.
    async fn roll_summaries(
        &self,
        batch: &mut WriteBatch,
        session: &SessionId,
        prepared: &[PreparedMessage],
    ) -> Result<()> {
        let head = self.store.session(&batch.scope, session).await?;
        let (held, summarized, mut position) = head
            .as_ref()
            .map_or((0, 0, 0), |head| (head.messages, head.summarized, head.next_position));
        let waiting = held - summarized.min(held);
        if waiting + (prepared.len() as u64) < ROLL_EVERY {
            return Ok(());
        }
        let scope = batch.scope.clone();
        let erasures = self.store.erasures(&scope).await?;
        let latest = self.store.latest_summary(&scope, session).await?;
        let mut known = self.replayed(&scope, session, prepared).await?;
        let limit = usize::try_from(waiting).unwrap_or(usize::MAX);
        let waiting = self.store.recent_messages(&scope, session, limit).await?;
        let mut sources: Vec<RolledFrom<'_>> = waiting.iter().map(RolledFrom::of_stored).collect();
        for message in prepared {
            // What the store holds already, or gets twice in this batch, is not covered twice.
            let is_new = message.external_id.as_ref().is_none_or(|id| known.insert(id.clone()));
            if is_new {
                sources.push(RolledFrom::of_prepared(message, position));
                position += u32::try_from(message.units.len()).unwrap_or(u32::MAX);
            }
        }
        let mut previous: Option<Summary> = latest;
        let every = usize::try_from(ROLL_EVERY).unwrap_or(usize::MAX);
        for chunk in sources.chunks_exact(every) {
            let id = SummaryId::from_uuid(self.ids.next());
            let next = roll(id, session, previous.as_ref(), chunk, &*self.tokenizer);
            batch.writes.push(Write::PutSummary(Box::new(next.clone())));
            previous = Some(next);
        }
        if !batch.writes.is_empty() {
            let key = RecordKey::Session(session.clone());
            batch.preconditions.push(match head {
                Some(head) => Precondition::IfVersion(key, head.version),
                None => Precondition::IfAbsent(key),
            });
            batch.preconditions.extend(erasures.map(Precondition::IfErasures));
        }
        Ok(())
    }

    /// Rolls what an erasure made due again. If others keep coming first, their appends roll it.
    pub(super) async fn roll_again(&self, scope: &Scope, session: &SessionId) -> Result<()> {
        for _ in 0..ATTEMPTS {
            let mut batch = WriteBatch::new(scope.clone(), self.clock.now());
            self.roll_summaries(&mut batch, session, &[]).await?;
            if batch.writes.is_empty() {
                return Ok(());
            }
            match self.store.apply(batch).await {
                Err(error) if error.is_lost_race() => {}
                applied => return applied.map(|_| ()),
            }
        }
        Ok(())
    }

    async fn replayed(
        &self,
        scope: &Scope,
        session: &SessionId,
        prepared: &[PreparedMessage],
    ) -> Result<HashSet<ExternalId>> {
        let ids: Vec<ExternalId> =
            prepared.iter().filter_map(|message| message.external_id.clone()).collect();
        if ids.is_empty() {
            return Ok(HashSet::new());
        }
        let held = self.store.messages_by_external_id(scope, session, &ids).await?;
        Ok(held.into_iter().filter_map(|message| message.external_id).collect())
    }

    /// The session under the caller's id.
    ///
    /// # Errors
    /// `NotFound`; those of the store.
    pub async fn get(&self, scope: &Scope, session: &SessionId) -> Result<Session> {
        let found = self.store.session(scope, session).await?;
        found.ok_or_else(no_session)
    }

    /// The sessions of a scope.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn list(&self, scope: &Scope, page: &PageRequest) -> Result<Page<Session>> {
        self.store.sessions(scope, page).await
    }

    /// The messages of a session, oldest first.
    ///
    /// # Errors
    /// `NotFound` when there is no such session; those of the store.
    pub async fn messages(
        &self,
        scope: &Scope,
        session: &SessionId,
        page: &PageRequest,
    ) -> Result<Page<Message>> {
        self.get(scope, session).await?;
        self.store.messages(scope, session, page).await
    }

    /// The entities of a session, the most recently seen first.
    ///
    /// # Errors
    /// `NotFound` when there is no such session; those of the store.
    pub async fn entities(
        &self,
        scope: &Scope,
        session: &SessionId,
        limit: usize,
    ) -> Result<Vec<Entity>> {
        self.get(scope, session).await?;
        self.store.entities(scope, session, limit).await
    }

    /// The versions of a session's summary, oldest first.
    ///
    /// # Errors
    /// `NotFound` when there is no such session; those of the store.
    pub async fn summaries(&self, scope: &Scope, session: &SessionId) -> Result<Vec<Summary>> {
        self.get(scope, session).await?;
        self.store.summaries(scope, session).await
    }
}

/// Whether a message says something that only has a meaning by what was said before.
fn refers(message: &PreparedMessage) -> bool {
    message.facts.iter().any(|fact| fact.refers.is_some())
}

/// Within one append, an `external_id` may stand for one content only.
fn check_batch(prepared: &[PreparedMessage]) -> Result<()> {
    let mut seen: HashMap<&ExternalId, &[u8; 16]> = HashMap::new();
    for message in prepared {
        let Some(id) = &message.external_id else { continue };
        if seen.insert(id, &message.content_hash).is_some_and(|hash| *hash != message.content_hash)
        {
            return Err(Error::conflict(format!(
                "external_id `{id}` is used for two different messages in one append: give each \
                 its own"
            )));
        }
    }
    Ok(())
}
