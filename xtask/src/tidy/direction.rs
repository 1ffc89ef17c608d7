//! Dependencies point inward: adapters and the server know core, core knows none of them.

use crate::tidy::Finding;
use crate::tidy::packages::{Dependency, Package, SHARED, is_adapter};
use crate::tidy::scan::lines;
use crate::tidy::tree::Tree;

const CORE: &str = "throughline-core";
const TESTKIT: &str = "throughline-testkit";

/// Runtimes, drivers, web frameworks and wire formats: what core must not depend on.
const NOT_IN_CORE: &[&str] = &[
    "async-openai", "async-std", "axum", "clap", "deadpool", "diesel", "figment", "hyper",
    "qdrant-client", "redis", "reqwest", "rmcp", "rusqlite", "smol", "sqlx", "tiktoken", "tokio",
    "tokio-postgres", "tonic", "toml", "tower", "tower-http", "tracing-subscriber", "ureq",
];

/// The one place in core that names serde: the text of an export is the domain's own, and backups are kept as it.
const FORMS: &[&str] = &["core/src/persona/"];

/// The one place above the adapters that names them.
const COMPOSITION: &[&str] = &["engine/src/compose/"];

/// Checks manifests, and the source of core and of the server.
pub(crate) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<_> =
        tree.packages().iter().flat_map(|package| manifest(tree, package)).collect();
    let serde = "uses serde: in core, only core/src/persona/ may, for the export format";
    findings.extend(named(tree, "core/src/", FORMS, &["serde"], serde));
    let adapters = &["throughline_files", "throughline_store_", "throughline_provider_"];
    let adapter = "names an adapter: only engine/src/compose/ may";
    for dir in ["engine/src/", "server/src/", "eval/src/"] {
        findings.extend(named(tree, dir, COMPOSITION, adapters, adapter));
    }
    findings
}

/// Lines of code that hold one of `names`, in the source under `dir` that is not at `homes`.
fn named(
    tree: &Tree,
    dir: &str,
    homes: &[&str],
    names: &[&str],
    message: &'static str,
) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (path, text) in tree.sources().filter(|(path, _)| path.starts_with(dir)) {
        if homes.iter().any(|home| path.starts_with(home)) {
            continue;
        }
        for (index, line) in lines(text).iter().enumerate() {
            if names.iter().any(|name| line.code.contains(name)) {
                findings.push(Finding::new(path, index + 1, message));
            }
        }
    }
    findings
}

fn manifest(tree: &Tree, package: &Package) -> Vec<Finding> {
    let members: Vec<_> = tree.packages().iter().map(|member| member.name.as_str()).collect();
    package
        .dependencies
        .iter()
        .filter_map(|dependency| {
            let member = members.contains(&dependency.name.as_str());
            let why = objection(package, dependency, member)?;
            let path = package.manifest();
            let line = tree.file(&path).map_or(1, |text| line_of(text, dependency));
            Some(Finding::new(&path, line, format!("depends on {}: {why}", dependency.name)))
        })
        .collect()
}

/// Why the package must not have the dependency; `None` when it may.
fn objection(package: &Package, dependency: &Dependency, member: bool) -> Option<&'static str> {
    let Dependency { name, dev } = dependency;
    let (name, dev) = (name.as_str(), *dev);
    let me = package.name.as_str();
    if name == TESTKIT {
        let fine = dev || me == "xtask";
        return (!fine).then_some("testkit is for dev-dependencies only");
    }
    match me {
        "throughline-core" if member => Some("core must not depend on a crate of the workspace"),
        "throughline-core" if !dev && NOT_IN_CORE.contains(&name) => {
            Some("core must not depend on a runtime, driver, framework or wire format")
        }
        "throughline-testkit" if member && name != CORE => Some("testkit may depend on core only"),
        "xtask" if member => {
            Some("xtask must not depend on a crate of the workspace except testkit")
        }
        _ if package.is_adapter() && is_adapter(name) => {
            Some("an adapter must not depend on another")
        }
        SHARED if member && name != CORE => Some("what providers share may depend on core only"),
        _ if name == SHARED && me.starts_with("throughline-provider-") => None,
        _ if name == SHARED => Some("only adapters of providers depend on what they share"),
        _ if package.is_adapter() && member && name != CORE => {
            Some("an adapter may depend on core only")
        }
        _ => None,
    }
}

