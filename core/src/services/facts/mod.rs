//! Reading the ledger of facts, and saying directly what is so and what is not.

mod authority;
mod import;

use std::sync::Arc;

use crate::access::Actor;
use crate::error::{Error, Result};
use crate::fact::{Fact, FactKind, MAX_FACT_CHARS, NewFact, RejectionKey, Rejections};
use crate::ids::{FactId, MAX_NAME_BYTES, is_forbidden};
use crate::page::{MAX_PAGE, Page, PageRequest};
use crate::ports::{
    Applied, Clock, ErasureLedger, IdGen, Idempotency, LedgerEntry, LedgerIdentity, Precondition,
    Store, Write, WriteBatch,
};
use crate::scope::Scope;
use crate::secret::SecretPolicy;
use crate::services::embeddings::EmbeddingService;
use crate::text::{analyze, fold_spaces};
use crate::time::Timestamp;

pub(crate) use authority::{rejected_everywhere, superseded};
pub use import::{FactCopy, ImportOutcome, ReadyCopy};

/// Most tags of a fact that is told directly.
const MAX_TAGS: usize = 16;
/// How often what is said in words of a fact is applied again when something was erased meanwhile.
const ATTEMPTS: usize = 4;

/// A fact to remember, told directly.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remember {
    /// Its sort; a retraction is made by [`FactService::retract`].
    pub kind: FactKind,
    /// What is so, at most [`MAX_FACT_CHARS`] characters.
    pub text: String,
    /// Whom or what it is about.
    pub subject: Option<String>,
    /// Which property of the subject.
    pub attribute: Option<String>,
    /// The property's value.
    pub value: Option<String>,
    /// Topic tags.
    pub tags: Vec<String>,
}

/// What a fact should have said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Correction {
    /// What is so.
    pub text: String,
    /// The property's value, where the fact has a slot.
    pub value: Option<String>,
}

/// What rejecting needs: keys, and the ledger in which a rejection outlives a restored backup.
#[derive(Clone)]
pub struct Rejecting {
    /// Where rejections are recorded.
    pub ledger: Arc<dyn ErasureLedger>,
    /// Names as that ledger knows them.
    pub names: LedgerIdentity,
    /// Makes the keys.
    pub rejections: Rejections,
}

/// The facts ledger of a scope.
#[derive(Clone)]
pub struct FactService {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGen>,
    embeddings: Option<EmbeddingService>,
    rejecting: Rejecting,
    secrets: SecretPolicy,
}

impl FactService {
    /// A service over its ports.
    #[must_use]
    pub fn new(
        store: Arc<dyn Store>,
        clock: Arc<dyn Clock>,
        ids: Arc<dyn IdGen>,
        embeddings: Option<EmbeddingService>,
        rejecting: Rejecting,
    ) -> Self {
        Self { store, clock, ids, embeddings, rejecting, secrets: SecretPolicy::default() }
    }

    /// The same, with another policy for the secrets in what is told.
    #[must_use]
    pub fn with_secrets(self, secrets: SecretPolicy) -> Self {
        Self { secrets, ..self }
    }

