//! How every file of Rust source is written.

use crate::tidy::Finding;
use crate::tidy::scan::{Line, is_test_file, lines, test_blocks};
use crate::tidy::tree::Tree;

/// What begins an attribute that would keep a test from running.
const IGNORE: &str = "#[ignore";

/// On the line of a sleep that a test cannot do without, before the reason.
const SLEEP: &str = "tidy: sleep";

/// Checks every file of source.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.sources() {
        if !text.starts_with("//!") {
            findings.push(Finding::new(path, 1, "begin the module with `//!`: what it is for"));
        }
        let lines = lines(text);
        for (index, line) in lines.iter().enumerate() {
            if line.code.contains(IGNORE) {
                let instead =
                    "a test runs, or is removed; a skip is declared in the conformance table";
                findings.push(Finding::new(path, index + 1, format!("`{IGNORE}`: {instead}")));
            }
        }
        findings.extend(sleeps(path, &lines));
    }
    findings
}

/// Tests wait for what happens, not for time to pass.
fn sleeps(path: &str, lines: &[Line]) -> Vec<Finding> {
    let blocks = test_blocks(lines);
    let whole = is_test_file(path) || path.starts_with("testkit/");
    let mut findings = Vec::new();
    for (index, line) in lines.iter().enumerate() {
        let tests = whole || blocks.iter().any(|block| (block.start..block.end).contains(&index));
        let sleeps = ["thread::sleep", "time::sleep"].iter().any(|call| line.code.contains(call));
        if !tests || !sleeps {
            continue;
        }
        let reason = line.comment.split_once(SLEEP).map(|(_, reason)| reason);
        if !reason.is_some_and(|reason| reason.chars().any(char::is_alphabetic)) {
            let message = format!(
                "a test sleeps: wait for the event or move a clock, or end the line with \
                 `// {SLEEP}: <reason>`"
            );
            findings.push(Finding::new(path, index + 1, message));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, body: &str) -> Vec<String> {
        let text = format!("//! A module.\n{body}\n");
        check(&Tree::of(&[(path, &text)])).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_module_says_what_it_is_for() {
        assert_eq!(check(&Tree::of(&[("core/src/a.rs", "//! A.\n")])), []);
        assert_eq!(check(&Tree::of(&[("core/src/a.rs", "use a;\n")])).len(), 1);
    }

    #[test]
    fn finds_an_ignored_test() {
        let ignored = "#[ignore = \"slow\"]";
        assert_eq!(found("core/src/a.rs", ignored).len(), 1);
        let quoted = format!("const A: &str = r#\"{ignored}\"#;");
        assert!(found("core/src/a.rs", &quoted).is_empty());
    }

    #[test]
    fn a_sleep_in_a_test_needs_a_reason() {
        let sleep = "std::thread::sleep(d);";
        let inline = format!("#[cfg(test)]\nmod tests {{\n    fn a() {{ {sleep} }}\n}}");
        assert_eq!(found("core/tests/a.rs", sleep).len(), 1);
        assert_eq!(found("core/tests/a.rs", "tokio::time::sleep(d).await;").len(), 1);
        assert_eq!(found("core/src/a.rs", &inline).len(), 1);
        assert!(found("server/src/a.rs", sleep).is_empty(), "production may wait");
        let excused = format!("{sleep} // tidy: sleep: the kernel offers no event");
        assert!(found("core/tests/a.rs", &excused).is_empty());
        assert_eq!(found("core/tests/a.rs", &format!("{sleep} // tidy: sleep")).len(), 1);
    }
}
