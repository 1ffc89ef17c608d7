//! Opening the file, and the one place where driver errors become ours.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::ffi::ErrorCode;
use rusqlite::limits::Limit;
use rusqlite::{Connection, OpenFlags};
use rusqlite_migration::{M, Migrations};
use throughline_core::{Error, ErrorKind, Result};

/// Numbered, forward-only; a released file never changes.
const MIGRATIONS: &[&str] = &[
    include_str!("../migrations/0001_initial.sql"),
    include_str!("../migrations/0002_extracted_by.sql"),
    include_str!("../migrations/0003_actors.sql"),
    include_str!("../migrations/0004_models.sql"),
    include_str!("../migrations/0005_ratings.sql"),
    include_str!("../migrations/0006_file_lists.sql"),
];

/// Marks a file as ours ("thru"), so that no other program's database is migrated by mistake.
const APPLICATION_ID: i32 = 0x7468_7275;

/// When a commit counts as done.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Once it is on the disk (`synchronous=FULL`): no power loss takes it back.
    #[default]
    Full,
    /// Once it is in the operating system (`synchronous=NORMAL`): a crash of the program loses
    /// nothing, a power loss may lose the last commits; the file stays intact.
    Normal,
}

/// How to open a store.
#[derive(Debug, Clone)]
pub struct SqliteOptions {
    /// The database file; beside it SQLite keeps `-wal` and `-shm`.
    pub path: PathBuf,
    /// When a commit counts as done.
    pub durability: Durability,
    /// Reading connections.
    pub readers: usize,
    /// How long to wait for another process that holds the write lock.
    pub busy_timeout: Duration,
    /// Most bytes that the database file may take; `None` is as many as the disk holds.
    pub max_bytes: Option<u64>,
    /// Bytes of vectors that are kept in memory.
    pub vector_cache_bytes: u64,
    /// Vectors of a scope that are all compared with a question; of more, their signs come first.
    pub exact_vectors: u64,
    /// Name of the SQLite VFS, for tests of power loss; `None` is the platform's own.
    pub vfs: Option<String>,
}

impl SqliteOptions {
    /// The defaults, for a file.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self {
            path: path.into(),
            durability: Durability::default(),
            readers: 4,
            busy_timeout: Duration::from_secs(5),
            max_bytes: None,
            vector_cache_bytes: 128 << 20,
            exact_vectors: 32_768,
            vfs: None,
        }
    }
}

/// Latest schema that this program knows.
pub(crate) fn latest_schema() -> u32 {
    u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX)
}

