//! The files of the model, known by their hashes: another model under this name would put vectors
//! of two spaces into one index.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::path::Path;

use sha2::{Digest, Sha256};
use throughline_core::{Error, ErrorKind, Result};

/// A file whose bytes are known.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known {
    pub(super) name: &'static str,
    pub(super) bytes: u64,
    pub(super) sha256: &'static str,
}

/// The model's weights.
pub(super) const WEIGHTS: Known = Known {
    name: "model.safetensors",
    bytes: 90_868_376,
    sha256: "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db",
};

/// Its tokenizer.
pub(super) const TOKENIZER: Known = Known {
    name: "tokenizer.json",
    bytes: 466_247,
    sha256: "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
};

/// What to do about a file that is missing or wrong.
const FETCH: &str = "fetch the model with `throughline model fetch`";
const STEP: usize = 256 * 1_024;

impl Known {
    /// Reads the file in a folder, and makes sure that it is the one.
    pub(super) fn read(&self, folder: &Path) -> Result<Vec<u8>> {
        let path = folder.join(self.name);
        let file = std::fs::File::open(&path).map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => {
                Error::not_found(format!("{} does not exist: {FETCH}", path.display()))
            }
            _ => unreadable(error, &path),
        })?;
        let mut bytes = Vec::new();
        self.copy(file, &mut bytes, &path, |_| {}).map_err(|error| match error.kind() {
            ErrorKind::Corrupt => {
                Error::new(ErrorKind::Corrupt, format!("{}: {FETCH} again", error.message()))
            }
            _ => error,
        })?;
        Ok(bytes)
    }

    /// Copies the file from where it is told to be and makes sure that it is the one. No more than
    /// its size is read.
    pub(super) fn copy(
        &self,
        from: impl Read,
        to: &mut impl Write,
        named: &Path,
        mut progress: impl FnMut(u64),
    ) -> Result<()> {
        let mut from = from.take(self.bytes + 1);
        let mut check = Check::default();
        let mut buffer = vec![0; STEP];
        loop {
            let read = match from.read(&mut buffer) {
                Ok(0) => return check.compare(Some(self.bytes), self.sha256, named),
                Ok(read) => &buffer[..read],
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                // What unpacks says so when the packed bytes are damaged.
                Err(error) if error.kind() == std::io::ErrorKind::InvalidData => {
                    let message = format!("{} is damaged ({error})", named.display());
                    return Err(Error::new(ErrorKind::Corrupt, message).with_source(error));
                }
                Err(error) => return Err(io_error(error, named)),
            };
            check.add(read);
            to.write_all(read).map_err(|error| io_error(error, named))?;
            progress(check.bytes);
        }
    }
}

/// What has come of a file.
#[derive(Debug, Default)]
pub(super) struct Check {
    bytes: u64,
    hasher: Sha256,
}

impl Check {
    pub(super) fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.hasher.update(bytes);
    }

    /// Whether that is the file of a hash, and of a size where it is known.
    pub(super) fn compare(self, bytes: Option<u64>, sha256: &str, named: &Path) -> Result<()> {
        let mut hash = String::new();
        for byte in self.hasher.finalize() {
            // Writing into a string does not fail.
            let _ = write!(hash, "{byte:02x}");
        }
        if bytes.is_none_or(|bytes| bytes == self.bytes) && hash == sha256 {
            return Ok(());
        }
        Err(Error::new(
            ErrorKind::Corrupt,
            format!(
                "{} is damaged, or is a different file (its SHA-256 is not {sha256})",
                named.display()
            ),
        ))
    }
}

/// A file that is there, or should be, and cannot be opened.
pub(super) fn unreadable(error: std::io::Error, path: &Path) -> Error {
    let kind = match error.kind() {
        std::io::ErrorKind::NotFound => ErrorKind::NotFound,
        _ => ErrorKind::Unavailable,
    };
    let message = format!(
        "{} cannot be read ({error}): name one that exists and may be read",
        path.display()
    );
    Error::new(kind, message).with_source(error)
}

/// A failure of the disk.
pub(super) fn io_error(error: std::io::Error, path: &Path) -> Error {
    use std::io::ErrorKind as Io;
    let (kind, advice) = match error.kind() {
        Io::NotFound => (ErrorKind::NotFound, "name one that exists"),
        Io::StorageFull | Io::QuotaExceeded => {
            (ErrorKind::StorageFull, "free some space and try again")
        }
        Io::ReadOnlyFilesystem | Io::PermissionDenied => {
            (ErrorKind::ReadOnly, "allow it, or name another place")
        }
        _ => (ErrorKind::Unavailable, "try again"),
    };
    Error::new(kind, format!("{}: {error}: {advice}", path.display())).with_source(error)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ABC: Known = Known {
        name: "abc",
        bytes: 3,
        sha256: "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
    };

    #[test]
    fn a_file_is_known_by_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let read = || ABC.read(folder.path()).map_err(|error| (error.kind(), error.to_string()));
        let (kind, message) = read().unwrap_err();
        assert_eq!(kind, ErrorKind::NotFound);
        assert!(message.contains("abc") && message.contains("throughline model fetch"));
        for wrong in ["", "ab", "abd", "abcd"] {
            std::fs::write(folder.path().join("abc"), wrong).unwrap();
            let (kind, message) = read().unwrap_err();
            assert_eq!(kind, ErrorKind::Corrupt, "{wrong}");
            assert!(message.contains("abc") && message.contains("throughline model fetch"));
        }
        std::fs::write(folder.path().join("abc"), "abc").unwrap();
        assert_eq!(read().unwrap(), b"abc");
    }
}
