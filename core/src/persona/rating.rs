//! Ratings of answers, and what they tell of presets.

use super::rules::text;
use crate::error::Result;
use crate::ids::{MessageId, PresetId, UserId};
use crate::time::Timestamp;

/// Longest note, in bytes.
pub const MAX_NOTE_BYTES: usize = 2_000;

/// A rating to give.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRating {
    /// Whether the answer helped.
    pub helpful: bool,
    /// Why; may be missing.
    pub note: Option<String>,
}

impl NewRating {
    /// The same with its note cleaned; a blank note is none.
    ///
    /// # Errors
    /// `InvalidInput` that names the field.
    pub fn checked(self) -> Result<Self> {
        let note = self.note.map(|note| text("note", &note, 0, MAX_NOTE_BYTES)).transpose()?;
        Ok(Self { note: note.filter(|note| !note.is_empty()), ..self })
    }
}

/// What a user says of an answer. Of each answer a user has one rating at most.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rating {
    /// The answer.
    pub message: MessageId,
    /// Who rates: the owner of the persona, or a user that it is shared with.
    pub user: UserId,
    /// Whether it helped.
    pub helpful: bool,
    /// Why.
    pub note: Option<String>,
    /// When it was rated.
    pub rated_at: Timestamp,
    /// The preset of the persona.
    pub preset: Option<PresetId>,
    /// See [`Persona::preset_version`](super::Persona::preset_version).
    pub preset_version: Option<u64>,
}

/// The ratings of answers of one version of a preset.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RatingCount {
    /// The preset; `None` for personas without one.
    pub preset: Option<PresetId>,
    /// Its version; `None` where prompt or personality were changed.
    pub preset_version: Option<u64>,
    /// Ratings.
    pub rated: u64,
    /// Those that say that the answer helped.
    pub helpful: u64,
    /// When the first of them was given.
    pub first_at: Timestamp,
    /// When the last of them was given.
    pub last_at: Timestamp,
}

/// How well a version of a preset does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Effectiveness {
    /// The preset; `None` for personas without one.
    pub preset: Option<PresetId>,
    /// Its version; `None` where prompt or personality were changed.
    pub preset_version: Option<u64>,
    /// Personas that there are of it.
    pub contexts: u64,
    /// Turns that these answered.
    pub turns: u64,
    /// Ratings of the time that is asked for.
    pub rated: u64,
    /// Those that say that the answer helped.
    pub helpful: u64,
    /// When the first of them was given.
    pub first_at: Option<Timestamp>,
    /// When the last of them was given.
    pub last_at: Option<Timestamp>,
}

impl Effectiveness {
    /// The share of the ratings that say that the answer helped; `None` without ratings.
    #[must_use]
    pub fn helpful_share(&self) -> Option<f64> {
        (self.rated > 0).then(|| self.helpful as f64 / self.rated as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_cleaned_and_bounded() {
        let rating = |note: &str| NewRating { helpful: true, note: Some(note.to_owned()) };
        let note = |text: &str| rating(text).checked().map(|rating| rating.note);
        assert_eq!(note("  clear\r\nand short ").unwrap().as_deref(), Some("clear\nand short"));
        assert_eq!(note(" \n ").unwrap(), None);
        assert_eq!(note(&"x".repeat(2_000)).unwrap().unwrap().len(), 2_000);
        for bad in ["x".repeat(2_001), "a\0b".to_owned()] {
            assert!(note(&bad).unwrap_err().message().starts_with("note: "), "{bad}");
        }
    }
}
