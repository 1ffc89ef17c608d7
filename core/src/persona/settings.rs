//! Temperature, limits and expiry, with their defaults and ranges.

use crate::error::{Error, Result};
use crate::turn::MAX_BUDGET;

/// Diversity where nothing else is said.
pub const DEFAULT_TEMPERATURE: f64 = 0.7;
/// Tokens of an answer where nothing else is said.
pub const DEFAULT_MAX_TOKENS: u32 = 1_000;
/// Tokens of what is sent where nothing else is said: a window of 16K, without room for the answer.
pub const DEFAULT_HISTORY_TOKENS: u32 = 15_000;
/// Days from the last interaction to expiry where nothing else is said.
pub const DEFAULT_EXPIRY_DAYS: u32 = 7;
/// Most tokens of an answer.
pub const MAX_MAX_TOKENS: u32 = 200_000;
/// Fewest tokens of what is sent: less holds no prompt with a turn.
pub const MIN_HISTORY_TOKENS: u32 = 100;
/// Longest time to expiry: ten years.
pub const MAX_EXPIRY_DAYS: u32 = 3_650;

/// How a persona answers, and how long it stays.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Settings {
    /// Diversity of answers, 0.0 to 1.0.
    pub temperature: f64,
    /// Most tokens of an answer.
    pub max_tokens: u32,
    /// Most tokens of what a turn sends: prompt, history, what is recalled, and the message. They are
    /// counted by the tokenizer.
    pub max_history_tokens: u32,
    /// Days from the last interaction to expiry.
    pub expiry_days: u32,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            temperature: DEFAULT_TEMPERATURE,
            max_tokens: DEFAULT_MAX_TOKENS,
            max_history_tokens: DEFAULT_HISTORY_TOKENS,
            expiry_days: DEFAULT_EXPIRY_DAYS,
        }
    }
}

/// What of the settings is said; the rest stays as it is.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Overrides {
    /// See [`Settings::temperature`].
    pub temperature: Option<f64>,
    /// See [`Settings::max_tokens`].
    pub max_tokens: Option<u32>,
    /// See [`Settings::max_history_tokens`].
    pub max_history_tokens: Option<u32>,
    /// See [`Settings::expiry_days`].
    pub expiry_days: Option<u32>,
}

impl Settings {
    /// These settings with what is said instead, checked.
    ///
    /// # Errors
    /// `InvalidInput` that names the setting and its range.
    pub fn with(self, said: &Overrides) -> Result<Self> {
        let settings = Self {
            temperature: said.temperature.unwrap_or(self.temperature),
            max_tokens: said.max_tokens.unwrap_or(self.max_tokens),
            max_history_tokens: said.max_history_tokens.unwrap_or(self.max_history_tokens),
            expiry_days: said.expiry_days.unwrap_or(self.expiry_days),
        };
        settings.check()?;
        Ok(settings)
    }

    /// Whether every setting is in its range.
    ///
    /// # Errors
    /// `InvalidInput` that names the setting and its range.
    pub fn check(&self) -> Result<()> {
        if !(0.0..=1.0).contains(&self.temperature) {
            return Err(Error::invalid("temperature: must be 0.0 to 1.0"));
        }
        for (setting, value, least, most) in [
            ("max_tokens", self.max_tokens, 1, MAX_MAX_TOKENS),
            ("max_history_tokens", self.max_history_tokens, MIN_HISTORY_TOKENS, MAX_BUDGET),
            ("expiry_days", self.expiry_days, 1, MAX_EXPIRY_DAYS),
        ] {
            if !(least..=most).contains(&value) {
                return Err(Error::invalid(format!("{setting}: must be {least} to {most}")));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn defaults_are_those_of_the_seed() {
        let Settings { temperature, max_tokens, max_history_tokens, expiry_days } =
            Settings::default();
        assert_eq!((temperature, max_tokens), (0.7, 1_000));
        assert_eq!((max_history_tokens, expiry_days), (15_000, 7));
    }

    #[test]
    fn what_is_out_of_range_is_named() {
        let none = Overrides::default();
        assert_eq!(Settings::default().with(&none).unwrap(), Settings::default());
        for temperature in [0.0, 1.0] {
            let said = Overrides { temperature: Some(temperature), ..none };
            assert_eq!(Settings::default().with(&said).unwrap().temperature, temperature);
        }
        for (said, setting) in [
            (Overrides { temperature: Some(-0.01), ..none }, "temperature: "),
            (Overrides { temperature: Some(1.01), ..none }, "temperature: "),
            (Overrides { temperature: Some(f64::NAN), ..none }, "temperature: "),
            (Overrides { max_tokens: Some(0), ..none }, "max_tokens: "),
            (Overrides { max_history_tokens: Some(99), ..none }, "max_history_tokens: "),
            (Overrides { max_history_tokens: Some(1_000_001), ..none }, "max_history_tokens: "),
            (Overrides { expiry_days: Some(0), ..none }, "expiry_days: "),
            (Overrides { expiry_days: Some(3_651), ..none }, "expiry_days: "),
        ] {
            let error = Settings::default().with(&said).unwrap_err();
            assert!(error.message().starts_with(setting), "{error}");
        }
    }
}
