//! Documents that name what exists, and what does not.

use super::*;
use crate::tidy::packages::Package;

const CLI: &str = "\
#[derive(Debug, Subcommand)]
enum Command {
    /// Shows itself.
    Demo,
    #[command(name = \"import\")]
    ImportFile { path: String },
    ConfigExplain(Args),
}
";

fn found(path: &str, document: &str) -> Vec<String> {
    let core =
        Package { name: "throughline-core".into(), dir: "core".into(), ..Package::default() };
    let tree = Tree::of(&[
        (path, document),
        ("core/src/lib.rs", ""),
        ("docs/guide/a.md", ""),
        ("xtask/src/main.rs", ""),
        (PRODUCT_CLI, CLI),
    ])
    .with(vec![core]);
    check(&tree).iter().map(ToString::to_string).collect()
}

#[test]
fn dead_names_are_found() {
    for fine in [
        "`core/src/lib.rs`, `core/src/`, `core/src/lib.rs:12`, `./core/src`",
        "`throughline-core`, `xtask`, `README.md`",
        "`store-<name>/src/lib.rs`, `core/*/x`, `some/other/path`, `a / b`",
        "```\ncore/gone.rs\n```",
    ] {
        assert!(found("README.md", fine).is_empty(), "{fine}");
    }
    for dead in ["core/src/gone.rs", "store-gone/src", "throughline-gone", "GONE.md"] {
        let findings = found("README.md", &format!("\nsee `{dead}`"));
        assert_eq!(findings.len(), 1, "{dead}");
        assert!(findings[0].starts_with("README.md:2: "), "{}", findings[0]);
    }
}

#[test]
fn dead_links_are_found() {
    let document = "docs/guide/b.md";
    for fine in ["a.md#part", "../../core/src/lib.rs", "#here", "https://example.com/x", "/docs"] {
        assert!(found(document, &format!("[x]({fine})")).is_empty(), "{fine}");
    }
    for dead in ["gone.md", "../a.md", "../../../outside"] {
        assert_eq!(found(document, &format!("[x]({dead})")).len(), 1, "{dead}");
    }
}

#[test]
fn dead_commands_are_found() {
    for fine in ["cargo xtask tidy --bless", "throughline demo", "throughline config-explain"] {
        assert!(
            found("README.md", &format!("`{fine}`\n```sh\n$ {fine}\n```")).is_empty(),
            "{fine}"
        );
    }
    assert!(found("README.md", "`throughline import x`, `throughline --help`").is_empty());
    for dead in ["cargo xtask gone", "throughline gone", "target/release/throughline gone x"] {
        assert_eq!(found("README.md", &format!("`{dead}`")).len(), 1, "{dead}");
        assert_eq!(found("README.md", &format!("```sh\n$ {dead}\n```")).len(), 1, "{dead}");
    }
}

#[test]
fn only_the_newest_changes_are_checked() {
    let changes = |new: &str, old: &str| format!("# Changes\n\n## 2\n{new}\n\n## 1\n{old}\n");
    assert_eq!(found("CHANGELOG.md", &changes("`core/gone`", "")).len(), 1);
    assert!(found("CHANGELOG.md", &changes("", "`core/gone`")).is_empty());
}

#[test]
fn source_sends_readers_to_documents_that_exist() {
    let found = |line: &str| {
        let tree = Tree::of(&[("core/src/a.rs", line), ("docs/A.md", "")]);
        check(&tree).len()
    };
    assert_eq!(found("//! See docs/A.md.\n"), 0);
    assert_eq!(found("//! See https://docs.rs/x and docs/ in README.md.\n"), 0);
    assert_eq!(found("const HELP: &str = \"see docs/GONE.md\";\n"), 1);
}

#[test]
fn commands_that_cannot_be_read_are_not_checked() {
    let tree = Tree::of(&[("README.md", "`throughline gone`")]);
    assert_eq!(check(&tree), []);
}
