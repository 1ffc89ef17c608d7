//! Files small enough to be read at once.

use crate::tidy::Finding;
use crate::tidy::scan::{is_test_file, lines, test_blocks};
use crate::tidy::tree::Tree;

/// No file of source is longer.
const FILE: usize = 600;
/// Tests longer than this move to a sibling `tests.rs`.
const INLINE_TESTS: usize = 150;
/// Of the production lines of all files.
const MEDIAN: usize = 150;
const P90: usize = 400;

/// Checks every file, and the distribution of all.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut production = Vec::new();
    for (path, text) in tree.sources() {
        let lines = lines(text);
        if lines.len() > FILE {
            let message = format!("{} lines: split the file (at most {FILE})", lines.len());
            findings.push(Finding::new(path, FILE, message));
        }
        let mut tests = 0;
        for block in test_blocks(&lines) {
            let size = block.end - block.start;
            tests += size;
            if size > INLINE_TESTS {
                let message = format!(
                    "{size} lines of inline tests: move them to a sibling tests.rs (over \
                     {INLINE_TESTS})"
                );
                findings.push(Finding::new(path, block.start + 1, message));
            }
        }
        if !is_test_file(path) {
            production.push((lines.len() - tests, path));
        }
    }
    findings.extend(distribution(production));
    findings
}

fn distribution(mut sizes: Vec<(usize, &str)>) -> Vec<Finding> {
    sizes.sort_unstable();
    let mut findings = Vec::new();
    for (name, percent, limit) in [("median", 50, MEDIAN), ("p90", 90, P90)] {
        // Nearest rank: the smallest value that covers this share of the files.
        let rank = (sizes.len() * percent).div_ceil(100).saturating_sub(1);
        let Some((size, _)) = sizes.get(rank).filter(|(size, _)| *size > limit) else {
            continue;
        };
        let largest: Vec<_> =
            sizes.iter().rev().take(5).map(|(size, path)| format!("{path} {size}")).collect();
        let message = format!(
            "production lines of all source files: {name} is {size}, at most {limit}; the \
             largest: {}",
            largest.join(", ")
        );
        findings.push(Finding::new("Cargo.toml", 1, message));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(lines: usize) -> String {
        "fn a() {}\n".repeat(lines)
    }

    #[test]
    fn a_long_file_is_found() {
        let (fine, long) = (code(FILE), code(FILE + 1));
        let tests = |text: &str| check(&Tree::of(&[("core/tests/a.rs", text)])).len();
        assert_eq!((tests(&fine), tests(&long)), (0, 1));
    }

    #[test]
    fn long_inline_tests_are_found() {
        let inline = |lines| format!("#[cfg(test)]\nmod tests {{\n{}}}\n", code(lines));
        let found = |text: String| check(&Tree::of(&[("core/src/a.rs", &text)])).len();
        assert_eq!(found(inline(INLINE_TESTS - 3)), 0);
        assert_eq!(found(inline(INLINE_TESTS)), 1);
    }

    #[test]
    fn the_distribution_is_of_production_lines() {
        let sizes = |sizes: &[usize]| {
            distribution(sizes.iter().map(|size| (*size, "a.rs")).collect()).len()
        };
        assert_eq!(sizes(&[]), 0);
        assert_eq!(sizes(&[100, 150, 500]), 1, "p90 of three is the largest");
        assert_eq!(sizes(&[10, 151, 200]), 1, "median");
        assert_eq!(sizes(&[10; 20]), 0);
        let padded = format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", code(100), code(100));
        assert_eq!(check(&Tree::of(&[("core/src/a.rs", &padded)])), []);
    }
}
