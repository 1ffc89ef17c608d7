//! How long a persona stays: expiry counted from the last interaction, a day's warning, extension, and the
//! grace period of a deletion.

use std::time::Duration;

use super::{MAX_EXPIRY_DAYS, Persona};
use crate::error::{Error, Result};
use crate::time::Timestamp;

/// How long before its expiry a persona warns of it.
pub const WARNED_BEFORE: Duration = Duration::from_secs(24 * 60 * 60);
/// Upkeep of a scope is not due more often than this, whatever becomes due.
pub const NEVER_BEFORE: Duration = Duration::from_secs(60 * 60);

/// Where a persona stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Status {
    /// It answers.
    Active,
    /// It answers, and expires within a day.
    Expiring,
    /// It does not answer until it is extended; clean-up deletes it.
    Expired,
    /// It is deleted, and can be restored until its grace ends.
    Deleted,
}

impl Status {
    /// The name on the wire.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Expiring => "expiring",
            Self::Expired => "expired",
            Self::Deleted => "deleted",
        }
    }
}

/// A number of days.
pub(crate) fn days(days: u32) -> Duration {
    Duration::from_secs(u64::from(days) * 24 * 60 * 60)
}

/// The instant `by` earlier, saturating.
fn before(at: Timestamp, by: Duration) -> Timestamp {
    let by = i64::try_from(by.as_micros()).unwrap_or(i64::MAX);
    Timestamp::from_micros(at.as_micros().saturating_sub(by))
}

impl Persona {
    /// Where it stands at `now`.
    #[must_use]
    pub fn status(&self, now: Timestamp) -> Status {
        if self.deleted_at.is_some() {
            Status::Deleted
        } else if self.expires_at <= now {
            Status::Expired
        } else if self.expires_at <= now.plus(WARNED_BEFORE) {
            Status::Expiring
        } else {
            Status::Active
        }
    }

    /// The warning about its expiry.
    #[must_use]
    pub fn expiry_warning(&self, now: Timestamp) -> Option<String> {
        match self.status(now) {
            Status::Expiring => Some(format!(
                "this context expires at {}, within 24 hours: to postpone this, send it a message \
                 or extend it",
                self.expires_at
            )),
            Status::Expired => Some(format!("this context expired at {}", self.expires_at)),
            Status::Active | Status::Deleted => None,
        }
    }

    /// It answered at `now`: its expiry counts from then. One that was extended further stays so.
    pub(crate) fn interacted(&mut self, now: Timestamp) {
        self.last_interaction_at = self.last_interaction_at.max(now);
        self.expires_at = self.expires_at.max(now.plus(days(self.settings.expiry_days)));
    }

    /// Its expiry is so many days later, from now on where it has passed.
    pub(crate) fn extend(&mut self, by_days: u32, now: Timestamp) -> Result<()> {
        if !(1..=MAX_EXPIRY_DAYS).contains(&by_days) {
            return Err(Error::invalid(format!("days: must be 1 to {MAX_EXPIRY_DAYS}")));
        }
        let latest = now.plus(days(MAX_EXPIRY_DAYS));
        let later = self.expires_at.max(now).plus(days(by_days));
        // A second extension to the end changes nothing, and shortens nothing.
        self.expires_at = later.min(latest).max(self.expires_at);
        Ok(())
    }

    /// Another number of days moves the expiry by the difference, so that extensions stay.
    pub(super) fn change_expiry_days(&mut self, to: u32) {
        let from = std::mem::replace(&mut self.settings.expiry_days, to);
        self.expires_at = match to >= from {
            true => self.expires_at.plus(days(to - from)),
            false => before(self.expires_at, days(from - to)),
        };
    }

    /// When its grace ends, where it is deleted.
    #[must_use]
    pub fn erased_from(&self, grace_days: u32) -> Option<Timestamp> {
        Some(self.deleted_at?.plus(days(grace_days)))
    }

    /// Whether it should be backed up: something changed since a backup that is a day old.
    pub(crate) fn wants_backup(&self, now: Timestamp) -> bool {
        let changed = self.updated_at.max(self.last_interaction_at);
        // What changed at the very instant may not be in it.
        let has_changed = self.backed_up_at.is_none_or(|last| changed >= last);
        has_changed && self.may_be_backed_up(now)
    }

    /// Whether it is a day since it was backed up or made.
    pub(crate) fn may_be_backed_up(&self, now: Timestamp) -> bool {
        let since = self.backed_up_at.unwrap_or(self.created_at);
        self.is_active() && since.plus(days(1)) <= now
    }

    /// When there is next something to do for it.
    pub(super) fn due_at(&self, grace_days: u32) -> Timestamp {
        if let Some(end) = self.erased_from(grace_days) {
            return end;
        }
        let changed = self.updated_at.max(self.last_interaction_at);
        match self.backed_up_at {
            Some(last) if changed < last => self.expires_at,
            last => self.expires_at.min(last.unwrap_or(self.created_at).plus(days(1))),
        }
    }
}

/// When upkeep of a scope is next due: once for all of its personas, and not at every moment. `None` where
/// it has none.
pub(crate) fn next_due<'p>(
    personas: impl Iterator<Item = &'p Persona>,
    grace_days: u32,
    now: Timestamp,
) -> Option<Timestamp> {
    let next = personas.map(|persona| persona.due_at(grace_days)).min()?;
    Some(next.max(now.plus(NEVER_BEFORE)).min(now.plus(days(1))))
}

#[cfg(test)]
#[path = "expiry_tests.rs"]
mod tests;
