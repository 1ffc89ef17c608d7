//! Presets: the built-in ones, and those of a scope's own.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::{ATTEMPTS, Checked, PersonaPorts, check_version};
use crate::error::{Error, Result};
use crate::ids::PresetId;
use crate::persona::{
    Finding, Listed, NewPreset, PersonaLimits, Preset, PresetChange, PresetUse, PresetView, Slice,
    built_in, findings, fits,
};
use crate::ports::{
    Clock, IdGen, Idempotency, LedgerEntry, Precondition, RecordKey, Store, Write, WriteBatch,
};
use crate::scope::Scope;
use crate::services::removals::Removals;
use crate::tokens::Tokenizer;

/// Presets of a scope.
#[derive(Clone)]
pub struct PresetService {
    store: Arc<dyn Store>,
    clock: Arc<dyn Clock>,
    ids: Arc<dyn IdGen>,
    tokenizer: Arc<dyn Tokenizer>,
    limits: PersonaLimits,
    removals: Removals,
}

impl PresetService {
    /// A service over the ports of personas.
    #[must_use]
    pub fn new(ports: &PersonaPorts) -> Self {
        Self {
            store: Arc::clone(&ports.store),
            clock: Arc::clone(&ports.clock),
            ids: Arc::clone(&ports.ids),
            tokenizer: Arc::clone(&ports.tokenizer),
            limits: ports.limits,
            removals: ports.removals.clone(),
        }
    }

    /// The built-in presets, then the scope's own in the order in which they were made; those that are not
    /// active only where they are asked for.
    ///
    /// # Errors
    /// Those of the store.
    pub async fn list(
        &self,
        scope: &Scope,
        include_inactive: bool,
        slice: Slice,
    ) -> Result<Listed<PresetView>> {
        let uses: BTreeMap<PresetId, PresetUse> =
            self.store.preset_uses(scope).await?.into_iter().collect();
        let own = self.store.presets(scope).await?;
        let own = own.into_iter().filter(|preset| include_inactive || preset.is_active);
        let all = built_in().into_iter().map(|preset| (preset, true));
        let all: Vec<_> = all.chain(own.map(|preset| (preset, false))).collect();
        Ok(Listed::of(all, slice).map(|(preset, is_built_in)| {
            let usage = uses.get(&preset.id).copied().unwrap_or_default();
            PresetView { findings: self.findings(&preset), preset, is_built_in, usage }
        }))
    }

    /// The preset under an id, whether it is active or not.
    ///
    /// # Errors
    /// `NotFound` with the presets that there are; those of the store.
    pub async fn get(&self, scope: &Scope, id: &PresetId) -> Result<PresetView> {
        let ours = built_in().into_iter().find(|preset| preset.id == *id);
        let is_built_in = ours.is_some();
        let preset = match ours {
            Some(preset) => preset,
            None => self.own(scope, id).await?,
        };
        let uses = self.store.preset_uses(scope).await?;
        let usage = uses.into_iter().find(|(of, _)| of == id).map(|(_, usage)| usage);
        let findings = self.findings(&preset);
        Ok(PresetView { preset, is_built_in, usage: usage.unwrap_or_default(), findings })
    }

    /// Makes a preset of the scope's own.
    ///
    /// # Errors
    /// `InvalidInput` that names the field; `Conflict` for an id that there is, past the limit, and when the
    /// idempotency key stands for another request; those of the store.
    pub async fn create(
        &self,
        scope: &Scope,
        new: &NewPreset,
        idempotency: Option<Idempotency>,
    ) -> Result<Checked<Preset>> {
        let id = match (&new.id, idempotency) {
            (Some(id), _) => id.clone(),
            // A repeated call makes a preset with the same id.
            (None, Some(repeat)) => made(uuid::Builder::from_random_bytes(repeat.key).into_uuid())?,
            (None, None) => made(self.ids.next())?,
        };
        if built_in().iter().any(|preset| preset.id == id) {
            return Err(Error::conflict(format!("{id} is a built-in preset: choose another id")));
        }
        let now = self.clock.now();
        let preset = Preset::begin(id.clone(), new, &self.limits, now)?;
        self.check(&preset)?;
        let held = self.store.presets(scope).await?;
        let is_there = held.iter().any(|preset| preset.id == id);
        let taken = || Error::conflict(format!("the preset {id} already exists: update it"));
        if is_there && idempotency.is_none() {
            return Err(taken());
        }
        if !is_there && held.len() >= self.limits.presets {
            return Err(Error::conflict(format!(
                "you have {} presets, the maximum: remove one permanently by deleting it twice",
                held.len()
            )));
        }
        let batch = WriteBatch::new(scope.clone(), now)
            .with_idempotency(idempotency)
            .with_precondition(Precondition::IfAbsent(RecordKey::Preset(id.clone())))
            .with(Write::PutPreset(Box::new(preset)));
        match self.store.apply(batch).await {
            Err(error) if error.is_lost_race() => Err(taken()),
            Err(error) => Err(error),
            Ok(_) => {
                let value = self.own(scope, &id).await?;
                Ok(Checked { findings: self.findings(&value), value })
            }
        }
    }

