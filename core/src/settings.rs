//! Settings for every user of a tenant: budgets, flags, models, and the tenant's own data.

use std::collections::BTreeMap;

use crate::error::{Error, Result};
use crate::ids::is_forbidden;
use crate::time::Timestamp;
use crate::turn::{MAX_BUDGET, RecallOptions, Tier};

/// Most bytes of a tenant's own configuration.
pub const MAX_CLIENT_CONFIG_BYTES: usize = 64 << 10;
/// Most models that a tenant names.
const MAX_MODELS: usize = 32;
/// Longest name of a model or of what it is for, in bytes.
const MAX_MODEL_BYTES: usize = 200;

/// Between what a model is for and its name, and between models, in a store.
const NAME_END: &str = "\u{1f}";
const ENTRY_END: &str = "\u{1e}";

/// A part of recall that a tenant can turn off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Flag {
    /// Recall as a whole.
    Recall,
    /// Facts of the ledger in recall.
    RecallFacts,
    /// Recall by meaning.
    RecallMeaning,
    /// Documents of memories in recall.
    RecallDocuments,
}

impl Flag {
    /// Every flag.
    pub const ALL: [Self; 4] =
        [Self::Recall, Self::RecallFacts, Self::RecallMeaning, Self::RecallDocuments];

    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Recall => "recall",
            Self::RecallFacts => "recall_facts",
            Self::RecallMeaning => "recall_meaning",
            Self::RecallDocuments => "recall_documents",
        }
    }
}

impl std::str::FromStr for Flag {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::ALL.into_iter().find(|flag| flag.as_str() == text).ok_or_else(|| {
            let allowed = Self::ALL.map(Self::as_str).join(", ");
            Error::invalid(format!("unknown flag: use one of {allowed}"))
        })
    }
}

/// The settings of a tenant. What a request says goes before them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TenantSettings {
    /// Token budget of a context; `None` is the tier's.
    pub token_budget: Option<u32>,
    /// Size of a context; `None` is `full`.
    pub tier: Option<Tier>,
    /// The flags; a missing flag is on.
    pub flags: BTreeMap<Flag, bool>,
    /// Models by what they are for, such as `chat`.
    pub models: BTreeMap<String, String>,
    /// A JSON object of the tenant's own, kept and not interpreted.
    pub client_config: String,
    /// Increases with every change; 0 are settings that were never set.
    pub version: u64,
    /// When they were last changed.
    pub updated_at: Timestamp,
}

/// The fields to change; `None`, and keys missing in a map, stay as they are.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SettingsChange {
    /// New token budget; the inner `None` is the tier's.
    pub token_budget: Option<Option<u32>>,
    /// New tier; the inner `None` is `full`.
    pub tier: Option<Option<Tier>>,
    /// Flags to turn on or off; `None` is on, as if it were never turned.
    pub flags: BTreeMap<Flag, Option<bool>>,
    /// Models by what they are for; `None` takes one away.
    pub models: BTreeMap<String, Option<String>>,
    /// New configuration of the tenant's own.
    pub client_config: Option<String>,
}

impl TenantSettings {
    /// The settings after `change`, checked.
    ///
    /// # Errors
    /// `InvalidInput` that names the field.
    pub fn changed(&self, change: SettingsChange, now: Timestamp) -> Result<Self> {
        let mut changed = Self { version: self.version + 1, updated_at: now, ..self.clone() };
        changed.token_budget = change.token_budget.unwrap_or(changed.token_budget);
        changed.tier = change.tier.unwrap_or(changed.tier);
        changed.client_config = change.client_config.unwrap_or(changed.client_config);
        for (flag, on) in change.flags {
            match on {
                Some(on) => changed.flags.insert(flag, on),
                None => changed.flags.remove(&flag),
            };
        }
        for (of, model) in change.models {
            match model {
                Some(model) => changed.models.insert(of, model),
                None => changed.models.remove(&of),
            };
        }
        changed.check()?;
        Ok(changed)
    }

    /// Whether these can be kept.
    ///
    /// # Errors
    /// `InvalidInput` that names the field.
    pub fn check(&self) -> Result<()> {
        if self.token_budget.is_some_and(|budget| budget == 0 || budget > MAX_BUDGET) {
            return Err(Error::invalid(format!("token_budget: must be 1 to {MAX_BUDGET}")));
        }
        let bad = |text: &String| {
            text.is_empty() || text.len() > MAX_MODEL_BYTES || text.chars().any(is_forbidden)
        };
        if self.models.len() > MAX_MODELS || self.models.iter().any(|(k, v)| bad(k) || bad(v)) {
            return Err(Error::invalid(format!(
                "models: at most {MAX_MODELS}, names of 1 to {MAX_MODEL_BYTES} bytes without control \
                 characters"
            )));
        }
        if self.client_config.len() > MAX_CLIENT_CONFIG_BYTES {
            return Err(Error::invalid(format!(
                "client_config: at most {MAX_CLIENT_CONFIG_BYTES} bytes of JSON are allowed"
            )));
        }
        Ok(())
    }

    /// The flags, for a store to keep: `recall=off`, with commas between.
    #[must_use]
    pub fn flags_text(&self) -> String {
        let word = |on: &bool| if *on { "on" } else { "off" };
        let flags = self.flags.iter().map(|(flag, on)| format!("{}={}", flag.as_str(), word(on)));
        flags.collect::<Vec<_>>().join(",")
    }

