//! A released migration never changes: its hash is recorded when it is added.
//!
//! `cargo xtask tidy --bless` records new files. While a migration is in no release, remove its
//! line from the record and bless again; afterwards, write the next migration.

use std::collections::BTreeMap;
use std::path::Path;

use crate::Result;
use crate::tidy::Finding;
use crate::tidy::tree::Tree;

/// The record: a BLAKE3 hash and a path on each line, as `b3sum` prints them.
const LOCK: &str = "xtask/migrations.lock";

/// Compares every migration with the record.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let recorded = recorded(tree);
    let mut findings = Vec::new();
    for (path, text) in migrations(tree) {
        match recorded.get(path) {
            None => {
                let message = "new migration: record it with `cargo xtask tidy --bless`";
                findings.push(Finding::new(path, 1, message));
            }
            Some((_, hash)) if *hash != hash_of(text) => {
                let message = "a recorded migration was changed: restore it and write the next one";
                findings.push(Finding::new(path, 1, message));
            }
            Some(_) => {}
        }
    }
    for (path, (line, _)) in &recorded {
        if tree.file(path).is_none() {
            findings.push(Finding::new(LOCK, *line, format!("{path} is gone: restore it")));
        }
    }
    findings
}

/// Adds the migrations that are not recorded, and returns their paths.
pub(crate) fn bless(root: &Path) -> Result<Vec<String>> {
    let tree = Tree::read(root)?;
    let (lock, added) = blessed(&tree);
    if !added.is_empty() {
        std::fs::write(root.join(LOCK), lock)?;
    }
    Ok(added)
}

/// The record with what it lacks; what is recorded stays as it is.
fn blessed(tree: &Tree) -> (String, Vec<String>) {
    let recorded = recorded(tree);
    let mut lines: BTreeMap<&str, String> =
        recorded.iter().map(|(path, (_, hash))| (*path, (*hash).to_owned())).collect();
    let mut added = Vec::new();
    for (path, text) in migrations(tree) {
        if !recorded.contains_key(path) {
            lines.insert(path, hash_of(text));
            added.push(path.to_owned());
        }
    }
    let lock = lines.iter().map(|(path, hash)| format!("{hash}  {path}\n")).collect();
    (lock, added)
}

fn migrations(tree: &Tree) -> impl Iterator<Item = (&str, &str)> {
    tree.files().filter(|(path, _)| path.contains("/migrations/") && path.ends_with(".sql"))
}

/// Line and hash by path.
fn recorded(tree: &Tree) -> BTreeMap<&str, (usize, &str)> {
    let lock = tree.file(LOCK).unwrap_or("");
    lock.lines()
        .enumerate()
        .filter_map(|(index, line)| {
            let (hash, path) = line.split_once("  ")?;
            Some((path.trim(), (index + 1, hash)))
        })
        .collect()
}

/// Line endings are git's business, not a change.
fn hash_of(text: &str) -> String {
    blake3::hash(text.replace("\r\n", "\n").as_bytes()).to_hex().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SQL: &str = "store-a/migrations/0001_initial.sql";

    #[test]
    fn a_new_migration_is_recorded_by_bless_only() {
        let tree = Tree::of(&[(SQL, "create table a (b);")]);
        assert_eq!(check(&tree).len(), 1);
        let (lock, added) = blessed(&tree);
        assert_eq!(added, [SQL]);
        let tree = Tree::of(&[(SQL, "create table a (b);"), (LOCK, &lock)]);
        assert_eq!(check(&tree), []);
        assert_eq!(blessed(&tree), (lock, Vec::new()));
    }

    #[test]
    fn a_changed_migration_stays_an_error() {
        let (lock, _) = blessed(&Tree::of(&[(SQL, "create table a (b);")]));
        let changed = Tree::of(&[(SQL, "create table a (c);"), (LOCK, &lock)]);
        assert_eq!(check(&changed).len(), 1);
        assert_eq!(blessed(&changed), (lock, Vec::new()), "bless does not excuse a change");
    }

    #[test]
    fn a_missing_migration_is_an_error() {
        let (lock, _) = blessed(&Tree::of(&[(SQL, "create table a (b);")]));
        assert_eq!(check(&Tree::of(&[(LOCK, &lock)])).len(), 1);
    }
}
