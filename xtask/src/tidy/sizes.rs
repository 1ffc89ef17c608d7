//! No file is so long that nobody reads it. Where a reader would split one sooner, they split it.

use crate::tidy::Finding;
use crate::tidy::tree::Tree;

/// Lines of a file of source.
const MOST: usize = 1_000;

/// Checks every file.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let long = tree.sources().map(|(path, text)| (path, text.lines().count()));
    let long = long.filter(|(_, lines)| *lines > MOST);
    long.map(|(path, lines)| {
        let message = format!("{lines} lines: split the file by what it is about (over {MOST})");
        Finding::new(path, MOST, message)
    })
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_a_long_file() {
        let found = |lines| check(&Tree::of(&[("core/a.rs", &"fn a() {}\n".repeat(lines))])).len();
        assert_eq!((found(MOST), found(MOST + 1)), (0, 1));
    }
}
