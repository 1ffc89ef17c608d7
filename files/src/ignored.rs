//! Which files a folder says to ignore.
//!
//! The patterns are those of the `ignore` crate. Its walk is not used: it opens whatever is named `.gitignore`, also a pipe,
//! on which it waits, or a link to a device, which never ends.

use std::path::Path;
use std::rc::Rc;

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

use crate::open::open_regular;

/// Most bytes of a file of patterns; a larger one is not used.
const MAX_BYTES: u64 = 1 << 20;

/// The rules of a folder and of those above it, up to the root or the repository that it is in.
#[derive(Debug)]
pub(crate) struct Rules {
    above: Option<Rc<Rules>>,
    gitignore: Gitignore,
    ignore: Gitignore,
    /// The folder is a repository, where `.gitignore` files above it end.
    is_repository: bool,
}

impl Rules {
    /// `may_have` says whether a name may be in the folder: most folders have none of those that count.
    pub(crate) fn of(
        folder: &Path,
        above: Option<Rc<Self>>,
        may_have: impl Fn(&str) -> bool,
    ) -> Rc<Self> {
        let patterns_of = |name: &str| match may_have(name) {
            true => patterns(folder, name),
            false => Gitignore::empty(),
        };
        let rules = Self {
            gitignore: patterns_of(".gitignore"),
            ignore: patterns_of(".ignore"),
            is_repository: may_have(".git") && is_repository(folder),
            above,
        };
        match rules {
            // Nothing to say: those above say it all.
            Self { gitignore, ignore, is_repository: false, above: Some(above) }
                if gitignore.is_empty() && ignore.is_empty() =>
            {
                above
            }
            rules => Rc::new(rules),
        }
    }

    /// Whether a file or folder is ignored. The nearest rule counts, `.ignore` before `.gitignore`.
    pub(crate) fn ignores(&self, path: &Path, is_folder: bool) -> bool {
        let mut level = Some(self);
        while let Some(rules) = level {
            match rules.ignore.matched(path, is_folder) {
                Match::None => level = rules.above.as_deref(),
                found => return found.is_ignore(),
            }
        }
        let mut level = Some(self);
        while let Some(rules) = level {
            match rules.gitignore.matched(path, is_folder) {
                Match::None if rules.is_repository => return false,
                Match::None => level = rules.above.as_deref(),
                found => return found.is_ignore(),
            }
        }
        false
    }
}

/// Whether a folder is the root of a repository, or of a work tree.
pub(crate) fn is_repository(folder: &Path) -> bool {
    folder.join(".git").symlink_metadata().is_ok()
}

/// The patterns of a file; none where it is not there or not a small text file.
fn patterns(folder: &Path, name: &str) -> Gitignore {
    let read = || {
        let opened = open_regular(&folder.join(name)).ok()?;
        let bytes = opened.read(MAX_BYTES).ok()?;
        String::from_utf8(bytes).ok()
    };
    let Some(text) = read() else { return Gitignore::empty() };
    let mut builder = GitignoreBuilder::new(folder);
    for line in text.trim_start_matches('\u{feff}').lines() {
        // A pattern that is not valid is no reason to leave the others out.
        let _ = builder.add_line(None, line);
    }
    builder.build().unwrap_or_else(|_| Gitignore::empty())
}
