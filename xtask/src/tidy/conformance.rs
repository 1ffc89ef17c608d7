//! Every adapter runs the conformance tables of testkit.

use crate::tidy::Finding;
use crate::tidy::scan::{has_word, lines};
use crate::tidy::tree::Tree;

/// Checks the crates that are adapters by name.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.packages()
        .iter()
        .filter(|package| package.is_adapter())
        .filter(|package| {
            let tests = format!("{}/tests/", package.dir);
            !tree.sources().any(|(path, text)| path.starts_with(&tests) && calls_a_table(text))
        })
        .map(|package| {
            let message = format!(
                "no file in {}/tests calls throughline_testkit::conformance::",
                package.dir
            );
            Finding::new(&package.manifest(), 1, message)
        })
        .collect()
}

/// By its full path, or by `conformance::` after a `use` of testkit.
fn calls_a_table(text: &str) -> bool {
    let lines = lines(text);
    let has = |word: &str| lines.iter().any(|line| has_word(&line.code, word));
    has("throughline_testkit") && has("conformance::")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::packages::Package;

    #[test]
    fn an_adapter_without_the_tables_is_found() {
        let adapter = Package {
            name: "throughline-store-a".into(),
            dir: "store-a".into(),
            ..Package::default()
        };
        let found =
            |files: &[(&str, &str)]| check(&Tree::of(files).with(vec![adapter.clone()])).len();
        let calls = "throughline_testkit::conformance::store(&factory);";
        assert_eq!(found(&[("store-a/tests/conformance.rs", calls)]), 0);
        let imports = "use throughline_testkit::{build, conformance};\nconformance::store(&f);";
        assert_eq!(found(&[("store-a/tests/conformance.rs", imports)]), 0);
        assert_eq!(found(&[("store-a/src/lib.rs", calls)]), 1);
        assert_eq!(found(&[("store-a/tests/a.rs", "// throughline_testkit::conformance::x")]), 1);
        assert_eq!(found(&[]), 1);
    }
}
