//! Integrity of the file.

use rusqlite::Connection;
use throughline_core::Result;
use throughline_core::ports::Health;

use crate::connection::schema_version;
use crate::records::mapped;

/// `quick_check` reads every page's structure; `deep` also compares rows with their indexes.
pub(crate) fn check(connection: &Connection, deep: bool) -> Result<Health> {
    let pragma = if deep { "PRAGMA integrity_check(20)" } else { "PRAGMA quick_check(20)" };
    let read = || -> rusqlite::Result<Vec<String>> {
        let mut statement = connection.prepare(pragma)?;
        let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
        rows.filter(|row| !matches!(row, Ok(text) if text == "ok")).collect()
    };
    let problems = mapped(read(), "check")?;
    Ok(Health {
        backend: format!("SQLite {}", rusqlite::version()),
        schema_version: schema_version(connection)?,
        problems,
    })
}
