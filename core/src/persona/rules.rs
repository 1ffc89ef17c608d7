//! Validation of a persona's fields; each error names its field.

use super::{Overrides, Persona, PersonaLimits, Settings};
use crate::error::{Error, Result};
use crate::ids::{MAX_NAME_BYTES, PersonaId, PresetId, is_forbidden};
use crate::secret::given_back;
use crate::time::Timestamp;

/// Most tags of a persona or a message.
pub(super) const MAX_TAGS: usize = 16;
/// Longest tag, in bytes.
pub(super) const MAX_TAG_BYTES: usize = 64;

/// A persona to make.
#[derive(Debug, Clone, PartialEq)]
pub struct NewPersona {
    /// A name for people.
    pub name: String,
    /// The system prompt.
    pub system_prompt: String,
    /// A description of the personality.
    pub personality: String,
    /// Missing values have their defaults.
    pub settings: Overrides,
    /// See [`Persona::memory`].
    pub memory: bool,
    /// For organization.
    pub tags: Vec<String>,
}

impl NewPersona {
    /// One with every default.
    pub fn new(name: impl Into<String>, system_prompt: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            system_prompt: system_prompt.into(),
            personality: String::new(),
            settings: Overrides::default(),
            memory: false,
            tags: Vec::new(),
        }
    }
}

/// The fields to change; `None` leaves a field as it is.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct PersonaChange {
    /// A new name.
    pub name: Option<String>,
    /// A new system prompt.
    pub system_prompt: Option<String>,
    /// A new personality.
    pub personality: Option<String>,
    /// New settings.
    pub settings: Overrides,
    /// Whether it remembers.
    pub memory: Option<bool>,
    /// Other tags in place of those that it has.
    pub tags: Option<Vec<String>>,
}

impl PersonaChange {
    /// The same by a model that was shown `held` with its secrets masked: what it gives back masked stays as it was.
    #[must_use]
    pub fn by_model(self, held: &Persona) -> Self {
        let back = |text: Option<String>, held: &str| text.map(|text| given_back(&text, held));
        Self {
            system_prompt: back(self.system_prompt, &held.system_prompt),
            personality: back(self.personality, &held.personality),
            ..self
        }
    }
}

/// A line of text, without white space around it.
pub(super) fn line(field: &str, text: &str, most: usize) -> Result<String> {
    let text = text.trim();
    if text.is_empty() || text.len() > most || text.chars().any(is_forbidden) {
        return Err(Error::invalid(format!(
            "{field}: 1 to {most} bytes of text without control characters"
        )));
    }
    Ok(text.to_owned())
}

/// Text of any number of lines, without white space around it.
pub(super) fn text(field: &str, text: &str, least: usize, most: usize) -> Result<String> {
    let text = text.replace("\r\n", "\n");
    let text = text.trim();
    let bad = |c: char| c != '\n' && c != '\t' && is_forbidden(c);
    if text.len() < least || text.len() > most || text.chars().any(bad) {
        return Err(Error::invalid(format!(
            "{field}: {least} to {most} bytes of text without control characters except tabs and \
             line breaks"
        )));
    }
    Ok(text.to_owned())
}

/// Tags in order of the alphabet, each once.
pub(crate) fn tags(tags: &[String]) -> Result<Vec<String>> {
    let mut checked =
        tags.iter().map(|tag| line("tags", tag, MAX_TAG_BYTES)).collect::<Result<Vec<String>>>()?;
    if checked.iter().any(|tag| tag.contains(',')) {
        return Err(Error::invalid("tags: a tag must not contain a comma"));
    }
    checked.sort_unstable();
    checked.dedup();
    if checked.len() > MAX_TAGS {
        return Err(Error::invalid(format!("tags: at most {MAX_TAGS}")));
    }
    Ok(checked)
}

/// Tags, for a store to keep: none has a line break.
#[must_use]
pub fn tags_text(tags: &[String]) -> String {
    tags.join("\n")
}

/// The inverse of [`tags_text`].
#[must_use]
pub fn parse_tags(text: &str) -> Vec<String> {
    text.split('\n').filter(|tag| !tag.is_empty()).map(str::to_owned).collect()
}