/// Opens the writing connection, creates what is missing and migrates what is old.
pub(crate) fn open_writer(options: &SqliteOptions) -> Result<Connection> {
    create_private(&options.path)?;
    let _turn = take_turn(&options.path)?;
    let mut connection = open(options, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    let found = schema_version(&connection)?;
    let known = latest_schema();
    if found > known {
        return Err(Error::new(
            ErrorKind::SchemaTooNew,
            format!(
                "{} has schema version {found}, but this program supports versions up to {known}: \
                 use the newer program that wrote it, or restore an older backup; nothing was \
                 changed",
                options.path.display()
            ),
        ));
    }
    let journal: String = connection
        .pragma_update_and_check(None, "journal_mode", "WAL", |row| row.get(0))
        .map_err(|error| driver_error(error, "open"))?;
    if journal != "wal" {
        return Err(Error::new(
            ErrorKind::Unavailable,
            format!(
                "{} cannot use write-ahead logging: put data_dir on a local file system",
                options.path.display()
            ),
        ));
    }
    let synchronous = match options.durability {
        Durability::Full => "FULL",
        Durability::Normal => "NORMAL",
    };
    connection
        .pragma_update(None, "synchronous", synchronous)
        .and_then(|()| connection.pragma_update(None, "secure_delete", true))
        // What savepoints copy would else go to a file that every other commit makes and removes.
        .and_then(|()| connection.pragma_update(None, "temp_store", "MEMORY"))
        .and_then(|()| limit_size(&connection, options.max_bytes))
        .map_err(|error| driver_error(error, "open"))?;
    if found < known {
        let steps = MIGRATIONS.iter().map(|sql| M::up(sql)).collect();
        Migrations::new(steps).to_latest(&mut connection).map_err(|error| match error {
            rusqlite_migration::Error::RusqliteError { err, .. } => driver_error(err, "migrate"),
            other => Error::internal("a migration failed and was rolled back")
                .with_source(other)
                .during("migrate"),
        })?;
    }
    Ok(connection)
}

fn limit_size(connection: &Connection, max_bytes: Option<u64>) -> rusqlite::Result<()> {
    let Some(max_bytes) = max_bytes else { return Ok(()) };
    let page: u64 = connection.pragma_query_value(None, "page_size", |row| row.get(0))?;
    // SQLite takes no limit below what the file has: it then refuses to grow.
    let pages = (max_bytes / page.max(1)).clamp(1, u64::from(u32::MAX) - 1);
    connection.pragma_update_and_check(None, "max_page_count", pages, |_| Ok(()))
}

/// Opens a connection that can only read.
pub(crate) fn open_reader(options: &SqliteOptions) -> Result<Connection> {
    let connection = open(options, OpenFlags::SQLITE_OPEN_READ_WRITE)?;
    connection
        .pragma_update(None, "query_only", true)
        .map_err(|error| driver_error(error, "open"))?;
    Ok(connection)
}

/// Opens a connection beside the writer's, of a file that is there.
pub(crate) fn open_unbound(options: &SqliteOptions) -> Result<Connection> {
    open(options, OpenFlags::SQLITE_OPEN_READ_WRITE)
}

fn open(options: &SqliteOptions, mode: OpenFlags) -> Result<Connection> {
    let flags = mode | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let opened = match &options.vfs {
        Some(vfs) => Connection::open_with_flags_and_vfs(&options.path, flags, vfs.as_str()),
        None => Connection::open_with_flags(&options.path, flags),
    };
    let prepare = |connection: Connection| {
        connection.busy_timeout(options.busy_timeout)?;
        connection.set_prepared_statement_cache_capacity(64);
        connection.set_limit(Limit::SQLITE_LIMIT_ATTACHED, 0)?;
        // Without it, every new value bound beside a partial index makes SQLite plan the query again.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        connection.pragma_update(None, "cache_size", -32_768)?;
        connection.pragma_update(None, "foreign_keys", true)?;
        let application: i32 =
            connection.pragma_query_value(None, "application_id", |row| row.get(0))?;
        let tables: i64 =
            connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
        Ok((connection, application, tables))
    };
    let (connection, application, tables) = opened.and_then(prepare).map_err(open_error)?;
    if tables > 0 && application != APPLICATION_ID {
        return Err(Error::new(
            ErrorKind::Corrupt,
            format!(
                "{} is a SQLite file of another program: name another data_dir; nothing was changed",
                options.path.display()
            ),
        ));
    }
    // Tables and their version are of one transaction.
    if tables > 0 && schema_version(&connection)? == 0 {
        return Err(damaged_header());
    }
    Ok(connection)
}

pub(crate) fn schema_version(connection: &Connection) -> Result<u32> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0)).map_err(open_error)
}

/// An error of reading the header: what is asked for then is in every file, so that only damage refuses it.
fn open_error(error: rusqlite::Error) -> Error {
    let error = driver_error(error, "open");
    match error.kind() {
        ErrorKind::Internal => damaged_header().with_source(error),
        _ => error,
    }
}

fn damaged_header() -> Error {
    Error::new(
        ErrorKind::Corrupt,
        "the header of the database is damaged: restore a backup with `throughline restore`",
    )
}

/// Creates the file with mode 0600 before SQLite opens it; SQLite gives `-wal` and `-shm` the mode
/// of the file. A file that exists is not touched: opening and closing it here would release the
/// locks that a connection of this process may hold on it.
pub(crate) fn create_private(path: &Path) -> Result<()> {
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    match options.open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            if path.is_dir() {
                return Err(io_error(std::io::ErrorKind::IsADirectory.into(), path));
            }
            Ok(())
        }
        Err(error) => Err(io_error(error, path)),
    }
}

/// Processes that open one file at the same time take turns, so that one of them creates or
/// migrates it and the others find it done. The lock ends with the returned file, or its process.
pub(crate) fn take_turn(path: &Path) -> Result<std::fs::File> {
    let mut name = path.to_owned().into_os_string();
    name.push("-open");
    let path = PathBuf::from(name);
    create_private(&path)?;
    let open = || -> std::io::Result<std::fs::File> {
        let file = std::fs::OpenOptions::new().write(true).open(&path)?;
        file.lock()?;
        Ok(file)
    };
    open().map_err(|error| io_error(error, &path))
}

/// A file error as a sentence.
pub(crate) fn io_error(error: std::io::Error, path: &Path) -> Error {
    use std::io::ErrorKind as Io;
    let path = path.display();
    let (kind, sentence) = match error.kind() {
        Io::NotFound => (ErrorKind::NotFound, format!("{path} does not exist")),
        Io::PermissionDenied | Io::ReadOnlyFilesystem => {
            (ErrorKind::ReadOnly, format!("{path} cannot be written: check its owner and mode"))
        }
        Io::StorageFull | Io::QuotaExceeded => {
            (ErrorKind::StorageFull, format!("the disk of {path} is full: free some space"))
        }
        Io::IsADirectory => (ErrorKind::InvalidInput, format!("{path} is a directory")),
        _ => (ErrorKind::Unavailable, format!("{path} cannot be opened: {error}")),
    };
    Error::new(kind, sentence).with_source(error)
}

