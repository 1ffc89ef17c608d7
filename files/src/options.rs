//! What may be read, and how much.

use std::path::PathBuf;

/// Which files may be read. [`DiskOptions::new`] has the defaults.
#[derive(Debug, Clone)]
pub struct DiskOptions {
    /// Folders below which files may be read. Relative paths start at the first one.
    pub roots: Vec<PathBuf>,
    /// The folder that names are relative to, such as the repository that the roots are in; the first root if not given.
    pub names_from: Option<PathBuf>,
    /// Most bytes of a file; 4 MiB by default.
    pub max_file_bytes: u64,
    /// Most bytes of a PDF file, and of the text in it; 32 MiB by default.
    pub max_pdf_bytes: u64,
    /// Most files of a walk, those included that are skipped; 20,000 by default.
    pub max_files: usize,
}

impl DiskOptions {
    /// Files below these folders, within the default limits.
    #[must_use]
    pub fn new(roots: Vec<PathBuf>) -> Self {
        Self {
            roots,
            names_from: None,
            max_file_bytes: 4 << 20,
            max_pdf_bytes: 32 << 20,
            max_files: 20_000,
        }
    }

    /// The limit for a file of this name.
    pub(crate) fn limit(&self, path: &str) -> u64 {
        if is_pdf_name(path) { self.max_pdf_bytes } else { self.max_file_bytes }
    }
}

pub(crate) fn is_pdf_name(path: &str) -> bool {
    path.len() > 4 && path.get(path.len() - 4..).is_some_and(|end| end.eq_ignore_ascii_case(".pdf"))
}
