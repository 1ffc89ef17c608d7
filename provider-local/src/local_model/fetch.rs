//! Gets the model's files: from the Hugging Face hub, from an address, or from a copy of them. Nothing gets its
//! name before its hash is right.

mod download;

use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::NamedTempFile;
use throughline_core::{Error, ErrorKind, Result};
use zip::ZipArchive;
use zip::result::ZipError;

use self::download::{Client, Wanted};
use super::files::{Known, TOKENIZER, WEIGHTS, io_error, unreadable};

const FILES: [Known; 2] = [TOKENIZER, WEIGHTS];

/// The model's repository on the hub, and the commit that the hashes are of.
const REPOSITORY: &str = "sentence-transformers/all-MiniLM-L6-v2";
const REVISION: &str = "1110a243fdf4706b3f48f1d95db1a4f5529b4d41";

/// Where the model comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// `sentence-transformers/all-MiniLM-L6-v2` on the Hugging Face hub or a mirror of it, at a pinned revision;
    /// some 91 MB.
    Hub {
        /// [`Source::HUB`], or the address of a mirror.
        endpoint: String,
    },
    /// A zip file with the model's files at an address.
    Archive {
        /// The address.
        url: String,
        /// The SHA-256 of the zip file, in hexadecimal digits.
        sha256: String,
    },
    /// A folder with the model's files, or a zip file with them.
    Local(PathBuf),
}

impl Source {
    /// The address of the hub.
    pub const HUB: &str = "https://huggingface.co";
}

/// The progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchStep {
    /// A file is being downloaded.
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
    /// Bytes in all; 0 where they are not known.
    pub total: u64,
}

/// The result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fetched {
    /// The files were there; nothing was read from the source.
    AlreadyThere,
    /// The files that were missing or wrong were written.
    Written,
}

type Progress = Arc<dyn Fn(FetchProgress) + Send + Sync>;

/// Puts the model's files into a folder, which is made if need be. Each file appears under its name only once it is
/// whole and its hash is right; a wrong file of that name is replaced, and a right one is kept. It must be called
/// within a Tokio runtime with I/O and time.
///
/// # Errors
/// `Unavailable` when an address cannot be reached; `NotFound` or `Corrupt` for a source that is not there, lacks a
/// file or has another one under its name; `InvalidInput` for what is not a hash; those of the disk. Each says what
/// to do.
pub async fn fetch(
    target: &Path,
    source: Source,
    progress: impl Fn(FetchProgress) + Send + Sync + 'static,
) -> Result<Fetched> {
    run(target, source, &FILES, Arc::new(progress)).await
}

async fn run(
    target: &Path,
    source: Source,
    files: &'static [Known],
    progress: Progress,
) -> Result<Fetched> {
    let folder = target.to_owned();
    let missing = blocking(move || {
        std::fs::create_dir_all(&folder).map_err(|error| io_error(error, &folder))?;
        Ok(files.iter().filter(|file| file.read(&folder).is_err()).collect::<Vec<_>>())
    });
    let missing = missing.await?;
    if missing.is_empty() {
        return Ok(Fetched::AlreadyThere);
    }
    let target = target.to_owned();
    match source {
        Source::Hub { endpoint } => {
            let client = Client::new()?;
            let endpoint = endpoint.trim_end_matches('/');
            for file in missing {
                let url = format!("{endpoint}/{REPOSITORY}/resolve/{REVISION}/{}", file.name);
                let wanted = Wanted { bytes: Some(file.bytes), sha256: file.sha256 };
                let part = client.download(&url, wanted, &target, &progress).await?;
                let target = target.clone();
                blocking(move || keep(part, &target.join(file.name))).await?;
            }
        }
        Source::Archive { url, sha256 } => {
            let sha256 = checked_hash(&sha256)?;
            let wanted = Wanted { bytes: None, sha256: &sha256 };
            let archive = Client::new()?.download(&url, wanted, &target, &progress).await?;
            let named = PathBuf::from(url);
            blocking(move || {
                let opened = File::open(archive.path());
                let opened = opened.map_err(|error| unreadable(error, archive.path()))?;
                from_zip(opened, &named, &target, &missing, &progress)
            })
            .await?;
        }
        Source::Local(path) => {
            blocking(move || {
                if path.is_dir() {
                    return from_folder(&path, &target, &missing, &progress);
                }
                let opened = File::open(&path).map_err(|error| unreadable(error, &path))?;
                from_zip(opened, &path, &target, &missing, &progress)
            })
            .await?;
        }
    }
    Ok(Fetched::Written)
}

/// A SHA-256 as [`Known`] has it.
fn checked_hash(sha256: &str) -> Result<String> {
    let hash = sha256.trim().to_ascii_lowercase();
    if hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Ok(hash);
    }
    Err(Error::invalid(format!("`{sha256}` is not a SHA-256: give its 64 hexadecimal digits")))
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::internal("fetching the model failed").with_source(error))?
}

fn from_folder(from: &Path, to: &Path, files: &[&Known], progress: &Progress) -> Result<()> {
    for file in files {
        let path = from.join(file.name);
        if !path.is_file() {
            return Err(lacks(from, file));
        }
        let opened = File::open(&path).map_err(|error| unreadable(error, &path))?;
        place(opened, &path, file, to, progress)?;
    }
    Ok(())
}

/// From a zip file that has the files in any one place.
fn from_zip(
    opened: File,
    named: &Path,
    to: &Path,
    files: &[&Known],
    progress: &Progress,
) -> Result<()> {
    let mut archive = ZipArchive::new(opened).map_err(|error| no_zip(error, named))?;
    for file in files {
        let is_it = |name: &str| name.rsplit('/').next() == Some(file.name);
        let at = archive.file_names().position(|name| name.is_ok_and(|name| is_it(&name)));
        let at = at.ok_or_else(|| lacks(named, file))?;
        let packed = archive.by_index(at).map_err(|error| no_zip(error, named))?;
        place(packed, &named.join(file.name), file, to, progress)?;
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
        ErrorKind::Corrupt => advise(error, "use an intact copy"),
        _ => error,
    })?;
    keep(part, &folder.join(file.name))
}

/// Gives a file that was checked its name.
fn keep(part: NamedTempFile, path: &Path) -> Result<()> {
    part.as_file().sync_all().map_err(|error| io_error(error, path))?;
    part.persist(path).map_err(|error| io_error(error.error, path))?;
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
        "{} has no {}: name a folder or zip file with {} and {} of {REPOSITORY}",
        source.display(),
        file.name,
        TOKENIZER.name,
        WEIGHTS.name
    ))
}

fn no_zip(error: ZipError, path: &Path) -> Error {
    match error {
        ZipError::Io(error) => io_error(error, path),
        error => Error::new(
            ErrorKind::Corrupt,
            format!("{} is not a zip file, or is damaged: use an intact copy", path.display()),
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
