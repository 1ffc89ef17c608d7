//! Every adapter runs the conformance tables of testkit.

use crate::tidy::Finding;
use crate::tidy::scan::lines;
use crate::tidy::tree::Tree;

/// What the test of an adapter calls.
const TABLES: &str = "throughline_testkit::conformance::";

/// Checks the crates that are adapters by name.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    tree.packages()
        .iter()
        .filter(|package| package.is_adapter())
        .filter(|package| {
            let tests = format!("{}/tests/", package.dir);
            !tree
                .sources()
                .filter(|(path, _)| path.starts_with(&tests))
                .any(|(_, text)| lines(text).iter().any(|line| line.code.contains(TABLES)))
        })
        .map(|package| {
            let message = format!("no file in {}/tests calls {TABLES}", package.dir);
            Finding::new(&package.manifest(), 1, message)
        })
        .collect()
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
        assert_eq!(found(&[("store-a/src/lib.rs", calls)]), 1);
        assert_eq!(
            found(&[(
                "store-a/tests/a.rs",
                "// throughline_testkit::conformance::x"
            )]),
            1
        );
        assert_eq!(found(&[]), 1);
    }
}
