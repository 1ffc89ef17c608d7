//! `cargo xtask check`: what an edit may have broken, between edits: format, rules, whether everything still
//! compiles, and lints and tests of the crates that changed. `cargo xtask ci` is the whole.

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;
use xshell::{Cmd, Shell, cmd};

use crate::Result;
use crate::proc::{cargo_metadata, has_cargo_command, human, root, shell};

/// Checks what changed since a commit: by default the uncommitted changes, or where there are none, the last
/// commit. True when all is good.
pub(crate) fn run(since: Option<&str>) -> Result<bool> {
    let started = Instant::now();
    let files = changed_files(since)?;
    let crates = changed_crates(&cargo_metadata()?, root(), &files);
    println!("{} changed: {}", counted(files.len(), "file"), named(&crates));
    let sh = shell()?;
    let run = |step: &Cmd<'_>| step.run().inspect_err(|error| eprintln!("{error}")).is_ok();
    let ok = steps(&sh, &crates).iter().all(run) && crate::tidy::run(false)?;
    let outcome = if ok { "Good" } else { "Failed, see above" };
    println!("\n{outcome}, after {}.", human(started.elapsed()));
    Ok(ok)
}

/// What is run for these crates, in order: what fails soonest first.
fn steps<'sh>(sh: &'sh Shell, crates: &[String]) -> Vec<Cmd<'sh>> {
    let mut steps = vec![cmd!(sh, "cargo fmt --all --check")];
    if crates.is_empty() {
        return steps;
    }
    let packages: Vec<&str> = crates.iter().flat_map(|name| ["-p", name]).collect();
    let packages = &packages;
    steps.push(cmd!(sh, "cargo clippy --all-targets {packages...} -- -D warnings"));
    steps.push(cmd!(sh, "cargo check --workspace"));
    steps.push(if has_cargo_command("nextest") {
        cmd!(sh, "cargo nextest run --no-tests pass {packages...}")
    } else {
        cmd!(sh, "cargo test {packages...}")
    });
    steps
}

/// Files that differ from a commit, and those that git does not know yet.
fn changed_files(since: Option<&str>) -> Result<Vec<PathBuf>> {
    let since_commit = |commit: &str| git(&["diff", "--name-only", "-z", commit]);
    let new = git(&["ls-files", "--others", "--exclude-standard", "-z"])?;
    let mut files = since_commit(since.unwrap_or("HEAD"))?;
    files.extend(new);
    if files.is_empty() && since.is_none() {
        files = since_commit("HEAD~1")?;
    }
    Ok(files)
}

fn git(args: &[&str]) -> Result<Vec<PathBuf>> {
    let sh = shell()?;
    let listed = cmd!(sh, "git {args...}").read()?;
    Ok(listed.split_terminator('\0').map(PathBuf::from).collect())
}

/// The crates of files, by `cargo metadata`: all of them where the manifest or the lock file of the workspace
/// changed. A file outside of every crate is of none.
fn changed_crates(metadata: &Value, root: &Path, files: &[PathBuf]) -> Vec<String> {
    let of_all = [Path::new("Cargo.toml"), Path::new("Cargo.lock")];
    let all = files.iter().any(|file| of_all.contains(&file.as_path()));
    let packages = metadata["packages"].as_array().map_or(&[][..], Vec::as_slice);
    let has_changed = |package: &&Value| {
        let manifest = package["manifest_path"].as_str().map(Path::new);
        manifest.and_then(Path::parent).is_some_and(|folder| {
            all || files.iter().any(|file| root.join(file).starts_with(folder))
        })
    };
    let changed = packages.iter().filter(has_changed);
    let mut crates: Vec<String> =
        changed.filter_map(|package| package["name"].as_str().map(str::to_owned)).collect();
    crates.sort_unstable();
    crates
}

fn counted(count: usize, what: &str) -> String {
    if count == 1 { format!("1 {what}") } else { format!("{count} {what}s") }
}

fn named(crates: &[String]) -> String {
    if crates.is_empty() { "of no crate".to_owned() } else { crates.join(", ") }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn maps_files_to_their_crates() {
        let metadata = json!({ "packages": [
            { "name": "a-core", "manifest_path": "/r/core/Cargo.toml" },
            { "name": "a-store", "manifest_path": "/r/store/Cargo.toml" },
            { "name": "a-store-other", "manifest_path": "/r/store-other/Cargo.toml" },
        ]});
        let of = |files: &[&str]| {
            let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
            changed_crates(&metadata, Path::new("/r"), &files)
        };
        assert!(of(&[]).is_empty());
        assert_eq!(of(&["docs/a.md", "store/src/lib.rs"]), ["a-store"]);
        assert_eq!(of(&["core/src/b.rs", "store-other/x"]), ["a-core", "a-store-other"]);
        assert_eq!(of(&["core/src/b.rs", "Cargo.lock"]), ["a-core", "a-store", "a-store-other"]);
    }

    #[test]
    fn runs_only_the_format_check_without_changed_crates() {
        let sh = shell().unwrap();
        assert_eq!(steps(&sh, &[]).len(), 1);
        assert_eq!(steps(&sh, &["a".to_owned()]).len(), 4);
    }
}