/// Maps a driver error to what a caller can act on; SQL and values never reach the message.
pub(crate) fn driver_error(error: rusqlite::Error, operation: &'static str) -> Error {
    let (kind, sentence) = match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => (
            ErrorKind::Unavailable,
            "the database is locked by another process: try again, or stop the other process",
        ),
        Some(
            ErrorCode::ReadOnly
            | ErrorCode::PermissionDenied
            | ErrorCode::AuthorizationForStatementDenied,
        ) => (
            ErrorKind::ReadOnly,
            "the database is read-only: check owner and mode of the file and its directory",
        ),
        Some(ErrorCode::DiskFull) => (
            ErrorKind::StorageFull,
            "the disk is full, or the store has reached sqlite.max_bytes: free some space, then \
             try again",
        ),
        Some(ErrorCode::DatabaseCorrupt) => (
            ErrorKind::Corrupt,
            "the database is damaged: restore a backup with `throughline restore`",
        ),
        Some(ErrorCode::NotADatabase) => (
            ErrorKind::Corrupt,
            "the file is not a database: name another data_dir, or restore a backup with \
             `throughline restore`",
        ),
        Some(ErrorCode::CannotOpen) => (
            ErrorKind::Unavailable,
            "the database cannot be opened: check that its directory exists and can be written",
        ),
        Some(ErrorCode::SystemIoFailure) => {
            (ErrorKind::Unavailable, "the disk reports an error: check it, then try again")
        }
        _ => (ErrorKind::Internal, "the database refused a statement"),
    };
    Error::new(kind, sentence).with_source(error).during(operation)
}

#[cfg(test)]
mod tests {
    use rusqlite::params;

    use super::*;

    /// The schema that all migrations together give is the one that the last one documents: they
    /// apply to an empty file, and none is left over.
    #[test]
    fn migrations_are_valid() {
        let steps = MIGRATIONS.iter().map(|sql| M::up(sql)).collect();
        Migrations::new(steps).validate().unwrap();
    }

    #[test]
    fn what_was_taken_back_directly_before_actors_counts_as_rejected() {
        let steps = MIGRATIONS.iter().map(|sql| M::up(sql)).collect();
        let migrations = Migrations::new(steps);
        let mut connection = Connection::open_in_memory().unwrap();
        migrations.to_version(&mut connection, 2).unwrap();
        // Number, session, kind, statement, the number of what superseded it, whether it was stated after its value
        // was rejected, and whether its value counts as rejected from then on.
        let table = [
            (1, 1, "fact", 10, Some(2), 0, 1),
            (2, 0, "retraction", 10, None, 0, 0),
            // Taken back, and told directly again.
            (3, 1, "fact", 20, Some(4), 0, 0),
            (4, 0, "retraction", 20, Some(5), 0, 0),
            (5, 0, "fact", 20, None, 0, 0),
            // Taken back in a message; and only stated in one again.
            (6, 1, "fact", 30, Some(7), 0, 0),
            (7, 1, "retraction", 30, None, 0, 0),
            (8, 1, "fact", 40, Some(9), 0, 1),
            (9, 0, "retraction", 40, Some(10), 0, 0),
            (10, 1, "fact", 40, None, 0, 0),
            // Stated after its value was rejected; and told directly since.
            (11, 1, "fact", 50, Some(2), 1, 1),
            (12, 1, "fact", 60, Some(2), 1, 0),
            (13, 0, "fact", 60, None, 0, 0),
        ];
        let id = |number: u8| vec![number; 16];
        for (number, session, kind, statement, by, rejected, _) in table {
            connection
                .execute(
                    "INSERT INTO fact (scope_id, number, id, session_number, kind, text, tags,
                       statement, weight, superseded_by, observed_at, rejected)
                     VALUES (1, ?1, ?2, ?3, ?4, 'x', '', ?5, 1.0, ?6, 1, ?7)",
                    params![number, id(number), session, kind, statement, by.map(id), rejected],
                )
                .unwrap();
        }
        migrations.to_latest(&mut connection).unwrap();
        for (number, .., rejected) in table {
            let held: i64 = connection
                .query_row("SELECT rejected FROM fact WHERE number = ?1", [number], |row| {
                    row.get(0)
                })
                .unwrap();
            assert_eq!(held, rejected, "fact {number}");
        }
    }
}