impl Persona {
    /// A persona as it begins, checked; settings that are not said are those of `defaults`.
    ///
    /// # Errors
    /// `InvalidInput` that names the field and what is allowed.
    pub fn begin(
        id: PersonaId,
        new: NewPersona,
        preset: Option<(PresetId, Option<u64>)>,
        defaults: Settings,
        limits: &PersonaLimits,
        now: Timestamp,
    ) -> Result<Self> {
        let settings = defaults.with(&new.settings)?;
        let (preset, preset_version) = preset.unzip();
        Ok(Self {
            id,
            session: Self::session_of(id)?,
            name: line("name", &new.name, MAX_NAME_BYTES)?,
            system_prompt: text("system_prompt", &new.system_prompt, 1, limits.prompt_bytes)?,
            personality: text("personality", &new.personality, 0, limits.prompt_bytes)?,
            settings,
            memory: new.memory,
            tags: tags(&new.tags)?,
            preset,
            preset_version: preset_version.flatten(),
            created_at: now,
            updated_at: now,
            last_interaction_at: now,
            expires_at: now.plus(super::expiry::days(settings.expiry_days)),
            deleted_at: None,
            backed_up_at: None,
            turns: 0,
            truncations: 0,
            version: 1,
        })
    }

    /// The persona after a change, checked, with the next version.
    ///
    /// # Errors
    /// As [`Self::begin`].
    pub fn changed(
        &self,
        change: &PersonaChange,
        limits: &PersonaLimits,
        now: Timestamp,
    ) -> Result<Self> {
        let mut changed = self.clone();
        let settings = self.settings.with(&change.settings)?;
        changed.change_expiry_days(settings.expiry_days);
        changed.settings = settings;
        if let Some(name) = &change.name {
            changed.name = line("name", name, MAX_NAME_BYTES)?;
        }
        if let Some(prompt) = &change.system_prompt {
            changed.system_prompt = text("system_prompt", prompt, 1, limits.prompt_bytes)?;
        }
        if let Some(personality) = &change.personality {
            changed.personality = text("personality", personality, 0, limits.prompt_bytes)?;
        }
        if let Some(said) = &change.tags {
            changed.tags = tags(said)?;
        }
        changed.memory = change.memory.unwrap_or(changed.memory);
        if (&changed.system_prompt, &changed.personality)
            != (&self.system_prompt, &self.personality)
        {
            changed.preset_version = None;
        }
        (changed.updated_at, changed.version) = (now, self.version + 1);
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::error::ErrorKind;

    fn begin(new: NewPersona) -> Result<Persona> {
        let id = PersonaId::from_uuid(Uuid::from_u128(1));
        let limits = PersonaLimits { prompt_bytes: 40, ..PersonaLimits::default() };
        Persona::begin(id, new, None, Settings::default(), &limits, Timestamp::default())
    }

    #[test]
    fn fields_are_cleaned_and_checked() {
        let new = || NewPersona::new("  A  ", " You are A.\r\nTwo lines.\t ");
        let held = begin(new()).unwrap();
        assert_eq!((held.name.as_str(), held.version), ("A", 1));
        assert_eq!(held.system_prompt, "You are A.\nTwo lines.");
        let tags = |tags: &[&str]| tags.iter().map(|tag| (*tag).to_owned()).collect::<Vec<_>>();
        let tagged = begin(NewPersona { tags: tags(&["b", " a ", "b"]), ..new() }).unwrap();
        assert_eq!(tagged.tags, ["a", "b"]);
        assert_eq!(parse_tags(&tags_text(&tagged.tags)), tagged.tags);
        assert!(parse_tags("").is_empty());
        let many: Vec<String> = (0..17).map(|n| n.to_string()).collect();
        let bad = [
            (NewPersona::new("", "You are A."), "name: "),
            (NewPersona::new("a\nb", "You are A."), "name: "),
            (NewPersona::new("../../etc\0", "You are A."), "name: "),
            (NewPersona::new("A", " \n "), "system_prompt: "),
            (NewPersona::new("A", "You are\u{202e} A."), "system_prompt: "),
            (NewPersona::new("A", "x".repeat(41)), "system_prompt: 1 to 40 bytes"),
            (NewPersona { personality: "x".repeat(41), ..new() }, "personality: "),
            (NewPersona { tags: tags(&["a,b"]), ..new() }, "tags: "),
            (NewPersona { tags: tags(&[""]), ..new() }, "tags: "),
            (NewPersona { tags: many, ..new() }, "tags: at most 16"),
        ];
        for (new, field) in bad {
            let error = begin(new).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::InvalidInput);
            assert!(error.message().starts_with(field), "{field}: {error}");
        }
    }
}
