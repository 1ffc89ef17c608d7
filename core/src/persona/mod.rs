//! Personas: conversations with a fixed character (a *context* in the interfaces), and the presets that
//! they are created from.
//!
//! A persona's conversation is a session, so that recall, entities and summaries work there too. What is
//! decided (fields, expiry, what of the history is sent, what is wrong with a prompt, forms of export) is
//! pure; the services around it gather and write.

mod builtin;
mod check;
mod expiry;
mod export;
mod history;
mod limits;
mod list;
mod preset;
mod rating;
mod rules;
mod settings;
mod template;
mod turn;

use std::fmt;

use crate::error::{Error, Result};
use crate::ids::{BackupId, PersonaId, PresetId, SessionId};
use crate::secret::SecretPolicy;
use crate::time::Timestamp;

pub use builtin::{BUILT_IN_AT, built_in};
pub(crate) use check::fits;
pub use check::{Finding, PROMPT_GUIDELINE, findings};
pub use expiry::{NEVER_BEFORE, Status, WARNED_BEFORE};
pub(crate) use expiry::{days, next_due};
pub use export::{Export, ExportFormat, ExportMessage, ExportRating, FORMAT_VERSION};
pub use history::SOFT_LIMIT_PERCENT;
pub use limits::PersonaLimits;
pub use list::{Listed, Slice};
pub use preset::{NewPreset, Preset, PresetChange, PresetUse, PresetView};
pub use rating::{Effectiveness, MAX_NOTE_BYTES, NewRating, Rating, RatingCount};
pub(crate) use rules::tags;
pub use rules::{NewPersona, PersonaChange, parse_tags, tags_text};
pub use settings::{
    DEFAULT_EXPIRY_DAYS, DEFAULT_HISTORY_TOKENS, DEFAULT_MAX_TOKENS, DEFAULT_TEMPERATURE,
    MAX_EXPIRY_DAYS, MAX_MAX_TOKENS, MIN_HISTORY_TOKENS, Overrides, Settings,
};
pub use template::{FilledTemplate, MAX_FIELD_BYTES, TEMPLATES, Template, TemplateField};
pub use turn::{ChatReceipt, ChatRequest, ChatTokens, ChatTurn};
pub(crate) use turn::{Parts, Plan, fence_others, finish, tell};

/// A conversation with a fixed character.
#[derive(Debug, Clone, PartialEq)]
pub struct Persona {
    /// Our id; on the wire, the context's.
    pub id: PersonaId,
    /// The session that its conversation is.
    pub session: SessionId,
    /// A name for people.
    pub name: String,
    /// The system prompt.
    pub system_prompt: String,
    /// A description of the personality; may be empty.
    pub personality: String,
    /// Temperature, limits and expiry.
    pub settings: Settings,
    /// Whether its turns recall what else the scope knows, and state facts of the user.
    pub memory: bool,
    /// For organization, in order of the alphabet.
    pub tags: Vec<String>,
    /// The preset that it was made from.
    pub preset: Option<PresetId>,
    /// The version of the preset whose prompt and personality it still has.
    pub preset_version: Option<u64>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was last edited.
    pub updated_at: Timestamp,
    /// When it last answered; when it was made, until then.
    pub last_interaction_at: Timestamp,
    /// Until when it answers.
    pub expires_at: Timestamp,
    /// When it was deleted; it can be restored until its grace ends.
    pub deleted_at: Option<Timestamp>,
    /// When it was last backed up.
    pub backed_up_at: Option<Timestamp>,
    /// Turns that it answered.
    pub turns: u64,
    /// Turns that were sent without all of the history.
    pub truncations: u64,
    /// Increases with every change, those by an answer included.
    pub version: u64,
}

/// Which session is a persona's, as far as recall has to know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PersonaSession {
    /// The persona.
    pub persona: PersonaId,
    /// Its [`Persona::memory`].
    pub memory: bool,
    /// The number of its session in the scope.
    pub number: u32,
}

/// What names of personas' sessions begin with.
const SESSION: &str = "context-";

impl Persona {
    /// Whether it was not deleted. An expired persona stays active until it is cleaned up.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.deleted_at.is_none()
    }

    /// The same as a model may read it.
    #[must_use]
    pub fn for_model(self, secrets: SecretPolicy) -> Self {
        let shown = |text: &str| secrets.shown(text).into_owned();
        let system_prompt = shown(&self.system_prompt);
        Self { personality: shown(&self.personality), system_prompt, ..self }
    }

    /// The name of the session of a persona.
    ///
    /// # Errors
    /// None: an id is a good name.
    pub fn session_of(id: PersonaId) -> Result<SessionId> {
        SessionId::new(format!("{SESSION}{id}"))
    }

    /// The persona whose session has this name, if it is one of a persona.
    #[must_use]
    pub fn of_session(session: &SessionId) -> Option<PersonaId> {
        session.as_str().strip_prefix(SESSION)?.parse().ok()
    }
}

/// Why a backup was taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BackupReason {
    /// It was a day since the last one, and something had changed.
    Daily,
    /// Its persona was deleted.
    Deletion,
    /// Its persona had expired and was cleaned up.
    Expiry,
}

impl BackupReason {
    /// Every reason.
    pub const ALL: [Self; 3] = [Self::Daily, Self::Deletion, Self::Expiry];

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Daily => "daily",
            Self::Deletion => "deletion",
            Self::Expiry => "expiry",
        }
    }
}

impl fmt::Display for BackupReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl std::str::FromStr for BackupReason {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text).ok_or_else(|| {
            let allowed = Self::ALL.map(Self::as_str).join(", ");
            Error::invalid(format!("unknown reason of a backup: use one of {allowed}"))
        })
    }
}

/// A backup of a persona, without what it holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackupHead {
    /// Our id.
    pub id: BackupId,
    /// The persona.
    pub persona: PersonaId,
    /// The session of the persona, by whose erasure the backup goes.
    pub session: SessionId,
    /// Sequence number of the last message that it holds; 0 for none. The erasure of any message up to it
    /// takes the backup along.
    pub through: u64,
    /// When it was taken.
    pub taken_at: Timestamp,
    /// Why.
    pub reason: BackupReason,
    /// Bytes of its export.
    pub bytes: u64,
}

/// A backup of a persona.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// Its metadata.
    pub head: BackupHead,
    /// The export, as JSON.
    pub data: String,
}
