//! Instants, as microseconds since the Unix epoch. `now` is always an input.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use time::format_description::BorrowedFormatItem;
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{OffsetDateTime, PrimitiveDateTime};

use crate::error::{Error, Result};

/// A point in time, UTC, in microseconds since the Unix epoch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// Dates in words that people and data sets write; tried in this order, all read as UTC.
const IN_WORDS: &[&[BorrowedFormatItem<'static>]] = &[
    format_description!("[year]-[month]-[day] [hour]:[minute]:[second]"),
    format_description!("[year]-[month]-[day] [hour]:[minute]"),
    format_description!("[year]-[month]-[day]T[hour]:[minute]:[second]"),
    format_description!(
        "[hour repr:12 padding:none]:[minute] [period case:lower] on [day padding:none] [month repr:long], [year]"
    ),
    format_description!(
        "[hour repr:12 padding:none]:[minute] [period case:lower] on [month repr:long] [day padding:none], [year]"
    ),
    format_description!("[day padding:none] [month repr:long] [year] [hour padding:none]:[minute]"),
    format_description!(
        "[month repr:long] [day padding:none], [year] [hour repr:12 padding:none]:[minute] [period case:lower]"
    ),
];

/// Dates without a time of day; they mean midnight.
const DAYS: &[&[BorrowedFormatItem<'static>]] = &[
    format_description!("[year]-[month]-[day]"),
    format_description!("[day padding:none] [month repr:long], [year]"),
    format_description!("[day padding:none] [month repr:long] [year]"),
    format_description!("[month repr:long] [day padding:none], [year]"),
];

impl Timestamp {
    /// From microseconds since the Unix epoch.
    #[must_use]
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the Unix epoch.
    #[must_use]
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// Reads RFC 3339, or a date in words such as `1:56 pm on 8 May, 2023` (taken as UTC).
    ///
    /// # Errors
    /// `InvalidInput` with the accepted forms.
    pub fn parse(text: &str) -> Result<Self> {
        let text = text.trim();
        if let Ok(at) = OffsetDateTime::parse(text, &Rfc3339) {
            return Ok(Self::from_offset(at));
        }
        for format in IN_WORDS {
            if let Ok(at) = PrimitiveDateTime::parse(text, format) {
                return Ok(Self::from_offset(at.assume_utc()));
            }
        }
        for format in DAYS {
            if let Ok(day) = time::Date::parse(text, format) {
                return Ok(Self::from_offset(day.midnight().assume_utc()));
            }
        }
        Err(Error::invalid(format!(
            "`{}` is not a time: use RFC 3339 such as 2026-03-02T09:14:00Z, a date such as \
             2026-03-02, or words such as `1:56 pm on 8 May, 2023`",
            text.chars().take(60).collect::<String>()
        )))
    }

    /// The instant `duration` later, saturating.
    #[must_use]
    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)))
    }

    /// Calendar date in UTC as `(year, month 1-12, day 1-31)`.
    #[must_use]
    pub fn date(self) -> (i32, u8, u8) {
        let date = self.to_offset().date();
        (date.year(), date.month().into(), date.day())
    }

    /// `8 May 2023`, as it is shown beside recalled messages.
    #[must_use]
    pub fn day_in_words(self) -> String {
        let date = self.to_offset().date();
        format!("{} {} {}", date.day(), date.month(), date.year())
    }

    /// RFC 3339 in UTC.
    #[must_use]
    pub fn to_rfc3339(self) -> String {
        // The range of `to_offset` is the range that RFC 3339 can write.
        self.to_offset().format(&Rfc3339).unwrap_or_default()
    }

    fn from_offset(at: OffsetDateTime) -> Self {
        Self(i64::try_from(at.unix_timestamp_nanos() / 1_000).unwrap_or(i64::MAX))
    }

    fn to_offset(self) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000)
            .ok()
            .filter(|at| at.year() >= 0)
            .unwrap_or(OffsetDateTime::UNIX_EPOCH)
    }
}

impl FromStr for Timestamp {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        Self::parse(text)
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.to_rfc3339())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_in_the_forms_that_people_write() {
        let table = [
            ("2023-05-08T13:56:00Z", "2023-05-08T13:56:00Z"),
            ("2023-05-08T15:56:00+02:00", "2023-05-08T13:56:00Z"),
            ("1:56 pm on 8 May, 2023", "2023-05-08T13:56:00Z"),
            ("12:09 am on 13 September, 2023", "2023-09-13T00:09:00Z"),
            ("2023-05-08 13:56", "2023-05-08T13:56:00Z"),
            ("2023-05-08", "2023-05-08T00:00:00Z"),
            ("8 May 2023", "2023-05-08T00:00:00Z"),
            ("May 8, 2023", "2023-05-08T00:00:00Z"),
        ];
        for (text, expected) in table {
            assert_eq!(Timestamp::parse(text).unwrap().to_rfc3339(), expected, "{text}");
        }
        for bad in ["", "yesterday", "2023-13-01", "31 February 2023"] {
            assert!(Timestamp::parse(bad).is_err(), "{bad:?}");
        }
    }
}
