//! Where files are read from.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use throughline_core::ports::FileSource;
use throughline_core::{Error, Result};
use throughline_files::{DiskFiles, DiskOptions};

use crate::config::{FilesConfig, repository_of};

/// The files below the roots of a configuration; without any, below the folder in which this process was started, and below
/// the folders that its user names on the command line. Names are then relative to the repository that it was started in,
/// because sessions belong to repositories.
///
/// # Errors
/// `InvalidInput` for a root that is no folder that can be read.
pub fn file_source(config: &FilesConfig, named: &[PathBuf]) -> Result<Arc<dyn FileSource>> {
    let (mut roots, mut names_from) = (config.roots.clone(), None);
    if roots.is_empty() {
        let here = here()?;
        names_from = repository_of(&here);
        let folders = named.iter().filter_map(|path| match path.is_dir() {
            true => Some(path.clone()),
            false => path.parent().map(Path::to_owned),
        });
        roots = [here].into_iter().chain(folders.filter(|folder| folder.is_dir())).collect();
    }
    let options = DiskOptions {
        names_from,
        max_file_bytes: config.max_file_bytes,
        max_files: config.max_files,
        ..DiskOptions::new(roots)
    };
    Ok(Arc::new(DiskFiles::open(options)?))
}

fn here() -> Result<PathBuf> {
    std::env::current_dir().map_err(|error| {
        Error::invalid("the current folder cannot be read: set `files.roots`").with_source(error)
    })
}
