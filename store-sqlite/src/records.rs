//! How values are kept in columns.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use throughline_core::Result;
use throughline_core::ids::MessageId;
use throughline_core::index::{IndexUnit, Namespace, TermId};
use throughline_core::time::Timestamp;
use uuid::Uuid;

use crate::connection::driver_error;

/// A UUID as 16 bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Id(pub(crate) Uuid);

impl ToSql for Id {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(ValueRef::Blob(self.0.as_bytes())))
    }
}

impl FromSql for Id {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        let bytes = value.as_blob()?;
        Uuid::from_slice(bytes).map(Self).map_err(|error| FromSqlError::Other(Box::new(error)))
    }
}

impl From<Id> for MessageId {
    fn from(id: Id) -> Self {
        Self::from_uuid(id.0)
    }
}

/// An instant as microseconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct At(pub(crate) Timestamp);

impl ToSql for At {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.0.as_micros().into())
    }
}

impl FromSql for At {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(Self(Timestamp::from_micros(value.as_i64()?)))
    }
}

/// A hash or key: all 64 bits count, order is that of the signed number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bits(pub(crate) u64);

impl ToSql for Bits {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.0.cast_signed().into())
    }
}

impl FromSql for Bits {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Ok(Self(value.as_i64()?.cast_unsigned()))
    }
}

/// A namespace as a number.
pub(crate) fn namespace_code(namespace: Namespace) -> i64 {
    match namespace {
        Namespace::Message => 0,
        Namespace::Fact => 1,
        Namespace::Document => 2,
    }
}

/// A limit or cursor of any size, within what SQLite can compare.
pub(crate) fn bounded(number: impl TryInto<i64>) -> i64 {
    number.try_into().unwrap_or(i64::MAX)
}

/// A name kept as text, read back with its own rules.
pub(crate) fn parsed<T: std::str::FromStr<Err = throughline_core::Error>>(
    text: &str,
) -> rusqlite::Result<T> {
    text.parse().map_err(stored_wrongly)
}

/// A stored value that our own rules refuse: the file is damaged or was changed by hand.
pub(crate) fn stored_wrongly(
    error: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, rusqlite::types::Type::Text, error.into())
}

/// The terms of a unit of the tail: 8 bytes of term and 2 of count each.
pub(crate) fn encode_terms(unit: &IndexUnit) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(unit.terms.len() * 10);
    for (term, count) in &unit.terms {
        bytes.extend_from_slice(&term.to_bits().to_le_bytes());
        bytes.extend_from_slice(&count.to_le_bytes());
    }
    bytes
}

/// The inverse of [`encode_terms`]; an incomplete last entry is left out.
pub(crate) fn decode_terms(bytes: &[u8]) -> impl Iterator<Item = (TermId, u16)> {
    bytes.as_chunks::<10>().0.iter().map(|entry| {
        let [a, b, c, d, e, f, g, h, low, high] = *entry;
        let term = u64::from_le_bytes([a, b, c, d, e, f, g, h]);
        (TermId::from_bits(term), u16::from_le_bytes([low, high]))
    })
}

/// Takes the entries of other terms out of what [`encode_terms`] gave.
pub(crate) fn retain_terms(bytes: &mut Vec<u8>, is_kept: impl Fn(TermId) -> bool) {
    let (mut from, mut to) = (0, 0);
    while let Some(entry) = bytes.get(from..from + 10) {
        if decode_terms(entry).any(|(term, _)| is_kept(term)) {
            bytes.copy_within(from..from + 10, to);
            to += 10;
        }
        from += 10;
    }
    bytes.truncate(to);
}

/// A driver's result with its error mapped.
pub(crate) fn mapped<T>(result: rusqlite::Result<T>, operation: &'static str) -> Result<T> {
    result.map_err(|error| match error {
        rusqlite::Error::FromSqlConversionFailure(_, _, source) => throughline_core::Error::new(
            throughline_core::ErrorKind::Corrupt,
            "a stored value is damaged: run `throughline migrate --check`, or restore a backup",
        )
        .with_source(source)
        .during(operation),
        other => driver_error(other, operation),
    })
}
