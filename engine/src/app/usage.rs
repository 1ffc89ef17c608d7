//! Use by day.

use throughline_core::usage::{UsageCounters, UsageDay};
use throughline_core::{Error, Result};

use super::App;
use crate::identity::Identity;

/// Days of use where no first one is given.
const DEFAULT_DAYS: i64 = 30;
/// Most days of one answer.
const MAX_DAYS: i64 = 366;

impl App {
    /// The use of the caller's memory from one day to another, both included; days without use are left out. The last
    /// day is today where none is given, the first one 30 days before the last.
    ///
    /// # Errors
    /// `InvalidInput` for days out of order or too many; those of the store.
    pub async fn usage(
        &self,
        caller: &Identity,
        from: Option<UsageDay>,
        to: Option<UsageDay>,
    ) -> Result<Vec<(UsageDay, UsageCounters)>> {
        let to = to.unwrap_or_else(|| UsageDay::of(self.engine.clock.now()));
        let from = from.unwrap_or_else(|| UsageDay::from_days(to.days() - DEFAULT_DAYS));
        if from > to || to.days() - from.days() > MAX_DAYS {
            return Err(Error::invalid(format!(
                "from and to: at most {MAX_DAYS} days, and `from` must not be after `to`"
            )));
        }
        self.engine.store.usage(&caller.scope()?, from, to).await
    }

    /// The use of the last days, today included.
    ///
    /// # Errors
    /// `InvalidInput` for no day or too many; those of the store.
    pub async fn usage_of_last(
        &self,
        caller: &Identity,
        days: u32,
    ) -> Result<Vec<(UsageDay, UsageCounters)>> {
        if !(1..=MAX_DAYS).contains(&i64::from(days)) {
            return Err(Error::invalid(format!("days: 1 to {MAX_DAYS}")));
        }
        let today = UsageDay::of(self.engine.clock.now());
        let first = UsageDay::from_days(today.days() + 1 - i64::from(days));
        self.usage(caller, Some(first), Some(today)).await
    }
}
