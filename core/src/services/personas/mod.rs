//! Making, listing, changing and deleting personas. Other things that one can do with them are in the files
//! beside this one, on the same service.

mod chat;
mod conversation;
mod presets;
mod ratings;
mod transfer;
mod upkeep;

use std::sync::Arc;

use crate::error::{Error, ErrorKind, Result};
use crate::ids::{PersonaId, PresetId};
use crate::persona::{
    BackupReason, Finding, Listed, NewPersona, Overrides, Persona, PersonaChange, PersonaLimits,
    PresetUse, Settings, Slice, Status, days, findings, fits,
};
use crate::ports::{
    Clock, Erased, IdGen, Idempotency, Precondition, RecordKey, Store, Write, WriteBatch,
};
use crate::scope::Scope;
use crate::secret::SecretPolicy;
use crate::services::contexts::ContextService;
use crate::services::erasure::EraseService;
use crate::services::removals::Removals;
use crate::services::sessions::SessionService;
use crate::time::Timestamp;
use crate::tokens::Tokenizer;

pub use chat::{ChatResult, CommitOptions};
pub use conversation::{Conversation, ConversationFilter, Hit};
pub use presets::PresetService;
pub use transfer::TakenIn;
pub use upkeep::{UPKEEP_JOB, Upkept};

/// How often a change is rebuilt when another writer came first.
const ATTEMPTS: usize = 4;
/// Personas that an error names where the one asked for is not there.
const NAMED: usize = 10;

/// The ports of personas.
#[derive(Clone)]
pub struct PersonaPorts {
    /// The store.
    pub store: Arc<dyn Store>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Ids of what is made.
    pub ids: Arc<dyn IdGen>,
    /// The tokenizer of budgets.
    pub tokenizer: Arc<dyn Tokenizer>,
    /// Conversations.
    pub sessions: SessionService,
    /// Recall.
    pub contexts: ContextService,
    /// Erasure.
    pub erase: EraseService,
    /// What records the removal of presets.
    pub removals: Removals,
    /// How much there may be.
    pub limits: PersonaLimits,
    /// What a model is shown of the secrets in prompts and exports.
    pub secrets: SecretPolicy,
}

/// A stored item with the problems of its prompt.
#[derive(Debug, Clone, PartialEq)]
pub struct Checked<T> {
    /// The stored item.
    pub value: T,
    /// The problems of its prompt.
    pub findings: Vec<Finding>,
}

/// A persona to make from a preset.
#[derive(Debug, Clone, PartialEq)]
pub struct FromPreset {
    /// The preset.
    pub preset: PresetId,
    /// A name in place of the preset's.
    pub name: Option<String>,
    /// Settings in place of the preset's.
    pub settings: Overrides,
    /// See [`Persona::memory`].
    pub memory: bool,
    /// For organization.
    pub tags: Vec<String>,
}

impl FromPreset {
    /// One as the preset has it.
    #[must_use]
    pub fn new(preset: PresetId) -> Self {
        let settings = Overrides::default();
        Self { preset, name: None, settings, memory: false, tags: Vec::new() }
    }
}

/// Which personas to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PersonaFilter {
    /// Those with this tag.
    pub tag: Option<String>,
    /// Those, too, that have expired.
    pub include_expired: bool,
    /// Those, too, that were deleted and can be restored.
    pub include_deleted: bool,
}

/// Personas of a scope.
#[derive(Clone)]
pub struct PersonaService {
    ports: PersonaPorts,
    presets: PresetService,
    /// Whether errors name the personas that there are.
    names: bool,
}

impl PersonaService {
    /// A service over its ports.
    #[must_use]
    pub fn new(ports: PersonaPorts) -> Self {
        let presets = PresetService::new(&ports);
        Self { ports, presets, names: true }
    }

    /// The same, whose errors name no personas: for a caller who may not read them.
    #[must_use]
    pub fn without_names(self) -> Self {
        Self { names: false, ..self }
    }

    /// The presets that personas are made from.
    #[must_use]
    pub fn presets(&self) -> &PresetService {
        &self.presets
    }

    /// How much there may be.
    #[must_use]
    pub fn limits(&self) -> &PersonaLimits {
        &self.ports.limits
    }

