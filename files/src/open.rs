//! Opens files so that what was opened can be checked.

use std::fs::{File, Metadata};
use std::io::Read as _;
use std::path::Path;

use throughline_core::files::SkipReason;

/// A regular file, open.
#[derive(Debug)]
pub(crate) struct Opened {
    file: File,
    metadata: Metadata,
}

/// Opens a file that is no link. Opening neither waits for a pipe nor reads a device.
pub(crate) fn open_regular(path: &Path) -> Result<Opened, SkipReason> {
    // Before it is opened as well: opening a device may do something.
    if let Some(reason) = not_regular(&path.symlink_metadata().map_err(|error| reason_of(&error))?)
    {
        return Err(reason);
    }
    let file = open(path).map_err(|error| reason_of(&error))?;
    let metadata = file.metadata().map_err(|error| reason_of(&error))?;
    match not_regular(&metadata) {
        Some(reason) => Err(reason),
        None => Ok(Opened { file, metadata }),
    }
}

impl Opened {
    pub(crate) fn metadata(&self) -> &Metadata {
        &self.metadata
    }

    /// The content.
    pub(crate) fn read(&self, limit: u64) -> Result<Vec<u8>, SkipReason> {
        if self.metadata.len() > limit {
            return Err(SkipReason::TooLarge { limit });
        }
        let mut bytes = Vec::with_capacity(self.metadata.len() as usize + 1);
        // It may grow meanwhile, and files of the system tell no size.
        let read = (&self.file).take(limit + 1).read_to_end(&mut bytes);
        read.map_err(|error| reason_of(&error))?;
        if bytes.len() as u64 > limit { Err(SkipReason::TooLarge { limit }) } else { Ok(bytes) }
    }

    /// Whether it is as it was when it was opened.
    pub(crate) fn is_unchanged(&self) -> bool {
        self.file.metadata().is_ok_and(|now| version(&now) == version(&self.metadata))
    }

    /// Whether it is what a path without links names.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        match opened_path(&self.file) {
            Some(real) => real == path,
            None => {
                let same = |real: std::path::PathBuf| {
                    Some(real == path && is_same(&real.symlink_metadata().ok()?, &self.metadata))
                };
                path.canonicalize().ok().and_then(same).unwrap_or(false)
            }
        }
    }
}

/// What a failure of the operating system means for a file.
pub(crate) fn reason_of(error: &std::io::Error) -> SkipReason {
    match error.kind() {
        std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => SkipReason::Missing,
        _ => SkipReason::Unreadable,
    }
}

/// When a file was last written, in nanoseconds since the Unix epoch.
pub(crate) fn modified_ns(metadata: &Metadata) -> i64 {
    let Ok(modified) = metadata.modified() else { return 0 };
    let nanos = |time: std::time::Duration| i64::try_from(time.as_nanos()).unwrap_or(i64::MAX);
    match modified.duration_since(std::time::UNIX_EPOCH) {
        Ok(after) => nanos(after),
        Err(before) => -nanos(before.duration()),
    }
}

#[cfg(unix)]
fn open(path: &Path) -> std::io::Result<File> {
    use rustix::fs::{Mode, OFlags};
    let flags =
        OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

#[cfg(not(unix))]
fn open(path: &Path) -> std::io::Result<File> {
    File::open(path)
}

/// Why it is no regular file.
#[cfg(unix)]
pub(crate) fn not_regular(metadata: &Metadata) -> Option<SkipReason> {
    use std::os::unix::fs::FileTypeExt as _;
    let kind = metadata.file_type();
    if kind.is_file() {
        None
    } else if kind.is_fifo() {
        Some(SkipReason::Pipe)
    } else if kind.is_socket() {
        Some(SkipReason::Socket)
    } else if kind.is_char_device() || kind.is_block_device() {
        Some(SkipReason::Device)
    } else {
        // A folder or a link, where a file was.
        Some(SkipReason::Missing)
    }
}

#[cfg(not(unix))]
pub(crate) fn not_regular(metadata: &Metadata) -> Option<SkipReason> {
    (!metadata.is_file()).then_some(SkipReason::Missing)
}

/// What changes whenever the content does.
#[cfg(unix)]
fn version(metadata: &Metadata) -> impl PartialEq {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.len(), metadata.modified().ok(), metadata.ctime(), metadata.ctime_nsec())
}

#[cfg(not(unix))]
fn version(metadata: &Metadata) -> impl PartialEq {
    (metadata.len(), metadata.modified().ok())
}

/// Device and number of a file, where other names lead to it as well.
#[cfg(unix)]
pub(crate) fn shared_id(metadata: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    (metadata.nlink() > 1).then(|| (metadata.dev(), metadata.ino()))
}

#[cfg(not(unix))]
pub(crate) fn shared_id(_: &Metadata) -> Option<(u64, u64)> {
    None
}

#[cfg(unix)]
fn is_same(one: &Metadata, other: &Metadata) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    (one.dev(), one.ino()) == (other.dev(), other.ino())
}

#[cfg(not(unix))]
fn is_same(_: &Metadata, _: &Metadata) -> bool {
    true
}

/// The path of an open file, by the system; `None` where it tells none.
#[cfg(target_os = "linux")]
fn opened_path(file: &File) -> Option<std::path::PathBuf> {
    use std::os::fd::AsRawFd as _;
    std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd())).ok()
}

#[cfg(not(target_os = "linux"))]
fn opened_path(_: &File) -> Option<std::path::PathBuf> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::{Error, Write as _};
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn notices_that_content_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        std::fs::write(&path, "one").unwrap();
        let opened = open_regular(&path).unwrap();
        assert!(opened.is_unchanged());
        File::options().append(true).open(&path).unwrap().write_all(b" more").unwrap();
        assert!(!opened.is_unchanged());
    }

    #[test]
    fn notices_that_a_folder_on_the_way_was_exchanged() {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        std::fs::create_dir_all(base.join("inside")).unwrap();
        std::fs::create_dir_all(base.join("outside")).unwrap();
        for name in ["inside/a", "outside/a"] {
            std::fs::write(base.join(name), name).unwrap();
        }
        let path = base.join("inside/a");
        assert!(open_regular(&path).unwrap().is_at(&path));
        std::fs::rename(base.join("inside"), base.join("elsewhere")).unwrap();
        symlink(base.join("outside"), base.join("inside")).unwrap();
        // Opened through the link that is there now.
        assert!(!open_regular(&path).unwrap().is_at(&path));
    }

    #[test]
    fn link_is_not_opened() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("a"), "a").unwrap();
        symlink(folder.path().join("a"), folder.path().join("link")).unwrap();
        assert_eq!(open_regular(&folder.path().join("link")).unwrap_err(), SkipReason::Missing);
    }

    #[test]
    fn reasons_follow_from_errors() {
        let table = [
            (rustix::io::Errno::NOENT, SkipReason::Missing),
            (rustix::io::Errno::NOTDIR, SkipReason::Missing),
            (rustix::io::Errno::ACCESS, SkipReason::Unreadable),
            (rustix::io::Errno::IO, SkipReason::Unreadable),
        ];
        for (errno, reason) in table {
            assert_eq!(reason_of(&Error::from(errno)), reason, "{errno}");
        }
    }

    #[test]
    fn times_before_the_epoch_are_negative() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        let file = File::create(&path).unwrap();
        let old = std::time::UNIX_EPOCH - std::time::Duration::new(7, 5);
        file.set_modified(old).unwrap();
        assert_eq!(modified_ns(&file.metadata().unwrap()), -7_000_000_005);
    }
}
