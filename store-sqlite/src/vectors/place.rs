//! Where vectors belong: scope, space and namespace never mix.

use rusqlite::{Connection, OptionalExtension};
use throughline_core::index::Namespace;
use throughline_core::ports::VectorSpace;

use crate::records::namespace_code;

/// Scope, space and namespace, as columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(super) scope_id: i64,
    pub(super) space_id: i64,
    pub(super) namespace: i64,
}

impl Place {
    pub(super) fn new(scope_id: i64, space_id: i64, namespace: Namespace) -> Self {
        Self { scope_id, space_id, namespace: namespace_code(namespace) }
    }

    pub(super) fn columns(self) -> (i64, i64, i64) {
        (self.scope_id, self.space_id, self.namespace)
    }
}

/// The row of a space, if it was ever written to.
pub(super) fn known_space(
    connection: &Connection,
    space: &VectorSpace,
) -> rusqlite::Result<Option<i64>> {
    connection
        .prepare_cached("SELECT id FROM vector_space WHERE name = ?1 AND dimensions = ?2")?
        .query_row((&space.id, space.dimensions), |row| row.get(0))
        .optional()
}

/// The row of a space, which is made when there is none.
pub(super) fn space_id(connection: &Connection, space: &VectorSpace) -> rusqlite::Result<i64> {
    if let Some(id) = known_space(connection, space)? {
        return Ok(id);
    }
    connection
        .prepare_cached("INSERT INTO vector_space (name, dimensions) VALUES (?1, ?2)")?
        .execute((&space.id, space.dimensions))?;
    Ok(connection.last_insert_rowid())
}
