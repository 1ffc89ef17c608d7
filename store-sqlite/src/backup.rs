//! Online backup and restore.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use tempfile::NamedTempFile;
use throughline_core::ports::ErasureState;
use throughline_core::{Error, ErrorKind, Result};

use crate::connection::{
    SqliteOptions, driver_error, io_error, latest_schema, open_reader, schema_version, take_turn,
};
use crate::store::SqliteStore;
use crate::{erase, health};

/// How far a backup is, in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupProgress {
    /// Pages copied.
    pub done: u64,
    /// Pages in all.
    pub total: u64,
}

/// Pages of one step; progress is reported between steps.
const STEP: i32 = 1_024;

impl SqliteStore {
    /// Copies the store, as it is at one moment, to a new file of mode 0600 while it is in use, and
    /// checks the copy. The file appears under its name only once it is whole.
    ///
    /// # Errors
    /// `Conflict` when the file exists; those of the disk.
    pub async fn backup(
        &self,
        to: &Path,
        mut progress: impl FnMut(BackupProgress) + Send + 'static,
    ) -> Result<()> {
        let to = to.to_owned();
        let exists = |to: &Path| {
            Error::conflict(format!(
                "{} already exists: name a new file; a backup never overwrites a file",
                to.display()
            ))
        };
        if to.exists() {
            return Err(exists(&to));
        }
        self.read(move |source| {
            let part = part_beside(&to)?;
            copy(source, part.path(), &mut progress)?;
            part.persist_noclobber(&to).map_err(|error| match error.error.kind() {
                std::io::ErrorKind::AlreadyExists => exists(&to),
                _ => io_error(error.error, &to),
            })?;
            flush_folder(&to)
        })
        .await
    }
}

/// Puts a backup in the place of a store that no process has open.
///
/// The backup is checked and copied beside its place first; then the old file, which nobody may
/// have open, is replaced by a rename, so that either the old or the new one is there whatever
/// happens. Processes that open the store meanwhile wait.
///
/// # Errors
/// `NotFound`, `Corrupt` or `SchemaTooNew` for the backup; `Unavailable` when another process uses
/// the store; `Conflict` when a store is there and `replace` is false.
pub fn restore(
    from: &Path,
    options: &SqliteOptions,
    replace: bool,
    mut progress: impl FnMut(BackupProgress),
) -> Result<()> {
    let to = &options.path;
    let source = open_backup(from)?;
    let _turn = take_turn(to)?;
    if to.exists() && !replace {
        return Err(Error::conflict(format!(
            "{} already exists: back it up and pass --replace; nothing was changed",
            to.display()
        )));
    }
    let part = part_beside(to)?;
    copy(&source, part.path(), &mut progress)?;
    // Held until the new file has the name, so that nobody begins to use the old one.
    let _old = close_old(options)?;
    part.persist(to).map_err(|error| io_error(error.error, to))?;
    flush_folder(to)
}

/// Which entries of which ledger a backup has applied: what tells whether it may be restored beside a
/// ledger.
///
/// # Errors
/// As [`restore`], for the backup.
pub fn erasures_of(from: &Path) -> Result<ErasureState> {
    let source = open_backup(from)?;
    erase::state(&source).map_err(|error| driver_error(error, "restore"))
}

/// Opens a backup and makes sure that it is one that can be restored.
fn open_backup(from: &Path) -> Result<Connection> {
    if !from.is_file() {
        return Err(Error::not_found(format!("{} does not exist", from.display())));
    }
    let source = open_reader(&SqliteOptions::new(from))?;
    let version = schema_version(&source)?;
    if version == 0 || version > latest_schema() {
        let kind = if version == 0 { ErrorKind::Corrupt } else { ErrorKind::SchemaTooNew };
        return Err(Error::new(
            kind,
            format!(
                "{} has schema version {version}, but this program supports 1 to {}; nothing was \
                 changed",
                from.display(),
                latest_schema()
            ),
        ));
    }
    match health::check(&source, true)?.problems.first() {
        None => Ok(source),
        Some(problem) => Err(Error::new(
            ErrorKind::Corrupt,
            format!("{} is damaged ({problem}); nothing was changed", from.display()),
        )),
    }
}

