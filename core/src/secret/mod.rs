//! Secrets in what is said: keys, passwords, tokens and card numbers, found when a text is stored and masked wherever a
//! model could read it.
//!
//! The rules are those of gitleaks, which are made for code and logs, and some of our own for what people write to an
//! assistant. Masking too much costs a word in a context; masking too little sends a key to a model.

mod card;
mod escapes;
mod json;
mod scanner;
mod spoken;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::error::{Error, Result};

use escapes::{MOST_LAYERS, Unescaped};
pub use json::masked_json;

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

    /// JSON as a model may read it.
    #[must_use]
    pub fn shown_json<'t>(self, json: &'t str) -> Cow<'t, str> {
        if self == Self::Keep { Cow::Borrowed(json) } else { masked_json(json) }
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
    Cow::Owned(mask(text, &secrets, |_| false))
}

/// A text with these secrets masked; where `quoted` says so, the mask stands in quotation marks.
fn mask(text: &str, secrets: &[Secret], quoted: impl Fn(&Range<usize>) -> bool) -> String {
    let mut masked = String::with_capacity(text.len());
    let mut at = 0;
    for Secret { range, rule } in secrets {
        let quote = if quoted(range) { "\"" } else { "" };
        masked.push_str(&text[at..range.start]);
        for part in [quote, MASK, rule, "]", quote] {
            masked.push_str(part);
        }
        at = range.end;
    }
    masked.push_str(&text[at..]);
    masked
}

/// Where a text is cut, at `at` or before, so that no part of a secret is left that is not known for one any more.
#[must_use]
pub fn cut_before_secret(text: &str, at: usize) -> usize {
    // Quotation marks and escapes behind a secret are what it is known by.
    const BEHIND: usize = 8;
    // No secret needs more to be known by; a text may be an agent's whole file.
    const AHEAD: usize = 8 << 10;
    let secrets = found(&text[..text.floor_char_boundary(at.saturating_add(AHEAD))]);
    let cuts = |secret: &&Secret| secret.range.start < at && at < secret.range.end + BEHIND;
    secrets.iter().find(cuts).map_or(at, |secret| secret.range.start)
}

/// A text that a model gives back, with the secrets of `held` that were masked for it: where a line is the same up to a
/// mask and through it.
#[must_use]
pub fn given_back(text: &str, held: &str) -> String {
    let mut masked_for_it: Vec<(&str, &Secret)> = Vec::new();
    let secrets = if text.contains(MASK) { found(held) } else { Vec::new() };
    let shown = mask(held, &secrets, |_| false);
    let mut shown_at = 0;
    for secret in &secrets {
        let Some(end) = mask_end(&shown, shown_at, secret.rule) else { break };
        masked_for_it.push((line_up_to(&shown, end), secret));
        shown_at = end;
    }
    let mut given = String::with_capacity(text.len());
    let mut at = 0;
    for (start, _) in text.match_indices(MASK) {
        let Some(length) = text[start..].find(']') else { break };
        let end = start + length + 1;
        let line = line_up_to(text, end);
        let Some(same) = masked_for_it.iter().position(|(held, _)| *held == line) else { continue };
        let (_, secret) = masked_for_it.remove(same);
        given.push_str(&text[at..start]);
        given.push_str(&held[secret.range.clone()]);
        at = end;
    }
    given.push_str(&text[at..]);
    given
}

/// Where the next mask of a rule ends.
fn mask_end(text: &str, from: usize, rule: &str) -> Option<usize> {
    let mask = format!("{MASK}{rule}]");
    text[from..].find(&mask).map(|at| from + at + mask.len())
}

fn line_up_to(text: &str, end: usize) -> &str {
    &text[text[..end].rfind('\n').map_or(0, |at| at + 1)..end]
}

/// How many masked secrets a text shows.
#[must_use]
pub fn masks(text: &str) -> usize {
    text.matches(MASK).count()
}

/// That so many secrets are masked, as a sentence begins with it.
#[must_use]
pub fn count_of_masked(count: usize) -> String {
    match count {
        1 => "1 secret is masked".to_owned(),
        count => format!("{count} secrets are masked"),
    }
}

/// The secrets of a text, in order and apart from each other. They are also looked for under the escapes of JSON that
/// stands in it.
fn found(text: &str) -> Vec<Secret> {
    let mut all = as_it_stands(text);
    let mut layers: Vec<Unescaped> = Vec::new();
    while layers.len() < MOST_LAYERS {
        let Some(layer) = Unescaped::of(layers.last().map_or(text, |layer| &layer.text)) else {
            break;
        };
        let secrets = as_it_stands(&layer.text);
        layers.push(layer);
        all.extend(secrets.into_iter().map(|Secret { range, rule }| {
            let range = layers.iter().rev().fold(range, |range, layer| layer.range(&range));
            Secret { range, rule }
        }));
    }
    // What is masked already is no secret any more.
    let masked: Vec<Range<usize>> = text
        .match_indices(MASK)
        .map(|(at, _)| at..text[at..].find(']').map_or(text.len(), |end| at + end + 1))
        .collect();
    let is_masked =
        |at: &Range<usize>| masked.iter().any(|mask| at.start < mask.end && mask.start < at.end);
    all.retain(|secret| !is_masked(&secret.range));
    apart(all)
}

fn as_it_stands(text: &str) -> Vec<Secret> {
    let mut all = scanner::scan(text);
    all.extend(spoken::scan(text));
    all.extend(card::scan(text));
    all
}

/// Secrets in order, and apart from each other.
fn apart(mut all: Vec<Secret>) -> Vec<Secret> {
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
