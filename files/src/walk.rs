//! Finds the files at and below paths.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::ffi::{OsStr, OsString};
use std::fs::{DirEntry, FileType, Metadata};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use throughline_core::Result;
use throughline_core::files::{FileStat, SkipReason, SkippedFile};
use throughline_core::ports::FileWalk;

use crate::ignored::{Rules, is_repository};
use crate::open::{modified_ns, not_regular, reason_of, shared_id};
use crate::roots::Resolved;
use crate::source::Disk;

pub(crate) fn walk(disk: &Disk, paths: &[String]) -> Result<FileWalk> {
    disk.roots.check()?;
    let mut walk = Walk {
        disk,
        given: BTreeSet::new(),
        files: BTreeMap::new(),
        shared: BTreeMap::new(),
        skipped: BTreeMap::new(),
        walked: HashSet::new(),
        waiting: Vec::new(),
    };
    for path in paths {
        walk.path(path);
    }
    Ok(walk.finish())
}

struct Walk<'d> {
    disk: &'d Disk,
    given: BTreeSet<String>,
    files: BTreeMap<String, FileStat>,
    /// The names of files that have several, by device and number.
    shared: BTreeMap<(u64, u64), BTreeSet<String>>,
    skipped: BTreeMap<String, SkipReason>,
    /// Folders that were entered: none is entered twice, wherever links lead.
    walked: HashSet<PathBuf>,
    waiting: Vec<Folder>,
}

/// A folder that is to be entered.
struct Folder {
    path: PathBuf,
    /// The rules of the folders above it.
    above: Option<Rc<Rules>>,
}

