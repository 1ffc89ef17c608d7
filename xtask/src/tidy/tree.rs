//! The repository as rules see it: the text of its files, and its packages.

use std::collections::BTreeMap;
use std::path::Path;

use xshell::{Shell, cmd};

use crate::Result;
use crate::proc::cargo_metadata;
use crate::tidy::packages::{Package, packages};

/// Text files by path from the root, with `/`, and the packages of the workspace.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    files: BTreeMap<String, String>,
    packages: Vec<Package>,
}

impl Tree {
    /// Reads what git tracks or would track; without git, everything but build output.
    pub(crate) fn read(root: &Path) -> Result<Self> {
        let mut files = BTreeMap::new();
        for path in list(root)? {
            // A file may be tracked and already removed; a binary one is not for these rules.
            let Ok(bytes) = std::fs::read(root.join(&path)) else {
                continue;
            };
            files.insert(path, String::from_utf8(bytes).unwrap_or_default());
        }
        Ok(Self { files, packages: packages(&cargo_metadata()?)? })
    }

    /// How many files there are.
    pub(crate) fn len(&self) -> usize {
        self.files.len()
    }

    /// All files, by path.
    pub(crate) fn files(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().map(|(path, text)| (path.as_str(), text.as_str()))
    }

    /// The files of Rust source.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files().filter(|(path, _)| path.ends_with(".rs"))
    }

    /// The text of one file.
    pub(crate) fn file(&self, path: &str) -> Option<&str> {
        self.files.get(path).map(String::as_str)
    }

    /// Whether this is a file or a directory.
    pub(crate) fn exists(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        let below = format!("{path}/");
        self.files.contains_key(path)
            || self
                .files
                .range(below.clone()..)
                .next()
                .is_some_and(|(next, _)| next.starts_with(&below))
    }

    /// The members of the workspace.
    pub(crate) fn packages(&self) -> &[Package] {
        &self.packages
    }
}

fn list(root: &Path) -> Result<Vec<String>> {
    let sh = Shell::new()?;
    sh.change_dir(root);
    if root.join(".git").exists()
        && let Ok(listed) = cmd!(sh, "git ls-files -z --cached --others --exclude-standard").read()
    {
        return Ok(listed.split_terminator('\0').map(str::to_owned).collect());
    }
    let mut found = Vec::new();
    walk(root, "", &mut found)?;
    Ok(found)
}

/// Every file below `dir`, for a copy of the source that is not a git repository.
fn walk(root: &Path, dir: &str, found: &mut Vec<String>) -> Result<()> {
    for entry in std::fs::read_dir(root.join(dir))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let path = if dir.is_empty() { name.clone() } else { format!("{dir}/{name}") };
        if entry.file_type()?.is_dir() {
            if !matches!(path.as_str(), "target" | "data" | ".git") {
                walk(root, &path, found)?;
            }
        } else {
            found.push(path);
        }
    }
    Ok(())
}

#[cfg(test)]
impl Tree {
    /// A tree of these files.
    pub(crate) fn of(files: &[(&str, &str)]) -> Self {
        let files = files.iter().map(|(path, text)| ((*path).into(), (*text).into())).collect();
        Self { files, packages: Vec::new() }
    }

    /// The same with these packages.
    pub(crate) fn with(mut self, packages: Vec<Package>) -> Self {
        self.packages = packages;
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_exist_by_their_files() {
        let tree = Tree::of(&[("core/src/lib.rs", ""), ("core-extra/x", "")]);
        assert!(tree.exists("core/src/lib.rs"));
        assert!(tree.exists("core/src/"));
        assert!(tree.exists("core"));
        assert!(!tree.exists("core/sr"));
        assert!(!tree.exists("core/src/lib"));
    }

    #[test]
    fn a_walk_leaves_build_output_out() {
        let dir = std::env::temp_dir().join(format!("xtask-walk-{}", std::process::id()));
        for path in ["a/b", "target/debug"] {
            std::fs::create_dir_all(dir.join(path)).unwrap();
        }
        std::fs::write(dir.join("a/b/c.rs"), "x").unwrap();
        std::fs::write(dir.join("target/debug/d"), "x").unwrap();
        assert_eq!(list(&dir).unwrap(), ["a/b/c.rs"]);
        std::fs::remove_dir_all(&dir).unwrap();
    }
}
