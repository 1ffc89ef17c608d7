//! Keeps what a cut would leave, at chosen moments: the plug is pulled often in one run.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use crate::disk::{Disk, Kind, Moment, Random};
use crate::load::{Ledger, SESSIONS};

/// Each `n`-th time that something happens to a kind of file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Every(pub(crate) Moment, pub(crate) Option<Kind>, pub(crate) u64);

/// What one cut left.
#[derive(Debug)]
pub(crate) struct Cut {
    number: usize,
    pub(crate) moment: Moment,
    pub(crate) kind: Option<Kind>,
    /// Batches of each session that were acknowledged before the cut.
    pub(crate) acknowledged: [usize; SESSIONS],
    /// Writes and syncs of the database file before the cut: what checkpoints do.
    pub(crate) database_writes: u64,
    pub(crate) database_syncs: u64,
    /// Where the files lie.
    pub(crate) directory: PathBuf,
}

impl fmt::Display for Cut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cut {} {}", self.number, self.moment)?;
        match self.kind {
            Some(kind) => write!(f, " of the {kind:?}"),
            None => Ok(()),
        }
    }
}

#[derive(Debug)]
struct Film {
    random: Random,
    met: Vec<(Every, u64)>,
    database_writes: u64,
    database_syncs: u64,
    cuts: Vec<Cut>,
}

#[derive(Debug)]
pub(crate) struct Camera {
    directory: PathBuf,
    ledger: Arc<Ledger>,
    film: Mutex<Film>,
}

impl Camera {
    pub(crate) fn new(directory: &Path, seed: u64, every: &[Every], ledger: Arc<Ledger>) -> Self {
        let film = Film {
            random: Random::new(seed),
            met: every.iter().map(|every| (*every, 0)).collect(),
            database_writes: 0,
            database_syncs: 0,
            cuts: Vec::new(),
        };
        Self { directory: directory.to_owned(), ledger, film: Mutex::new(film) }
    }

    /// Something happens to the disk: keeps what a cut would leave, if it is due.
    pub(crate) fn moment(&self, disk: &Disk, moment: Moment, kind: Option<Kind>) {
        let mut film = self.film.lock().unwrap_or_else(PoisonError::into_inner);
        match (moment, kind) {
            (Moment::Written, Some(Kind::Database)) => film.database_writes += 1,
            (Moment::Synced, Some(Kind::Database)) => film.database_syncs += 1,
            _ => {}
        }
        let mut due = false;
        for (every, met) in &mut film.met {
            if (every.0, every.1) == (moment, kind) {
                *met += 1;
                due |= *met % every.2 == 0;
            }
        }
        if due {
            // The promises first: what is acknowledged from here on may be on the disk or not.
            let acknowledged = self.ledger.acknowledged();
            let left = disk.after_cut(&mut film.random);
            let number = film.cuts.len();
            let directory = self.directory.join(format!("cut-{number}"));
            std::fs::create_dir(&directory).unwrap();
            for (name, bytes) in left {
                std::fs::write(directory.join(name), bytes).unwrap();
            }
            let (database_writes, database_syncs) = (film.database_writes, film.database_syncs);
            film.cuts.push(Cut {
                number,
                moment,
                kind,
                acknowledged,
                database_writes,
                database_syncs,
                directory,
            });
        }
    }

    /// All cuts, in order.
    pub(crate) fn develop(&self) -> Vec<Cut> {
        let mut film = self.film.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::take(&mut film.cuts)
    }
}
