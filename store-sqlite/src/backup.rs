//! Online backup and restore.

use std::path::Path;

use rusqlite::Connection;
use rusqlite::backup::{Backup, StepResult};
use throughline_core::{Error, ErrorKind, Result};

use crate::connection::{
    SqliteOptions, create_private, driver_error, io_error, latest_schema, open_reader,
    schema_version,
};
use crate::health;
use crate::store::SqliteStore;

/// How far a backup is, in pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BackupProgress {
    /// Pages copied.
    pub done: u64,
    /// Pages in all.
    pub total: u64,
}

/// Pages of one step; the source stays usable between steps.
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
        if to.exists() {
            return Err(Error::conflict(format!(
                "{} exists: name a new file, a backup never replaces one",
                to.display()
            )));
        }
        self.read(move |source| {
            let part = part_of(&to);
            let copied = copy(source, &part, &mut progress).and_then(|()| publish(&part, &to));
            if copied.is_err() {
                // What is left of a failed copy is of no use to anyone.
                let _ = std::fs::remove_file(&part);
            }
            copied
        })
        .await
    }
}

/// Puts a backup in the place of a store that no process has open.
///
/// The backup is checked first and copied beside its place; the old file is replaced by a rename,
/// so that either the old or the new one is there whatever happens.
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
                "{} has schema {version}, this program knows 1 to {}; nothing was changed",
                from.display(),
                latest_schema()
            ),
        ));
    }
    let report = health::check(&source, true)?;
    if let Some(problem) = report.problems.first() {
        return Err(Error::new(
            ErrorKind::Corrupt,
            format!("{} is damaged ({problem}); nothing was changed", from.display()),
        ));
    }
    if to.exists() {
        if !replace {
            return Err(Error::conflict(format!(
                "{} exists: back it up and pass --replace; nothing was changed",
                to.display()
            )));
        }
        close_old(options)?;
    }
    let part = part_of(to);
    let copied = copy(&source, &part, &mut progress);
    if copied.is_err() {
        let _ = std::fs::remove_file(&part);
    }
    copied?;
    publish(&part, to)
}

/// Makes sure that no process uses the old store and that its log is folded into it, so that the
/// rename leaves no log behind that belongs to another file.
fn close_old(options: &SqliteOptions) -> Result<()> {
    // A file that is too damaged to open is replaced all the same: that is what a restore is for.
    let Ok(old) = Connection::open(&options.path) else {
        return Ok(());
    };
    let in_use = || {
        Error::new(
            ErrorKind::Unavailable,
            "another process uses the store: stop it, then restore; nothing was changed",
        )
    };
    let exclusive = old
        .pragma_update(None, "locking_mode", "EXCLUSIVE")
        .and_then(|()| old.execute_batch("BEGIN EXCLUSIVE; COMMIT"));
    match exclusive {
        Err(error)
            if matches!(
                error.sqlite_error_code(),
                Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked)
            ) =>
        {
            return Err(in_use());
        }
        _ => drop(old),
    }
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
    Ok(())
}

fn part_of(path: &Path) -> std::path::PathBuf {
    let mut name = path.to_owned().into_os_string();
    name.push(".part");
    name.into()
}

fn copy(source: &Connection, part: &Path, progress: &mut dyn FnMut(BackupProgress)) -> Result<()> {
    match std::fs::remove_file(part) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(io_error(error, part));
        }
        _ => {}
    }
    create_private(part)?;
    let failed = |error| driver_error(error, "backup");
    let mut target = Connection::open(part).map_err(failed)?;
    {
        let backup = Backup::new(source, &mut target).map_err(failed)?;
        loop {
            let step = backup.step(STEP).map_err(failed)?;
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
    let report = health::check(&target, false)?;
    match report.problems.first() {
        None => Ok(()),
        Some(problem) => {
            Err(Error::new(ErrorKind::Corrupt, format!("the copy is damaged ({problem})")))
        }
    }
}

/// Flushes the copy and gives it its name.
fn publish(part: &Path, to: &Path) -> Result<()> {
    let flush = || -> std::io::Result<()> {
        std::fs::File::open(part)?.sync_all()?;
        std::fs::rename(part, to)?;
        match to.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => std::fs::File::open(parent)?.sync_all(),
            None => std::fs::File::open(".")?.sync_all(),
        }
    };
    flush().map_err(|error| io_error(error, to))
}