    /// All facts by number, superseded ones included.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn list(&self, scope: &Scope, page: &PageRequest) -> Result<Page<Fact>> {
        self.store.facts(scope, page).await
    }

    /// The fact under an id.
    ///
    /// # Errors
    /// `NotFound`; those of the store.
    pub async fn get(&self, scope: &Scope, id: FactId) -> Result<Fact> {
        self.store.fact(scope, id).await?.ok_or_else(no_fact)
    }

    /// Remembers a fact that was told directly, from a workspace that it may hold beyond. In its slot it takes the
    /// place of what held. A value that was rejected is allowed again where the user, or who acts for them, says so.
    ///
    /// # Errors
    /// `InvalidInput` that names the field; `Conflict` when the idempotency key stands for another
    /// request, and for a model that tells what its user rejected or settled otherwise; those of the store.
    pub async fn remember(
        &self,
        scope: &Scope,
        new: Remember,
        (actor, told_in): (Actor, &Scope),
        idempotency: Option<Idempotency>,
    ) -> Result<Fact> {
        let now = self.clock.now();
        let fact = self.told(new, actor, now)?;
        let keys = self.rejecting.rejections.keys(scope, &fact);
        let mut batch = WriteBatch::new(scope.clone(), now).with_idempotency(idempotency);
        if !actor.decides() {
            self.may_tell(scope, told_in, &fact).await?;
        }
        let mut entries = Vec::new();
        if self.store.is_rejected(scope, &keys).await? {
            entries.push(self.allowed_again(scope, &keys));
            batch = batch.with(Write::Allow(keys));
        }
        let batch = self.recorded_before(batch, &entries, actor).await?;
        let applied = self.store.apply(self.with_fact(batch, fact).await).await?;
        self.record_after(&entries, actor).await?;
        self.last_put(scope, &applied).await
    }

    /// Says what is so instead of a fact, from a workspace that it may hold beyond. Its value is rejected.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` for a fact that does not hold any more, and for a model that replaces what its user
    /// settled or says what they rejected; `InvalidInput` that names the field; those of the store.
    pub async fn correct(
        &self,
        scope: &Scope,
        id: FactId,
        correction: Correction,
        (actor, told_in): (Actor, &Scope),
    ) -> Result<Fact> {
        let (old, erasures) = self.held(scope, id).await?;
        let now = self.clock.now();
        let slotted = old.slot().is_some();
        if slotted && correction.value.is_none() {
            return Err(Error::invalid(
                "value: required, because the fact has a subject and an attribute: give the \
                 correct value",
            ));
        }
        let mut fact = self.told(
            Remember {
                kind: old.kind,
                text: correction.text,
                // A fact without a slot keeps none of its parts: they need each other.
                subject: old.subject.clone().filter(|_| slotted),
                attribute: old.attribute.clone().filter(|_| slotted),
                value: correction.value.filter(|_| slotted),
                tags: old.tags.clone(),
            },
            actor,
            now,
        )?;
        fact.rejects = true;
        let rejections = &self.rejecting.rejections;
        let (rejected, allowed) = (rejections.keys_of(scope, &old), rejections.keys(scope, &fact));
        if rejected.iter().any(|key| allowed.contains(key)) {
            return Err(Error::invalid(
                "the correction is the same as the fact: give the correct text or value",
            ));
        }
        if !actor.decides() {
            self.may_replace(scope, &old).await?;
            self.may_tell(scope, told_in, &fact).await?;
        }
        let mut entries = vec![self.rejected(scope, &rejected)];
        let mut batch = WriteBatch::new(scope.clone(), now).with(Write::Reject(rejected));
        if self.store.is_rejected(scope, &allowed).await? {
            entries.push(self.allowed_again(scope, &allowed));
            batch = batch.with(Write::Allow(allowed));
        }
        let mut batch = self.recorded_before(batch, &entries, actor).await?;
        if !slotted {
            // A fact without a slot is not superseded by another statement, so it is retracted.
            let retraction = self.retraction(&old, actor, now);
            batch = batch.with(Write::PutFact(Box::new(retraction)));
        }
        let batch = self.with_fact(batch, fact).await;
        let applied = self.apply_to(id, erasures, batch).await?;
        self.record_after(&entries, actor).await?;
        self.last_put(scope, &applied).await
    }

    /// Takes a fact back. Its value is rejected. Answers the fact as it is then.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` for a fact that does not hold any more; those of the store.
    pub async fn retract(&self, scope: &Scope, id: FactId, actor: Actor) -> Result<Fact> {
        let (old, erasures) = self.held(scope, id).await?;
        let now = self.clock.now();
        let retraction = self.retraction(&old, actor, now);
        let keys = self.rejecting.rejections.keys_of(scope, &old);
        let entries = [self.rejected(scope, &keys)];
        let batch = WriteBatch::new(scope.clone(), now).with(Write::Reject(keys));
        let batch = self.recorded_before(batch, &entries, actor).await?;
        self.apply_to(id, erasures, batch.with(Write::PutFact(Box::new(retraction)))).await?;
        self.record_after(&entries, actor).await?;
        self.get(scope, id).await
    }

    /// Does again what the ledger says was rejected: the keys are kept, and what holds under them in a
    /// backup that was restored is taken back.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn reject_again(
        &self,
        scope: &Scope,
        keys: &[RejectionKey],
        number: u64,
    ) -> Result<()> {
        let mut attempt = 1;
        loop {
            let batch = self.rejected_again(scope, keys, number).await?;
            match self.store.apply(batch).await {
                Err(error) if error.is_lost_race() && attempt < ATTEMPTS => attempt += 1,
                applied => return applied.map(|_| ()),
            }
        }
    }

    async fn rejected_again(
        &self,
        scope: &Scope,
        keys: &[RejectionKey],
        number: u64,
    ) -> Result<WriteBatch> {
        let now = self.clock.now();
        let mut batch = WriteBatch::new(scope.clone(), now)
            .with(Write::Reject(keys.to_vec()))
            .with(Write::NoteErasure(number));
        let erasures = self.store.erasures(scope).await?;
        batch.preconditions.extend(erasures.map(Precondition::IfErasures));
        let mut page = PageRequest::first(MAX_PAGE)?;
        loop {
            let found = self.store.facts(scope, &page).await?;
            for fact in found.items.iter().filter(|fact| fact.holds()) {
                let own = self.rejecting.rejections.keys_of(scope, fact);
                if own.iter().any(|key| keys.contains(key)) {
                    let retraction = self.retraction(fact, Actor::Api, now);
                    batch = batch.with(Write::PutFact(Box::new(retraction)));
                }
            }
            match found.next_cursor {
                Some(cursor) => page = PageRequest::first(MAX_PAGE)?.after(&cursor)?,
                None => return Ok(batch),
            }
        }
    }

    /// The entry of a rejection.
    fn rejected(&self, scope: &Scope, keys: &[RejectionKey]) -> LedgerEntry {
        let keys = keys.iter().map(|key| *key.as_bytes()).collect();
        LedgerEntry::Rejected { scope: self.rejecting.names.scope(scope), keys }
    }

    /// The entry of a rejection that ended.
    fn allowed_again(&self, scope: &Scope, keys: &[RejectionKey]) -> LedgerEntry {
        let keys = keys.iter().map(|key| *key.as_bytes()).collect();
        LedgerEntry::AllowedAgain { scope: self.rejecting.names.scope(scope), keys }
    }

    /// Records what a batch rejects and allows before it is applied, so that a crash loses nothing of a user's
    /// decision. A model's is recorded by [`Self::record_after`]: the store may still refuse it, because its user
    /// decided otherwise meanwhile, and what is recorded would be done at the next start all the same.
    async fn recorded_before(
        &self,
        mut batch: WriteBatch,
        entries: &[LedgerEntry],
        actor: Actor,
    ) -> Result<WriteBatch> {
        if actor != Actor::Model {
            for entry in entries {
                let number = self.rejecting.ledger.record(entry, batch.now).await?;
                batch = batch.with(Write::NoteErasure(number));
            }
        }
        Ok(batch)
    }

    /// Records what a model rejected and allowed.
    async fn record_after(&self, entries: &[LedgerEntry], actor: Actor) -> Result<()> {
        if actor == Actor::Model {
            for entry in entries {
                let number = self.rejecting.ledger.record(entry, self.clock.now()).await?;
                self.store.note_erasures(&[number]).await?;
            }
        }
        Ok(())
    }

    /// A fact that can be corrected or taken back: one that holds. Beside it the erasures of the scope
    /// before it was read.
    async fn held(&self, scope: &Scope, id: FactId) -> Result<(Fact, u64)> {
        let erasures = self.store.erasures(scope).await?.ok_or_else(no_fact)?;
        let fact = self.get(scope, id).await?;
        if fact.holds() {
            return Ok((fact, erasures));
        }
        Err(Error::conflict("the fact is no longer valid: `superseded_by` names what replaced it"))
    }

    /// Applies a batch that is in words of a fact, unless these were erased since they were read. What
    /// it rejects and allows was recorded and is applied in any case: it has no words.
    async fn apply_to(&self, id: FactId, mut erasures: u64, batch: WriteBatch) -> Result<Applied> {
        let mut attempt = 1;
        let failed = loop {
            let guarded = batch.clone().with_precondition(Precondition::IfErasures(erasures));
            match self.store.apply(guarded).await {
                Err(error) if error.is_lost_race() && attempt == ATTEMPTS => break error,
                Err(error) if error.is_lost_race() => attempt += 1,
                applied => return applied,
            }
            match self.held(&batch.scope, id).await {
                // The text of a fact never changes.
                Ok((_, now)) => erasures = now,
                Err(error) => break error,
            }
        };
        let is_recorded = |write: &Write| matches!(write, Write::NoteErasure(_));
        if batch.writes.iter().any(is_recorded) {
            let mut recorded = WriteBatch::new(batch.scope, batch.now);
            let has_words = |write: &Write| matches!(write, Write::PutFact(_));
            recorded.writes = batch.writes.into_iter().filter(|write| !has_words(write)).collect();
            self.store.apply(recorded).await?;
        }
        Err(failed)
    }

    /// Adds a fact with its vector.
    async fn with_fact(&self, mut batch: WriteBatch, mut fact: NewFact) -> WriteBatch {
        if let Some(embeddings) = &self.embeddings {
            let mut beside = Vec::new();
            batch.space = embeddings.prepare_fact(&mut fact, &mut beside, batch.now).await;
            batch.writes.extend(beside);
        }
        batch.with(Write::PutFact(Box::new(fact)))
    }

    /// The fact that was put last. A repeat made its fact the first time.
    async fn last_put(&self, scope: &Scope, applied: &Applied) -> Result<Fact> {
        let id = applied.facts.last().ok_or_else(no_fact)?;
        self.get(scope, *id).await
    }

    fn retraction(&self, old: &Fact, actor: Actor, now: Timestamp) -> NewFact {
        NewFact {
            id: FactId::from_uuid(self.ids.next()),
            kind: FactKind::Retraction,
            text: old.text.clone(),
            subject: old.subject.clone(),
            attribute: old.attribute.clone(),
            value: Some(
                old.value
                    .clone()
                    .filter(|_| old.slot().is_some())
                    .unwrap_or_else(|| old.text.clone()),
            ),
            tags: old.tags.clone(),
            observed_at: now.max(old.observed_at),
            unit: analyze(&old.text, &old.tags),
            refers: None,
            extracted_by: None,
            actor,
            stated_in: None,
            rejection: Vec::new(),
            rejects: true,
            stated_now: false,
        }
    }

    fn told(&self, new: Remember, actor: Actor, now: Timestamp) -> Result<NewFact> {
        let Remember { kind, text, subject, attribute, value, mut tags } = new;
        if kind == FactKind::Retraction {
            return Err(Error::invalid(
                "kind: a retraction cannot be added as a fact: retract the fact itself",
            ));
        }
        let guarded = |field: &str, text: &str, most: usize| {
            checked(field, text, most).map(|text| self.secrets.shown(&text).into_owned())
        };
        let text = guarded("text", &text, MAX_FACT_CHARS)?;
        let part = |field: &str, part: Option<String>, most: usize| {
            part.map(|part| guarded(field, &part, most)).transpose()
        };
        let subject = part("subject", subject, MAX_NAME_BYTES)?;
        let attribute = part("attribute", attribute, MAX_NAME_BYTES)?;
        let value = part("value", value, MAX_FACT_CHARS)?;
        let slotted = subject.is_some() && attribute.is_some();
        if slotted != value.is_some() || subject.is_some() != attribute.is_some() {
            return Err(Error::invalid(
                "subject, attribute and value: give all three or none of them",
            ));
        }
        if tags.len() > MAX_TAGS {
            return Err(Error::invalid(format!("tags: at most {MAX_TAGS}")));
        }
        for tag in &mut tags {
            *tag = checked("tags", tag, MAX_NAME_BYTES)?;
        }
        tags.sort_unstable();
        tags.dedup();
        Ok(NewFact {
            id: FactId::from_uuid(self.ids.next()),
            kind,
            unit: analyze(&text, &tags),
            text,
            subject,
            attribute,
            value,
            tags,
            observed_at: now,
            refers: None,
            extracted_by: None,
            actor,
            stated_in: None,
            rejection: Vec::new(),
            rejects: false,
            stated_now: false,
        })
    }
}

fn no_fact() -> Error {
    Error::not_found("there is no fact with this id")
}

/// A text on one line.
fn checked(field: &str, text: &str, most: usize) -> Result<String> {
    let folded = fold_spaces(text);
    if folded.is_empty() || folded.chars().count() > most || folded.chars().any(is_forbidden) {
        return Err(Error::invalid(format!(
            "{field}: 1 to {most} characters of text without control characters"
        )));
    }
    Ok(folded)
}