impl Walk<'_> {
    fn path(&mut self, path: &str) {
        let real = match self.disk.roots.resolve_given(path) {
            Resolved::Found(real) => real,
            Resolved::Skipped(place, reason) => {
                let (name, usable) = self.disk.roots.name(&place);
                // What is gone was asked for; what is elsewhere is nobody's.
                if usable && reason == SkipReason::Missing {
                    self.given.insert(name.clone());
                }
                self.skipped.insert(name, reason);
                return;
            }
        };
        let (name, _) = self.disk.roots.name(&real);
        self.given.insert(name.clone());
        let mut next = Some(real);
        while !self.is_full() {
            match (next.take(), self.waiting.pop()) {
                (Some(real), _) => self.target(real),
                (None, Some(folder)) => self.enter(folder),
                (None, None) => return,
            }
        }
        self.waiting.clear();
        let limit = self.disk.options.max_files as u64;
        self.skipped.insert(name, SkipReason::TooMany { limit });
    }

    fn is_full(&self) -> bool {
        self.files.len() + self.skipped.len() >= self.disk.options.max_files
    }

    /// What a path or link leads to, without links.
    fn target(&mut self, real: PathBuf) {
        match real.symlink_metadata() {
            Ok(metadata) if metadata.is_dir() => {
                let above = self.rules_above(&real);
                self.waiting.push(Folder { path: real, above });
            }
            Ok(metadata) => self.file(&real, &metadata),
            Err(error) => self.skip(&real, reason_of(&error)),
        }
    }

    /// The rules of the folders from the root down to a folder, without its own; from that of the repository where the root
    /// is within one.
    fn rules_above(&self, folder: &Path) -> Option<Rc<Rules>> {
        let root = self.disk.roots.root_of(folder)?;
        let repository = root.ancestors().find(|above| is_repository(above));
        let top = repository.unwrap_or(root);
        let above = folder.ancestors().skip(1).take_while(|above| above.starts_with(top));
        let mut above: Vec<&Path> = above.collect();
        above.reverse();
        above.into_iter().fold(None, |rules, folder| Some(Rules::of(folder, rules, |_| true)))
    }

    fn enter(&mut self, Folder { path, above }: Folder) {
        if !self.walked.insert(path.clone()) {
            return;
        }
        let entries = match std::fs::read_dir(&path) {
            Ok(entries) => entries,
            Err(error) => return self.skip(&path, reason_of(&error)),
        };
        let mut named: Vec<(OsString, FileType, DirEntry)> = Vec::new();
        for entry in entries {
            match entry.and_then(|entry| Ok((entry.file_name(), entry.file_type()?, entry))) {
                Ok(entry) => named.push(entry),
                // Something is gone, or the folder cannot be read on: what is in it is not known.
                Err(error) if reason_of(&error) == SkipReason::Missing => {}
                Err(_) => self.skip(&path, SkipReason::Unreadable),
            }
        }
        // In the same order on every machine, for where the walk ends early.
        named.sort_by(|a, b| a.0.cmp(&b.0));
        let has = |name: &str| {
            named.binary_search_by(|(other, ..)| other.as_os_str().cmp(OsStr::new(name))).is_ok()
        };
        let rules = Rules::of(&path, above, has);
        let mut folders = Vec::new();
        for (name, kind, at) in named {
            if name.as_encoded_bytes().starts_with(b".") {
                continue;
            }
            let entry = path.join(&name);
            if rules.ignores(&entry, kind.is_dir()) {
                continue;
            }
            if self.is_full() {
                return;
            }
            if kind.is_symlink() {
                self.link(&entry);
            } else if kind.is_dir() {
                if self.is_named(&entry) {
                    folders.push(Folder { path: entry, above: Some(Rc::clone(&rules)) });
                }
            } else {
                // From the open folder, which is faster than from its path.
                match at.metadata() {
                    Ok(metadata) => self.file(&entry, &metadata),
                    Err(error) => self.skip(&entry, reason_of(&error)),
                }
            }
        }
        // They come off the end.
        self.waiting.extend(folders.into_iter().rev());
    }

    fn link(&mut self, link: &Path) {
        let Some(path) = link.to_str() else {
            return self.skip(link, SkipReason::BadName);
        };
        match self.disk.roots.resolve(path) {
            Resolved::Found(real) => self.target(real),
            Resolved::Skipped(_, reason) => self.skip(link, reason),
        }
    }

    /// Whether a file or folder has a name that can be used; if not, it is skipped.
    fn is_named(&mut self, path: &Path) -> bool {
        let (name, usable) = self.disk.roots.name(path);
        if !usable {
            self.skipped.insert(name, SkipReason::BadName);
        }
        usable
    }

    fn file(&mut self, path: &Path, metadata: &Metadata) {
        let (name, usable) = self.disk.roots.name(path);
        let limit = self.disk.options.limit(&name);
        let reason = if !usable {
            Some(SkipReason::BadName)
        } else {
            not_regular(metadata)
                .or((metadata.len() > limit).then_some(SkipReason::TooLarge { limit }))
        };
        if let Some(reason) = reason {
            self.skipped.insert(name, reason);
            return;
        }
        if let Some(id) = shared_id(metadata) {
            self.shared.entry(id).or_default().insert(name.clone());
        }
        let (size, modified_ns) = (metadata.len(), modified_ns(metadata));
        self.files.insert(name.clone(), FileStat { path: name, size, modified_ns });
    }

    fn skip(&mut self, path: &Path, reason: SkipReason) {
        self.skipped.insert(self.disk.roots.name(path).0, reason);
    }

    fn finish(mut self) -> FileWalk {
        for names in std::mem::take(&mut self.shared).into_values() {
            // The first by name, whatever the order of the walk.
            for name in names.into_iter().skip(1) {
                self.files.remove(&name);
                self.skipped.insert(name, SkipReason::SameFile);
            }
        }
        let skipped = self.skipped.into_iter().map(|(path, reason)| SkippedFile { path, reason });
        FileWalk {
            given: self.given.into_iter().collect(),
            files: self.files.into_values().collect(),
            skipped: skipped.collect(),
        }
    }
}
