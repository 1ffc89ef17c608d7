//! The workspace of a folder: the git repository that it is in.

use std::fs;
use std::path::{Component, Path, PathBuf};

/// Hexadecimal digits that tell repositories of one name apart.
const DIGITS: usize = 8;
/// Longest part of a workspace's name that is the repository's, in characters.
const MAX_NAME: usize = 60;

/// The name of the workspace of a folder; `None` outside of any repository. All folders of a repository have one
/// workspace, and so have the work trees of one repository.
#[must_use]
pub fn workspace_of(folder: &Path) -> Option<String> {
    repository_of(folder).map(|root| name(&main_root(&root)))
}

/// The root of the repository, or of the work tree of one, that a folder is in.
pub(crate) fn repository_of(folder: &Path) -> Option<PathBuf> {
    let folder = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    folder.ancestors().find(|folder| folder.join(".git").exists()).map(Path::to_owned)
}

/// As [`workspace_of`], of a folder that need not be on this machine: without a repository it is its own.
#[must_use]
pub fn workspace_of_project(folder: &Path) -> String {
    workspace_of(folder).unwrap_or_else(|| name(folder))
}

/// The root of the repository that a work tree belongs to. The `.git` of a linked one is a file that names
/// `<main>/.git/worktrees/<name>` (gitrepository-layout(5)); that of a submodule is a repository of its own.
fn main_root(root: &Path) -> PathBuf {
    let linked = || {
        let text = fs::read_to_string(root.join(".git")).ok()?;
        let git_dir = root.join(text.trim().strip_prefix("gitdir:")?.trim());
        let worktrees = git_dir.parent()?;
        let git = worktrees.parent()?;
        let named = |path: &Path, name: &str| matches!(path.components().next_back(), Some(Component::Normal(last)) if last == name);
        (named(worktrees, "worktrees") && named(git, ".git"))
            .then(|| git.parent())??
            .canonicalize()
            .ok()
    };
    linked().unwrap_or_else(|| root.to_owned())
}

/// The folder's name, and a hash of its path.
fn name(root: &Path) -> String {
    let hash = blake3::hash(root.as_os_str().as_encoded_bytes()).to_hex();
    let name = root.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
    let name: String = name.chars().filter(|c| !c.is_control()).take(MAX_NAME).collect();
    let name = name.trim();
    let name = if name.is_empty() { "project" } else { name };
    format!("{name}-{}", &hash.as_str()[..DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_and_work_trees_of_a_repository_are_one_workspace() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| folder.path().join(path);
        for path in ["app/.git/worktrees/fix", "app/src/deep", "fix/src", "other/app/.git", "plain"]
        {
            fs::create_dir_all(at(path)).unwrap();
        }
        let git_dir = at("app/.git/worktrees/fix");
        fs::write(at("fix/.git"), format!("gitdir: {}\n", git_dir.display())).unwrap();
        let app = workspace_of(&at("app")).unwrap();
        assert!(app.starts_with("app-") && app.len() == "app-".len() + DIGITS, "{app}");
        for path in ["app/src", "app/src/deep", "fix", "fix/src"] {
            assert_eq!(workspace_of(&at(path)).as_ref(), Some(&app), "{path}");
        }
        assert_ne!(workspace_of(&at("other/app")), Some(app));
        assert_eq!(workspace_of(&at("plain")), None);
        assert!(workspace_of_project(&at("plain")).starts_with("plain-"));
        assert!(workspace_of_project(Path::new("/no/such/place")).starts_with("place-"));
    }
}