    /// Changes a preset of the scope's own; with `expected`, only this version of it. Personas that were made
    /// from it stay as they are.
    ///
    /// # Errors
    /// `NotFound`; `Conflict` for a built-in preset and for another version; `InvalidInput` that names the
    /// field; those of the store.
    pub async fn update(
        &self,
        scope: &Scope,
        id: &PresetId,
        change: &PresetChange,
        expected: Option<u64>,
    ) -> Result<Checked<Preset>> {
        let mut attempt = 0;
        loop {
            attempt += 1;
            let held = self.writable(scope, id).await?;
            check_version(held.version, expected)?;
            let now = self.clock.now();
            let changed = held.changed(change, &self.limits, now)?;
            self.check(&changed)?;
            let same =
                Preset { version: held.version, updated_at: held.updated_at, ..changed.clone() };
            if same == held {
                return Ok(Checked { findings: self.findings(&held), value: held });
            }
            match self.put(scope, &held, &changed).await {
                Ok(()) => {
                    return Ok(Checked { findings: self.findings(&changed), value: changed });
                }
                Err(error) if attempt < ATTEMPTS && error.is_lost_race() => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Deletes a preset of the scope's own: it is not active any more. Deleting one that is not active
    /// removes it, whatever backup is restored. Returns whether it is still there.
    ///
    /// # Errors
    /// As [`Self::update`].
    pub async fn delete(
        &self,
        scope: &Scope,
        id: &PresetId,
        expected: Option<u64>,
    ) -> Result<bool> {
        let held = self.writable(scope, id).await?;
        check_version(held.version, expected)?;
        let now = self.clock.now();
        if held.is_active {
            let changed = Preset {
                is_active: false,
                updated_at: now,
                version: held.version + 1,
                ..held.clone()
            };
            self.put(scope, &held, &changed).await?;
            return Ok(true);
        }
        let key = RecordKey::Preset(id.clone());
        let batch = WriteBatch::new(scope.clone(), now)
            .with_precondition(Precondition::IfVersion(key, held.version))
            .with(Write::RemovePreset(id.clone()));
        let names = self.removals.names();
        let entry =
            LedgerEntry::Preset { scope: names.scope(scope), preset: names.preset(scope, id) };
        self.removals.remove(entry, self.store.apply(batch)).await.map(|_| false)
    }

    async fn put(&self, scope: &Scope, held: &Preset, changed: &Preset) -> Result<()> {
        let key = RecordKey::Preset(held.id.clone());
        let batch = WriteBatch::new(scope.clone(), changed.updated_at)
            .with_precondition(Precondition::IfVersion(key, held.version))
            .with(Write::PutPreset(Box::new(changed.clone())));
        self.store.apply(batch).await.map(|_| ())
    }

    /// A preset that may be changed.
    async fn writable(&self, scope: &Scope, id: &PresetId) -> Result<Preset> {
        if built_in().iter().any(|preset| preset.id == *id) {
            return Err(Error::conflict(format!(
                "{id} is a built-in preset and cannot be changed: create your own instead"
            )));
        }
        self.own(scope, id).await
    }

    async fn own(&self, scope: &Scope, id: &PresetId) -> Result<Preset> {
        if let Some(preset) = self.store.preset(scope, id).await? {
            return Ok(preset);
        }
        let mut there: Vec<String> =
            built_in().iter().map(|preset| preset.id.to_string()).collect();
        let own = self.store.presets(scope).await?;
        there.extend(own.iter().filter(|preset| preset.is_active).map(|own| own.id.to_string()));
        Err(Error::not_found(format!(
            "there is no preset with this id; available: {}",
            there.join(", ")
        )))
    }

    fn check(&self, preset: &Preset) -> Result<()> {
        let Preset { system_prompt, default_personality, settings, .. } = preset;
        fits(system_prompt, default_personality, settings, &*self.tokenizer)
    }

    fn findings(&self, preset: &Preset) -> Vec<Finding> {
        let Preset { system_prompt, default_personality, settings, .. } = preset;
        findings(system_prompt, default_personality, settings, &*self.tokenizer)
    }
}

fn made(id: uuid::Uuid) -> Result<PresetId> {
    PresetId::new(format!("preset-{id}"))
}
