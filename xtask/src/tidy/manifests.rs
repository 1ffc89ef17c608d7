//! What every crate of the workspace says in its manifest.

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

/// Checks every member.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in tree.packages() {
        let path = package.manifest();
        let mut report = |message: &str| findings.push(Finding::new(&path, 1, message));
        if package.published {
            report("`publish = false` (or `publish.workspace = true`) is missing");
        }
        let Some(text) = tree.file(&path) else {
            report("the manifest is not a file of the repository");
            continue;
        };
        if !has(text, "[package]", "license.workspace=true") {
            report("`license.workspace = true` is missing");
        }
        if !has(text, "[lints]", "workspace=true") {
            report("`[lints]` with `workspace = true` is missing");
        }
    }
    findings
}

/// Whether the section holds the setting, written without blanks.
fn has(manifest: &str, section: &str, setting: &str) -> bool {
    let mut inside = false;
    manifest.lines().any(|line| {
        let line: String = line.split('#').next().unwrap_or("").split_whitespace().collect();
        if line.starts_with('[') {
            inside = line == section;
        }
        inside && line == setting
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::packages::Package;

    const FINE: &str = "[package]\nlicense.workspace = true\n\n[lints]\nworkspace = true # all\n";

    fn found(manifest: &str, published: bool) -> usize {
        let package =
            Package { name: "a".into(), dir: "a".into(), published, dependencies: Vec::new() };
        check(&Tree::of(&[("a/Cargo.toml", manifest)]).with(vec![package])).len()
    }

    #[test]
    fn each_setting_is_needed() {
        assert_eq!(found(FINE, false), 0);
        assert_eq!(found(FINE, true), 1);
        assert_eq!(found(&FINE.replace("license", "licence"), false), 1);
        assert_eq!(found(&FINE.replace("[lints]", "[other]"), false), 1);
        assert_eq!(found("[lints]\nlicense.workspace = true\nworkspace = true", false), 1);
    }
}
