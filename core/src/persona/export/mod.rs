//! A persona with its conversation as text: JSON for programs, which is read back, and Markdown for people. Both
//! say their version.

mod json;
mod markdown;

use super::{Persona, Settings};
use crate::access::Actor;
use crate::error::{Error, Result};
use crate::ids::{MessageId, PresetId, SessionId, UserId};
use crate::session::Role;
use crate::time::Timestamp;

/// The version of the forms that are written. Older ones are read; a newer one is refused.
pub const FORMAT_VERSION: u64 = 1;
/// What the forms call themselves.
const FORMAT: &str = "throughline.context";

/// A form of exports.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ExportFormat {
    /// For programs: what can be imported.
    Json,
    /// For people.
    Markdown,
}

impl ExportFormat {
    /// Every form.
    pub const ALL: [Self; 2] = [Self::Json, Self::Markdown];

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::Markdown => "markdown",
        }
    }
}

impl std::str::FromStr for ExportFormat {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == text).ok_or_else(|| {
            let allowed = Self::ALL.map(Self::as_str).join(", ");
            Error::invalid(format!("unknown format: use one of {allowed}"))
        })
    }
}

/// A persona as it leaves.
#[derive(Debug, Clone, PartialEq)]
pub struct Export {
    /// When it was made.
    pub exported_at: Timestamp,
    /// See [`Persona::name`].
    pub name: String,
    /// See [`Persona::system_prompt`].
    pub system_prompt: String,
    /// See [`Persona::personality`].
    pub personality: String,
    /// See [`Persona::settings`].
    pub settings: Settings,
    /// See [`Persona::memory`].
    pub memory: bool,
    /// See [`Persona::tags`].
    pub tags: Vec<String>,
    /// See [`Persona::preset`].
    pub preset: Option<PresetId>,
    /// See [`Persona::preset_version`].
    pub preset_version: Option<u64>,
    /// See [`Persona::created_at`].
    pub created_at: Timestamp,
    /// The session of its conversation, where the export says which.
    pub session: Option<SessionId>,
    /// The conversation, oldest first.
    pub messages: Vec<ExportMessage>,
}

/// A message as it leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportMessage {
    /// Our id of it, where the export says that.
    pub id: Option<MessageId>,
    /// Who speaks.
    pub role: Role,
    /// On whose word it is, where that is not its owner's: a model's, or a guest's.
    pub actor: Option<Actor>,
    /// The speaker's name.
    pub name: Option<String>,
    /// The text.
    pub content: String,
    /// When it was said.
    pub created_at: Timestamp,
    /// Its tags.
    pub tags: Vec<String>,
    /// Its ratings.
    pub ratings: Vec<ExportRating>,
}

/// A rating as it leaves.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExportRating {
    /// Who rated; `None` for the owner.
    pub user: Option<UserId>,
    /// See [`Rating::helpful`](super::Rating::helpful).
    pub helpful: bool,
    /// See [`Rating::note`](super::Rating::note).
    pub note: Option<String>,
    /// See [`Rating::rated_at`](super::Rating::rated_at).
    pub rated_at: Timestamp,
}

impl Export {
    /// A persona without its conversation.
    #[must_use]
    pub fn of(persona: &Persona, exported_at: Timestamp) -> Self {
        let Persona { name, system_prompt, personality, settings, memory, tags, preset, .. } =
            persona.clone();
        let preset_version = persona.preset_version;
        let (created_at, messages) = (persona.created_at, Vec::new());
        Self {
            exported_at,
            name,
            system_prompt,
            personality,
            settings,
            memory,
            tags,
            preset,
            preset_version,
            created_at,
            session: Some(persona.session.clone()),
            messages,
        }
    }

    /// As text.
    ///
    /// # Errors
    /// `Internal` where the form cannot be written, which is a defect of ours.
    pub fn write(&self, format: ExportFormat) -> Result<String> {
        match format {
            ExportFormat::Json => json::write(self),
            ExportFormat::Markdown => Ok(markdown::write(self)),
        }
    }

    /// The inverse of [`Self::write`] as JSON.
    ///
    /// # Errors
    /// `InvalidInput` that says what is wrong and where.
    pub fn read(text: &str) -> Result<Self> {
        let text = text.trim_start_matches('\u{feff}');
        if !text.trim_start().starts_with('{') {
            return Err(Error::invalid(
                "not an export of a context: expected JSON that begins with `{`; Markdown is for \
                 reading and cannot be imported",
            ));
        }
        json::read(json::parse(text)?)
    }
}

#[cfg(test)]
mod tests;
