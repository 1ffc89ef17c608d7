//! Nothing of the machine that a file was written on stays in it.

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

/// Directories of one machine, written in two parts so that this file passes.
const DIRECTORIES: &[&str] =
    &[concat!("/ro", "ot/"), concat!("/ho", "me/"), concat!("/wo", "rk/"), concat!("/Use", "rs/")];

/// Where crates come from, and the only such place.
const CRATES_IO: &str = "https://github.com/rust-lang/crates.io-index";

/// What names another registry in a lock file or a configuration of cargo.
const REGISTRIES: &[&str] = &[
    concat!("registry", "+http"),
    concat!("sparse", "+http"),
    concat!("replace", "-with"),
    concat!("[regis", "tries"),
];

/// First labels of hosts that mirror packages.
const MIRRORS: &[&str] =
    &["artifactory", "index", "mirror", "mirrors", "nexus", "proxy", "pypi", "registry", "static"];

/// Checks every text file of the repository.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.files() {
        for (index, line) in text.lines().enumerate() {
            let mut report = |message: String| {
                findings.push(Finding::new(path, index + 1, message));
            };
            for directory in DIRECTORIES {
                if names_directory(line, directory) {
                    report(format!("`{directory}` is a directory of one machine"));
                }
            }
            if REGISTRIES.iter().any(|name| line.contains(name)) && !line.contains(CRATES_IO) {
                report("names a registry: crates come from crates.io only".to_owned());
            } else if let Some(host) = mirror(line) {
                report(format!("`{host}` is the host of a registry or mirror"));
            }
        }
    }
    findings
}

/// Whether the path stands by itself and is not the middle of a longer one or of an address.
fn names_directory(line: &str, directory: &str) -> bool {
    line.match_indices(directory).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|char| char.is_alphanumeric() || "_-.~*>})".contains(char))
    })
}

/// The host of an address in the line, when it is that of a mirror.
fn mirror(line: &str) -> Option<&str> {
    line.split("://").skip(1).find_map(|rest| {
        let end = rest.find(|char: char| !(char.is_ascii_alphanumeric() || "-.@".contains(char)));
        let host = &rest[..end.unwrap_or(rest.len())];
        let host = host.rsplit('@').next().unwrap_or(host);
        let (first, others) = host.split_once('.')?;
        (!others.is_empty() && MIRRORS.contains(&first)).then_some(host)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, text: &str) -> usize {
        check(&Tree::of(&[(path, text)])).len()
    }

    #[test]
    fn directories_of_a_machine_are_found() {
        for directory in DIRECTORIES {
            assert_eq!(found("docs/a.md", &format!("see `{directory}x`")), 1);
            assert_eq!(found("docs/a.md", &format!("see docs{directory}x")), 0);
        }
    }

    #[test]
    fn other_registries_are_found() {
        assert_eq!(found("Cargo.lock", &format!("source = \"registry+{CRATES_IO}\"")), 0);
        for broken in REGISTRIES {
            assert_eq!(found("Cargo.lock", &format!("{broken}s://crates.example.com/x")), 1);
        }
        for host in MIRRORS {
            assert_eq!(found(".ci/run", &format!("curl https://me@{host}.example.com/x")), 1);
        }
        assert_eq!(found("README.md", "https://docs.rs/static.x and https://registry/"), 0);
    }
}
