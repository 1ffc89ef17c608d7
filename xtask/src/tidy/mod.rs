//! `cargo xtask tidy`: the rules of the repository that the compiler does not know.
//!
//! Each rule is a function over the [`Tree`] that returns findings. All rules run, by the command
//! and by the test at the end of this file; a rule that cannot be broken by a fixture in its own
//! tests is not a rule.

mod conformance;
mod direction;
mod documents;
mod layers;
mod leaks;
mod manifests;
mod markdown;
mod metrics;
mod migrations;
mod packages;
mod scan;
mod sizes;
mod sources;
mod tree;

use std::fmt;

use crate::Result;
use crate::proc::root;
use crate::tidy::tree::Tree;

/// One place that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Finding {
    path: String,
    /// Counted from 1.
    line: usize,
    message: String,
}

impl Finding {
    fn new(path: &str, line: usize, message: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: line.max(1), message: message.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

/// A named rule.
#[derive(Debug)]
pub(crate) struct Rule {
    name: &'static str,
    check: fn(&Tree) -> Vec<Finding>,
}

const RULES: &[Rule] = &[
    Rule { name: "direction", check: direction::check },
    Rule { name: "layers", check: layers::check },
    Rule { name: "sizes", check: sizes::check },
    Rule { name: "documents", check: documents::check },
    Rule { name: "conformance", check: conformance::check },
    Rule { name: "sources", check: sources::check },
    Rule { name: "manifests", check: manifests::check },
    Rule { name: "leaks", check: leaks::check },
    Rule { name: "metrics", check: metrics::check },
    Rule { name: "migrations", check: migrations::check },
];

/// Runs every rule and prints what it finds; true when nothing was found.
pub(crate) fn run(bless: bool) -> Result<bool> {
    if bless {
        for path in migrations::bless(root())? {
            println!("recorded {path}");
        }
    }
    let tree = Tree::read(root())?;
    let mut total = 0;
    let mut summary = String::new();
    for (rule, findings) in check_all(&tree) {
        for finding in &findings {
            println!("{finding} [{rule}]");
        }
        total += findings.len();
        let count = match findings.len() {
            0 => "ok".to_owned(),
            1 => "1 finding".to_owned(),
            count => format!("{count} findings"),
        };
        summary.push_str(&format!("  {rule:<12} {count}\n"));
    }
    if total > 0 {
        println!();
    }
    println!("{} files, {} rules:\n{}", tree.len(), RULES.len(), summary.trim_end());
    Ok(total == 0)
}

fn check_all(tree: &Tree) -> Vec<(&'static str, Vec<Finding>)> {
    RULES
        .iter()
        .map(|rule| {
            let mut findings = (rule.check)(tree);
            findings.sort();
            findings.dedup();
            (rule.name, findings)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_repository_is_tidy() {
        let tree = Tree::read(root()).unwrap();
        let found: Vec<_> = check_all(&tree)
            .into_iter()
            .flat_map(|(rule, findings)| {
                findings.into_iter().map(move |finding| format!("{finding} [{rule}]"))
            })
            .collect();
        assert!(found.is_empty(), "cargo xtask tidy finds:\n{}", found.join("\n"));
    }
}
