//! Files on disk pass the table that every source of files passes.

#![expect(clippy::unwrap_used, reason = "what a test needs outside of its functions")]

use std::path::PathBuf;

use async_trait::async_trait;
use tempfile::TempDir;
use throughline_core::Result;
use throughline_core::ports::{FileRead, FileSource, FileWalk};
use throughline_files::{DiskFiles, DiskOptions};
use throughline_testkit::conformance::{self, DirectedFiles};

const MAX_BYTES: u64 = 1 << 16;

struct Folder {
    folder: TempDir,
    files: DiskFiles,
}

impl Folder {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join("root").join(name)
    }
}

#[async_trait]
impl FileSource for Folder {
    async fn walk(&self, paths: &[String]) -> Result<FileWalk> {
        self.files.walk(paths).await
    }

    async fn read(&self, name: &str) -> Result<FileRead> {
        self.files.read(name).await
    }
}

impl DirectedFiles for Folder {
    fn write(&self, name: &str, bytes: &[u8]) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, bytes).unwrap();
    }

    fn remove(&self, name: &str) {
        std::fs::remove_file(self.path(name)).unwrap();
    }

    fn max_bytes(&self) -> u64 {
        MAX_BYTES
    }
}

#[tokio::test]
async fn the_files_on_disk_conform() {
    let make = async || {
        let folder = TempDir::new().unwrap();
        let root = folder.path().join("root");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(folder.path().join("outside.txt"), "not to be read").unwrap();
        let options = DiskOptions { max_file_bytes: MAX_BYTES, ..DiskOptions::new(vec![root]) };
        Folder { files: DiskFiles::open(options).unwrap(), folder }
    };
    conformance::file_source(make, &[]).await;
}
