//! Secrets in what is said: keys, passwords, tokens and card numbers, found when a text is stored and masked wherever a
//! model could read it.
//!
//! The rules are those of gitleaks, which are made for code and logs, and some of our own for what people write to an
//! assistant. Masking too much costs a word in a context; masking too little sends a key to a model.

mod card;
mod scanner;
mod spoken;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::error::{Error, Result};

/// What happens to secrets in what is stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SecretPolicy {
    /// They are stored, and masked in contexts, summaries, facts and indexes.
    #[default]
    Mask,
    /// They are not stored.
    Drop,
    /// They are left as they are.
    Keep,
}

impl SecretPolicy {
    /// Every policy.
    pub const ALL: [Self; 3] = [Self::Mask, Self::Drop, Self::Keep];

    /// The name in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mask => "mask",
            Self::Drop => "drop",
            Self::Keep => "keep",
        }
    }

    /// A text as a model may read it.
    #[must_use]
    pub fn shown<'t>(self, text: &'t str) -> Cow<'t, str> {
        if self == Self::Keep { Cow::Borrowed(text) } else { masked(text) }
    }
}

impl fmt::Display for SecretPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl FromStr for SecretPolicy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == text).ok_or_else(|| {
            let allowed = Self::ALL.map(Self::as_str).join(", ");
            Error::invalid(format!("unknown policy for secrets: one of {allowed}"))
        })
    }
}

/// A secret in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Secret {
    range: Range<usize>,
    /// Its sort: the rule that found it.
    rule: &'static str,
}

/// What stands in place of a secret, before the name of its rule.
const MASK: &str = "[secret: ";

/// A text with its secrets masked: each becomes `[secret: RULE]`. It is the same text where there are none.
#[must_use]
pub fn masked(text: &str) -> Cow<'_, str> {
    let secrets = found(text);
    if secrets.is_empty() {
        return Cow::Borrowed(text);
    }
    let mut masked = String::with_capacity(text.len());
    let mut at = 0;
    for Secret { range, rule } in secrets {
        masked.push_str(&text[at..range.start]);
        masked.push_str(MASK);
        masked.push_str(rule);
        masked.push(']');
        at = range.end;
    }
    masked.push_str(&text[at..]);
    Cow::Owned(masked)
}

/// How many masked secrets a text shows.
#[must_use]
pub fn masks(text: &str) -> usize {
    text.matches(MASK).count()
}

/// The secrets of a text, in order and apart from each other.
fn found(text: &str) -> Vec<Secret> {
    let mut all = scanner::scan(text);
    all.extend(spoken::scan(text));
    all.extend(card::scan(text));
    // What is masked already is no secret any more.
    let masked: Vec<Range<usize>> = text
        .match_indices(MASK)
        .map(|(at, _)| at..text[at..].find(']').map_or(text.len(), |end| at + end + 1))
        .collect();
    let is_masked =
        |at: &Range<usize>| masked.iter().any(|mask| at.start < mask.end && mask.start < at.end);
    all.retain(|secret| !is_masked(&secret.range));
    all.sort_by_key(|secret| (secret.range.start, std::cmp::Reverse(secret.range.end)));
    let mut apart: Vec<Secret> = Vec::with_capacity(all.len());
    for secret in all {
        match apart.last_mut() {
            Some(last) if secret.range.start < last.range.end => {
                last.range.end = last.range.end.max(secret.range.end);
            }
            _ => apart.push(secret),
        }
    }
    apart
}

#[cfg(test)]
mod tests;
