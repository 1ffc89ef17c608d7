//! A folder with a root in it, and one outside.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use throughline_core::files::{FileText, SkipReason};
use throughline_core::ports::{FileRead, FileSource as _, FileWalk};
use throughline_files::{DiskFiles, DiskOptions};

pub(crate) struct Disk {
    folder: TempDir,
    pub(crate) files: DiskFiles,
}

impl Disk {
    pub(crate) fn new() -> Self {
        Self::with(|_| {})
    }

    /// With options that differ.
    pub(crate) fn with(change: impl FnOnce(&mut DiskOptions)) -> Self {
        let folder = TempDir::new().unwrap();
        for name in ["root", "outside"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        std::fs::write(folder.path().join("outside/secret.txt"), "secret").unwrap();
        let mut options = DiskOptions::new(vec![folder.path().join("root")]);
        change(&mut options);
        Self { files: DiskFiles::open(options).unwrap(), folder }
    }

    pub(crate) fn base(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap()
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.base().join("root")
    }

    pub(crate) fn outside(&self) -> PathBuf {
        self.base().join("outside")
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) {
        write(&self.root().join(name), content);
    }

    pub(crate) async fn walk(&self, paths: &[&str]) -> FileWalk {
        let paths: Vec<String> = paths.iter().map(|path| (*path).to_owned()).collect();
        self.files.walk(&paths).await.unwrap()
    }

    pub(crate) async fn read(&self, name: &str) -> Result<FileText, SkipReason> {
        match self.files.read(name).await.unwrap() {
            FileRead::Text(text) => Ok(text),
            FileRead::Skipped(reason) => Err(reason),
        }
    }
}

pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

pub(crate) fn names(walk: &FileWalk) -> Vec<&str> {
    walk.files.iter().map(|file| file.path.as_str()).collect()
}

pub(crate) fn skipped(walk: &FileWalk) -> Vec<(&str, SkipReason)> {
    walk.skipped.iter().map(|file| (file.path.as_str(), file.reason)).collect()
}