fn line_of(manifest: &str, dependency: &Dependency) -> usize {
    let mut dev = false;
    for (index, line) in manifest.lines().enumerate() {
        if line.starts_with('[') {
            dev = line.contains("dev-dependencies");
        }
        let named = line
            .strip_prefix(dependency.name.as_str())
            .is_some_and(|rest| rest.starts_with(['.', ' ', '=']));
        if named && dev == dependency.dev {
            return index + 1;
        }
    }
    1
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, dependencies: &[(&str, bool)]) -> Package {
        let dependencies = dependencies
            .iter()
            .map(|(name, dev)| Dependency { name: (*name).into(), dev: *dev })
            .collect();
        let dir = name.trim_start_matches("throughline-").into();
        Package { name: name.into(), dir, published: false, dependencies }
    }

    fn found(dependent: Package) -> usize {
        let mut packages: Vec<_> =
            ["core", "testkit", "store-a", "store-b", "provider-a", "provider-http", "server"]
                .iter()
                .map(|name| package(&format!("throughline-{name}"), &[]))
                .filter(|member| member.name != dependent.name)
                .collect();
        packages.push(dependent);
        check(&Tree::of(&[]).with(packages)).len()
    }

    #[test]
    fn core_is_free_of_the_outside() {
        let mut fine = vec![("throughline-testkit", true), ("tokio", true), ("regex", false)];
        fine.extend(["serde", "serde_json", "serde_path_to_error"].map(|name| (name, false)));
        assert_eq!(found(package("throughline-core", &fine)), 0);
        for broken in ["tokio", "toml", "rusqlite", "throughline-store-a", "throughline-testkit"] {
            assert_eq!(found(package("throughline-core", &[(broken, false)])), 1, "{broken}");
        }
    }

    #[test]
    fn adapters_know_core_only() {
        let fine = [("throughline-core", false), ("throughline-testkit", true), ("tokio", false)];
        assert_eq!(found(package("throughline-store-a", &fine)), 0);
        for broken in ["throughline-store-b", "throughline-provider-a", "throughline-server"] {
            for dev in [false, true] {
                assert_eq!(found(package("throughline-store-a", &[(broken, dev)])), 1, "{broken}");
            }
        }
    }

    #[test]
    fn providers_share_their_transport() {
        let shares = [("throughline-core", false), (SHARED, false)];
        assert_eq!(found(package("throughline-provider-a", &shares)), 0);
        assert_eq!(found(package("throughline-store-a", &shares)), 1);
        assert_eq!(found(package("throughline-server", &shares)), 1);
        assert_eq!(found(package(SHARED, &[("throughline-core", false), ("reqwest", false)])), 0);
        assert_eq!(found(package(SHARED, &[("throughline-provider-a", false)])), 1);
    }

    #[test]
    fn testkit_stays_in_tests_and_xtask_outside() {
        let testkit =
            package("throughline-testkit", &[("throughline-core", false), ("tokio", false)]);
        assert_eq!(found(testkit), 0);
        let knows_a_store = package("throughline-testkit", &[("throughline-store-a", true)]);
        assert_eq!(found(knows_a_store), 1);
        assert_eq!(found(package("throughline-server", &[("throughline-testkit", false)])), 1);
        assert_eq!(found(package("xtask", &[("throughline-testkit", false)])), 0);
        assert_eq!(found(package("xtask", &[("throughline-server", false)])), 1);
    }

    #[test]
    fn only_the_form_of_exports_names_serde() {
        for names in ["use serde::Serialize;", "serde_json::to_string(&a)", "#[serde(default)]"] {
            let text = format!("//! Not serde.\n{names} // serde\n");
            let form = "core/src/persona/export/json.rs";
            for fine in [form, "core/tests/a.rs", "server/src/wire/forms.rs", "store-a/src/lib.rs"]
            {
                assert_eq!(check(&Tree::of(&[(fine, &text)])), [], "{fine}: {names}");
            }
            for path in ["core/src/fact/mod.rs", "core/src/persona.rs"] {
                let findings = check(&Tree::of(&[(path, &text)]));
                assert_eq!(findings.len(), 1, "{path}: {names}");
                assert!(findings[0].to_string().starts_with(&format!("{path}:2: uses serde")));
            }
        }
    }

    #[test]
    fn only_composition_names_adapters() {
        let names = "use throughline_store_sqlite::SqliteStore;\n// throughline_store_x\n";
        let tree = Tree::of(&[("engine/src/compose/a.rs", names), ("server/src/main.rs", names)]);
        let findings = check(&tree);
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].to_string().split(": ").next(), Some("server/src/main.rs:1"));
    }

    #[test]
    fn a_finding_points_at_the_dependency() {
        let manifest = "[dependencies]\na.workspace = true\n\n[dev-dependencies]\ntokio = \"1\"\n";
        let tokio = |dev| Dependency { name: "tokio".into(), dev };
        assert_eq!((line_of(manifest, &tokio(true)), line_of(manifest, &tokio(false))), (5, 1));
    }
}
