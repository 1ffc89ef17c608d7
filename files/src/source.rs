//! The port, off the threads of the async runtime.

use std::sync::Arc;

use async_trait::async_trait;
use throughline_core::ports::{FileRead, FileSource, FileWalk};
use throughline_core::{Error, Result};

use crate::options::DiskOptions;
use crate::roots::Roots;
use crate::{read, walk};

/// Files on disk.
#[derive(Debug, Clone)]
pub struct DiskFiles(Arc<Disk>);

#[derive(Debug)]
pub(crate) struct Disk {
    pub(crate) roots: Roots,
    pub(crate) options: DiskOptions,
}

impl DiskFiles {
    /// Resolves the roots, which blocks for as long as the file system takes.
    ///
    /// # Errors
    /// `InvalidInput` without roots, and for a root that is no folder that can be read.
    pub fn open(options: DiskOptions) -> Result<Self> {
        let roots = Roots::open(&options.roots, options.names_from.as_deref())?;
        Ok(Self(Arc::new(Disk { roots, options })))
    }

    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Disk) -> T + Send + 'static,
    ) -> Result<T> {
        let disk = Arc::clone(&self.0);
        tokio::task::spawn_blocking(move || work(&disk))
            .await
            .map_err(|error| Error::internal("reading files failed").with_source(error))
    }
}

#[async_trait]
impl FileSource for DiskFiles {
    async fn walk(&self, paths: &[String]) -> Result<FileWalk> {
        let paths = paths.to_vec();
        self.blocking(move |disk| walk::walk(disk, &paths)).await?
    }

    async fn read(&self, name: &str) -> Result<FileRead> {
        let name = name.to_owned();
        self.blocking(move |disk| read::read(disk, &name)).await
    }
}