    /// The inverse of [`Self::flags_text`].
    ///
    /// # Errors
    /// `InvalidInput` for an unknown flag.
    pub fn parse_flags(text: &str) -> Result<BTreeMap<Flag, bool>> {
        let flag = |entry: &str| match entry.split_once('=') {
            Some((flag, "on")) => Ok((flag.parse()?, true)),
            Some((flag, "off")) => Ok((flag.parse()?, false)),
            _ => Err(Error::invalid("flags: each must be `name=on` or `name=off`")),
        };
        text.split(',').filter(|entry| !entry.is_empty()).map(flag).collect()
    }

    /// The models, for a store to keep: no name has the characters between them.
    #[must_use]
    pub fn models_text(&self) -> String {
        let models = self.models.iter().map(|(of, model)| format!("{of}{NAME_END}{model}"));
        models.collect::<Vec<_>>().join(ENTRY_END)
    }

    /// The inverse of [`Self::models_text`].
    ///
    /// # Errors
    /// `InvalidInput` for an entry without a model.
    pub fn parse_models(text: &str) -> Result<BTreeMap<String, String>> {
        let model = |entry: &str| {
            let (of, model) = entry
                .split_once(NAME_END)
                .ok_or_else(|| Error::invalid("models: each needs a purpose and a model"))?;
            Ok((of.to_owned(), model.to_owned()))
        };
        text.split(ENTRY_END).filter(|entry| !entry.is_empty()).map(model).collect()
    }

    /// Whether a flag is on.
    #[must_use]
    pub fn is_on(&self, flag: Flag) -> bool {
        self.flags.get(&flag).copied().unwrap_or(true)
    }

    /// The parts of recall that the tenant uses.
    #[must_use]
    pub fn recall(&self) -> RecallOptions {
        RecallOptions {
            enabled: self.is_on(Flag::Recall),
            facts: self.is_on(Flag::RecallFacts),
            meaning: self.is_on(Flag::RecallMeaning),
            documents: self.is_on(Flag::RecallDocuments),
            ..RecallOptions::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> String {
        text.to_owned()
    }

    #[test]
    fn a_change_leaves_what_it_does_not_name() {
        let at = Timestamp::from_micros;
        let first = SettingsChange {
            token_budget: Some(Some(900)),
            tier: Some(Some(Tier::Light)),
            flags: [(Flag::Recall, Some(false)), (Flag::RecallFacts, Some(true))].into(),
            models: [(text("chat"), Some(text("a"))), (text("title"), Some(text("b")))].into(),
            client_config: Some(text("{}")),
        };
        let settings = TenantSettings::default().changed(first, at(1)).unwrap();
        assert_eq!((settings.version, settings.token_budget), (1, Some(900)));
        let same = settings.changed(SettingsChange::default(), at(2)).unwrap();
        assert_eq!(same, TenantSettings { version: 2, updated_at: at(2), ..settings.clone() });
        let second = SettingsChange {
            token_budget: Some(None),
            flags: [(Flag::Recall, None)].into(),
            models: [(text("chat"), None)].into(),
            ..SettingsChange::default()
        };
        let settings = settings.changed(second, at(3)).unwrap();
        assert_eq!((settings.token_budget, settings.tier), (None, Some(Tier::Light)));
        assert_eq!(settings.flags, [(Flag::RecallFacts, true)].into());
        assert_eq!(settings.models, [(text("title"), text("b"))].into());
        assert_eq!(settings.client_config, "{}");
    }

    #[test]
    fn a_change_that_cannot_be_kept_is_refused_by_field() {
        let model = |name: &str| SettingsChange {
            models: [(text("chat"), Some(text(name)))].into(),
            ..SettingsChange::default()
        };
        let budget =
            |budget| SettingsChange { token_budget: Some(Some(budget)), ..Default::default() };
        let config = Some("x".repeat(MAX_CLIENT_CONFIG_BYTES + 1));
        let config = SettingsChange { client_config: config, ..SettingsChange::default() };
        for (change, field) in [
            (model(""), "models: "),
            (model("a\u{1f}b"), "models: "),
            (budget(0), "token_budget: "),
            (budget(MAX_BUDGET + 1), "token_budget: "),
            (config, "client_config: "),
        ] {
            let error =
                TenantSettings::default().changed(change, Timestamp::from_micros(0)).unwrap_err();
            assert!(error.message().starts_with(field), "{error}");
        }
    }

    #[test]
    fn what_a_store_keeps_is_read_back() {
        let settings = TenantSettings {
            flags: [(Flag::Recall, true), (Flag::RecallMeaning, false)].into(),
            models: [(text("a=b,c"), text("x")), (text("é"), text("y z"))].into(),
            ..TenantSettings::default()
        };
        let (flags, models) = (settings.flags_text(), settings.models_text());
        assert_eq!(flags, "recall=on,recall_meaning=off");
        assert_eq!(TenantSettings::parse_flags(&flags).unwrap(), settings.flags);
        assert_eq!(TenantSettings::parse_models(&models).unwrap(), settings.models);
        assert!(TenantSettings::parse_flags("").unwrap().is_empty());
        assert!(TenantSettings::parse_models("").unwrap().is_empty());
        assert!(TenantSettings::parse_flags("recall").is_err());
        assert!(TenantSettings::parse_models("chat").is_err());
    }
}