    /// The time by the clock that expiry uses.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.ports.clock.now()
    }

    /// Makes a persona, and opens the session of its conversation.
    ///
    /// # Errors
    /// `InvalidInput` that names the field; `Conflict` past the limit, and when the idempotency key stands
    /// for another request; those of the store.
    pub async fn create(
        &self,
        scope: &Scope,
        new: NewPersona,
        idempotency: Option<Idempotency>,
    ) -> Result<Checked<Persona>> {
        let id = self.new_id(idempotency);
        let persona =
            Persona::begin(id, new, None, Settings::default(), self.limits(), self.now())?;
        self.begin(scope, persona, Vec::new(), idempotency).await
    }

    /// Makes a persona from a preset, with what is said in place of the preset's.
    ///
    /// # Errors
    /// As [`Self::create`]; `NotFound` with the presets that there are; `Conflict` for one that is not
    /// active.
    pub async fn create_from_preset(
        &self,
        scope: &Scope,
        from: FromPreset,
        idempotency: Option<Idempotency>,
    ) -> Result<Checked<Persona>> {
        let preset = self.presets.get(scope, &from.preset).await?.preset;
        if !preset.is_active {
            return Err(Error::conflict(format!(
                "the preset {} is not active: activate it, or choose another",
                preset.id
            )));
        }
        let new = NewPersona {
            name: from.name.unwrap_or(preset.name),
            system_prompt: preset.system_prompt,
            personality: preset.default_personality,
            settings: from.settings,
            memory: from.memory,
            tags: from.tags,
        };
        let id = self.new_id(idempotency);
        let of = Some((preset.id.clone(), Some(preset.version)));
        let persona = Persona::begin(id, new, of, preset.settings, self.limits(), self.now())?;
        let used = PresetUse { contexts: 1, ..PresetUse::default() };
        self.begin(scope, persona, vec![Write::CountPreset(preset.id, used)], idempotency).await
    }

    /// Of a repeat the id is the same, which is how the first one is found again.
    fn new_id(&self, idempotency: Option<Idempotency>) -> PersonaId {
        PersonaId::from_uuid(match idempotency {
            Some(repeat) => uuid::Builder::from_random_bytes(repeat.key).into_uuid(),
            None => self.ports.ids.next(),
        })
    }

    async fn begin(
        &self,
        scope: &Scope,
        persona: Persona,
        beside: Vec<Write>,
        idempotency: Option<Idempotency>,
    ) -> Result<Checked<Persona>> {
        let found = self.checked(&persona)?;
        if idempotency.is_none() || self.ports.store.persona(scope, persona.id).await?.is_none() {
            self.check_room(scope).await?;
        }
        let (id, now) = (persona.id, persona.created_at);
        let opened = Write::OpenSession { session: persona.session.clone(), created_at: now };
        let mut batch = WriteBatch::new(scope.clone(), now)
            .with_idempotency(idempotency)
            .with_precondition(Precondition::IfAbsent(RecordKey::Persona(id)))
            .with(opened)
            .with(Write::PutPersona(Box::new(persona)))
            .with(self.upkeep_later(now));
        batch.writes.extend(beside);
        self.ports.store.apply(batch).await?;
        // A repeat made it the first time.
        Ok(Checked { value: self.get(scope, id).await?, findings: found })
    }

    /// The problems of a persona's prompt.
    #[must_use]
    pub fn findings(&self, persona: &Persona) -> Vec<Finding> {
        let Persona { system_prompt, personality, settings, .. } = persona;
        findings(system_prompt, personality, settings, &*self.ports.tokenizer)
    }

    /// The problems of a persona that can be stored.
    fn checked(&self, persona: &Persona) -> Result<Vec<Finding>> {
        let Persona { system_prompt, personality, settings, .. } = persona;
        fits(system_prompt, personality, settings, &*self.ports.tokenizer)?;
        Ok(self.findings(persona))
    }

    /// Whether another persona may be made.
    async fn check_room(&self, scope: &Scope) -> Result<()> {
        let most = self.limits().contexts;
        let held = self.ports.store.personas(scope).await?;
        let active = held.iter().filter(|persona| persona.is_active()).count();
        if active >= most {
            return Err(Error::conflict(format!(
                "there are {active} contexts, the maximum: delete one before you create another"
            )));
        }
        if held.len() >= 2 * most {
            return Err(Error::conflict(format!(
                "{} deleted contexts are in their grace period, the maximum: erase some of them \
                 permanently",
                held.len() - active
            )));
        }
        Ok(())
    }

    /// Personas in the order in which they were made.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn list(
        &self,
        scope: &Scope,
        filter: &PersonaFilter,
        slice: Slice,
    ) -> Result<Listed<Persona>> {
        let now = self.now();
        let mut all = self.ports.store.personas(scope).await?;
        all.retain(|persona| {
            let wanted = match persona.status(now) {
                Status::Active | Status::Expiring => true,
                Status::Expired => filter.include_expired,
                Status::Deleted => filter.include_deleted,
            };
            wanted && filter.tag.as_ref().is_none_or(|tag| persona.tags.contains(tag))
        });
        Ok(Listed::of(all, slice))
    }

    /// The persona under an id. One that has expired is there; one that was deleted is not.
    ///
    /// # Errors
    /// `NotFound` with the personas that there are; those of the store.
    pub async fn get(&self, scope: &Scope, id: PersonaId) -> Result<Persona> {
        match self.ports.store.persona(scope, id).await? {
            Some(persona) if persona.is_active() => Ok(persona),
            Some(_) => Err(Error::not_found(
                "this context was deleted: `restore` brings it back until its grace period ends",
            )),
            None => Err(self
                .none(scope, ErrorKind::NotFound, "there is no context with this id")
                .await?),
        }
    }

    /// Parses an id. The error for an invalid id lists the existing personas.
    ///
    /// # Errors
    /// `InvalidInput` for an invalid id; those of the store.
    pub async fn id_of(&self, scope: &Scope, text: &str) -> Result<PersonaId> {
        match text.parse() {
            Ok(id) => Ok(id),
            Err(_) => {
                let what = "a context id must be a UUID";
                Err(self.none(scope, ErrorKind::InvalidInput, what).await?)
            }
        }
    }

    /// An error that lists the existing personas, if they may be named.
    async fn none(&self, scope: &Scope, kind: ErrorKind, what: &str) -> Result<Error> {
        if !self.names {
            return Ok(Error::new(kind, what));
        }
        let mut held = self.ports.store.personas(scope).await?;
        held.retain(Persona::is_active);
        let named: Vec<String> =
            held.iter().take(NAMED).map(|held| format!("{} ({})", held.name, held.id)).collect();
        let more = match held.len().saturating_sub(NAMED) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Ok(Error::new(
            kind,
            match named.as_slice() {
                [] => format!("{what}; there are no contexts yet: create one"),
                named => format!("{what}; available: {}{more}", named.join(", ")),
            },
        ))
    }

    /// Changes a persona; with `expected`, only this version of it.
    ///
    /// # Errors
    /// `NotFound`; `InvalidInput` that names the field; `Conflict` for another version; those of the store.
    pub async fn update(
        &self,
        scope: &Scope,
        id: PersonaId,
        change: &PersonaChange,
        expected: Option<u64>,
    ) -> Result<Checked<Persona>> {
        let change = |held: &Persona, now| {
            let changed = held.changed(change, self.limits(), now)?;
            self.checked(&changed)?;
            let same =
                Persona { version: held.version, updated_at: held.updated_at, ..changed.clone() };
            // What changes nothing raises no version.
            Ok(if same == *held { same } else { changed })
        };
        let value = self.change(scope, id, (expected, None), change).await?;
        Ok(Checked { findings: self.checked(&value)?, value })
    }

    /// Makes the expiry so many days later, of its own `expiry_days` where none are given: from now on where
    /// it has passed.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub async fn extend(&self, scope: &Scope, id: PersonaId, days: Option<u32>) -> Result<Persona> {
        self.extend_once(scope, id, days, None).await
    }

    /// As [`Self::extend`], of which a repeat adds no days.
    ///
    /// # Errors
    /// As [`Self::update`]; `Conflict` when the idempotency key stands for another request.
    pub async fn extend_once(
        &self,
        scope: &Scope,
        id: PersonaId,
        days: Option<u32>,
        idempotency: Option<Idempotency>,
    ) -> Result<Persona> {
        self.change(scope, id, (None, idempotency), |held, now| {
            let mut changed = held.clone();
            changed.extend(days.unwrap_or(held.settings.expiry_days), now)?;
            (changed.updated_at, changed.version) = (now, held.version + 1);
            Ok(changed)
        })
        .await
    }

    /// Rebuilds a change until no other writer comes first, a bounded number of times.
    async fn change(
        &self,
        scope: &Scope,
        id: PersonaId,
        (expected, idempotency): (Option<u64>, Option<Idempotency>),
        change: impl Fn(&Persona, Timestamp) -> Result<Persona> + Send + Sync,
    ) -> Result<Persona> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let held = self.get(scope, id).await?;
            check_version(held.version, expected)?;
            let now = self.now();
            let changed = change(&held, now)?;
            let batch = replace(scope, &held, changed.clone(), now).with_idempotency(idempotency);
            match self.ports.store.apply(batch).await {
                Ok(applied) if applied.repeated => return self.get(scope, id).await,
                Ok(_) => return Ok(changed),
                Err(error) if attempt < ATTEMPTS && error.is_lost_race() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Deletes a persona: it is backed up and hidden, and can be restored until its grace ends.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` for another version than `expected`; those of the store.
    pub async fn delete(
        &self,
        scope: &Scope,
        id: PersonaId,
        expected: Option<u64>,
    ) -> Result<Persona> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let held = self.get(scope, id).await?;
            check_version(held.version, expected)?;
            match self.put_away(scope, &held, BackupReason::Deletion).await {
                Err(error) if attempt < ATTEMPTS && error.is_lost_race() => {}
                deleted => return deleted,
            }
        }
    }

    /// Backs a persona up and hides it.
    async fn put_away(
        &self,
        scope: &Scope,
        held: &Persona,
        reason: BackupReason,
    ) -> Result<Persona> {
        let now = self.now();
        let (backup, preconditions) = self.backed_up(scope, held, reason, now).await?;
        let changed = Persona {
            deleted_at: Some(now),
            backed_up_at: Some(now),
            version: held.version + 1,
            ..held.clone()
        };
        let mut batch =
            replace(scope, held, changed.clone(), now).with(backup).with(self.upkeep_later(now));
        batch.preconditions.extend(preconditions);
        self.ports.store.apply(batch).await?;
        Ok(changed)
    }

    /// Restores a persona that was deleted; its expiry counts from now.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` for one that is not deleted, and past the limit; those of the store.
    pub async fn restore(&self, scope: &Scope, id: PersonaId) -> Result<Persona> {
        let Some(held) = self.ports.store.persona(scope, id).await? else {
            return self.get(scope, id).await;
        };
        if held.is_active() {
            return Err(Error::conflict(
                "the context is not deleted, so there is nothing to restore",
            ));
        }
        let active = self.ports.store.personas(scope).await?;
        if active.iter().filter(|persona| persona.is_active()).count() >= self.limits().contexts {
            return Err(Error::conflict(
                "the limit of contexts is reached: delete one before you restore another",
            ));
        }
        let now = self.now();
        let mut changed = Persona { deleted_at: None, version: held.version + 1, ..held.clone() };
        changed.updated_at = now;
        changed.expires_at = changed.expires_at.max(now.plus(days(held.settings.expiry_days)));
        let batch = replace(scope, &held, changed.clone(), now).with(self.upkeep_later(now));
        self.ports.store.apply(batch).await?;
        Ok(changed)
    }

    /// Erases a persona, deleted or not: its conversation with everything that was made from it, its backups,
    /// and itself. It cannot be undone.
    ///
    /// # Errors
    /// `NotFound`; those of [`EraseService::session`].
    pub async fn erase(&self, scope: &Scope, id: PersonaId) -> Result<Erased> {
        match self.ports.store.persona(scope, id).await? {
            Some(held) => self.ports.erase.session(scope, &held.session).await,
            None => self.get(scope, id).await.map(|_| Erased::default()),
        }
    }
}

/// A batch that keeps a persona in place of the one that it was made from.
fn replace(scope: &Scope, held: &Persona, changed: Persona, now: Timestamp) -> WriteBatch {
    let key = RecordKey::Persona(held.id);
    WriteBatch::new(scope.clone(), now)
        .with_precondition(Precondition::IfVersion(key, held.version))
        .with(Write::PutPersona(Box::new(changed)))
}

/// Whether what is held is what the caller has read.
fn check_version(held: u64, expected: Option<u64>) -> Result<()> {
    match expected {
        Some(expected) if expected != held => Err(Error::conflict(format!(
            "version {expected} was expected, but the current version is {held}: read it again, \
             then repeat the change"
        ))),
        _ => Ok(()),
    }
}