/// Makes sure that no process uses the old store, folds its log into it and locks it. The log of an
/// old store beside a new one would be read as the new one's.
fn close_old(options: &SqliteOptions) -> Result<Option<Connection>> {
    if !options.path.exists() {
        return Ok(None);
    }
    let exclusive = || -> rusqlite::Result<Connection> {
        let old = Connection::open(&options.path)?;
        // Leaving write-ahead logging takes the only connection there is, and removes the log.
        old.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(()))?;
        old.execute_batch("BEGIN EXCLUSIVE")?;
        Ok(old)
    };
    match exclusive() {
        Ok(old) => Ok(Some(old)),
        Err(error)
            if matches!(
                error.sqlite_error_code(),
                Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked)
            ) =>
        {
            Err(Error::new(
                ErrorKind::Unavailable,
                "another process uses the store: stop it, then restore; nothing was changed",
            ))
        }
        // Too damaged to open: that is what a restore is for.
        Err(_) => {
            for suffix in ["-wal", "-shm"] {
                let mut name = options.path.clone().into_os_string();
                name.push(suffix);
                match std::fs::remove_file(&name) {
                    Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                        return Err(io_error(error, Path::new(&name)));
                    }
                    _ => {}
                }
            }
            Ok(None)
        }
    }
}

/// A file of mode 0600 and a name of its own beside `path`, which is removed unless it is given
/// that name.
fn part_beside(path: &Path) -> Result<NamedTempFile> {
    let folder = folder_of(path);
    tempfile::Builder::new()
        .prefix(".throughline-")
        .suffix(".part")
        .tempfile_in(folder)
        .map_err(|error| io_error(error, folder))
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Copies the whole of `source`, as of one moment, into a file, checks and flushes it.
fn copy(source: &Connection, part: &Path, progress: &mut dyn FnMut(BackupProgress)) -> Result<()> {
    let failed = |error| driver_error(error, "backup");
    // SQLite starts a copy anew when another connection writes; a snapshot of ours stays as it is.
    let snapshot = source.unchecked_transaction().map_err(failed)?;
    snapshot.query_row("SELECT count(*) FROM sqlite_schema", [], |_| Ok(())).map_err(failed)?;
    let mut target = Connection::open(part).map_err(failed)?;
    {
        let backup = Backup::new(&snapshot, &mut target).map_err(failed)?;
        loop {
            let step = backup.step(STEP).map_err(failed)?;
            if matches!(step, StepResult::Busy | StepResult::Locked) {
                return Err(Error::new(
                    ErrorKind::Unavailable,
                    "the store is locked by another process: try again",
                ));
            }
            let pages = backup.progress();
            let total = u64::try_from(pages.pagecount).unwrap_or_default();
            let left = u64::try_from(pages.remaining).unwrap_or_default();
            progress(BackupProgress { done: total - left.min(total), total });
            if step == StepResult::Done {
                break;
            }
        }
    }
    // A single file, without a log beside it.
    target.pragma_update_and_check(None, "journal_mode", "DELETE", |_| Ok(())).map_err(failed)?;
    if let Some(problem) = health::check(&target, false)?.problems.first() {
        return Err(Error::new(ErrorKind::Corrupt, format!("the copy is damaged ({problem})")));
    }
    drop(target);
    std::fs::File::open(part)
        .and_then(|file| file.sync_all())
        .map_err(|error| io_error(error, part))
}

/// A rename is durable once its directory is.
pub(crate) fn flush_folder(path: &Path) -> Result<()> {
    let folder = folder_of(path);
    std::fs::File::open(folder)
        .and_then(|folder| folder.sync_all())
        .map_err(|error| io_error(error, folder))
}
