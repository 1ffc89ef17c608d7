//! The part of a user's memory that every turn needs: standing rules and a profile card.

use crate::error::{Error, Result};
use crate::ids::is_forbidden;
use crate::secret::{SecretPolicy, given_back};
use crate::time::Timestamp;
use crate::tokens::Tokenizer;

/// Most tokens that a user's rules may take of the header.
pub const MAX_RULES_TOKENS: u32 = 350;
/// Most tokens of the profile card.
pub const MAX_CARD_TOKENS: u32 = 100;

/// A user's rules and profile card. Both are part of the header of every context.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profile {
    /// Standing instructions, one a line.
    pub rules: String,
    /// Who the user is: project, time zone, role.
    pub card: String,
    /// Increases with every change; 0 is a profile that was never set.
    pub version: u64,
    /// When it was last changed.
    pub updated_at: Timestamp,
}

/// The fields to change; `None` leaves a field as it is, an empty text clears it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ProfileChange {
    /// New rules.
    pub rules: Option<String>,
    /// New profile card.
    pub card: Option<String>,
}

impl ProfileChange {
    /// The same by a model that was shown `held` with its secrets masked: what it gives back masked stays as it was.
    #[must_use]
    pub fn by_model(self, held: &Profile) -> Self {
        Self {
            rules: self.rules.map(|text| given_back(&text, &held.rules)),
            card: self.card.map(|text| given_back(&text, &held.card)),
        }
    }
}

impl Profile {
    /// The same as a model may read it.
    #[must_use]
    pub fn for_model(self, secrets: SecretPolicy) -> Self {
        let shown = |text: &str| secrets.shown(text).into_owned();
        Self { rules: shown(&self.rules), card: shown(&self.card), ..self }
    }

    /// This profile with the parts that it leaves empty taken from `other`: a workspace inherits from
    /// its user part by part.
    #[must_use]
    pub fn or_of(mut self, other: Option<Self>) -> Self {
        let Some(other) = other else { return self };
        if self.rules.is_empty() {
            self.rules = other.rules;
        }
        if self.card.is_empty() {
            self.card = other.card;
        }
        self
    }

    /// The profile after `change`, checked against the limits of the header.
    ///
    /// # Errors
    /// `InvalidInput` when a part is over its token limit or has control characters.
    pub fn changed(
        &self,
        change: ProfileChange,
        now: Timestamp,
        tokenizer: &dyn Tokenizer,
    ) -> Result<Self> {
        let part = |what: &str, new: Option<String>, old: &str, limit: u32| -> Result<String> {
            let Some(text) = new else {
                return Ok(old.to_owned());
            };
            let text = text.trim();
            if text.chars().any(|c| c != '\n' && c != '\t' && is_forbidden(c)) {
                return Err(Error::invalid(format!(
                    "{what} has a control character: only text, tabs and line breaks are allowed"
                )));
            }
            let tokens = tokenizer.count(text);
            if tokens > limit {
                return Err(Error::invalid(format!(
                    "{what} takes {tokens} tokens, but at most {limit} are allowed, because it is \
                     part of every context"
                )));
            }
            Ok(text.to_owned())
        };
        Ok(Self {
            rules: part("rules", change.rules, &self.rules, MAX_RULES_TOKENS)?,
            card: part("card", change.card, &self.card, MAX_CARD_TOKENS)?,
            version: self.version + 1,
            updated_at: now,
        })
    }
}
