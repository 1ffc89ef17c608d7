//! The folders that may be read, and the names of what is in them.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::path::{Component, Path, PathBuf};

use throughline_core::files::{MAX_PATH_BYTES, SkipReason, is_plain_path};
use throughline_core::{Error, Result};

/// Folders of version control, which are never read: they hold what was deleted, and credentials.
const VERSION_CONTROL: [&str; 4] = [".git", ".hg", ".jj", ".svn"];

/// The roots, without links and in the order in which they were given, and the folder that names are relative to.
#[derive(Debug)]
pub(crate) struct Roots {
    roots: Vec<PathBuf>,
    names_from: PathBuf,
}

/// Where a path leads.
pub(crate) enum Resolved {
    /// There, without links, below a root.
    Found(PathBuf),
    /// Not to be read, for this reason; the path is the one to name.
    Skipped(PathBuf, SkipReason),
}

impl Roots {
    pub(crate) fn open(roots: &[PathBuf], names_from: Option<&Path>) -> Result<Self> {
        let resolve = |root: &Path| {
            let found = root.canonicalize().and_then(|root| std::fs::read_dir(&root).map(|_| root));
            found.map_err(|error| {
                let shown = root.display();
                Error::invalid(format!("files: the root {shown} is not a folder that can be read"))
                    .with_source(error)
            })
        };
        let roots: Vec<PathBuf> = roots.iter().map(|root| resolve(root)).collect::<Result<_>>()?;
        let first =
            roots.first().ok_or_else(|| Error::invalid("files: at least one root is needed"))?;
        let names_from = names_from.map_or_else(|| Ok(first.clone()), resolve)?;
        Ok(Self { roots, names_from })
    }

    /// That every root is still there: an unmounted disk does not mean that its files were removed.
    pub(crate) fn check(&self) -> Result<()> {
        for root in &self.roots {
            std::fs::read_dir(root).map_err(|error| {
                let message = format!("files: the root {} cannot be read", root.display());
                Error::new(throughline_core::ErrorKind::Unavailable, message).with_source(error)
            })?;
        }
        Ok(())
    }

    /// The root that a path without links is below.
    pub(crate) fn root_of(&self, path: &Path) -> Option<&Path> {
        self.roots.iter().map(PathBuf::as_path).find(|root| path.starts_with(root))
    }

    /// Follows a name to what is there.
    pub(crate) fn resolve(&self, name: &str) -> Resolved {
        self.follow(&self.names_from, name)
    }

    /// Follows a path that a caller gave: from the first root, if it is relative.
    pub(crate) fn resolve_given(&self, path: &str) -> Resolved {
        self.follow(self.roots.first().unwrap_or(&self.names_from), path)
    }

    fn follow(&self, from: &Path, path: &str) -> Resolved {
        if path.contains('\0') {
            return Resolved::Skipped(PathBuf::from(path), SkipReason::BadName);
        }
        let path = from.join(path);
        let folded = folded(&path);
        let outside = match self.root_of(&folded) {
            Some(_) => SkipReason::LinkOutside,
            None => SkipReason::Outside,
        };
        match path.canonicalize() {
            Ok(real) if self.root_of(&real).is_none() => Resolved::Skipped(folded, outside),
            Ok(real) => match is_version_control(&real) {
                true => Resolved::Skipped(real, SkipReason::VersionControl),
                false => Resolved::Found(real),
            },
            Err(error) => match place_of_missing(&folded) {
                Some(place) if self.root_of(&place).is_some() => {
                    let reason = match error.kind() {
                        ErrorKind::PermissionDenied => SkipReason::Unreadable,
                        _ => SkipReason::Missing,
                    };
                    Resolved::Skipped(place, reason)
                }
                // Nothing is said of what is outside, not even whether it exists.
                _ => Resolved::Skipped(folded, outside),
            },
        }
    }

    /// The name of a path, and whether it can be used as it is: if not, it is escaped, for people.
    pub(crate) fn name(&self, path: &Path) -> (String, bool) {
        let below = path.strip_prefix(&self.names_from).ok();
        if below.is_some_and(|below| below.as_os_str().is_empty()) {
            return (".".to_owned(), true);
        }
        let path = below.unwrap_or(path).as_os_str();
        match path.to_str() {
            Some(name) if is_plain_path(name) => (with_slashes(name), true),
            _ => (escaped(path), false),
        }
    }
}

fn is_version_control(path: &Path) -> bool {
    let is_one = |part: &OsStr| VERSION_CONTROL.iter().any(|name| part == OsStr::new(name));
    path.iter().any(is_one)
}

/// Where a path would be whose end does not exist.
fn place_of_missing(path: &Path) -> Option<PathBuf> {
    let (real, there) =
        path.ancestors().skip(1).find_map(|at| Some((at.canonicalize().ok()?, at)))?;
    Some(real.join(path.strip_prefix(there).ok()?))
}

/// `.` and `..` resolved without looking at the disk.
fn folded(path: &Path) -> PathBuf {
    let mut folded = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                folded.pop();
            }
            part => folded.push(part),
        }
    }
    folded
}

/// A name for people: what is not a plain character is escaped.
pub(crate) fn escaped(name: &OsStr) -> String {
    let mut shown = String::new();
    for chunk in name.as_encoded_bytes().utf8_chunks() {
        for c in chunk.valid().chars() {
            match is_plain_path(c.encode_utf8(&mut [0; 4])) {
                true => shown.push(c),
                false => shown.extend(c.escape_default()),
            }
        }
        for byte in chunk.invalid() {
            shown.push_str(&format!("\\x{byte:02x}"));
        }
        if shown.len() > MAX_PATH_BYTES {
            break;
        }
    }
    shown
}

#[cfg(windows)]
fn with_slashes(name: &str) -> String {
    name.replace('\\', "/")
}

#[cfg(not(windows))]
fn with_slashes(name: &str) -> String {
    name.to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_paths_without_the_disk() {
        let table =
            [("/a/./b", "/a/b"), ("/a/b/../c/", "/a/c"), ("/../..", "/"), ("/a/../../b", "/b")];
        for (path, expected) in table {
            assert_eq!(folded(Path::new(path)), Path::new(expected), "{path}");
        }
    }

    #[test]
    fn escapes_what_cannot_be_shown() {
        let table = [
            ("plain ünï", "plain ünï"),
            ("two\nlines", "two\\nlines"),
            ("\u{202e}back", "\\u{202e}back"),
        ];
        for (name, expected) in table {
            assert_eq!(escaped(OsStr::new(name)), expected);
        }
    }
}
