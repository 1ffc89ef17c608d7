//! A disk that forgets: for each file what is durable, and the changes that no sync has reached.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use crate::camera::Camera;

/// A disk writes a sector whole or not at all.
const SECTOR: usize = 512;

/// Small and seeded (splitmix64): no test here needs more.
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).unwrap()
    }
}

/// What a file is to SQLite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Database,
    Log,
    Journal,
}

/// When something happens: the moments at which the plug may be pulled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Moment {
    /// A write or a truncation was accepted.
    Written,
    /// A sync was asked for and has not happened.
    Syncing,
    /// A sync has happened and is not yet reported.
    Synced,
    /// A file was deleted.
    Deleted,
    /// A task knows that its batch was applied.
    Acknowledged,
}

/// A change of a file.
#[derive(Debug, Clone)]
enum Change {
    Write { at: usize, bytes: Vec<u8> },
    Resize(usize),
}

impl Change {
    fn apply(&self, image: &mut Vec<u8>) {
        match self {
            Self::Write { at, bytes } => {
                let end = at + bytes.len();
                if image.len() < end {
                    image.resize(end, 0);
                }
                image[*at..end].copy_from_slice(bytes);
            }
            Self::Resize(length) => image.resize(*length, 0),
        }
    }

    /// The part of a write before or after one boundary between the sectors that it touches.
    fn torn(&self, random: &mut Random) -> Option<Self> {
        let Self::Write { at, bytes } = self else {
            return None;
        };
        let first = (at / SECTOR + 1) * SECTOR;
        let boundaries = (at + bytes.len()).saturating_sub(first).div_ceil(SECTOR);
        if boundaries == 0 {
            return None;
        }
        let split = first + random.below(boundaries) * SECTOR;
        Some(if random.below(2) == 0 {
            Self::Write { at: *at, bytes: bytes[..split - at].to_vec() }
        } else {
            Self::Write { at: split, bytes: bytes[split - at..].to_vec() }
        })
    }
}

#[derive(Debug, Default)]
struct File {
    durable: Vec<u8>,
    pending: Vec<Change>,
}

impl File {
    fn sync(&mut self, reached: usize) {
        for change in self.pending.drain(..reached) {
            change.apply(&mut self.durable);
        }
    }

    /// What a cut leaves: the durable bytes with none, the first, or any of the pending changes;
    /// the last one of them possibly torn.
    fn after_cut(&self, random: &mut Random) -> Vec<u8> {
        let mut kept: Vec<&Change> = match random.below(4) {
            0 => Vec::new(),
            1 => self.pending.iter().take(random.below(self.pending.len() + 1)).collect(),
            few => {
                let lose_one_in = if few == 2 { 2 } else { 24 };
                self.pending.iter().filter(|_| random.below(lose_one_in) > 0).collect()
            }
        };
        let last = if random.below(2) == 0 { kept.pop() } else { None };
        let torn = last.and_then(|change| change.torn(random));
        let mut image = self.durable.clone();
        kept.into_iter().chain(torn.as_ref()).for_each(|change| change.apply(&mut image));
        image
    }
}

/// The files that SQLite opened through one VFS.
///
/// Deletions are durable at once, and so is the presence of a file that was opened.
#[derive(Debug)]
pub(crate) struct Disk {
    name: String,
    files: Mutex<BTreeMap<PathBuf, File>>,
    watcher: OnceLock<Arc<Camera>>,
}

impl Disk {
    pub(crate) fn new(name: String) -> Self {
        Self { name, files: Mutex::default(), watcher: OnceLock::new() }
    }

    /// Name of its VFS.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Whom to tell from now on.
    pub(crate) fn watch(&self, camera: Arc<Camera>) {
        self.watcher.set(camera).expect("one camera a disk");
    }

    /// Something happens now. No lock is held, so that the camera may look at the disk.
    pub(crate) fn moment(&self, moment: Moment, kind: Option<Kind>) {
        if let Some(camera) = self.watcher.get() {
            camera.moment(self, moment, kind);
        }
    }

    /// What a cut at this moment leaves, by file name.
    pub(crate) fn after_cut(&self, random: &mut Random) -> Vec<(OsString, Vec<u8>)> {
        let files = self.files();
        let left = |(path, file): (&PathBuf, &File)| {
            (path.file_name().expect("a file has a name").to_owned(), file.after_cut(random))
        };
        files.iter().map(left).collect()
    }

    /// A file is opened for the first time: what it holds is durable. The bytes are read only
    /// then, since closing a descriptor of an open file would drop SQLite's locks on it.
    pub(crate) fn opened(&self, path: &Path) {
        self.files().entry(path.to_owned()).or_insert_with(|| File {
            durable: std::fs::read(path).unwrap_or_default(),
            pending: Vec::new(),
        });
    }

    pub(crate) fn written(&self, path: &Path, at: usize, bytes: &[u8]) {
        self.change(path, Change::Write { at, bytes: bytes.to_vec() });
    }

    pub(crate) fn resized(&self, path: &Path, length: usize) {
        self.change(path, Change::Resize(length));
    }

    /// Changes that a sync which starts now will reach.
    pub(crate) fn pending(&self, path: &Path) -> usize {
        self.files().get(path).map_or(0, |file| file.pending.len())
    }

    pub(crate) fn synced(&self, path: &Path, reached: usize) {
        if let Some(file) = self.files().get_mut(path) {
            file.sync(reached);
        }
    }

    pub(crate) fn deleted(&self, path: &Path) -> bool {
        self.files().remove(path).is_some()
    }

    fn change(&self, path: &Path, change: Change) {
        if let Some(file) = self.files().get_mut(path) {
            file.pending.push(change);
        }
    }

    fn files(&self) -> MutexGuard<'_, BTreeMap<PathBuf, File>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Display for Moment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Written => "after a write",
            Self::Syncing => "before a sync",
            Self::Synced => "after a sync",
            Self::Deleted => "after the deletion",
            Self::Acknowledged => "after an acknowledgement",
        })
    }
}
