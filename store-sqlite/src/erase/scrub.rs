//! Overwriting what the file still holds of deleted rows.
//!
//! `secure_delete` overwrites rows and pages as they are freed. Not so what SQLite leaves behind where it
//! moves rows between pages: the space between a page's cell pointers and its cells keeps copies of rows
//! that moved away, and are deleted elsewhere later. And the log holds pages as they were before.

use std::time::{Duration, Instant};

use rusqlite::Connection;
use throughline_core::Result;

use crate::connection::{SqliteOptions, open_unbound};
use crate::records::mapped;

/// Pages that are looked at in one transaction: others write in between.
const SLICE: i64 = 2_048;
/// Between two tries to empty the log: a checkpoint takes about as long.
const PAUSE: Duration = Duration::from_millis(2);

/// Zeroes the gaps of all pages and empties the log.
pub(super) fn scrub(options: &SqliteOptions) -> Result<()> {
    let connection = open_unbound(options)?;
    let work = || -> rusqlite::Result<()> {
        let mut from = 1;
        loop {
            let pages: i64 = connection.pragma_query_value(None, "page_count", |row| row.get(0))?;
            if from > pages {
                break;
            }
            zero_gaps(&connection, from, (from + SLICE - 1).min(pages))?;
            from += SLICE;
        }
        empty_log(&connection, options.busy_timeout)
    };
    mapped(work(), "purge")
}

/// Copies the log into the file and truncates it. While another checkpoint runs, such as that of a commit of
/// the writing thread, SQLite refuses at once, whatever the busy timeout, so this tries again until then. Where
/// a reader keeps the log in use for longer, the next checkpoint overwrites it.
fn empty_log(connection: &Connection, timeout: Duration) -> rusqlite::Result<()> {
    let started = Instant::now();
    loop {
        let is_busy: bool =
            connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
        if !is_busy || started.elapsed() >= timeout {
            return Ok(());
        }
        std::thread::sleep(PAUSE);
    }
}

fn zero_gaps(connection: &Connection, from: i64, to: i64) -> rusqlite::Result<()> {
    connection.execute_batch("BEGIN IMMEDIATE")?;
    let zeroed = || -> rusqlite::Result<()> {
        let mut read =
            connection.prepare_cached("SELECT data FROM sqlite_dbpage WHERE pgno = ?1")?;
        let mut write =
            connection.prepare_cached("UPDATE sqlite_dbpage SET data = ?2 WHERE pgno = ?1")?;
        for number in from..=to {
            let mut page: Vec<u8> = read.query_row([number], |row| row.get(0))?;
            let header = if number == 1 { 100 } else { 0 };
            let dirty = gap(&page, header)
                .and_then(|gap| page.get_mut(gap))
                .filter(|gap| gap.iter().any(|byte| *byte != 0));
            if let Some(gap) = dirty {
                gap.fill(0);
                write.execute((number, page))?;
            }
        }
        Ok(())
    };
    match zeroed() {
        Ok(()) => connection.execute_batch("COMMIT"),
        Err(error) => {
            let _ = connection.execute_batch("ROLLBACK");
            Err(error)
        }
    }
}

/// The unused space of a page of a tree, between its cell pointers and its first cell; `None` for a page
/// that is none, such as one of a long value.
fn gap(page: &[u8], header: usize) -> Option<std::ops::Range<usize>> {
    let two =
        |at: usize| Some(usize::from(u16::from_be_bytes([*page.get(at)?, *page.get(at + 1)?])));
    let pointers = match page.get(header)? {
        2 | 5 => header + 12,
        10 | 13 => header + 8,
        _ => return None,
    };
    let cells = two(header + 3)?;
    // Zero stands for the size that two bytes cannot hold.
    let content = match two(header + 5)? {
        0 => 65_536,
        content => content,
    };
    let end = pointers + 2 * cells;
    if content > page.len() || end > content {
        return None;
    }
    let is_cell =
        |nth: usize| two(pointers + 2 * nth).is_some_and(|at| (content..page.len()).contains(&at));
    (0..cells).all(is_cell).then_some(end..content)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    #[test]
    fn empties_log_while_other_checkpoints_run() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("store.db");
        let open = || {
            let connection = Connection::open(&file).unwrap();
            connection.busy_timeout(Duration::from_secs(5)).unwrap();
            connection
        };
        let writer = open();
        writer.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE kept (x)").unwrap();
        let log = file.with_extension("db-wal");
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let other = open();
                while !done.load(Ordering::Relaxed) {
                    let checkpoint = "PRAGMA wal_checkpoint(PASSIVE)";
                    other.query_row(checkpoint, [], |_| Ok(())).unwrap();
                }
            });
            let emptied = open();
            let lengths: Vec<u64> = (0..200)
                .map(|at| {
                    writer.execute("INSERT INTO kept VALUES (?1)", [at]).unwrap();
                    empty_log(&emptied, Duration::from_secs(60)).unwrap();
                    log.metadata().unwrap().len()
                })
                .collect();
            done.store(true, Ordering::Relaxed);
            assert_eq!(lengths, vec![0; 200]);
        });
    }

    #[test]
    fn a_gap_lies_between_pointers_and_cells_of_a_tree_page_only() {
        let mut leaf = vec![0_u8; 64];
        leaf[..12].copy_from_slice(&[13, 0, 0, 0, 2, 0, 50, 0, 0, 60, 0, 50]);
        assert_eq!(gap(&leaf, 0), Some(12..50));
        leaf[11] = 40;
        assert_eq!(gap(&leaf, 0), None, "a cell outside of the cells");
        leaf[0] = 0;
        assert_eq!(gap(&leaf, 0), None, "no page of a tree");
        assert_eq!(gap(&[13, 0], 0), None, "cut off");
    }
}
