//! The members of the workspace, from `cargo metadata`.

use serde_json::Value;

use crate::Result;

/// A crate of the workspace.
#[derive(Debug, Clone, Default)]
pub(crate) struct Package {
    pub(crate) name: String,
    /// Directory from the root.
    pub(crate) dir: String,
    /// False for `publish = false`.
    pub(crate) published: bool,
    pub(crate) dependencies: Vec<Dependency>,
}

/// What a crate names in its manifest.
#[derive(Debug, Clone)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// For tests, benches and examples only.
    pub(crate) dev: bool,
}

impl Package {
    /// Whether it implements ports: a store, a provider or the files on disk.
    pub(crate) fn is_adapter(&self) -> bool {
        is_adapter(&self.name)
    }

    /// Path of its manifest from the root.
    pub(crate) fn manifest(&self) -> String {
        format!("{}/Cargo.toml", self.dir)
    }
}

/// What adapters of providers share, and no adapter itself.
pub(crate) const SHARED: &str = "throughline-provider-http";

/// Whether a crate of this name implements ports.
pub(crate) fn is_adapter(name: &str) -> bool {
    name == "throughline-files"
        || (name != SHARED
            && (name.starts_with("throughline-store-")
                || name.starts_with("throughline-provider-")))
}

/// Reads the answer of `cargo metadata --no-deps`.
pub(crate) fn packages(metadata: &Value) -> Result<Vec<Package>> {
    let root = text(metadata, "workspace_root")?;
    list(metadata, "packages")?
        .iter()
        .map(|package| {
            let manifest = text(package, "manifest_path")?.replace('\\', "/");
            let dir = manifest
                .strip_prefix(&root.replace('\\', "/"))
                .and_then(|path| path.strip_suffix("/Cargo.toml"))
                .ok_or_else(|| format!("{manifest} is outside of the workspace"))?;
            let dependencies = list(package, "dependencies")?
                .iter()
                .map(|dependency| {
                    let name = text(dependency, "name")?.to_owned();
                    Ok(Dependency { name, dev: dependency["kind"] == "dev" })
                })
                .collect::<Result<_>>()?;
            Ok(Package {
                name: text(package, "name")?.to_owned(),
                dir: dir.trim_start_matches('/').to_owned(),
                // Null is any registry, an empty list none.
                published: !package["publish"].as_array().is_some_and(Vec::is_empty),
                dependencies,
            })
        })
        .collect()
}

fn text<'a>(value: &'a Value, key: &str) -> Result<&'a str> {
    value[key].as_str().ok_or_else(|| format!("cargo metadata has no {key}").into())
}

fn list<'a>(value: &'a Value, key: &str) -> Result<&'a Vec<Value>> {
    value[key].as_array().ok_or_else(|| format!("cargo metadata has no {key}").into())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn metadata_is_read() {
        let metadata = json!({
            "workspace_root": "/r",
            "packages": [{
                "name": "throughline-store-x",
                "manifest_path": "/r/store-x/Cargo.toml",
                "publish": [],
                "dependencies": [
                    { "name": "throughline-core", "kind": null },
                    { "name": "tokio", "kind": "dev" },
                ],
            }],
        });
        let read = packages(&metadata).unwrap();
        assert_eq!(read[0].manifest(), "store-x/Cargo.toml");
        assert!(read[0].is_adapter() && !read[0].published);
        assert!(!read[0].dependencies[0].dev && read[0].dependencies[1].dev);
        assert!(is_adapter("throughline-files") && !is_adapter(SHARED));
    }
}
