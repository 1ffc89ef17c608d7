//! Presets: complete characters that personas are made from. Built-in ones are values in the code, and can only be read.

use serde_json::{Map, Value};

use super::rules::{line, text};
use super::{Finding, Overrides, PersonaLimits, Settings};
use crate::error::{Error, Result};
use crate::ids::{MAX_NAME_BYTES, PresetId};
use crate::secret::{SecretPolicy, given_back};
use crate::time::Timestamp;

/// Longest description, in bytes.
const MAX_DESCRIPTION_BYTES: usize = 2_000;
/// Most bytes of metadata.
const MAX_METADATA_BYTES: usize = 16 << 10;

/// A complete character that personas are made from.
#[derive(Debug, Clone, PartialEq)]
pub struct Preset {
    /// Its id.
    pub id: PresetId,
    /// A name for people.
    pub name: String,
    /// Its purpose.
    pub description: String,
    /// The system prompt of its personas.
    pub system_prompt: String,
    /// The personality of its personas.
    pub default_personality: String,
    /// The settings of its personas.
    pub settings: Settings,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last edited.
    pub updated_at: Timestamp,
    /// Whether personas are made from it.
    pub is_active: bool,
    /// A JSON object, kept and not interpreted.
    pub metadata: Option<String>,
    /// Increases with every change.
    pub version: u64,
}

impl Preset {
    /// The same as a model may read it.
    #[must_use]
    pub fn for_model(self, secrets: SecretPolicy) -> Self {
        let shown = |text: &str| secrets.shown(text).into_owned();
        Self {
            description: shown(&self.description),
            system_prompt: shown(&self.system_prompt),
            default_personality: shown(&self.default_personality),
            metadata: self.metadata.map(|json| secrets.shown_json(&json).into_owned()),
            ..self
        }
    }
}

/// How often a preset was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PresetUse {
    /// Personas made from it.
    pub contexts: u64,
    /// Turns that these answered.
    pub turns: u64,
    /// Turns of these that were sent without all of their history.
    pub truncations: u64,
}

impl PresetUse {
    /// Adds another count.
    pub fn add(&mut self, other: &Self) {
        self.contexts += other.contexts;
        self.turns += other.turns;
        self.truncations += other.truncations;
    }
}

/// A preset as it is shown.
#[derive(Debug, Clone, PartialEq)]
pub struct PresetView {
    /// The preset.
    pub preset: Preset,
    /// Whether it is built in.
    pub is_built_in: bool,
    /// How often it was used in the scope.
    pub usage: PresetUse,
    /// The problems of its prompt.
    pub findings: Vec<Finding>,
}

/// A preset to make.
#[derive(Debug, Clone, PartialEq)]
pub struct NewPreset {
    /// Its id; one is made where it is not given.
    pub id: Option<PresetId>,
    /// A name for people.
    pub name: String,
    /// Its purpose.
    pub description: String,
    /// The system prompt of its personas.
    pub system_prompt: String,
    /// The personality of its personas.
    pub default_personality: String,
    /// Missing values have their defaults.
    pub settings: Overrides,
    /// A JSON object.
    pub metadata: Option<String>,
}

/// The fields to change; `None` leaves a field as it is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PresetChange {
    /// A new name.
    pub name: Option<String>,
    /// A new description.
    pub description: Option<String>,
    /// A new system prompt.
    pub system_prompt: Option<String>,
    /// A new personality.
    pub default_personality: Option<String>,
    /// New settings.
    pub settings: Overrides,
    /// Whether personas are made from it.
    pub is_active: Option<bool>,
    /// Other metadata.
    pub metadata: Option<String>,
}

impl PresetChange {
    /// The same by a model that was shown `held` with its secrets masked: what it gives back masked stays as it was.
    #[must_use]
    pub fn by_model(self, held: &Preset) -> Self {
        let back = |text: Option<String>, held: &str| text.map(|text| given_back(&text, held));
        Self {
            description: back(self.description, &held.description),
            system_prompt: back(self.system_prompt, &held.system_prompt),
            default_personality: back(self.default_personality, &held.default_personality),
            metadata: back(self.metadata, held.metadata.as_deref().unwrap_or_default()),
            ..self
        }
    }
}

fn metadata(json: &str) -> Result<String> {
    // Read whole, although it is kept as text: what readers would refuse is refused here.
    let is_object = |json| serde_json::from_str::<Map<String, Value>>(json).is_ok();
    match json.len() <= MAX_METADATA_BYTES && is_object(json) {
        true => Ok(json.to_owned()),
        false => Err(Error::invalid(format!(
            "metadata: must be a JSON object of at most {MAX_METADATA_BYTES} bytes"
        ))),
    }
}

impl Preset {
    /// A preset as it begins, checked.
    ///
    /// # Errors
    /// `InvalidInput` that names the field and what is allowed.
    pub fn begin(
        id: PresetId,
        new: &NewPreset,
        limits: &PersonaLimits,
        now: Timestamp,
    ) -> Result<Self> {
        let begun = Self {
            id,
            name: String::new(),
            description: String::new(),
            system_prompt: String::new(),
            default_personality: String::new(),
            settings: Settings::default(),
            created_at: now,
            updated_at: now,
            is_active: true,
            metadata: None,
            version: 0,
        };
        let change = PresetChange {
            name: Some(new.name.clone()),
            description: Some(new.description.clone()),
            system_prompt: Some(new.system_prompt.clone()),
            default_personality: Some(new.default_personality.clone()),
            settings: new.settings,
            is_active: None,
            metadata: new.metadata.clone(),
        };
        begun.changed(&change, limits, now)
    }

    /// The preset after a change, checked, with the next version.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub fn changed(
        &self,
        change: &PresetChange,
        limits: &PersonaLimits,
        now: Timestamp,
    ) -> Result<Self> {
        let mut changed = Self { updated_at: now, version: self.version + 1, ..self.clone() };
        changed.settings = self.settings.with(&change.settings)?;
        if let Some(name) = &change.name {
            changed.name = line("name", name, MAX_NAME_BYTES)?;
        }
        if let Some(said) = &change.description {
            changed.description = text("description", said, 0, MAX_DESCRIPTION_BYTES)?;
        }
        if let Some(prompt) = &change.system_prompt {
            changed.system_prompt = text("system_prompt", prompt, 1, limits.prompt_bytes)?;
        }
        if let Some(said) = &change.default_personality {
            changed.default_personality =
                text("default_personality", said, 0, limits.prompt_bytes)?;
        }
        if let Some(json) = &change.metadata {
            changed.metadata = Some(metadata(json)?);
        }
        changed.is_active = change.is_active.unwrap_or(changed.is_active);
        Ok(changed)
    }
}
